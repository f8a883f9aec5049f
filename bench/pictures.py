#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pictures.py FOLDER: draws FOLDER/growth.json as SVG. The same numbers give the same file."""

import json
import pathlib
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

matplotlib.rcParams.update({
    "svg.hashsalt": "trellis", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#dddddd",
    "legend.frameon": False, "legend.fontsize": 8,
})  # fmt: skip

COLOURS = {"construct": "#009e73", "forward": "#0072b2", "backward": "#d55e00", "construct + forward": "#0072b2",
           "look up, forward and backward": "#0072b2", "update (Adam)": "#d55e00",
           "chains, forward": "#56b4e9", "chains, backward": "#e69f00"}  # fmt: skip
LINES = {"trellis": "-", "limit": ":", "libtorch": "--"}
NAMES = {"trellis": "Trellis", "limit": "limit program", "libtorch": "libtorch"}
PICTURES = {
    "growth-nodes": [
        ("chain", "Chain of scalars", "nodes of the graph", "ns a node"),
        ("wide", "Independent branches: w x, tanh, sum", "nodes of the graph", "ns a node"),
        ("tagger", "BiLSTM tagger, sentences of 20 words", "nodes of the graph", "ns a node"),
    ],
    "growth-batch": [
        ("batch", "LSTM step 128 to 256, forward", "examples", "µs a step and example", "forward"),
        ("batch", "LSTM step 128 to 256, backward", "examples", "µs a step and example", "backward"),
    ],
    "growth-vocabulary": [
        ("rows", "20 rows of a table of 128 columns", "rows of the table", "ns a touched row"),
        ("classes", "Softmax loss, hidden 256, batch 16", "classes", "ns a class"),
    ],
}


def panel(axes, curves, group, title, size, unit, only=""):
    scale = 1e-3 if unit.startswith("µs") else 1
    for c in curves:
        if c["group"] != group or not c["part"].endswith(only):
            continue
        scaled = [[scale * v for v in c[k]] for k in ("ns", "low", "high")]
        colour = COLOURS[c["part"]]
        label = f"{NAMES[c['program']]}, {c['part']}"
        axes.plot(c["x"], scaled[0], LINES[c["program"]], color=colour, marker="o", markersize=3, linewidth=1.4, label=label)
        axes.fill_between(c["x"], scaled[1], scaled[2], color=colour, alpha=0.15, linewidth=0)
    axes.set(title=title, xscale="log", yscale="log", xlabel=size, ylabel=unit)
    low, high = axes.get_ylim()
    axes.set_ylim(low / 1.5, high * 1.5)  # at least a decade, so that noise does not look like growth
    axes.yaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda y, _: f"{y:,.0f}"))
    axes.yaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2))


def main():
    folder = pathlib.Path(sys.argv[1])
    curves = json.loads((folder / "growth.json").read_text())["curves"]
    for name, panels in PICTURES.items():
        figure, axes = plt.subplots(1, len(panels), figsize=(4 * len(panels), 4.6), squeeze=False)
        for one, p in zip(axes[0], panels):
            panel(one, curves, *p)
        figure.tight_layout()
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None}, facecolor="white")
        plt.close(figure)
        print(f"# written: {folder / name}.svg")


main()
