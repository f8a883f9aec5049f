#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of examples/ and looks at what they print. usage: examples_test.py <hello> <tagger>"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HELLO, TAGGER = sys.argv[1:3]


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL)


class Examples(unittest.TestCase):
    def test_hello_learns_xor(self):
        result = run(HELLO)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        losses = [float(x) for x in re.findall(r"^step \d+: loss (\S+)$", result.stdout, re.MULTILINE)]
        self.assertEqual(len(losses), 3)
        self.assertLess(losses[-1], 0.05)

    def test_tagger_learns_a_small_language(self):
        # "saw" is a verb after a pronoun and a noun after an article: words alone do not say it.
        sentences = ["I|PRON saw|VERB the|DET saw|NOUN", "the|DET saw|NOUN saw|VERB you|PRON"] * 30
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "corpus.txt")
            path.write_text("\n".join(sentences) + "\n")
            result = run(TAGGER, str(path))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"(?m)^epoch 3: loss \S+, 24 of 24 words right$")

    def test_tagger_says_what_is_wrong(self):
        self.assertEqual(run(TAGGER).returncode, 2)
        result = run(TAGGER, "/none")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "[read_tagged] cannot read '/none': No such file or directory\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
