#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the manifest of a plugin: <id>.trellis.toml."""

import argparse
import json
import platform

KINDS = ["ops", "builders", "softmaxes", "initializers", "trainers", "linalg"]


def quoted(text):
    return json.dumps(text, ensure_ascii=False)


def array(texts):
    return "[" + ", ".join(quoted(t) for t in texts) + "]"


def level_of(library, plugin_id):
    """The CPU level in a library's name: ops-core is the baseline, ops-core.v3 is x86-64-v3."""
    suffix = library.removeprefix(plugin_id).removeprefix(".")
    return "x86-64-" + (suffix or "v2")


def provided(schema, kind):
    # a provider of products has one entry for each dtype
    return list(dict.fromkeys(f"{entry['id']}@{entry['version']}" for entry in schema.get(kind, [])))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--id", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--abi", required=True, help="major.minor")
    parser.add_argument("--summary", required=True)
    parser.add_argument("--namespaces", required=True, help="separated by commas")
    parser.add_argument("--license", default="Apache-2.0")
    parser.add_argument("--requires", help="ids of other plugins, separated by commas", default="")
    parser.add_argument("--schema", help="JSON of trellis-schema, for [provides]")
    parser.add_argument("--output", required=True)
    parser.add_argument("libraries", nargs="+", help="stems of the libraries, baseline first")
    args = parser.parse_args()

    major, minor = args.abi.split(".")
    machine = platform.machine()
    lines = [
        "manifest = 1",
        "",
        "[plugin]",
        f"id = {quoted(args.id)}",
        f"version = {quoted(args.version)}",
        f"license = {quoted(args.license)}",
        f"summary = {quoted(args.summary)}",
        f"namespaces = {array(args.namespaces.split(','))}",
        "",
        "[abi]",
        f"major = {major}",
        f"min_host_minor = {minor}",
        f"built_with_minor = {minor}",
        'extra = ""',
    ]
    if args.requires:
        needs = ", ".join(f'{{ id = {quoted(name)}, version = "*" }}' for name in args.requires.split(","))
        lines += ["", "[requires]", f"plugins = [{needs}]"]
    for library in args.libraries:
        lines += ["", "[[library]]", f"target = {quoted(machine + '-linux-gnu')}", 'device = "cpu"']
        if machine == "x86_64":
            lines.append(f"cpu = {quoted(level_of(library, args.id))}")
        lines.append(f"path = {quoted(library + '.so')}")
    if args.schema:
        with open(args.schema, encoding="utf-8") as file:
            schema = json.load(file)
        lines += ["", "[provides]"]
        lines += [f"{kind} = {array(provided(schema, kind))}" for kind in KINDS]

    with open(args.output, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
