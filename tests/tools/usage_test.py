#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command as a whole: help, versions, wrong command lines, exit codes."""

import subprocess

from command import TRELLIS, CommandTest, main, trellis


class Usage(CommandTest):
    def test_version_names_product_and_abi(self):
        result = trellis("--version")
        self.assertRegex(result.out, r"^trellis \d+\.\d+\.\d+ \(plugin ABI \d+\.\d+\)\n$")
        self.assertEqual((result.code, result.err), (0, ""))

    def test_help_of_every_subcommand(self):
        for words in ([], ["plugin"], ["plugin", "list"], ["plugin", "inspect"], ["plugin", "check"], ["plugin", "new"],
                      ["plugin", "dev"], ["plugin", "header"], ["op", "list"], ["op", "describe"], ["train", "tagger"],
                      ["predict", "tagger"]):
            result = trellis(*words, "--help")
            self.assertEqual((result.code, result.err), (0, ""), words)
            self.assertIn("--help", result.out)

    def test_wrong_command_lines_exit_with_2(self):
        self.assert_refused(trellis(), 2, "A subcommand is required (see trellis --help)")
        self.assert_refused(trellis("op"), 2, "A subcommand is required (see trellis --help)")
        self.assert_refused(trellis("op", "list", "--colour"), 2,
                            "The following argument was not expected: --colour (see trellis --help)")
        self.assert_refused(trellis("predict", "tagger"), 2, "--model is required (see trellis --help)")
        self.assertEqual(trellis("train", "tagger", "--epochs", "0").code, 2)
        self.assertEqual(trellis("train", "tagger", "--format", "xml").code, 2)
        self.assertEqual(trellis("op", "list", "--kind", "verb").code, 2)
        for rate in ("nan", "inf", "0", "-1", "1x", ""):
            result = trellis("train", "tagger", f"--lr={rate}")
            self.assertEqual((result.code, result.out), (2, ""), rate)
            if rate:
                self.assertIn(f"not a positive number: {rate} (see trellis --help)", result.err)

    def test_no_plugins_found(self):
        where = {"TRELLIS_PLUGIN_PATH": str(self.folder)}
        result = trellis("plugin", "list", env=where)
        self.assertEqual((result.code, result.err),
                         (0, "trellis: no plugins found (TRELLIS_PLUGIN_PATH names folders to search, "
                             "TRELLIS_PLUGIN_DEBUG=search shows where was looked)\n"))
        self.assertEqual(trellis("--quiet", "plugin", "list", env=where).err, "")
        self.assertEqual(trellis("--no-plugins", "op", "list", env=where).err, "")

    def test_options_for_all_stand_before_or_behind(self):
        self.assertEqual(trellis("--no-plugins", "op", "list").out, trellis("op", "list", "--no-plugins").out)

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([TRELLIS, "op", "list"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (1, "trellis: cannot write to standard output\n"))


if __name__ == "__main__":
    main()
