#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/abi.md: its examples pass the validator, and its contracts name tests that exist and are known to fail.

abi_page_test.py TRELLIS FOLDER, the folder being that of the built examples."""

import json
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "tools"))
import zoo  # noqa: E402

TRELLIS, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
PAGE = (ROOT / "docs" / "abi.md").read_text(encoding="utf-8")
CONTRACTS = re.findall(r"^\| (PLUG|HOST)-(\d+) \| (.*) \| (.*) \|$", PAGE, re.MULTILINE)


def trellis(*words):
    done = subprocess.run([TRELLIS, "plugin", "validate", *words, "--json"], capture_output=True, text=True, timeout=600)
    return done.returncode, json.loads(done.stdout)


class Page(unittest.TestCase):
    maxDiff = None

    def check_example(self, name, things):
        code, (report,) = trellis(str(FOLDER / f"{name}.trellis.toml"), "--level", "6")
        self.assertEqual([f"{t['test']} {t['subject']}: {t['text']}" for t in report["tests"] if t["state"] == "failed"],
                         [])
        self.assertEqual(code, 0)
        self.assertLessEqual(things, {t["subject"] for t in report["tests"] if t["state"] == "passed"})

    def test_the_plugin_in_cpp(self):
        self.check_example("acme-page", {f"acme.{name}" for name in ("bend", "elman", "output", "even", "heavy", "loops")})

    def test_the_plugin_in_c(self):
        self.check_example("plain", {"plain.twice"})

    def test_contracts_are_numbered(self):
        for side in ("PLUG", "HOST"):
            numbers = [int(number) for s, number, *_ in CONTRACTS if s == side]
            self.assertEqual(numbers, list(range(1, len(numbers) + 1)))

    def test_named_tests_exist_and_can_fail(self):
        known = {t["test"] for t in trellis("--list")[1]}
        kinds = {name.split(".")[0] for name in known}
        named = {name for *_, by in CONTRACTS for name in re.findall(r"`(\w+\.[\w-]+)`", by) if name.split(".")[0] in kinds}
        self.assertGreater(len(named), 40)
        self.assertEqual(named - known, set())
        # What the host refuses has no plugin that breaks it.
        self.assertEqual(named - {s.test for s in zoo.specimens()} - {"batch.ids"}, set())
        # Nothing is tested that is no contract; times are shown only.
        self.assertEqual(known - named - {"cost.time"}, set())

    def test_named_files_exist(self):
        for *_, by in CONTRACTS:
            for path in re.findall(r"`(tests/[^`]+)`", by):
                self.assertTrue((ROOT / path).exists(), path)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
