# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command share: running it, and its plugins as the build made them."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TRELLIS = os.path.abspath(sys.argv[1])  # tests run it from other folders
PLUGINS = pathlib.Path(os.environ["TRELLIS_PLUGIN_PATH"])


class Result:
    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def json(self):
        """--json always prints an array of objects."""
        array = json.loads(self.out)
        assert isinstance(array, list) and all(isinstance(item, dict) for item in array), self.out
        return array


def trellis(*args, stdin="", env=None, program=TRELLIS, cwd=None):
    done = subprocess.run([program, *map(str, args)], input=stdin, capture_output=True, text=True, timeout=300,
                          cwd=cwd, env={**os.environ, **(env or {})})
    return Result(done)


class CommandTest(unittest.TestCase):
    """Each test has a folder of its own."""

    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def assert_refused(self, result, code, text):
        """Nothing on standard output, one line on standard error."""
        self.assertEqual((result.err, result.code, result.out), (f"trellis: {text}\n", code, ""))


def main():
    unittest.main(argv=sys.argv[:1])
