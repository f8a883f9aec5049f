// SPDX-License-Identifier: Apache-2.0
#include "plugin/search.hpp"

#include <trellis/abi/plugin.h>

#include "support.hpp"

using namespace trellis::detail;
using namespace trellis::test;

namespace {

// Sets a variable of this process for a while.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { ::setenv(name_, old_.c_str(), 1); }

 private:
  const char* name_;
  std::string old_;
};

std::vector<std::string> found(const Places& places, PlaceKind kind) {
  std::vector<std::string> files;
  for (const FoundManifest& m : places.manifests())
    if (m.place->kind == kind) files.push_back(m.file.lexically_relative(m.place->folder).native());
  return files;
}

}  // namespace

TEST_CASE("search: manifests only, sorted bytewise, two folders deep") {
  const TempFolder folder;
  for (const char* name :
       {"b.trellis.toml", "a.trellis.toml", "Z.trellis.toml", "sub/c.trellis.toml",
        "sub/sub/d.trellis.toml", "trellis.toml", ".trellis.toml", "x.so", "y.toml"})
    write_file(folder / name, "");
  const Places places({folder.path()}, Trace(""));
  CHECK(found(places, PlaceKind::search_option) ==
        std::vector<std::string>{"Z.trellis.toml", "a.trellis.toml", "b.trellis.toml",
                                 "sub/c.trellis.toml"});
}

TEST_CASE("search: the order of places") {
  const TempFolder folder;
  for (const char* name :
       {"option/a.trellis.toml", "env1/a.trellis.toml", "env2/a.trellis.toml",
        "data/trellis/store/a/1.0.0/0123/a.trellis.toml", "cwd/.trellis/plugins/a.trellis.toml"})
    write_file(folder / name, "");
  const Variable path("TRELLIS_PLUGIN_PATH",
                      (folder / "env1").native() + "::" + (folder / "env2").native());
  const Variable data("XDG_DATA_HOME", folder / "data");
  const fs::path before = fs::current_path();
  fs::current_path(folder / "cwd");
  const Places places({folder / "option"}, Trace(""));
  fs::current_path(before);
  std::vector<std::string> order;
  for (const FoundManifest& m : places.manifests())
    order.push_back(m.file.lexically_relative(folder.path()).native());
  CHECK(order == std::vector<std::string>{"option/a.trellis.toml",
                                          "cwd/.trellis/plugins/a.trellis.toml",
                                          "env1/a.trellis.toml", "env2/a.trellis.toml",
                                          "data/trellis/store/a/1.0.0/0123/a.trellis.toml"});
  CHECK(contains(places.text(), "'" + (folder / "env2").native() + "'"));
}

TEST_CASE("search: without an install place the folders of TRELLIS_PLUGIN_PATH stand in for it") {
  const TempFolder folder;
  write_file(folder / "a.trellis.toml", "");
  const Variable path("TRELLIS_PLUGIN_PATH", folder.path());
  REQUIRE_FALSE(fs::exists(install_place()));
  const Places places({folder.path()}, Trace(""));
  REQUIRE(places.manifests().size() >= 2);
  CHECK_FALSE(places.manifests()[0].place->shipped);
  CHECK(places.manifests()[1].place->shipped);
}

TEST_CASE("search: the install place is relative to this code") {
  CHECK(install_place().filename() == "plugins");
  CHECK(install_place().parent_path().filename() == "trellis");
  CHECK(fs::exists(install_place().parent_path().parent_path()));
}

TEST_CASE("search: plugins are switched off by globs, all of them, or their own variable") {
  CHECK(disabled_by("acme-act").empty());
  {
    const Variable off("TRELLIS_PLUGINS_DISABLE", "ops-*,acme-act");
    CHECK(disabled_by("acme-act") == "TRELLIS_PLUGINS_DISABLE=acme-act");
    CHECK(disabled_by("ops-core") == "TRELLIS_PLUGINS_DISABLE=ops-*");
    CHECK(disabled_by("acme").empty());
  }
  {
    const Variable off("TRELLIS_PLUGINS_DISABLE", "~all~");
    CHECK(disabled_by("acme") == "TRELLIS_PLUGINS_DISABLE=~all~");
  }
  CHECK(disabled_by("acme", "TRELLIS_TEST_DISABLE").empty());
  const Variable off("TRELLIS_TEST_DISABLE", "1");
  CHECK(disabled_by("acme", "TRELLIS_TEST_DISABLE") == "TRELLIS_TEST_DISABLE=1");
}
