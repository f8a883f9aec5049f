// SPDX-License-Identifier: Apache-2.0
#include "io/atomic_file.hpp"

#include <doctest/doctest.h>

#include <trellis/error.hpp>

#include "files.hpp"

using trellis::Error;
using trellis::detail::AtomicFile;
using trellis::test::Folder;
using trellis::test::read_bytes;

TEST_CASE("atomic file: the old file stays until commit") {
  const Folder dir;
  const auto path = dir.write("f", "old");
  {
    AtomicFile f(path, "save");
    f.write("new", 3);
    CHECK(read_bytes(path) == "old");
  }
  CHECK(read_bytes(path) == "old");
  AtomicFile f(path, "save");
  f.write("ne", 2);
  f.write("w", 1);
  f.commit();
  CHECK(read_bytes(path) == "new");
  CHECK(dir.count() == 1);
}

TEST_CASE("atomic file: permissions of a replaced file stay") {
  namespace fs = std::filesystem;
  const Folder dir;
  const auto path = dir.write("f", "old");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  AtomicFile f(path, "save");
  f.commit();
  CHECK(fs::status(path).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("atomic file: writes through a symbolic link") {
  const Folder dir;
  const auto path = dir.write("real", "old");
  std::filesystem::create_symlink(path, dir.file("link"));
  AtomicFile f(dir.file("link"), "save");
  f.write("new", 3);
  f.commit();
  CHECK(read_bytes(path) == "new");
  CHECK(std::filesystem::is_symlink(dir.file("link")));
}

TEST_CASE("atomic file: refuses folders, devices and places that do not exist") {
  const Folder dir;
  const std::string none = dir.file("none/f").string(), folder = dir.path().string();
  CHECK_THROWS_WITH_AS(AtomicFile(none, "save"),
                       ("[save] cannot write '" + none + "': No such file or directory").c_str(),
                       Error);
  CHECK_THROWS_WITH_AS(AtomicFile(folder, "save"),
                       ("[save] cannot write '" + folder + "': it is no regular file").c_str(),
                       Error);
  CHECK_THROWS_WITH_AS(AtomicFile("/dev/null", "save"),
                       "[save] cannot write '/dev/null': it is no regular file", Error);
  CHECK(dir.count() == 0);
}
