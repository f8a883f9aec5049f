// SPDX-License-Identifier: Apache-2.0
#include "io/safetensors.hpp"

#include <doctest/doctest.h>

#include "files.hpp"

using namespace trellis;
using detail::SafetensorsFile;
using test::Folder;

namespace {

std::string container(std::string_view json, std::string_view data,
                      uint64_t claimed = ~uint64_t{0}) {
  const uint64_t n = claimed == ~uint64_t{0} ? json.size() : claimed;
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(n >> (8 * i));
  return out.append(json).append(data);
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + shape +
         "],\"data_offsets\":[" + offsets + "]}";
}

// The fact of a refusal, without who and path.
std::string refusal(const Folder& dir, const std::string& bytes) {
  const auto path = dir.write("f", bytes);
  try {
    const SafetensorsFile file(path, "load");
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::io);
    const std::string head = "[load] '" + path.string() + "': ", text = e.what();
    REQUIRE(text.starts_with(head));
    return text.substr(head.size());
  }
  return "read without complaint";
}

}  // namespace

TEST_CASE("safetensors: what was written is read") {
  const Folder dir;
  std::map<std::string, detail::SafetensorsEntry> tensors;
  tensors["b"] = {"F32", {2}, 0, 8};
  tensors["a/w"] = {"F64", {}, 8, 16};
  tensors["none"] = {"F32", {3, 0}, 16, 16};
  const std::string head = detail::safetensors_header(tensors, {{"k", "v \xC3\xA9\n"}}, "save");
  CHECK(head.size() % 64 == 0);
  const SafetensorsFile file(dir.write("f", head + "0123456789abcdef"), "load");
  CHECK(file.header().metadata.at("k") == "v \xC3\xA9\n");
  REQUIRE(file.header().tensors.size() == 3);
  CHECK(file.header().tensors.at("a/w").dtype == "F64");
  CHECK(file.header().tensors.at("b").shape == std::vector<uint64_t>{2});
  CHECK(file.header().data_start == head.size());
  char text[4];
  file.read_data(8, 4, text);
  CHECK(std::string(text, 4) == "89ab");
  CHECK_THROWS_AS(file.read_data(14, 4, text), Error);
}

TEST_CASE("safetensors: texts that are not UTF-8 are not written") {
  CHECK_THROWS_WITH_AS(detail::safetensors_header({}, {{"k", "\xFF"}}, "save"),
                       "[save] a name or a text of the metadata is not UTF-8", Error);
}

TEST_CASE("safetensors: sizes are bounded before they are believed") {
  const Folder dir;
  CHECK(refusal(dir, "1234567") == "7 bytes are no safetensors file (needed 8 or more)");
  CHECK(refusal(dir, container("{}", "", 3)) ==
        "the header claims 3 bytes (the file has 2 after its length)");
  CHECK(refusal(dir, container("{}", "", ~uint64_t{0} - 1)) ==
        "the header claims 18446744073709551614 bytes (the file has 2 after its length)");
  const auto one = [](const std::string& dtype, const std::string& shape,
                      const std::string& offsets) {
    return container("{" + entry("w", dtype, shape, offsets) + "}", "01234567");
  };
  CHECK(refusal(dir, one("F32", "2", "0,8")) == "read without complaint");
  CHECK(refusal(dir, one("F32", "3", "0,8")) ==
        "tensor 'w': data_offsets span 8 bytes (needed 12)");
  CHECK(refusal(dir, one("F32", "4611686018427387904,2", "0,8")) ==
        "tensor 'w': the sizes of its shape overflow");
  CHECK(refusal(dir, one("F32", "4611686018427387904,4,0", "0,0")) ==
        "tensor 'w': the sizes of its shape overflow");
  CHECK(refusal(dir, one("F32", "-2", "0,8")) == "tensor 'w': a size in its shape is -2");
  CHECK(refusal(dir, one("F32", "2.0", "0,8")) == "tensor 'w': a size in its shape is 2.0");
  CHECK(refusal(dir, one("F32", "2", "8,0")) ==
        "tensor 'w': data_offsets are no pair of rising numbers");
  CHECK(refusal(dir, one("F32", "2", "0,8,9")) ==
        "tensor 'w': data_offsets are no pair of rising numbers");
  CHECK(refusal(dir, one("F32", "2", "4,12")) ==
        "tensor 'w' starts at byte 4 of the data (needed 0: no gap, no overlap)");
  CHECK(refusal(dir, one("F32", "1", "0,4")) == "the file holds 8 bytes of data (needed 4)");
  CHECK(refusal(dir, one("F64", "2", "0,16")) == "the file holds 8 bytes of data (needed 16)");
  CHECK(refusal(dir, one("F33", "2", "0,8")) == "tensor 'w': unknown dtype \"F33\"");
  CHECK(refusal(dir, container("{" + entry("a", "F32", "2", "0,8") + "," +
                                   entry("b", "U8", "1", "7,8") + "}",
                               "01234567")) ==
        "tensor 'b' starts at byte 7 of the data (needed 8: no gap, no overlap)");
}

TEST_CASE("safetensors: headers that are wrong") {
  const Folder dir;
  const std::string w = entry("w", "U8", "1", "0,1");
  CHECK(refusal(dir, container("{" + w + "," + w + "}", "x")) ==
        "the header is wrong: the name 'w' is there twice");
  CHECK(refusal(dir, container("[]", "")) == "the header is wrong: it is no object");
  CHECK(refusal(dir, container("{\"__metadata__\":[]}", "")) ==
        "the header is wrong: __metadata__ is no object");
  CHECK(refusal(dir, container("{\"__metadata__\":{\"k\":1}}", "")) ==
        "the header is wrong: metadata 'k' is no text");
  CHECK(refusal(dir, container("{\"__metadata__\":{\"k\":\"\",\"k\":\"\"}}", "")) ==
        "the header is wrong: the name 'k' is there twice");
  CHECK(refusal(dir, container("{\"w\":1}", "")) ==
        "tensor 'w': needs dtype, shape and data_offsets");
  CHECK(refusal(dir, container("{\"w\":{\"dtype\":1,\"shape\":[],\"data_offsets\":[0,1]}}", "x")) ==
        "tensor 'w': unknown dtype 1");
  CHECK(refusal(dir, container("{\"w\":{\"dtype\":\"U8\",\"shape\":1,\"data_offsets\":[0,1]}}",
                               "x")) == "tensor 'w': shape is no list");
  CHECK(refusal(dir, container(std::string(100'000, '['), "")) ==
        "the header is wrong: nested too deeply");
  CHECK(refusal(dir, container("{", "")).starts_with("the header is no valid JSON: "));
  CHECK(refusal(dir, container("{\"\xFF\":1}", "")).starts_with("the header is no valid JSON: "));
  CHECK(
      refusal(dir, container("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"b\":"
                             "{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
                             "xy")) == "read without complaint");
}

TEST_CASE("safetensors: what is no regular file") {
  const Folder dir;
  CHECK_THROWS_WITH_AS(
      SafetensorsFile(dir.file("none"), "load"),
      ("[load] '" + dir.file("none").string() + "': cannot read: No such file or directory")
          .c_str(),
      Error);
  CHECK_THROWS_WITH_AS(
      SafetensorsFile(dir.path(), "load"),
      ("[load] '" + dir.path().string() + "': cannot read: it is no regular file").c_str(), Error);
}

TEST_CASE("safetensors: every cut is refused, every changed byte is read or refused") {
  const Folder dir;
  const std::string whole =
      container("{\"__metadata__\":{\"k\":\"v\"}," + entry("w", "F32", "2", "0,8") + "," +
                    entry("u", "U8", "1", "8,9") + "}",
                "012345678");
  REQUIRE(refusal(dir, whole) == "read without complaint");
  for (size_t n = 0; n < whole.size(); ++n) {
    CAPTURE(n);
    CHECK(refusal(dir, whole.substr(0, n)) != "read without complaint");
  }
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const int change : {0x01, 0x10, 0x80, 0xFF}) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ change);
      refusal(dir, bytes);
    }
  }
}
