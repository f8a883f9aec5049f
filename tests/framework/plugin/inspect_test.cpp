// SPDX-License-Identifier: Apache-2.0
#include <trellis/abi/plugin.h>

#include <algorithm>
#include <trellis/plugin.hpp>

#include "support.hpp"

using namespace trellis;
using namespace trellis::test;

TEST_CASE("inspect: a plugin by manifest, library or id, without running it") {
  const TempFolder folder;
  ManifestText m = named("good");
  m.more =
      "[provides]\nops = [\"test.square@1\"]\n[requires]\nplugins = [{ id = \"base\", version = "
      "\"^1\" }]\n[odd]\n";
  const fs::path manifest = install(folder.path(), m);
  RuntimeOptions options;
  options.search = {folder.path()};
  for (const std::string& name :
       {manifest.native(), (folder / "good.so").native(), std::string("good")}) {
    const PluginInfo info = inspect_plugin(name, options);
    CHECK(info.id == "good");
    CHECK(info.version == "1.0.0");
    CHECK(info.abi == "0.1");
    CHECK(info.built_with == "0.1");
    CHECK(info.target == TRL_TARGET);
    CHECK(info.cpu == TRL_CPU_LEVEL);
    CHECK(info.library == folder / "good.so");
    CHECK(info.manifest == manifest);
    CHECK(info.state == "unsigned");
    CHECK(contains(info.reason, "found in search option"));
    CHECK(info.ops == std::vector<std::string>{"test.square@1"});
    CHECK(info.required == std::vector<std::string>{"base ^1"});
    CHECK(std::count(info.needed.begin(), info.needed.end(), "libc.so.6") == 1);
    CHECK(info.glibc.substr(0, 2) == "2.");
    CHECK(info.warnings.size() == 1);
  }
  CHECK(inspect_plugin(manifest, {}).reason == "given by path");
}

TEST_CASE("inspect: what would be refused comes back as broken, with the reason") {
  const TempFolder folder;
  const fs::path manifest = install(folder.path(), named("no-note"));
  PluginInfo info = inspect_plugin(manifest);
  CHECK(info.state == "broken");
  CHECK(contains(info.reason, "has no plugin note"));
  CHECK(info.id == "no-note");
  write_file(manifest, "manifest = 3\n");
  info = inspect_plugin(manifest);
  CHECK(info.state == "broken");
  CHECK(contains(info.reason, "line 1, key 'manifest' is 3"));
  info = inspect_plugin(fixture("good"));
  CHECK(info.state == "broken");
  CHECK(info.reason == "it has no manifest beside it");
  CHECK(info.id == "good");
  CHECK(info.abi == "0.1");
  write_file(folder / "x.so", "no library");
  CHECK(contains(inspect_plugin(folder / "x.so").reason, "not a shared library: no ELF magic"));
}

TEST_CASE("inspect: a name or file that is not there is an error") {
  CHECK(contains(error_of([] { inspect_plugin("no-such-plugin"); }),
                 "[plugin] cannot inspect 'no-such-plugin': not found in "));
  CHECK(error_of([] { inspect_plugin("/nowhere/a.so"); }) ==
        "[plugin] cannot inspect '/nowhere/a.so': no such file");
}

TEST_CASE("inspect: all that the places hold, and which of them counts") {
  const TempFolder folder;
  install(folder / "a", named("good"));
  install(folder / "b", named("good"));
  install(folder / "b", named("no-note"));
  install(folder / "b", named("zz-last"));
  RuntimeOptions options;
  options.search = {folder / "a", folder / "b"};
  ::setenv("TRELLIS_PLUGINS_DISABLE", "zz-*", 1);
  const std::vector<PluginInfo> all = available_plugins(options);
  ::unsetenv("TRELLIS_PLUGINS_DISABLE");
  REQUIRE(all.size() >= 4);
  CHECK(all[0].id == "good");
  CHECK(all[0].state == "unsigned");
  CHECK(all[1].id == "good");
  CHECK(all[1].state == "shadowed");
  CHECK(all[1].reason == "by '" + (folder / "a/good.trellis.toml").native() + "'");
  CHECK(all[2].state == "broken");
  CHECK(all[3].state == "disabled");
  CHECK(all[3].reason == "TRELLIS_PLUGINS_DISABLE=zz-*");
}

TEST_CASE("inspect: a runtime says what it has loaded") {
  const TempFolder folder;
  RuntimeOptions options;
  options.plugins = {install(folder.path(), named("good"))};
  const Runtime runtime(options);
  const std::vector<PluginInfo> loaded = loaded_plugins(runtime);
  REQUIRE(loaded.size() == 1);
  CHECK(loaded[0].id == "good");
  CHECK(loaded[0].state == "loaded");
  CHECK(loaded[0].ops == std::vector<std::string>{"test.square@1"});
  CHECK(loaded[0].library == folder / "good.so");
  CHECK(contains(loaded[0].reason, "by path"));
}

TEST_CASE("inspect: two runtimes of one process have each their own plugins") {
  const TempFolder folder;
  RuntimeOptions one, two;
  one.plugins = {install(folder.path(), named("good"))};
  two.plugins = {install(folder.path(), named("helper-one")),
                 install(folder.path(), named("helper-two"))};
  const Runtime a(one), b(two);
  CHECK(loaded_plugins(a).size() == 1);
  REQUIRE(loaded_plugins(b).size() == 2);
  CHECK(loaded_plugins(b)[0].ops == std::vector<std::string>{"test.one@1"});
  CHECK(loaded_plugins(b)[1].ops == std::vector<std::string>{"test.two@1"});
}
