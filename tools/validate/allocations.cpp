// SPDX-License-Identifier: Apache-2.0
#include "validate/allocations.hpp"

#include <cstddef>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TRELLIS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define TRELLIS_SANITIZED 1
#endif
#endif

namespace trellis::validate {

constinit thread_local uint64_t heap_allocations = 0;
#ifdef TRELLIS_SANITIZED
const bool kCountsAllocations = false;
#else
const bool kCountsAllocations = true;
#endif

}  // namespace trellis::validate

#ifndef TRELLIS_SANITIZED
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

__attribute__((visibility("default"))) void* malloc(size_t n) noexcept {
  ++trellis::validate::heap_allocations;
  return __libc_malloc(n);
}
__attribute__((visibility("default"))) void* calloc(size_t n, size_t size) noexcept {
  ++trellis::validate::heap_allocations;
  return __libc_calloc(n, size);
}
__attribute__((visibility("default"))) void* realloc(void* p, size_t n) noexcept {
  ++trellis::validate::heap_allocations;
  return __libc_realloc(p, n);
}
__attribute__((visibility("default"))) void* memalign(size_t alignment, size_t n) noexcept {
  ++trellis::validate::heap_allocations;
  return __libc_memalign(alignment, n);
}
__attribute__((visibility("default"))) void* aligned_alloc(size_t alignment, size_t n) noexcept {
  ++trellis::validate::heap_allocations;
  return __libc_memalign(alignment, n);
}
__attribute__((visibility("default"))) int posix_memalign(void** out, size_t alignment,
                                                          size_t n) noexcept {
  ++trellis::validate::heap_allocations;
  *out = __libc_memalign(alignment, n);
  return *out ? 0 : 12;  // ENOMEM
}
}
#endif
