#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/benchmarks.md are those that bench/marks.json and bench/record.json make, and the pictures exist."""

import pathlib
import re
import sys

sys.dont_write_bytecode = True


def main(root):
    sys.path.insert(0, str(root / "bench"))
    import marks

    faults = []
    page = marks.PAGE.read_text(encoding="utf-8")
    if marks.page(marks.read_record()) != page:
        faults.append("docs/benchmarks.md: tables are not those of bench/record.json; run bench/run --marks")
    known = marks.read_record()["figures"]
    keys = [m for s in marks.Marks().sections for row in s["rows"] for m in row["marks"]]
    if len({m["key"] for m in keys}) != len(keys):
        faults.append("bench/marks.json: a key twice")
    for m in keys:
        if ("least" in m) == ("most" in m):
            faults.append(f"bench/marks.json: {m['key']}: needs either least or most")
    for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page):
        if not (marks.PAGE.parent / picture).exists():
            faults.append(f"docs/benchmarks.md: {picture} does not exist")
    measured = sum(m["key"] in known for m in keys)
    print("\n".join(faults) or f"{len(keys)} marks, {measured} measured; the tables are theirs")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
