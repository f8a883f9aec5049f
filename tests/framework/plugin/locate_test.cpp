// SPDX-License-Identifier: Apache-2.0
#include "plugin/locate.hpp"

#include <trellis/abi/plugin.h>

#include "support.hpp"

using namespace trellis::detail;
using namespace trellis::test;

TEST_CASE("locate: by id, by manifest, by a library beside it") {
  const TempFolder folder;
  const fs::path manifest = install(folder.path(), named("good"));
  const Places places({folder.path()}, Trace(""));
  for (const std::string& given :
       {std::string("good"), manifest.native(), (folder / "good.so").native()}) {
    const LocatedPlugin p = locate_plugin(given, places, "check");
    CHECK(p.manifest == manifest);
    REQUIRE(p.found);
    CHECK(where(p.found) == "found in search option '" + folder.path().native() + "'");
  }
  CHECK(locate_plugin((folder / "good.so").native(), places, "check").library ==
        folder / "good.so");
  CHECK(locate_plugin("good", places, "check").library.empty());
}

TEST_CASE("locate: a file outside the search places, and a library alone") {
  const TempFolder folder;
  const fs::path manifest = install(folder.path(), named("good"));
  const Places places({}, Trace(""));
  const LocatedPlugin p = locate_plugin(manifest.native(), places, "check");
  CHECK(p.manifest == manifest);
  CHECK_FALSE(p.found);
  CHECK(where(p.found) == "given by path");
  fs::remove(manifest);
  CHECK(locate_plugin((folder / "good.so").native(), places, "check").manifest.empty());
}

TEST_CASE("locate: what is not there") {
  const TempFolder folder;
  const Places places({folder.path()}, Trace(""));
  CHECK(error_of([&] { locate_plugin((folder / "a.so").native(), places, "check"); }) ==
        "[plugin] cannot check '" + (folder / "a.so").native() + "': no such file");
  CHECK(error_of([&] { locate_plugin("acme-none", places, "check"); }) ==
        "[plugin] cannot check 'acme-none': not found in " + places.text());
}
