// SPDX-License-Identifier: Apache-2.0
//
// The safetensors container: u64 little-endian length of the header, the header (a JSON object:
// name -> dtype, shape, data_offsets; "__metadata__" -> text), then the numbers. Reading bounds
// every size by the file's before believing it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <trellis/io.hpp>
#include <vector>

namespace trellis::detail {

struct SafetensorsEntry {
  std::string dtype;            // "F32", "F64", "I64", ...
  std::vector<uint64_t> shape;  // row-major
  uint64_t begin = 0, end = 0;  // bytes from the start of the data
};

struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry> tensors;
  Metadata metadata;
  uint64_t data_start = 0, data_size = 0;  // bytes
};

// An open file with a checked header: names unique, element types known, offsets inside the data,
// without overlap or gap, sizes equal to what shape and type say.
class SafetensorsFile {
 public:
  // `who` starts the error texts.
  SafetensorsFile(const std::filesystem::path& path, std::string who);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const SafetensorsHeader& header() const { return header_; }
  const std::string& path() const { return path_; }
  void read_data(uint64_t begin, uint64_t bytes, void* to) const;  // throws Error(io)
  [[noreturn]] void fail(const std::string& fact) const;

 private:
  void open();
  void read_header();

  std::string path_, who_;
  int fd_ = -1;
  SafetensorsHeader header_;
};

// The header as bytes, length field included, padded so that the data starts at a multiple of 64.
// Throws Error(argument) when a name or a text is not UTF-8.
std::string safetensors_header(const std::map<std::string, SafetensorsEntry>& tensors,
                               const Metadata& metadata, const std::string& who);

}  // namespace trellis::detail
