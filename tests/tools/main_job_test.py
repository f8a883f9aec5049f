#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The main job as a reader of README.md runs it: a tagger on the shipped data, without arguments."""

import re

from command import CommandTest, main, trellis


class MainJob(CommandTest):
    def test_reaches_98_percent_on_dev(self):
        result = trellis("train", "tagger", cwd=self.folder)
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertGreaterEqual(float(re.search(r"dev accuracy (\S+) %\n$", result.out)[1]), 98.0)
        tagged = trellis("predict", "tagger", "--model", self.folder / "tagger.safetensors",
                         stdin="show me flights from boston to denver\n")
        self.assertEqual(tagged.out, "show|VERB me|PRON flights|NOUN from|ADP boston|PROPN to|ADP denver|PROPN\n")


if __name__ == "__main__":
    main()
