// SPDX-License-Identifier: Apache-2.0
#include "plugin/file.hpp"

#include <sys/stat.h>
#include <trellis/abi/plugin.h>

#include "support.hpp"

using namespace trellis::detail;
using namespace trellis::test;

TEST_CASE("file: paths are quoted as they are, but for control characters") {
  CHECK(quoted("/a b/ünï") == "'/a b/ünï'");
  CHECK(quoted("/a\nb\x7f") == "'/a\\x0ab\\x7f'");
}

TEST_CASE("file: small files are read whole, long ones refused") {
  const TempFolder folder;
  write_file(folder / "x", std::string("a\0b", 3));
  CHECK(read_small_file(folder / "x", 1024) == std::string("a\0b", 3));
  write_file(folder / "x", std::string(1024, 'a'));
  CHECK(read_small_file(folder / "x", 1024).size() == 1024);
  write_file(folder / "x", std::string(1025, 'a'));
  CHECK(contains(error_of([&] { read_small_file(folder / "x", 1024); }), "longer than 1 KiB"));
}

TEST_CASE("file: a pipe is refused and does not hang") {
  const TempFolder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(contains(error_of([&] { read_small_file(folder / "pipe", 10); }), "not a regular file"));
}

TEST_CASE("file: an open file is closed once") {
  const TempFolder folder;
  write_file(folder / "x", "x");
  struct stat status;
  OpenFile a = open_file(folder / "x", status, "[test]");
  CHECK(status.st_size == 1);
  OpenFile b = std::move(a);
  CHECK(a.fd() == -1);
  a = std::move(b);
  CHECK(a.fd() >= 0);
  CHECK(error_of([&] { open_file(folder / "y", status, "[test]"); }) ==
        "[test]: no such file or directory");
}
