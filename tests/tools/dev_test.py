#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trellis plugin dev, trellis plugin header.

usage: dev_test.py <trellis> <crash-plugin.so>"""

import pathlib
import shutil
import sys

from command import PLUGINS, CommandTest, main, trellis

BUILT = pathlib.Path(sys.argv[2])


class Dev(CommandTest):
    def setUp(self):
        super().setUp()
        self.env = {"XDG_CONFIG_HOME": str(self.folder / "config")}
        self.build = self.folder / "build"
        self.build.mkdir()
        for name in (BUILT.name, "crash-plugin.trellis.toml"):
            shutil.copy(BUILT.parent / name, self.build)

    def dev(self, *args):
        return trellis("plugin", "dev", *args, env=self.env)

    def test_in_and_out(self):
        result = self.dev(self.build)
        self.assertEqual((result.out, result.err, result.code),
                         (f"{self.build}: its plugins are loaded from now on\n", "", 0))
        self.assertEqual(self.dev(self.build).out, f"{self.build}: its plugins are loaded from now on, as before\n")
        self.assertEqual(self.dev().out, f"{self.build}\n")
        self.assertEqual(self.dev("--list", "--json").json(), [{"folder": str(self.build), "present": True}])
        states = {p["id"]: p["state"] for p in trellis("plugin", "list", "--json", env=self.env).json()}
        self.assertEqual((states["crash-plugin"], states["trainers"]), ("dev", "shipped"))
        self.assertEqual(trellis("op", "list", env=self.env).err.count("is work in progress, from the dev folder "
                                                                       f"'{self.build}'"), 1)
        shutil.rmtree(self.build)
        self.assertEqual(self.dev().out, f"{self.build} (gone)\n")
        self.assertEqual(self.dev("--remove", self.build).out, f"{self.build}: its plugins are not loaded any more\n")
        self.assertEqual((self.dev().out, trellis("op", "list", env=self.env).err), ("", ""))

    def test_refusals(self):
        self.assert_refused(self.dev("--remove"), 2, "[plugin dev] no folder given (needed with --remove)")
        self.assert_refused(self.dev("--remove", self.build), 2,
                            f"[plugin dev] no dev folder: given '{self.build}' (see trellis plugin dev --list)")
        self.assert_refused(self.dev(self.folder / "none"), 2,
                            f"[plugin] no folder to trust: given '{self.folder / 'none'}'")
        self.assertEqual(self.dev("--quiet", self.build).out, "")


class Header(CommandTest):
    def test_it_is_the_one_that_is_installed(self):
        made = self.folder / "core.hpp"
        result = trellis("plugin", "header", "ops-rnn", "-o", made)
        self.assertEqual((result.out, result.err, result.code), ("", "", 0))
        text = made.read_text(encoding="utf-8")
        self.assertIn("namespace trellis::ops {", text)
        self.assertIn("lstm_cell(", text)
        self.assertEqual(trellis("plugin", "header", PLUGINS / "ops-rnn.trellis.toml").out, text)

    def test_refusals(self):
        self.assert_refused(trellis("plugin", "header", "ops-rnn", "--namespace", "acme"), 2,
                            "[plugin header] ops-rnn has no single namespace to write: given 'acme' (needed --namespace "
                            "with one of core)")
        nowhere = self.folder / "none/x.hpp"
        self.assert_refused(trellis("plugin", "header", "ops-rnn", "-o", nowhere), 1,
                            f"[plugin header] cannot write '{nowhere}': No such file or directory")
        self.assert_refused(trellis("plugin", "header", "ops-rnn", env={"PATH": str(self.folder)}), 1,
                            "[plugin header] cannot run 'python3': No such file or directory")
        self.assert_refused(trellis("plugin", "header", self.folder / "none.so"), 1,
                            f"[plugin] cannot inspect '{self.folder / 'none.so'}': no such file")


if __name__ == "__main__":
    main()
