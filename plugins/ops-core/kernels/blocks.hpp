// SPDX-License-Identifier: Apache-2.0
//
// Copies of equally long blocks from one tensor into another, and the gradient: the same copies
// added the other way.
#pragma once

#include <cstring>
#include <trellis/sdk/op.hpp>

namespace trellis::ops {

// `count` blocks of n elements; the next one lies `step` elements further.
template <class T>
void copy_blocks(std::uint64_t count, std::uint64_t n, T* to, std::uint64_t to_step, const T* from,
                 std::uint64_t from_step) {
  for (std::uint64_t i = 0; i < count; ++i)
    std::memcpy(to + i * to_step, from + i * from_step, n * sizeof(T));
}
template <class T>
void add_blocks(std::uint64_t count, std::uint64_t n, T* to, std::uint64_t to_step, const T* from,
                std::uint64_t from_step) {
  for (std::uint64_t i = 0; i < count; ++i)
    add_run(
        n, to + i * to_step, [](T v) { return v; }, from + i * from_step);
}

}  // namespace trellis::ops
