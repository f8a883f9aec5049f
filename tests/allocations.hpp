// SPDX-License-Identifier: Apache-2.0
//
// Counts heap allocations of the whole program, plugins included, by standing in front of the C
// library. Include it in one file of a program. Sanitizers bring their own allocator: there
// kCountsAllocations is false.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TRELLIS_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define TRELLIS_TEST_SANITIZED 1
#endif
#endif

namespace trellis::test {

#ifdef TRELLIS_TEST_SANITIZED
inline constexpr bool kCountsAllocations = false;
#else
inline constexpr bool kCountsAllocations = true;
#endif
// Of this thread. Constant-initialised, so that the first malloc may count.
inline constinit thread_local uint64_t allocations = 0;

// Allocations made by f().
template <class F>
uint64_t allocations_in(F&& f) {
  const uint64_t before = allocations;
  f();
  return allocations - before;
}

}  // namespace trellis::test

#ifndef TRELLIS_TEST_SANITIZED
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

__attribute__((visibility("default"))) void* malloc(size_t n) noexcept {
  ++trellis::test::allocations;
  return __libc_malloc(n);
}
__attribute__((visibility("default"))) void* calloc(size_t n, size_t size) noexcept {
  ++trellis::test::allocations;
  return __libc_calloc(n, size);
}
__attribute__((visibility("default"))) void* realloc(void* p, size_t n) noexcept {
  ++trellis::test::allocations;
  return __libc_realloc(p, n);
}
__attribute__((visibility("default"))) void* memalign(size_t alignment, size_t n) noexcept {
  ++trellis::test::allocations;
  return __libc_memalign(alignment, n);
}
__attribute__((visibility("default"))) void* aligned_alloc(size_t alignment, size_t n) noexcept {
  ++trellis::test::allocations;
  return __libc_memalign(alignment, n);
}
__attribute__((visibility("default"))) int posix_memalign(void** out, size_t alignment,
                                                          size_t n) noexcept {
  ++trellis::test::allocations;
  *out = __libc_memalign(alignment, n);
  return *out != nullptr ? 0 : 12;  // ENOMEM
}
}
#endif
