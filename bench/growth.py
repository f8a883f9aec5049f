# SPDX-License-Identifier: Apache-2.0
"""Growth curves: points of the programs `*-growth`, in turns, to medians, slopes and verdicts.

A slope is that of a line through the points in log-log: 1 means that twice the size takes twice the time.
"""

import json
import math
import pathlib
import statistics
import subprocess
import sys

PROGRAMS = {
    "chain": ["trellis", "libtorch"],
    "wide": ["trellis", "libtorch"],
    "tagger": ["trellis", "libtorch"],
    "batch": ["trellis", "limit", "libtorch"],
    "rows": ["trellis", "libtorch"],
    "classes": ["trellis", "libtorch"],
}
# What grows, the least size that counts (below, what is done once a graph shows), the slope wanted. Of `rows` the time
# of a touched row is meant, which should not depend on the table; only the caches see how large it is.
CLAIMS = {
    "chain": ("time of a graph against its nodes", 1000, 0.9, 1.15),
    "wide": ("time of a graph against its nodes", 1000, 0.9, 1.15),
    "tagger": ("time of a graph against its nodes", 1000, 0.9, 1.15),
    "batch": ("time of a step against the batch", 1, 0, 1.05),
    "rows": ("time of a touched row against the table", 100, -0.1, 0.2),
    "classes": ("time of the loss against the classes", 300, 0.9, 1.15),
}


def slope(xs, ys):
    xs, ys = [math.log(x) for x in xs], [math.log(y) for y in ys]
    x, y = statistics.fmean(xs), statistics.fmean(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys)) / sum((a - x) ** 2 for a in xs)


def measure(programs, rounds, run):
    """`run(program, group)` returns the lines of a program; the result: curves with a median and a spread a point."""
    found, nodes = {}, {}
    for group, wanted in PROGRAMS.items():
        for r in range(rounds):
            for program in (p for p in wanted if p in programs):
                print(f"# {group}, {program}, {r + 1} of {rounds}", file=sys.stderr, flush=True)
                for line in run(program, group):
                    key = group, program
                    if "nodes" in line:
                        nodes[group, line["x"]] = line["nodes"]
                    else:
                        found.setdefault(key, {}).setdefault(line["part"], {}).setdefault(line["x"], []).append(line["value"])
    curves = []
    for (group, program), parts in found.items():
        for part, points in parts.items():
            sizes, values = list(points), list(points.values())
            if group == "tagger":  # sizes count sentences, and so do the items of the peer, whose nodes are others
                if program != "trellis":
                    values = [[v * x / nodes[group, x] for v in vs] for x, vs in points.items()]
                sizes = [nodes[group, x] for x in sizes]
            curves.append({"group": group, "program": program, "part": part, "x": sizes,
                           "ns": [statistics.median(vs) for vs in values],
                           "low": [min(vs) for vs in values], "high": [max(vs) for vs in values]})  # fmt: skip
    return curves


def verdicts(curves):
    out = []
    for c in curves:
        what, least, low, high = CLAIMS[c["group"]]
        points = [(x, ns * (1 if c["group"] == "rows" else x)) for x, ns in zip(c["x"], c["ns"]) if x >= least]
        if c["program"] != "trellis" or len(points) < 3:
            continue
        s = slope(*zip(*points))
        out.append({"group": c["group"], "part": c["part"], "what": what, "from": points[0][0], "to": points[-1][0],
                    "slope": round(s, 3), "wanted": [low, high], "reached": low <= s <= high})  # fmt: skip
    return out


def show(curves, claims):
    for c in curves:
        print(f"\n{c['group']}, {c['program']}, {c['part']}: ns")
        print("  " + "  ".join(f"{x:,}: {ns:.4g}" for x, ns in zip(c["x"], c["ns"])))
    print()
    for v in claims:
        low, high = v["wanted"]
        said = "reached" if v["reached"] else "NOT reached"
        print(f"{v['group']:8} {v['part']:30} {v['what']}, {v['from']:,} to {v['to']:,}: "
              f"slope {v['slope']:.2f} (wanted {low} to {high}): {said}")  # fmt: skip


def draw(folder):
    """By whichever Python has Matplotlib: Debian's package belongs to Debian's Python."""
    script = pathlib.Path(__file__).with_name("pictures.py")
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import matplotlib"], capture_output=True).returncode == 0:
            subprocess.run([python, str(script), str(folder)], check=True)
            return
    sys.exit("no pictures: Matplotlib is missing (Debian 12: python3-matplotlib)")


def write(folder, record):
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(part) for part in record["curves"]]
    head = {k: v for k, v in record.items() if k != "curves"}
    text = json.dumps(head, indent=1)[:-2] + ',\n "curves": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n"
    (folder / "growth.json").write_text(text)
