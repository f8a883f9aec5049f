#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exit codes that scripts decide by: 3 trust, 4 ABI, 5 crash in a plugin.

usage: refusal_test.py <trellis> <crash-plugin.so>"""

import pathlib
import re
import shutil
import sys

from command import CommandTest, main, trellis

CRASH = pathlib.Path(sys.argv[2])


class Refusal(CommandTest):
    def setUp(self):
        super().setUp()
        self.library = self.folder / "crash-plugin.so"
        shutil.copy(CRASH, self.library)
        self.manifest = self.folder / "crash-plugin.trellis.toml"
        shutil.copy(CRASH.parent / self.manifest.name, self.manifest)

    def load(self, **env):
        return trellis("op", "list", "--plugin", self.manifest, env=env)

    def test_a_good_one_loads_beside_the_shipped_ones(self):
        result = self.load()
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertEqual(result.out, trellis("op", "list").out)

    def test_crash(self):
        for how, signal in (("read", "Segmentation fault"), ("abort", "Aborted")):
            self.assert_refused(self.load(CRASH_PLUGIN=how), 5,
                                f"[plugin] '{self.library}' crashed: {signal} (run with TRELLIS_PLUGIN_DEBUG=load to see "
                                "what it was doing)")

    def test_abi(self):
        text = re.sub(r"^major = \d+", "major = 9", self.manifest.read_text(), flags=re.MULTILINE)
        self.manifest.write_text(text)
        result = self.load()
        self.assertEqual(result.code, 4)
        self.assertRegex(result.err, r"^trellis: \[plugin\] cannot load .*: needs host ABI 9\.\d+, this host has ")

    def test_trust(self):
        self.library.chmod(0o777)
        self.assert_refused(self.load(), 3, f"[plugin] cannot load '{self.library}': everybody may write to it (needs mode "
                                            "0755 or less, chmod o-w)")

    def test_missing(self):
        result = trellis("op", "list", "--plugin", "acme-none")
        self.assertEqual((result.code, result.out), (1, ""))
        self.assertRegex(result.err, r"^trellis: \[plugin\] .*'?acme-none'?")


if __name__ == "__main__":
    main()
