#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the table "What may include what" of docs/architecture.md. Prints each include that breaks it."""

import pathlib
import re
import sys

SOURCES = {".h", ".hpp", ".c", ".cpp", ".inc"}
STANDARD_C = set("assert errno fenv float inttypes limits math stddef stdint stdio stdlib string".split())


def read_table(text):
    """Rows as {folder: (set of public headers, set of short names of folders)}."""
    section = text.split("## What may include what")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\S+)` \|([^|]*)\|([^|]*)\|$", section, re.MULTILINE)
    return {folder: (set(headers.split()), set(allowed.split())) for folder, headers, allowed in rows}


class Checker:
    def __init__(self, root):
        self.root = root
        self.table = read_table((root / "docs/architecture.md").read_text(encoding="utf-8"))
        self.owner = {header: folder for folder, (headers, _) in self.table.items() for header in headers}
        self.faults = []

    def folder_of(self, path):
        """The row a file belongs to; None for what the table does not speak of."""
        relative = path.relative_to(self.root).as_posix()
        public = re.fullmatch(r"framework/include/trellis/(\w+)\.hpp", relative)
        if public:
            return self.owner.get(public[1])
        rows = [folder for folder in self.table if relative.startswith(folder + "/")]
        return max(rows, key=len, default=None)

    def target_of(self, path, folder, include):
        """The folder an include leads to, None for a library outside the tree, or a text: what is wrong with it."""
        quoted, name = include[0] == '"', include[1:-1]
        if ".." in name.split("/"):
            return None, "goes up: write the full path from the component's root"
        if not quoted:
            if name.startswith("trellis/abi/") or name.startswith("trellis/sdk/"):
                return "sdk/include/" + name.rsplit("/", 1)[0].removesuffix("/ext").removesuffix("/draft"), None
            if name.startswith("trellis/ops/"):  # typed functions, generated from the schemas of plugins
                return self.owner["ops"], None
            if name.startswith("trellis/"):
                owner = self.owner.get(name.removeprefix("trellis/").removesuffix(".hpp"))
                return owner, None if owner else "is a public header of no folder"
            is_public = "framework/include/" in path.as_posix() or "sdk/include/" in path.as_posix()
            is_standard = "." not in name or ("/" not in name and name.removesuffix(".h") in STANDARD_C)
            if is_public and not is_standard:
                return None, "is a third-party header in a public one"
            return None, None
        if folder.startswith("framework/"):
            target = "framework/" + name.split("/")[0]
            return target, None if (self.root / "framework" / name).exists() else "does not exist below framework/"
        component = self.root / "/".join(path.relative_to(self.root).parts[: 2 if folder == "plugins" else 1])
        if name.endswith(".inc") or (component / name).exists() or (path.parent / name).exists():
            return folder, None
        if (self.root / "framework" / name).exists():
            return "framework/" + name.split("/")[0], None
        if (self.root / "tests" / name).exists():
            return "tests", None
        return None, f"does not exist below {component.relative_to(self.root)}/"

    def check(self, path):
        folder = self.folder_of(path)
        relative = path.relative_to(self.root)
        if folder is None:
            if relative.parts[0] in ("sdk", "framework", "plugins"):
                self.faults.append(f"{relative}: belongs to no row of the table")
            return
        _, allowed = self.table[folder]
        text = path.read_text(encoding="utf-8")
        for match in re.finditer(r'^\s*#\s*include\s*(<[^>]+>|"[^"]+")', text, re.MULTILINE):
            include = match[1]
            line = text.count("\n", 0, match.start(1)) + 1
            target, fault = self.target_of(path, folder, include)
            if fault is None and target not in (None, folder):
                is_public = "public" in allowed and include.startswith("<trellis/") and target.startswith("framework/")
                if not is_public and target.rsplit("/", 1)[-1] not in allowed:
                    fault = f"{folder} may not include {target}"
            if fault:
                self.faults.append(f"{relative}:{line}: {include} {fault}")


def main(root):
    checker = Checker(root)
    files = [
        path
        for top in sorted({folder.split("/")[0] for folder in checker.table})
        for path in sorted((root / top).rglob("*"))
        if path.suffix in SOURCES
    ]
    for path in files:
        checker.check(path)
    print("\n".join(checker.faults) or f"{len(files)} files keep the table")
    return 1 if checker.faults or not files else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
