#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names and lists.

1. Nothing a plugin registers is named in a string literal of framework/: the kernel knows roles only.
2. A plugin's folder, library and manifest carry its id.
3. Every source of the kernel and every operator's file has a test: one of its name, or one whose head says
   `// Tests a.cpp, b.cpp.`
4. Every source, public header and test is listed in a meson.build: a file that lies about unlisted is never built.

usage: names.py <source root> <folder of built plugins>
"""

import pathlib
import re
import sys
import tomllib

# Words the kernel has for things of its own, by folder.
OWN_WORDS = {
    "graph": {"constant"},  # a leaf
    "host": {"constant"},
    "model": {"sub"},  # Model::sub, a child
    "tensor": {"identity", "logsumexp", "argmax"},  # tensor tools
}
KINDS = ("ops", "builders", "softmaxes", "initializers", "trainers", "linalg")


def registered_names(manifests):
    """Full ids and bare names of everything the manifests say is provided."""
    names = set()
    for manifest in manifests.values():
        for kind in KINDS:
            for entry in manifest.get("provides", {}).get(kind, []):
                full_id = entry.split("@")[0]
                names |= {full_id, full_id.split(".", 1)[1]}
    return names


def role_names(root):
    """The roles, which the registry may name although operators are called the same."""
    header = (root / "framework/registry/registry.hpp").read_text(encoding="utf-8")
    body = re.search(r"enum class Role[^{]*{(.*?)}", re.sub(r"//[^\n]*", "", header), re.DOTALL)[1]
    return set(re.findall(r"\w+", body))


def string_literals(text):
    text = re.sub(r"//[^\n]*|/\*.*?\*/|^\s*#\s*include[^\n]*", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r'"((?:[^"\\\n]|\\.)*)"', text)


def check_kernel_names(root, names):
    roles = role_names(root)
    for path in sorted((root / "framework").rglob("*.?pp")):
        folder = path.parent.name
        allowed = OWN_WORDS.get(folder, set()) | (roles if folder == "registry" else set())
        for literal in string_literals(path.read_text(encoding="utf-8")):
            if literal in names - allowed:
                yield f"{path.relative_to(root)}: names '{literal}', which a plugin registers"


def check_ids(root, plugin_dir, manifests):
    for plugin_id, manifest in manifests.items():
        if manifest["plugin"]["id"] != plugin_id:
            yield f"{plugin_id}.trellis.toml: says id {manifest['plugin']['id']}"
        if not (root / "plugins" / plugin_id).is_dir():
            yield f"{plugin_id}: has no folder plugins/{plugin_id}"
        for library in manifest["library"]:
            if library["path"].split(".")[0] != plugin_id or not (plugin_dir / library["path"]).exists():
                yield f"{plugin_id}.trellis.toml: lists {library['path']}"


def heads_of_tests(folder):
    """Sources that tests of this folder say they are for."""
    names = set()
    for path in folder.glob("*_test.cpp"):
        for line in re.findall(r"^// Tests (.*)\.$", path.read_text(encoding="utf-8"), re.MULTILINE):
            names |= set(line.split(", "))
    return names


def check_tests(root):
    sources = sorted((root / "framework").glob("*/*.cpp")) + sorted((root / "plugins").glob("*/ops/*.cpp"))
    for path in sources:
        component = path.relative_to(root).parent
        if component.name == "ops":
            component = component.parent
        folder = root / "tests" / component
        if not (folder / f"{path.stem}_test.cpp").exists() and path.name not in heads_of_tests(folder):
            yield f"{path.relative_to(root)}: has no test in {folder.relative_to(root)}"


def lists_of(root, path):
    """The meson.build nearest to a file; for a test of a plugin also the plugin's, which lists both by one word."""
    path = path.relative_to(root)
    builds = [root / folder / "meson.build" for folder in path.parents]
    texts = [next(build for build in builds if build.exists()).read_text(encoding="utf-8")]
    if path.parts[:2] == ("tests", "plugins"):
        texts.append((root / "plugins" / path.parts[2] / "meson.build").read_text(encoding="utf-8"))
    return "\n".join(texts)


def check_listed(root):
    by_file_name = ("framework/*/*.cpp", "tests/**/*_test.cpp")
    by_word = ("plugins/**/*.cpp", "sdk/include/**/*.h*", "framework/include/**/*.hpp")
    for pattern in by_file_name + by_word:
        for path in sorted(root.glob(pattern)):
            words = set(re.findall(r"[\w.-]+", lists_of(root, path)))
            listed = path.name in words or pattern in by_word and path.stem in words
            # tests of operators are listed by the operator's word
            listed = listed or path.stem.endswith("_test") and path.stem.removesuffix("_test") in words
            if not listed:
                yield f"{path.relative_to(root)}: is listed in no meson.build"


def main(root, plugin_dir):
    manifests = {}
    for path in sorted(plugin_dir.glob("*.trellis.toml")):
        manifests[path.name.removesuffix(".trellis.toml")] = tomllib.loads(path.read_text(encoding="utf-8"))
    names = registered_names(manifests)
    faults = [*check_kernel_names(root, names), *check_ids(root, plugin_dir, manifests), *check_tests(root)]
    faults += check_listed(root)
    if not names:
        faults.append("the manifests in the build folder provide nothing")
    print("\n".join(faults) or f"{len(manifests)} plugins, {len(names)} names")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()))
