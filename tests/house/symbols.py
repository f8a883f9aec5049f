#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What built libraries show to others.

A plugin exports its entry point and nothing else, is never unloaded and binds all symbols at load; libtrellis exports
names of the namespace trellis; nobody but linalg-openblas links OpenBLAS.

usage: symbols.py <libtrellis> <plugin>...
"""

import pathlib
import re
import subprocess
import sys

ENTRY = "trl_plugin_entry_v1"
KERNEL_NAME = re.compile(r"((typeinfo|typeinfo name|vtable) for |auto const& )?trellis::")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(library):
    lines = output("nm", "--dynamic", "--defined-only", "--demangle", str(library)).splitlines()
    return [line.split(" ", 2)[2] for line in lines]


def check_plugin(library):
    symbols = exported(library)
    if symbols != [ENTRY]:
        yield f"exports {symbols} (needs exactly {ENTRY})"
    flags = output("readelf", "--dynamic", "--wide", str(library))
    for flag in ("NOW", "NODELETE"):
        if not re.search(rf"\(FLAGS_1\).*\b{flag}\b", flags):
            yield f"lacks the linker flag -z {flag.lower()}"


def check_kernel(library):
    symbols = exported(library)
    if not symbols:
        yield "exports nothing"
    for symbol in symbols:
        if not KERNEL_NAME.match(symbol):
            yield f"exports {symbol}"


def check_needed(library):
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "--dynamic", "--wide", str(library)))
    for name in needed:
        if "blas" in name and library.name.split(".")[0] != "linalg-openblas":
            yield f"links {name}"
        if re.match(r"lib(trellis|boost|sodium|archive)", name):
            yield f"links {name}"


def main(kernel, plugins):
    faults = [f"{kernel.name}: {fault}" for check in (check_kernel, check_needed) for fault in check(kernel)]
    for plugin in plugins:
        faults += [f"{plugin.name}: {fault}" for check in (check_plugin, check_needed) for fault in check(plugin)]
    print("\n".join(faults) or f"libtrellis and {len(plugins)} plugin libraries show what they should")
    return 1 if faults or not plugins else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), [pathlib.Path(path) for path in sys.argv[2:]]))
