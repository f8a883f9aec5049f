// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <trellis/io.hpp>

#include "files.hpp"

using namespace trellis;
using test::Folder;

namespace {

std::vector<std::string> lines_of(const std::filesystem::path& path,
                                  const TextLimits& limits = {}) {
  LineReader reader(path, "read", limits);
  std::vector<std::string> lines;
  for (std::string line; reader.next(line);) lines.push_back(line);
  CHECK(reader.line_number() == lines.size());
  return lines;
}

std::string refusal(const std::filesystem::path& path, const TextLimits& limits = {}) {
  try {
    lines_of(path, limits);
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::io);
    return e.what();
  }
  return "read without complaint";
}

}  // namespace

TEST_CASE("line reader: both line ends, a byte order mark, no end at the last line") {
  const Folder dir;
  using Lines = std::vector<std::string>;
  CHECK(lines_of(dir.write("a", "\xEF\xBB\xBFone\r\n\ntwo\nthree")) ==
        Lines{"one", "", "two", "three"});
  CHECK(lines_of(dir.write("b", "one\n")) == Lines{"one"});
  CHECK(lines_of(dir.write("c", "")).empty());
  CHECK(lines_of(dir.write("d", "\n")) == Lines{""});
}

TEST_CASE("line reader: lines longer than its buffer") {
  const Folder dir;
  const std::string longer(200'000, 'x');
  const auto lines = lines_of(dir.write("a", longer + "\ny\n" + longer));
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == longer);
  CHECK(lines[1] == "y");
  CHECK(lines[2] == longer);
}

TEST_CASE("line reader: gzip is known by its bytes, also in several members") {
  const Folder dir;
  const auto path = dir.write("text", test::gzip("one\ntw") + test::gzip("o\n"));
  CHECK(lines_of(path) == std::vector<std::string>{"one", "two"});
}

TEST_CASE("line reader: a gzip file cut off at any byte is refused") {
  const Folder dir;
  const std::string whole = test::gzip("one two three\nfour\n");
  REQUIRE(whole.size() > 30);
  for (size_t n = 2; n < whole.size(); ++n) {
    CAPTURE(n);
    const auto path = dir.write("cut.gz", std::string_view(whole).substr(0, n));
    CHECK(refusal(path).ends_with("the gzip data ends too early"));
  }
}

TEST_CASE("line reader: a gzip file with any byte changed never crashes") {
  const Folder dir;
  const std::string whole = test::gzip("one two three\nfour\n");
  size_t refused = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string bytes = whole;
    bytes[i] = static_cast<char>(bytes[i] ^ 0x55);
    refused += refusal(dir.write("bad.gz", bytes)) != "read without complaint";
  }
  CHECK(refused > whole.size() / 2);
  std::string bytes = whole;
  bytes[bytes.size() - 7] = static_cast<char>(bytes[bytes.size() - 7] ^ 1);
  const auto path = dir.write("crc.gz", bytes);
  CHECK(refusal(path) == "[read] " + path.string() + ":1: broken gzip data: incorrect data check");
}

TEST_CASE("line reader: bounds hold after decompression") {
  const Folder dir;
  const auto bomb = dir.write("bomb.gz", test::gzip(std::string(5'000'000, 'a')));
  CHECK(refusal(bomb) == "[read] " + bomb.string() +
                             ":1: the line is longer than 1048576 bytes (is this a text file?)");
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "0123456789\n";
  const auto many = dir.write("many.gz", test::gzip(text));
  CHECK(refusal(many, {.total = 500'000}).ends_with("the text is longer than 500000 bytes"));
}

TEST_CASE("line reader: names the byte that is not UTF-8") {
  const Folder dir;
  const auto path = dir.write("a", "fine\nna\xEFve\n");
  CHECK(refusal(path) == "[read] " + path.string() + ":2: byte 3 is not UTF-8: 0xef");
}

TEST_CASE("line reader: files that cannot be read") {
  const Folder dir;
  const std::string missing = dir.file("none").string(), folder = dir.path().string();
  CHECK(refusal(missing) == "[read] cannot read '" + missing + "': No such file or directory");
  CHECK(refusal(folder) ==
        "[read] cannot read '" + folder + "': it is a folder (needed a text file)");
}
