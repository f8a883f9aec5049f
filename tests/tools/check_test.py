#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trellis plugin check. What is found is in tests/framework/plugin/check_test.cpp; here: how it is said."""

import shutil

from command import PLUGINS, CommandTest, main, trellis


class Check(CommandTest):
    def copy(self):
        for file in [*PLUGINS.glob("trainers*.so"), PLUGINS / "trainers.trellis.toml"]:
            shutil.copy(file, self.folder)
        return self.folder / "trainers.trellis.toml"

    def test_a_shipped_one(self):
        result = trellis("plugin", "check", "trainers")
        self.assertRegex(result.out, r"(?m)^trainers \d+\.\d+\.\d+: 0 errors, \d+ warnings?, (1 library|\d+ libraries) read$")
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertNotIn("0 errors", trellis("plugin", "check", "trainers", "--quiet").out)

    def test_json(self):
        (check,) = trellis("plugin", "check", "ops-core", "--json").json()
        self.assertEqual((check["id"], check["errors"]), ("ops-core", 0))
        self.assertIn(str(PLUGINS / "ops-core.so"), check["libraries"])
        self.assertEqual(check["warnings"], len(check["findings"]))

    def test_errors_end_with_1(self):
        manifest = self.copy()
        (self.folder / "trainers.so").write_text("this is no library")
        result = trellis("plugin", "check", manifest)
        self.assertEqual((result.code, result.err), (1, ""))
        self.assertIn("error file: [check] trainers.so: not a shared library: no ELF magic\n", result.out)
        self.assertIn("error manifest: [check] trainers.trellis.toml: declares a namespace of the shipped plugins: given "
                      "'core' (needed one of your own)\n", result.out)
        self.assertIn(": 2 errors, 0 warnings, ", result.out.splitlines()[-1])
        (check,) = trellis("plugin", "check", manifest, "--json").json()
        self.assertEqual({(f["severity"], f["check"]) for f in check["findings"]},
                         {("error", "file"), ("error", "manifest")})

    def test_what_is_not_there(self):
        missing = self.folder / "none.so"
        self.assert_refused(trellis("plugin", "check", missing), 1, f"[plugin] cannot check '{missing}': no such file")
        self.assert_refused(trellis("plugin", "check"), 2, "plugin is required (see trellis --help)")


if __name__ == "__main__":
    main()
