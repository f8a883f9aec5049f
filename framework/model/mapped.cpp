// SPDX-License-Identifier: Apache-2.0

#include "model/mapped.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <trellis/error.hpp>
#include <utility>

namespace trellis::detail {

Mapped::~Mapped() {
  if (data_ != nullptr) munmap(data_, size_);
}

Mapped::Mapped(Mapped&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapped& Mapped::operator=(Mapped&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void Mapped::resize(size_t bytes) {
  if (bytes == size_) return;
  if (bytes == 0) {
    munmap(data_, size_);
    data_ = nullptr;
    size_ = 0;
    return;
  }
  void* const p = data_ == nullptr ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                                   : mremap(data_, size_, bytes, MREMAP_MAYMOVE);
  if (p == MAP_FAILED)
    fail(ErrorKind::memory, fmt::format("[model] out of memory: {} bytes asked, {} held by this "
                                        "block",
                                        bytes, size_));
  data_ = static_cast<char*>(p);
  size_ = bytes;
}

}  // namespace trellis::detail
