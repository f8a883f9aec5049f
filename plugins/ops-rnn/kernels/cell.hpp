// SPDX-License-Identifier: Apache-2.0
//
// What the cells have in common: vectors per batch element, some shared by the batch, gradients
// stored or added.
#pragma once

#include <algorithm>
#include <cstdint>
#include <trellis/sdk/op.hpp>

namespace trellis::ops {

// Where the gradient of one input goes, batch element after batch element. What is not wanted goes
// to memory that is thrown away, so that the loops need not ask.
template <class T>
class Sink {
 public:
  Sink(const auto& b, std::uint32_t input, std::uint64_t size)
      : gradient_(b.has(input) ? b.dx(input) : Tensor<T>()) {
    if (!gradient_) unwanted_ = b.template scratch<T>(size);
  }
  T* at(std::uint32_t batch_element) const {
    return gradient_ ? gradient_.data(batch_element) : unwanted_;
  }
  // 0 to store, 1 to add; what is shared by the batch is added to by all but the first.
  T keep(std::uint32_t batch_element) const {
    if (!gradient_) return 0;
    return gradient_.stores() && (batch_element == 0 || !gradient_.shared()) ? T(0) : T(1);
  }

 private:
  Tensor<T> gradient_;
  T* unwanted_ = nullptr;
};

// The gradient of an output, zeros where none flows.
template <class T>
class Source {
 public:
  Source(const auto& b, std::uint32_t output, std::uint64_t size) : gradient_(b.dy(output)) {
    if (gradient_) return;
    T* zeros = b.template scratch<T>(size);
    std::fill_n(zeros, size, T(0));
    zeros_ = zeros;
  }
  const T* at(std::uint32_t batch_element) const {
    return gradient_ ? gradient_.data(batch_element) : zeros_;
  }

 private:
  Tensor<const T> gradient_;
  const T* zeros_ = nullptr;
};

// to = value, or to += value when keep is 1. Memory that is stored to may hold anything, NaN too.
template <class T>
[[gnu::always_inline]] inline void put(T& to, T keep, T value) {
  to = (keep != T(0) ? to : T(0)) + value;
}

// The size of a cell from the length of its pre-activations; refuses what is not a multiple.
inline std::uint32_t cell_size(const Dims& x, std::uint32_t blocks) {
  require_vector(x, 0);
  TRL_REQUIRE(x[0][0] % blocks == 0, "length of ", x.name(0), " is not a multiple of ", blocks,
              ": ", x[0].with_batch(1));
  return x[0][0] / blocks;
}
inline void require_size(const Dims& x, std::uint32_t i, std::uint32_t size) {
  require_vector(x, i);
  TRL_REQUIRE(x[i][0] == size, "sizes differ: ", x.name(0), " is ", x[0].with_batch(1), ", ",
              x.name(i), " is ", x[i].with_batch(1), " (need {", size, "})");
}

}  // namespace trellis::ops
