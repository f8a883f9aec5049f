// SPDX-License-Identifier: Apache-2.0
//
// A file that appears whole or not at all: written under a temporary name in the same folder,
// synced, renamed. Without commit() the temporary file is removed and the old file stays.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace trellis::detail {

class AtomicFile {
 public:
  // Throws Error(io) "[who] cannot write '<path>': ..". A symbolic link is followed; a target that
  // is no regular file (a folder, a device) is refused.
  AtomicFile(const std::filesystem::path& path, std::string_view who);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t bytes);
  void commit();  // throws Error(io); then the old file is untouched

 private:
  [[noreturn]] void refuse(const std::string& reason) const;

  std::string who_, path_, temporary_;
  int fd_ = -1;
};

}  // namespace trellis::detail
