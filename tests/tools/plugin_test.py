#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trellis plugin list, trellis plugin inspect."""

import shutil

from command import PLUGINS, CommandTest, main, trellis

KEYS = {"id", "version", "abi", "state", "reason", "path", "manifest", "ops", "builders", "softmaxes", "initializers",
        "trainers", "linalg", "summary", "license", "cpu"}


class List(CommandTest):
    def test_every_plugin_of_the_build(self):
        plugins = trellis("plugin", "list", "--json").json()
        self.assertEqual({p["id"] for p in plugins}, {m.name.split(".")[0] for m in PLUGINS.glob("*.trellis.toml")})
        for plugin in plugins:
            self.assertLessEqual(KEYS, plugin.keys())
            self.assertEqual(plugin["state"], "shipped")
        core = next(p for p in plugins if p["id"] == "ops-core")
        self.assertIn("core.tanh@1", core["ops"])

    def test_text_has_a_line_a_plugin(self):
        lines = trellis("plugin", "list").out.splitlines()
        self.assertRegex(lines[0], r"^ID +VERSION +ABI +STATE +PROVIDES +PATH$")
        self.assertRegex("\n".join(lines), r"(?m)^trainers +\S+ +\S+ +shipped +\d+ trainers +\S+$")
        quiet = trellis("plugin", "list", "--quiet").out.splitlines()
        self.assertEqual([line.split() for line in quiet], [line.split() for line in lines[1:]])

    def test_loads_nothing(self):
        self.write("fake.trellis.toml", (PLUGINS / "trainers.trellis.toml").read_text().replace("trainers", "fake"))
        self.write("fake.so", "this is no library")
        result = trellis("plugin", "list", "--json", env={"TRELLIS_PLUGIN_PATH": str(self.folder)})
        self.assertEqual([(p["id"], p["state"]) for p in result.json()], [("fake", "broken")])
        self.assertEqual((result.code, result.err), (0, ""))

    def test_a_second_one_is_shadowed(self):
        for file in PLUGINS.glob("trainers*"):
            if file.is_file():
                shutil.copy(file, self.folder)
        result = trellis("plugin", "list", "--json", env={"TRELLIS_PLUGIN_PATH": f"{self.folder}:{PLUGINS}"})
        self.assertEqual([p["state"] for p in result.json() if p["id"] == "trainers"], ["shipped", "shadowed"])


class Inspect(CommandTest):
    def test_by_id_and_by_file(self):
        by_id = trellis("plugin", "inspect", "ops-core", "--json").json()
        self.assertEqual(len(by_id), 1)
        self.assertEqual(by_id[0]["id"], "ops-core")
        by_file = trellis("plugin", "inspect", PLUGINS / "ops-core.trellis.toml", "--json").json()
        self.assertEqual(by_file[0]["ops"], by_id[0]["ops"])

    def test_text(self):
        result = trellis("plugin", "inspect", "trainers")
        self.assertRegex(result.out, r"^trainers \d+\.\d+\.\d+\n")
        for row in ("state", "license", "host ABI", "library", "links", "trainers"):
            self.assertRegex(result.out, rf"(?m)^  {row}  ")
        self.assertEqual((result.code, result.err), (0, ""))

    def test_one_that_would_be_refused(self):
        self.write("fake.trellis.toml", (PLUGINS / "trainers.trellis.toml").read_text().replace("trainers", "fake"))
        self.write("fake.so", "this is no library")
        result = trellis("plugin", "inspect", self.folder / "fake.trellis.toml", "--json")
        self.assertEqual((result.code, result.json()[0]["state"]), (1, "broken"))

    def test_one_that_is_not_there(self):
        missing = self.folder / "none.trellis.toml"
        self.assert_refused(trellis("plugin", "inspect", missing), 1,
                            f"[plugin] cannot inspect '{missing}': no such file")


if __name__ == "__main__":
    main()
