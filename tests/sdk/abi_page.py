#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/abi.md: abi_page.py PAGE NAME OUTPUT writes the blocks marked with NAME, one after another."""

import pathlib
import re
import sys


def blocks(page, name):
    found = re.findall(rf"^```\w+ {name}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert found, name
    return "\n".join(found)


if __name__ == "__main__":
    source, name, output = sys.argv[1:]
    text = "// SPDX-License-Identifier: Apache-2.0\n" + blocks(pathlib.Path(source).read_text(encoding="utf-8"), name)
    pathlib.Path(output).write_text(text, encoding="utf-8")
