// SPDX-License-Identifier: Apache-2.0
//
// Small file helpers of the loader.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <string>

namespace trellis::detail {

// An open file descriptor.
class OpenFile {
 public:
  OpenFile() = default;
  explicit OpenFile(int fd) : fd_(fd) {}
  OpenFile(OpenFile&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  OpenFile& operator=(OpenFile&& other) noexcept;
  ~OpenFile();
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

std::string quoted(const std::filesystem::path& path);  // '/a/b', control characters as \xNN

// Opens for reading; throws Error(plugin) "<prefix>: no such file or directory".
OpenFile open_file(const std::filesystem::path& path, struct stat& status,
                   const std::string& prefix);

// The whole of a regular file of at most `limit` bytes; throws Error(plugin) naming it.
std::string read_small_file(const std::filesystem::path& path, size_t limit);

}  // namespace trellis::detail
