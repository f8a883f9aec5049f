// SPDX-License-Identifier: Apache-2.0
#include "plugin/note.hpp"

#include <trellis/abi/plugin.h>

#include <algorithm>
#include <random>

#include "plugin/file.hpp"
#include "support.hpp"

using namespace trellis::detail;
using namespace trellis::test;

namespace {

ElfInfo read(const fs::path& path) {
  struct stat status;
  const OpenFile file = open_file(path, status, "[test]");
  return read_elf(file.fd(), "[test]");
}

}  // namespace

TEST_CASE("note: what a plugin says is read without opening it") {
  const ElfInfo info = read(fixture("good"));
  REQUIRE(info.note);
  CHECK(info.note->id == "good");
  CHECK(info.note->version == "1.0.0");
  CHECK(info.note->abi_major == TRL_ABI_MAJOR);
  CHECK(info.note->abi_minor == TRL_ABI_MINOR);
  CHECK(info.note->min_host_minor == TRL_TARGET_MINOR);
  CHECK(info.note->target == TRL_TARGET);
  CHECK(info.note->cpu == TRL_CPU_LEVEL);
  CHECK(info.note->abi_extra.empty());
}

TEST_CASE("note: needed libraries and the versions they must have") {
  const ElfInfo info = read(fixture("throws"));
  CHECK(std::count(info.needed.begin(), info.needed.end(), "libc.so.6") == 1);
  CHECK(std::count(info.needed.begin(), info.needed.end(), "libstdc++.so.6") == 1);
  CHECK(info.glibc.substr(0, 2) == "2.");
  CHECK(info.glibcxx.substr(0, 2) == "3.");
}

TEST_CASE("note: a library without one is a library all the same") {
  CHECK_FALSE(read(fixture("no-note")).note);
}

TEST_CASE("note: damaged files are refused or read, never worse") {
  const std::string bytes = read_file(fixture("throws"));
  const TempFolder folder;
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 400; ++i) {
    std::string copy = bytes;
    // Headers, notes and dynamic section are where sizes are; the ends of files are where they lead
    // to.
    for (int k = 0; k < 6; ++k)
      copy[random() % std::min<size_t>(copy.size(), i % 2 ? 2048 : 128)] =
          static_cast<char>(random());
    if (i % 3 == 0) copy.resize(random() % copy.size());
    write_file(folder / "x.so", copy);
    refused += !error_of([&] { read(folder / "x.so"); }).empty();
  }
  CHECK(refused > 100);
}

TEST_CASE("note: versions compare by number") {
  CHECK(version_less("2.9", "2.34"));
  CHECK(version_less("2.34", "2.34.1"));
  CHECK_FALSE(version_less("3.4.30", "3.4.9"));
  CHECK_FALSE(version_less("2.34", "2.34"));
}
