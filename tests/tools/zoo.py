#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The zoo's table, tests/fixtures/zoo/specimens.txt: reads it, and writes the page about it (zoo.py PAGE)."""

import pathlib
import sys
from typing import NamedTuple

TABLE = pathlib.Path(__file__).parents[1] / "fixtures" / "zoo" / "specimens.txt"
PREFACE = """\
# The zoo

Plugins that are right except for one thing, each beside the test of `trellis plugin validate` that must find it. They are
in `tests/fixtures/zoo`; `tests/tools/zoo_test.py` runs the validator over all of them and asserts for every row that

- the named test fails, and its report names the thing that is wrong and a line that reproduces it;
- that line alone makes the same test fail again;
- the validator lives, whatever the plugin does to its process, and reports on all other tests.

The healthy twins, one a source, pass every test of level 10. This page is made from the table `specimens.txt` by
`tests/tools/zoo.py docs/zoo.md`.
"""


class Specimen(NamedTuple):
    id: str
    source: str
    fault: str
    level: int
    test: str  # empty: nothing is wrong
    wrong: str


def specimens():
    rows = []
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            id, source, fault, level, test, wrong = (part.strip() for part in line.split("|"))
            rows.append(Specimen(id, source, fault, int(level or 10), test, wrong))
    return rows


def table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    rows.insert(1, ["-" * w for w in widths])
    return "".join("| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths)) + " |\n" for row in rows)


def page():
    bad = [s for s in specimens() if s.test]
    twins = [s for s in specimens() if not s.test]
    text = PREFACE + f"\n{len(bad)} specimens, {len(set(s.test for s in bad))} tests, {len(twins)} healthy twins.\n\n"
    text += table([["specimen", "what is wrong", "caught by", "level"]] +
                  [[f"`{s.id}`", s.wrong, f"`{s.test}`", str(s.level)] for s in bad])
    text += "\nHealthy: " + ", ".join(f"`{s.id}` ({s.source})" for s in twins) + ".\n"
    return text


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(page(), encoding="utf-8")
