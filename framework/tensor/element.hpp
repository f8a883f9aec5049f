// SPDX-License-Identifier: Apache-2.0
//
// Elements of tensors whose type is known at run time only.
#pragma once

#include <cstdint>
#include <trellis/tensor.hpp>

namespace trellis::detail {

// Calls f with a zero of the element type.
template <class F>
auto visit_dtype(DType t, F&& f) {
  switch (t) {
    case DType::f32:
      return f(float{});
    case DType::f64:
      return f(double{});
    case DType::i32:
      return f(int32_t{});
    case DType::i64:
      return f(int64_t{});
    case DType::u8:
    case DType::boolean:
      break;
  }
  return f(uint8_t{});
}

double load_element(const void* data, DType dtype, uint64_t i);
// Throws Error(range) when an integer type cannot hold the value.
void store_element(void* data, DType dtype, uint64_t i, double v);

}  // namespace trellis::detail
