#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the files of project templates into a C++ source, so that the command `trellis` needs no folder of them.

  embed.py OUTPUT.cpp FOLDER FILE...     the files lie in FOLDER/<layer>/ and end in .in
"""

import pathlib
import sys

HEAD = """// Made by tools/template/embed.py.
#include "template.hpp"

namespace trellis::tools {

std::span<const TemplateFile> template_files() {
  static constexpr TemplateFile kFiles[] = {
"""
TAIL = """  };
  return kFiles;
}

}  // namespace trellis::tools
"""


def main(output, folder, *files):
    entries = []
    for file in sorted(pathlib.Path(f).resolve().relative_to(pathlib.Path(folder).resolve()) for f in files):
        layer, *parts = file.parts
        name = "/".join(part.replace("dot-", ".", 1) if part.startswith("dot-") else part for part in parts)
        text = (pathlib.Path(folder) / file).read_text(encoding="utf-8")
        if ')TEXT"' in text or not name.endswith(".in"):
            sys.exit(f"embed.py: {file}: cannot be embedded")
        entries.append(f'      {{"{layer}", "{name.removesuffix(".in")}", R"TEXT({text})TEXT"}},\n')
    pathlib.Path(output).write_text(HEAD + "".join(entries) + TAIL, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
