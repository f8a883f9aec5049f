#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trellis plugin validate finds what is wrong with every specimen of the zoo, and nothing with their healthy twins.

zoo_test.py TRELLIS [--full] [ID...]: without --full each specimen meets the test that must catch it and those that say
the same line by line; with --full all tests of its level. Prints the table of what was caught by what."""

import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

import zoo

TRELLIS = os.path.abspath(sys.argv[1])
FULL = "--full" in sys.argv
NAMES = [a for a in sys.argv[2:] if not a.startswith("--")]
FOLDER = pathlib.Path(os.environ["TRELLIS_ZOO"])
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "zoo.md"
# Long enough for any test of these small plugins, short enough for those that hang.
LIMIT = "10"
SPECIMENS = [s for s in zoo.specimens() if not NAMES or s.id in NAMES]


class Run:
    """One validation: its exit code, its report, and its standard error for messages."""

    def __init__(self, words, limit=LIMIT):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([TRELLIS, *words, "--time-limit", limit, "--json"], capture_output=True, text=True,
                                  timeout=900, cwd=folder)
        self.code, self.err = done.returncode, done.stderr
        try:
            (self.report,) = json.loads(done.stdout)
        except ValueError:
            self.report = {"tests": []}
            self.err += done.stdout

    def failed(self, test=None):
        return [t for t in self.report["tests"] if t["state"] == "failed" and test in (None, t["test"])]

    def ran(self):
        return [t["test"] for t in self.report["tests"] if t["state"] != "skipped"]


def validate(specimen):
    words = ["plugin", "validate", str(FOLDER / f"zoo-{specimen.id}.trellis.toml"), "--level", str(specimen.level)]
    if specimen.test and not FULL:
        words += ["--test", specimen.test]
    # what is right may take long where much else runs
    first = Run(words, LIMIT if specimen.test else "300")
    caught = first.failed(specimen.test)
    if not specimen.test or not caught:
        return first, None
    program, *words = shlex.split(caught[0]["reproduce"])
    assert program == "trellis"
    return first, Run(words)


def run_all():
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip((s.id for s in SPECIMENS), pool.map(validate, SPECIMENS)))


class Zoo(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.runs = run_all()

    def test_the_page_is_up_to_date(self):
        self.assertTrue(PAGE.read_text(encoding="utf-8") == zoo.page(), "run tests/tools/zoo.py docs/zoo.md")

    def check_twin(self, specimen):
        run, _ = self.runs[specimen.id]
        self.assertEqual([f"{t['test']}: {t['text']}" for t in run.failed()], [], run.err)
        self.assertEqual(run.code, 0, run.err)
        self.assertGreater(len(run.ran()), 1)

    def check_specimen(self, specimen):
        run, again = self.runs[specimen.id]
        caught = run.failed(specimen.test)
        others = [f"{t['test']}: {t['text']}" for t in run.failed()]
        self.assertTrue(caught, f"{specimen.test} passed; failed: {others}; code {run.code}; {run.err}")
        # 1 and 5 are the validator's own words for findings and for a plugin that crashed; a signal would be negative.
        self.assertEqual(run.code, 5 if any(t["crashed"] for t in run.failed()) else 1)
        self.assertEqual(len(run.report["tests"]), sum(run.report[n] for n in ("passed", "failed", "skipped")))
        first = caught[0]
        self.assertEqual(first["level"], specimen.level)
        self.assertIn(first["subject"], (f"zoo-{specimen.id}", self.thing_of(specimen)))
        self.assertTrue(first["text"])
        # the line for one test runs one test, which fails again
        self.assertEqual({t["test"] for t in again.report["tests"]}, {specimen.test}, again.err)
        self.assertIn(first["subject"], [t["subject"] for t in again.failed()], again.err)

    @staticmethod
    def thing_of(specimen):
        things = {"element.c": "bend", "throws.cpp": "bend", "pair.c": "gate", "services.c": "project",
                  "hidden.c": "bell", "ids.c": "entry", "random.c": "jitter", "builder.c": "elman",
                  "softmax.c": "output", "trainer.c": "heavy", "initializer.c": "even", "provider.c": "loops"}
        return ("pub." if specimen.fault == "outside_namespace" else "zoo.") + things[specimen.source]

    @classmethod
    def tearDownClass(cls):
        rows = [["specimen", "what is wrong", "caught by", "host alive", "it said"]]
        for s in SPECIMENS:
            run, _ = cls.runs[s.id]
            caught = run.failed(s.test) if s.test else run.failed()
            said = caught[0]["text"].split("\n")[0][:90] if caught else ""
            by = ", ".join(sorted({t["test"] for t in run.failed()})) if FULL or not s.test else s.test
            rows.append([s.id, s.wrong, (by if caught else "-"), "yes" if run.code in (0, 1, 5) else "no", said])
        sys.stderr.flush()
        print(zoo.table(rows), flush=True)


def add_tests():
    for s in SPECIMENS:
        check = Zoo.check_specimen if s.test else Zoo.check_twin
        kind = "caught" if s.test else "healthy"
        setattr(Zoo, f"test_{kind}_{s.id.replace('-', '_')}", lambda self, s=s, check=check: check(self, s))


if __name__ == "__main__":
    add_tests()
    unittest.main(argv=sys.argv[:1])
