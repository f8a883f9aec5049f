#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""README.md shows the program of examples/hello.cpp as it is, and names only paths that exist."""

import pathlib
import re
import sys

PATH = re.compile(r"\.?/?[\w.-]+(/[\w.-]+)*/?")
FOLDERS = ("sdk/", "framework/", "plugins/", "tools/", "examples/", "bench/", "tests/", "docs/", "data/", "python/")


def program(root):
    """examples/hello.cpp without the comment at its head."""
    text = (root / "examples/hello.cpp").read_text(encoding="utf-8")
    return re.sub(r"\A(//[^\n]*\n|\n)*", "", text)


def main(root):
    readme = (root / "README.md").read_text(encoding="utf-8")
    faults = []
    if program(root) not in re.findall(r"^```cpp\n(.*?)^```", readme, re.DOTALL | re.MULTILINE):
        faults.append("README.md: no block of C++ equals examples/hello.cpp")
    links = re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", readme)
    quoted = [text for text in re.findall(r"`([^`\n]+)`", readme) if text.startswith(FOLDERS) and PATH.fullmatch(text)]
    for path in sorted(set(links + quoted)):
        if not (root / path).exists():
            faults.append(f"README.md: {path} does not exist")
    print("\n".join(faults) or f"{len(set(links + quoted))} paths and the program are as README.md says")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
