// SPDX-License-Identifier: Apache-2.0
//
// What is refused of a file's headers is in loader_test.cpp, damaged files are in note_test.cpp.
#include "plugin/elf.hpp"

#include <trellis/abi/plugin.h>

#include <algorithm>
#include <cstring>

#include "plugin/file.hpp"
#include "support.hpp"

using namespace trellis::detail;
using namespace trellis::test;

namespace {

ElfLinkage linkage_of(const fs::path& path) {
  struct stat status;
  const OpenFile file = open_file(path, status, "[test]");
  return read_linkage(ElfFile(file.fd(), "[test]"));
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

TEST_CASE("elf: a plugin linked as the SDK says") {
  const ElfLinkage l = linkage_of(fixture("good"));
  CHECK(l.exports == std::vector<std::string>{TRL_ENTRY_SYMBOL});
  CHECK(l.unique.empty());
  CHECK(has(l.undefined, "puts"));
  CHECK(l.has_nodelete);
  CHECK(l.has_now);
  CHECK(l.has_relro);
  CHECK_FALSE(l.has_text_relocations);
  CHECK_FALSE(l.has_executable_stack);
  CHECK_FALSE(l.has_writable_code);
}

TEST_CASE("elf: functions that run when it is opened, by name") {
  CHECK(linkage_of(fixture("good")).constructors == std::vector<std::string>{"fixture_announce"});
  const ElfLinkage none = linkage_of(fs::path(environment("TRELLIS_PLUGIN_PATH")) / "trainers.so");
  CHECK(none.constructors.empty());
}

TEST_CASE("elf: of a stripped file the count stays") {
  const TempFolder folder;
  std::string bytes = read_file(fixture("good"));
  // What strip does: no more sections.
  Elf64_Ehdr e;
  std::memcpy(&e, bytes.data(), sizeof e);
  e.e_shoff = e.e_shnum = e.e_shstrndx = 0;
  std::memcpy(bytes.data(), &e, sizeof e);
  write_file(folder / "x.so", bytes);
  const ElfLinkage l = linkage_of(folder / "x.so");
  REQUIRE(!l.constructors.empty());
  CHECK(l.constructors.size() <= 2);  // a sanitizer adds one of its own
  CHECK(l.constructors[0].substr(0, 2) == "0x");
  CHECK(l.exports == std::vector<std::string>{TRL_ENTRY_SYMBOL});
}

TEST_CASE("elf: one linked badly") {
  const ElfLinkage l = linkage_of(fixture("linked-badly"));
  CHECK(has(l.exports, "linked_badly_helper"));
  CHECK(has(l.exports, TRL_ENTRY_SYMBOL));
  CHECK_FALSE(l.has_nodelete);
  CHECK_FALSE(l.has_now);
  CHECK_FALSE(l.has_relro);
  CHECK(l.has_executable_stack);
#if !defined(__clang__)
  CHECK(l.unique == std::vector<std::string>{"_ZN6SharedIiE5countE"});
#endif
}
