#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reports how large files are against what is usual here: a place to look again, not a rule."""

import pathlib
import statistics
import sys

# what, pattern, usual number of lines, look again above
BUDGETS = [
    ("operator file", "plugins/ops-*/ops/*.cpp", 45, 250),
    ("trainer file", "plugins/trainers/*.cpp", 60, 100),
    ("public header", "framework/include/trellis/*.hpp", 90, 250),
    ("header of the SDK", "sdk/include/trellis/*/*.h*", 90, 250),
    ("source of the kernel", "framework/*/*.cpp", 130, 400),
    ("test", "tests/**/*_test.cpp", 60, 350),
    ("meson.build", "*/**/meson.build", 30, 100),
]


def main(root):
    for what, pattern, usual, limit in BUDGETS:
        lines = {p: len(p.read_text(encoding="utf-8").splitlines()) for p in sorted(root.glob(pattern))}
        if not lines:
            continue
        print(f"{what}: {len(lines)} files, median {statistics.median(lines.values()):.0f} lines (usual {usual})")
        for path, count in lines.items():
            if count > limit:
                print(f"  {path.relative_to(root)}: {count} (look again above {limit})")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
