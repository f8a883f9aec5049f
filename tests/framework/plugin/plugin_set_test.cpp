// SPDX-License-Identifier: Apache-2.0
#include "plugin/plugin_set.hpp"

#include <trellis/abi/plugin.h>

#include "support.hpp"

using namespace trellis::detail;
using namespace trellis::test;
using trellis::RuntimeOptions;

namespace {

const Trace kQuiet("");

// Manifests alone: choosing looks at no library.
fs::path put(const fs::path& folder, const std::string& id, const std::string& version = "1.0.0",
             const std::string& required = {}) {
  ManifestText m;
  m.id = id;
  m.version = version;
  if (!required.empty()) m.more = "[requires]\nplugins = [" + required + "]\n";
  write_file(folder / (id + ".trellis.toml"), m.text());
  return folder / (id + ".trellis.toml");
}

PluginSet choose(const RuntimeOptions& options) {
  const Places places(options.search, kQuiet);
  return choose_plugins(options, places, kQuiet);
}

std::string order(const PluginSet& set) {
  std::string text;
  for (const ChosenPlugin& p : set.plugins)
    text += (text.empty() ? "" : " ") + p.manifest.id + "@" + p.manifest.version.to_string();
  return text;
}

RuntimeOptions wish(std::vector<fs::path> search, std::vector<std::string> plugins) {
  RuntimeOptions o;
  o.search = std::move(search);
  o.plugins = std::move(plugins);
  return o;
}

}  // namespace

TEST_CASE("plugin_set: requirements come first, else the order of places and names") {
  const TempFolder folder;
  put(folder.path(), "a", "1.0.0", "{ id = \"z\" }");
  put(folder.path(), "b");
  put(folder.path(), "z", "1.3.0", "{ id = \"c\", version = \"^1\" }");
  put(folder.path(), "c");
  CHECK(order(choose(wish({folder.path()}, {"b", "a"}))) == "c@1.0.0 z@1.3.0 a@1.0.0 b@1.0.0");
}

TEST_CASE("plugin_set: a circle of requirements is told once round") {
  const TempFolder folder;
  put(folder.path(), "a", "1.0.0", "{ id = \"b\" }");
  put(folder.path(), "b", "1.0.0", "{ id = \"c\" }");
  put(folder.path(), "c", "1.0.0", "{ id = \"a\" }");
  CHECK(contains(error_of([&] { choose(wish({folder.path()}, {"a"})); }),
                 "cannot load '" + (folder / "a.trellis.toml").native() +
                     "': plugins require each other in a circle: a -> b -> c -> a"));
}

TEST_CASE("plugin_set: a missing requirement is told with the chain that leads to it") {
  const TempFolder folder;
  const std::string top = put(folder.path(), "top", "1.0.0", "{ id = \"mid\" }");
  const std::string mid =
      put(folder.path(), "mid", "1.0.0", "{ id = \"base\", version = \"^1.2\" }");
  const std::string error = error_of([&] { choose(wish({folder.path()}, {"top"})); });
  CHECK(contains(error, "[plugin] cannot load '" + top +
                            "': requires 'mid', which cannot be loaded: [plugin] cannot load '" +
                            mid +
                            "': requires 'base ^1.2', which cannot be loaded: [plugin] cannot load "
                            "'base ^1.2': not found in '" +
                            folder.path().native() + "'"));
  put(folder.path(), "base", "1.1.0");
  CHECK(contains(
      error_of([&] { choose(wish({folder.path()}, {"top"})); }),
      "cannot load 'base ^1.2': found 1.1.0 in '" + (folder / "base.trellis.toml").native() + "'"));
  CHECK(contains(
      error_of([&] {
        choose(wish({folder.path()}, {"base", "top"}));
      }),
      "requires 'base ^1.2', found 1.1.0 in '" + (folder / "base.trellis.toml").native() + "'"));
}

TEST_CASE("plugin_set: every missing plugin is told at once") {
  const TempFolder folder;
  const std::string error = error_of([&] { choose(wish({folder.path()}, {"one", "two@^2"})); });
  CHECK(contains(error, "cannot load 'one': not found in '" + folder.path().native() + "'"));
  CHECK(contains(error, "(asked for by 'one')\n[plugin] cannot load 'two ^2': not found in "));
}

TEST_CASE(
    "plugin_set: the first place with a fitting version wins, the highest version in a place") {
  const TempFolder folder;
  put(folder / "first", "a", "1.0.0");
  put(folder / "second/x", "a", "1.2.0");
  put(folder / "second/y", "a", "1.10.0");
  put(folder / "second/z", "a", "2.0.0-rc.1");
  const std::vector<fs::path> search = {folder / "first", folder / "second"};
  CHECK(order(choose(wish(search, {"a"}))) == "a@1.0.0");
  CHECK(order(choose(wish(search, {"a@^1.1"}))) == "a@1.10.0");
  CHECK(order(choose(wish(search, {"a@~1.2"}))) == "a@1.2.0");
  CHECK(order(choose(wish(search, {"a@2.0.0-rc.1"}))) == "a@2.0.0-rc.1");
  CHECK(contains(error_of([&] { choose(wish(search, {"a@^3"})); }),
                 "cannot load 'a ^3': found 1.0.0 in '"));
  put(folder / "second/w", "a", "1.10.0");
  CHECK(contains(error_of([&] { choose(wish(search, {"a@^1.1"})); }),
                 "cannot load 'a': 1.10.0 lies in '"));
}

TEST_CASE("plugin_set: an explicit path is not searched for") {
  const TempFolder folder;
  put(folder / "old", "a", "1.0.0");
  const fs::path fresh = put(folder / "new", "a", "0.9.0");
  const PluginSet set = choose(wish({folder / "old"}, {"a", fresh}));
  CHECK(order(set) == "a@0.9.0");
  CHECK(set.plugins[0].manifest.file == fresh);
  CHECK(contains(error_of([&] {
                   choose(wish({}, {fresh, "a@^1"}));
                 }),
                 "it has version 0.9.0, 'a@^1' asks for ^1"));
}

TEST_CASE("plugin_set: an experiment names exactly what is loaded") {
  const TempFolder folder;
  put(folder.path(), "a", "1.0.0", "{ id = \"b\" }");
  put(folder.path(), "b");
  RuntimeOptions o;
  o.search = {folder.path()};
  o.plugins_file = folder / "trellis.toml";
  write_file(o.plugins_file, "[plugins]\na = \"*\"\n");
  CHECK(contains(error_of([&] { choose(o); }),
                 "cannot load '" + (folder / "a.trellis.toml").native() +
                     "': requires 'b', which '" + o.plugins_file.native() + "' does not list"));
  write_file(o.plugins_file, "[plugins]\na = \"*\"\nb = \"^2\"\n");
  CHECK(contains(error_of([&] { choose(o); }),
                 "cannot load 'b ^2': found 1.0.0 in '" + (folder / "b.trellis.toml").native() +
                     "' (asked for by '" + o.plugins_file.native() + "', line 3)"));
  write_file(o.plugins_file, "[plugins]\na = \"*\"\nb = \"^1\"\n[override]\n\"x.y\" = \"b@^2\"\n");
  CHECK(contains(error_of([&] { choose(o); }),
                 "[plugin] override of 'x.y' asks for 'b ^2': 1.0.0 is loaded ("));
  write_file(o.plugins_file, "[plugins]\na = \"*\"\nb = { path = \"a.trellis.toml\" }\n");
  CHECK(contains(error_of([&] { choose(o); }),
                 "': its id is 'a', '" + o.plugins_file.native() + "', line 3 asks for 'b'"));
  write_file(o.plugins_file, "[plugins]\na = \"*\"\nb = \"^1\"\n");
  CHECK(order(choose(o)) == "b@1.0.0 a@1.0.0");
}

TEST_CASE("plugin_set: a disabled plugin that somebody names is an error") {
  const TempFolder folder;
  put(folder.path(), "a");
  ::setenv("TRELLIS_PLUGINS_DISABLE", "a", 1);
  CHECK(error_of([&] { choose(wish({folder.path()}, {"a"})); }) ==
        "[plugin] cannot load 'a': disabled by TRELLIS_PLUGINS_DISABLE=a (asked for by 'a')");
  ::unsetenv("TRELLIS_PLUGINS_DISABLE");
}

TEST_CASE("plugin_set: paths that mean no manifest are told") {
  const TempFolder folder;
  write_file(folder / "a.so", "");
  write_file(folder / "notes.toml", "");
  CHECK(error_of([&] { manifest_at(folder / "a.so"); }) ==
        "[plugin] cannot load '" + (folder / "a.so").native() + "': no manifest '" +
            (folder / "a.trellis.toml").native() + "' beside it");
  CHECK(contains(error_of([&] { manifest_at(folder / "notes.toml"); }),
                 "neither a manifest (<id>.trellis.toml) nor a library"));
  put(folder.path(), "a");
  CHECK(manifest_at(folder / "a.v3.so") == folder / "a.trellis.toml");
}

TEST_CASE("plugin_set: no_plugins means none") {
  RuntimeOptions o = wish({}, {"a"});
  o.no_plugins = true;
  CHECK(choose(o).plugins.empty());
}
