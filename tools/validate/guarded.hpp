// SPDX-License-Identifier: Apache-2.0
//
// Memory that notices who writes beside it. The bytes end at an inaccessible page, except for the
// tail up to the next 64 bytes, which kernels may read; that tail and what lies before hold known
// bytes. Writes there are found afterwards, accesses beyond are fatal and explained by the handler
// of fault.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace trellis::validate {

class Guarded {
 public:
  Guarded() = default;
  // `shift`: bytes by which data() misses an alignment of 64. The name is for messages.
  Guarded(size_t bytes, std::string name, size_t shift = 0);
  ~Guarded();
  Guarded(Guarded&& other) noexcept;
  Guarded& operator=(Guarded&& other) noexcept;

  template <class T = void>
  T* data() const {
    return static_cast<T*>(static_cast<void*>(data_));
  }
  size_t size() const { return bytes_; }
  const std::string& name() const { return name_; }
  void fill(uint8_t byte);
  // The known bytes around become `byte`: results must not depend on them.
  void surround(uint8_t byte);
  // "output 0 {5}: 8 bytes behind its end were written"; empty: nothing was.
  std::string damage() const;
  // From now on every access is fatal.
  void revoke();

  // The region that holds this address, for a signal handler: its name and how the address lies to
  // it. False: none does.
  static bool explain(const void* address, char* to, size_t room) noexcept;

 private:
  void release() noexcept;

  unsigned char* data_ = nullptr;
  unsigned char* pages_ = nullptr;  // the accessible ones
  size_t n_pages_ = 0, bytes_ = 0, entry_ = 0;
  uint8_t around_ = 0;
  bool revoked_ = false;
  std::string name_;
};

}  // namespace trellis::validate
