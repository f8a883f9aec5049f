// SPDX-License-Identifier: Apache-2.0
//
// Counts heap allocations of the whole program, plugins included, by standing in front of the C
// library. Sanitizers bring their own allocator: there kCountsAllocations is false.
#pragma once

#include <cstdint>

namespace trellis::validate {

// Of this thread. Constant-initialised, so that the first malloc may count.
extern constinit thread_local uint64_t heap_allocations;
extern const bool kCountsAllocations;

}  // namespace trellis::validate
