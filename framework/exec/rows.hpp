// SPDX-License-Identifier: Apache-2.0
//
// Small helpers of the executor: adding runs of elements, shapes of merged tensors.
#pragma once

#include <trellis/abi/tensor.h>

#include <cstdint>
#include <trellis/tensor.hpp>

namespace trellis::detail {

template <class T>
void add_run(char* to, const char* from, uint64_t n) {
  T* t = reinterpret_cast<T*>(to);
  const T* f = reinterpret_cast<const T*>(from);
  for (uint64_t i = 0; i < n; ++i) t[i] += f[i];
}

// to += from, n elements of a float type.
inline void add_rows(char* to, const char* from, uint64_t n, DType dtype) {
  if (dtype == DType::f64)
    add_run<double>(to, from, n);
  else
    add_run<float>(to, from, n);
}

// The shape of a tensor in a merged call: `batch` examples, one that serves all, or a flat run of
// elements.
inline void set_merged(trl_tensor& t, bool flat, bool one, uint32_t batch, uint64_t elements) {
  if (flat) {
    t.dim = Dim();
    t.dim.rank = 1;
    t.dim.d[0] = static_cast<uint32_t>(elements);
    t.batch_stride = elements;
    return;
  }
  t.dim.batch = one ? 1 : batch;
  uint64_t n = 1;
  for (uint32_t i = 0; i < t.dim.rank; ++i) n *= t.dim.d[i];
  t.batch_stride = one && batch > 1 ? 0 : n;
}

}  // namespace trellis::detail
