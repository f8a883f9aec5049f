#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every C and C++ file is as clang-format leaves it. Skipped (77) where clang-format is not installed."""

import pathlib
import shutil
import subprocess
import sys

FOLDERS = ("sdk", "framework", "plugins", "tools", "examples", "bench", "tests")
SUFFIXES = {".h", ".hpp", ".c", ".cpp"}


def main(root):
    program = shutil.which("clang-format")
    if program is None:
        print("clang-format is not installed")
        return 77
    files = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*")) if path.suffix in SUFFIXES]
    result = subprocess.run([program, "--dry-run", "-Werror", *files], capture_output=True, text=True, cwd=root)
    unformatted = sorted({line.split(":")[0] for line in result.stderr.splitlines() if ": error: " in line})
    for path in unformatted:
        print(f"{pathlib.Path(path).relative_to(root)}: run clang-format -i on it")
    if result.returncode and not unformatted:
        print(result.stderr)
    return 1 if result.returncode else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
