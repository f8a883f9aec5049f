# SPDX-License-Identifier: Apache-2.0
"""The marks (marks.json), what was measured last (record.json), and the tables of docs/benchmarks.md made from both.

A figure has a key, the same in all three: "lm mb1, train / limit", "lm mb1, peak", "matmul 512^3",
"matmul 512^3, libtorch / trellis", "lm mb16, perplexity_1".
"""

import json
import pathlib
import statistics

HERE = pathlib.Path(__file__).resolve().parent
MARKS, RECORD = HERE / "marks.json", HERE / "record.json"
PAGE = HERE.parent / "docs/benchmarks.md"


def spread(values):
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


class Marks:
    def __init__(self, path=MARKS):
        self.sections = json.loads(path.read_text())
        self.by_key = {m["key"]: m for s in self.sections for row in s["rows"] for m in row["marks"]}

    def verdict(self, key, value):
        """(the mark, whether it is reached), or None where there is none."""
        mark = self.by_key.get(key)
        if mark is None:
            return None
        return number(mark), value >= mark["least"] if "least" in mark else value <= mark["most"]


def number(mark):
    return mark["least"] if "least" in mark else mark["most"]


def peak_ratio(runs):
    """Of the peak of memory to the limit program's, or None."""
    if not runs.get("trellis") or not runs.get("limit"):
        return None
    return spread([a["infer_rss_mib"] / b["infer_rss_mib"] for a, b in zip(runs["trellis"], runs["limit"])])


def figures_of_task(row):
    name, runs = f"{row['task']} mb{row['mb']}", row["runs"]
    out = {f"{name}, {what}": s for what, s in row["ratios"].items()}
    for program, results in runs.items():
        for what in ("train", "infer"):
            out[f"{name}, {what}, {program}"] = spread([r[what] for r in results])
        out[f"{name}, peak, {program}"] = spread([r["infer_rss_mib"] for r in results])
    if "trellis" in runs:
        out[f"{name}, peak"] = out[f"{name}, peak, trellis"]
    if ratio := peak_ratio(runs):
        out[f"{name}, peak / limit"] = ratio
    return out


def figures_of_micro(row):
    out = {}
    if row["trellis"]:
        out[row["row"]] = spread(row["trellis"])
    if row["ratio"]:
        out[f"{row['row']}, libtorch / trellis"] = row["ratio"]
    return out


def figures_of_quality(row):
    name = f"{row['task']} mb{row['mb']}"
    figures = {k: v for k, v in row.items() if k.startswith(("perplexity_", "accuracy_"))}
    peer = "" if row["program"] == "trellis" else f", {row['program']}"
    return {f"{name}, {k}{peer}": spread([v]) for k, v in figures.items()}


def fold(record, results):
    """Takes the figures of a file of `--json` into the record: of a figure measured again the last counts."""
    run = {**results["machine"], **{k: results["options"][k] for k in ("seconds", "rounds")}}
    run["data"] = "shipped" if results["options"]["data"].endswith("bench/data") else "--data"
    record["runs"].append(run)
    this = len(record["runs"]) - 1
    for part, rows in results.items():
        kind, _, setting = part.partition(", OPENBLAS ")
        if kind not in ("tasks", "micro", "quality") or not isinstance(rows, list):
            continue
        take = {"tasks": figures_of_task, "micro": figures_of_micro, "quality": figures_of_quality}[kind]
        for row in rows:
            for key, figure in take(row).items():
                rounded = {k: float(f"{v:.4g}") for k, v in figure.items()}
                entry = record["figures"].setdefault(key, {})
                if entry.get("run") != this:
                    entry.clear()
                entry["run"] = this
                entry[setting or "as set"] = rounded
    # Runs of which no figure is left are forgotten.
    used = sorted({entry["run"] for entry in record["figures"].values()})
    record["runs"] = [record["runs"][k] for k in used]
    for entry in record["figures"].values():
        entry["run"] = used.index(entry["run"])


def write_record(record):
    figures = sorted(record["figures"].items())
    lines = ",\n  ".join(f"{json.dumps(key)}: {json.dumps(entry)}" for key, entry in figures)
    RECORD.write_text(json.dumps({"runs": record["runs"]}, indent=1)[:-2] + ',\n "figures": {\n  ' + lines + "\n }\n}\n")


def text_of(value, unit, with_unit=True):
    if unit == "%":
        return f"{100 * value:.0f}" + (" %" if with_unit else "")
    digits = f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    return digits + ({"": "", "x": "x"}.get(unit, f" {unit}") if with_unit else "")


def mark_text(mark):
    if "text" in mark:
        return mark["text"]
    sign = "≥" if "least" in mark else "≤"
    return f"{sign} {text_of(number(mark), mark['unit'])}{mark.get('of', '')}"


def row_text(row, figures):
    measured, spreads, said = [], [], []
    for mark in row["marks"]:
        entry = figures.get(mark["key"])
        if entry is None:
            measured.append(mark.get("measured", "-")), spreads.append("-")
            said.append(mark.get("verdict", "not measured"))
            continue
        first, unit = entry["as set"], mark["unit"]
        texts, ranges = [], []
        for setting in ("as set", "unset"):
            if setting in entry:
                e = entry[setting]
                texts.append(text_of(e["median"], unit))
                ranges.append(f"{text_of(e['low'], unit, False)}-{text_of(e['high'], unit, False)}")
        measured.append(" (unset: ".join(texts) + (")" if len(texts) > 1 else ""))
        spreads.append(" (".join(ranges) + (")" if len(ranges) > 1 else ""))
        reached = first["median"] >= mark["least"] if "least" in mark else first["median"] <= mark["most"]
        said.append("**reached**" if reached else "missed")
    missed = any(s != "**reached**" for s in said)
    said = said[:1] if len(set(said)) == 1 else said
    cells = [row["what"], "; ".join(map(mark_text, row["marks"])), "; ".join(measured), "; ".join(spreads), "; ".join(said),
             row.get("why", "") if missed else ""]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def marks_table(marks, figures):
    out = []
    for section in marks.sections:
        out += [f"**{section['title']}.** {section['text']}", ""]
        out += ["| what | mark | measured | spread | verdict | if missed: why, and the next idea |", "|---|--:|--:|--:|---|---|"]
        out += [row_text(row, figures) for row in section["rows"]] + [""]
    return out


def rates_table(figures):
    names = [key.removesuffix(", train, trellis") for key in figures if key.endswith(", train, trellis")]
    order = {task: k for k, task in enumerate(("lm", "tagger", "tagger-char", "tree"))}
    names.sort(key=lambda n: (order[n.split(" mb")[0]], int(n.split(" mb")[1])))

    def cell(name, what, program, ratio):
        entry = figures.get(f"{name}, {what}, {program}")
        if entry is None:
            return "-"
        text = f"{entry['as set']['median']:,.0f}"
        if ratio and (r := figures.get(f"{name}, {what} / {program}")):
            s = r["as set"]
            text += f" ({s['median']:.2f}x)" if program != "limit" else f" ({100 * s['median']:.0f} %)"
        return text

    out = []
    for what, title in (("train", "training"), ("infer", "inference")):
        out += [f"| {title} | Trellis | limit | libtorch | libtorch, cell by cell |", "|---|--:|--:|--:|--:|"]
        for name in names:
            cells = [cell(name, what, p, p != "trellis") for p in ("trellis", "limit", "libtorch", "libtorch-step")]
            out.append("| " + " | ".join([name, *cells]) + " |")
        out.append("")
    return out


def runs_text(record):
    out = ["Measured:", ""]
    for r in record["runs"]:
        settings = ", ".join(f"`{k}` {r[k] or 'unset'}" for k in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE") if k in r)
        linalg = f", products by linalg-{r['linalg']} alone" if r.get("linalg") else ""
        out.append(f"- {r['time'].replace('T', ' ')}, {r['processor']} ({r['vectors']}), {r['cores']} cores, load {r['load']:.1f}, "
                   f"{r['rounds']} rounds, {r['seconds']:g} s a run, {'other data (`--data`)' if r['data'] == '--data' else 'shipped data'}, {settings}{linalg}")  # fmt: skip
    return [*out, ""]


def replace_block(text, name, lines):
    begin, end = f"<!-- {name}: made by bench/run --marks -->\n", f"<!-- end of {name} -->"
    before, rest = text.split(begin)
    return before + begin + "\n" + "\n".join(lines) + end + rest.split(end, 1)[1]


def page(record):
    text, marks = PAGE.read_text(), Marks()
    text = replace_block(text, "rates", rates_table(record["figures"]))
    return replace_block(text, "marks", [*runs_text(record), *marks_table(marks, record["figures"])])


def read_record():
    return json.loads(RECORD.read_text()) if RECORD.exists() else {"runs": [], "figures": {}}


def update(files):
    """Files of `--json` into the record, then the tables anew."""
    record = read_record()
    for file in files:
        fold(record, json.loads(pathlib.Path(file).read_text()))
    write_record(record)
    PAGE.write_text(page(record))
