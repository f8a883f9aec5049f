#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trellis plugin new: names, files, refusals. That the projects build and validate is in tests/packs."""

import re
import tomllib

from command import CommandTest, main, trellis

TEMPLATES = [("operator", "c++"), ("operator", "c"), ("builder", "c++"), ("softmax", "c++"), ("trainer", "c++"),
             ("trainer", "c"), ("initializer", "c++")]
LISTS = {"operator": "ops", "builder": "builders", "softmax": "softmaxes", "trainer": "trainers",
         "initializer": "initializers"}


class New(CommandTest):
    def new(self, *args):
        return trellis("plugin", "new", *args, cwd=self.folder)

    def test_every_kind_and_language(self):
        for kind, language in TEMPLATES:
            folder = self.folder / f"{kind}-{language}"
            result = self.new("acme-soft-clip", "--kind", kind, "--lang", language, "--dir", folder)
            self.assertEqual((result.code, result.err), (0, ""), kind)
            files = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
            source = "soft_clip" + (".c" if language == "c" else ".cpp")
            self.assertLessEqual({"meson.build", "README.md", "LICENSE", ".gitignore", ".github/workflows/ci.yml",
                                  "trellis.toml", "acme-soft-clip.trellis.toml.in", source}, files)
            self.assertEqual("tests/values_test.cpp" in files, kind != "softmax")
            self.assertEqual(result.out.splitlines()[0], f"acme-soft-clip: {len(files)} files in {folder}")
            for name in files:
                text = (folder / name).read_text(encoding="utf-8")
                # what is left is for the project's own build to fill in
                left = set(re.findall(r"@([A-Z]+)@", text))
                allowed = {"VERSION", "MAJOR", "MINOR", "TARGET"} if name.endswith(".toml.in") else set()
                self.assertLessEqual(left, allowed, name)
            manifest = tomllib.loads((folder / "acme-soft-clip.trellis.toml.in").read_text().replace("@M", "1#"))
            self.assertEqual(manifest["provides"][LISTS[kind]], ["acme.soft_clip@1"])
            self.assertEqual(sum(map(len, manifest["provides"].values())), 1)

    def test_defaults(self):
        self.assertEqual(self.new("gate").code, 0)
        self.assertIn('TRL_PLUGIN("gate", "0.1.0", "gate", gate)', (self.folder / "gate/gate.cpp").read_text())
        quiet = self.new("acme-gate", "--quiet")
        self.assertEqual((quiet.code, quiet.out, quiet.err), (0, "", ""))

    def test_names_that_are_none(self):
        for name in ("Acme", "acme_gate", "acme--gate", "-acme", "acme-", "acme-2d", "a/b", "", "a" * 41):
            self.assert_refused(self.new("--", name), 2,
                                f"[plugin new] no name for a plugin: given '{name}' (needed lower case words that start "
                                "with a letter, with dashes between, at most 40 bytes: acme-soft-clip)")
        for name in ("core", "core-gate", "dynet-gate", "kernel-x", "trellis-x"):
            self.assert_refused(self.new(name), 2,
                                f"[plugin new] a reserved namespace: given '{name.split('-')[0]}' (needed another first "
                                "word than core, dynet, kernel, trellis)")
        self.assert_refused(self.new("ops-core"), 2,
                            "[plugin new] the id of a shipped plugin: given 'ops-core' (needed one of your own)")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_kinds_that_are_none(self):
        for kind in ("builder", "softmax", "initializer"):
            self.assert_refused(self.new("acme-x", "--kind", kind, "--lang", "c"), 2,
                                f"[plugin new] no template for a {kind} in C: given --lang c (needed c++; in C there are "
                                "operator and trainer, whose tables are short)")
        self.assertEqual(self.new("acme-x", "--kind", "verb").code, 2)
        self.assertEqual(self.new("acme-x", "--lang", "rust").code, 2)
        self.assertEqual(self.new().code, 2)

    def test_nothing_is_overwritten(self):
        self.write("notes.txt", "mine")
        head = f"[plugin new] cannot write '{self.folder}': "
        self.assert_refused(self.new("acme-gate", "--dir", self.folder), 1,
                            head + "it is there already, with files in it (needed a new or an empty folder)")
        file = self.folder / "notes.txt"
        self.assert_refused(self.new("acme-gate", "--dir", file), 1,
                            f"[plugin new] cannot write '{file}': it is there already and no folder")
        self.assert_refused(self.new("acme-gate", "--dir", file / "x"), 1,
                            f"[plugin new] cannot write '{file / 'x'}': Not a directory")
        self.assertEqual([p.name for p in self.folder.iterdir()], ["notes.txt"])
        (self.folder / "empty").mkdir()
        self.assertEqual(self.new("acme-gate", "--dir", "empty").code, 0)


if __name__ == "__main__":
    main()
