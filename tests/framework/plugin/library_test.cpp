// SPDX-License-Identifier: Apache-2.0
#include "plugin/library.hpp"

#include <trellis/abi/plugin.h>

#include "support.hpp"

using namespace trellis::detail;
using namespace trellis::test;

namespace {

VerifiedLibrary verified(const fs::path& path) {
  VerifiedLibrary v;
  v.path = path;
  v.file = open_file(path, v.status, "[test]");
  return v;
}

}  // namespace

TEST_CASE("library: one file is opened once, by whatever name") {
  const TempFolder folder;
  install(folder.path(), named("good"));
  fs::create_symlink(folder / "good.so", folder / "link.so");
  const trl_entry_fn entry = open_library(verified(folder / "good.so"));
  CHECK((entry != nullptr));
  CHECK((open_library(verified(folder / "good.so")) == entry));
  CHECK((open_library(verified(folder / "link.so")) == entry));
  fs::copy_file(folder / "good.so", folder / "copy.so");
  CHECK((open_library(verified(folder / "copy.so")) != entry));
}

TEST_CASE("library: the dynamic linker's own words come through") {
  const TempFolder folder;
  install(folder.path(), named("undefined-symbol"));
  const std::string path = folder / "undefined-symbol.so";
  CHECK(error_of([&] { open_library(verified(path)); }) ==
        "[plugin] cannot load '" + path + "': " + path + ": undefined symbol: function_of_nobody");
}

TEST_CASE("library: a file that was replaced after it was verified is refused") {
  const TempFolder folder;
  install(folder.path(), named("good"));
  const VerifiedLibrary v = verified(folder / "good.so");
  fs::copy_file(folder / "good.so", folder / "fresh.so");
  fs::rename(folder / "fresh.so", folder / "good.so");
  CHECK(contains(error_of([&] { open_library(v); }), "the file changed while it was loaded"));
}

TEST_CASE("library: one without an entry says so") {
  const TempFolder folder;
  install(folder.path(), named("no-entry"));
  CHECK(contains(error_of([&] { open_library(verified(folder / "no-entry.so")); }),
                 "does not export trl_plugin_entry_v1"));
}
