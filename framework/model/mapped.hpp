// SPDX-License-Identifier: Apache-2.0
//
// Zeroed memory whose pages appear when they are first written: a table of millions of rows costs
// the rows in use.
#pragma once

#include <cstddef>

namespace trellis::detail {

class Mapped {
 public:
  Mapped() = default;
  explicit Mapped(size_t bytes) { resize(bytes); }
  ~Mapped();
  Mapped(Mapped&& other) noexcept;
  Mapped& operator=(Mapped&& other) noexcept;

  // Keeps the contents; what is new reads as zero. May move. Throws Error(memory).
  void resize(size_t bytes);
  char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace trellis::detail
