// SPDX-License-Identifier: Apache-2.0
//
// z = w x per batch element, with as few products as the sharing of operands allows: one for the
// whole batch where w is shared, in both directions.
#pragma once

#include <trellis/sdk/linalg.hpp>
#include <trellis/sdk/op.hpp>

namespace trellis::ops {

namespace detail {

// One product per batch element; where the gradient is shared they add up.
template <class T>
void products(const auto& b, const Tensor<T>& d, const Mat<T>& to, Mat<const T> left,
              Mat<const T> right) {
  const double keep = d.stores() ? 0 : 1;
  if (d.batch() == b.batch()) return gemm(b, to, left, right, keep, b.batch());
  for (std::uint32_t i = 0; i < b.batch(); ++i) {
    gemm(b, to, left, right, i == 0 ? keep : 1.0);
    left.data += left.stride;
    right.data += right.stride;
  }
}

}  // namespace detail

// z = w x + beta z
template <class T>
void product(const auto& f, const Tensor<const T>& w, const Tensor<const T>& x, const Tensor<T>& z,
             double beta) {
  const std::uint64_t m = w.dim(0), k = w.dim(1), n = x.dim(1), batch = f.batch();
  if (w.shared() && x.batch() == batch)
    gemm(f, Mat<T>(z.data(), m, n * batch), Mat<const T>(w.data(), m, k),
         Mat<const T>(x.data(), k, n * batch), beta);
  else
    gemm(f, Mat<T>(z.data(), m, n, m * n), Mat<const T>(w.data(), m, k, w.batch_stride()),
         Mat<const T>(x.data(), k, n, x.batch_stride()), beta, batch);
}

// dw = dz x', stored or added, summed over the batch where w is shared.
template <class T>
void product_grad_left(const auto& b, const Tensor<const T>& dz, const Tensor<const T>& x,
                       const Tensor<T>& dw) {
  if (!dw) return;
  const std::uint64_t m = dw.dim(0), k = dw.dim(1), n = x.dim(1), batch = b.batch();
  if (dw.batch() == 1 && x.batch() == batch)
    gemm(b, Mat<T>(dw.data(), m, k), Mat<const T>(dz.data(), m, n * batch),
         Mat<const T>(x.data(), k, n * batch).t(), dw.stores() ? 0 : 1);
  else
    detail::products(b, dw, Mat<T>(dw.data(), m, k, dw.batch_stride()),
                     Mat<const T>(dz.data(), m, n, m * n),
                     Mat<const T>(x.data(), k, n, x.batch_stride()).t());
}

// dx = w' dz, stored or added, summed over the batch where x is shared.
template <class T>
void product_grad_right(const auto& b, const Tensor<const T>& w, const Tensor<const T>& dz,
                        const Tensor<T>& dx) {
  if (!dx) return;
  const std::uint64_t m = w.dim(0), k = w.dim(1), n = dx.dim(1), batch = b.batch();
  if (w.shared() && dx.batch() == batch)
    gemm(b, Mat<T>(dx.data(), k, n * batch), Mat<const T>(w.data(), m, k).t(),
         Mat<const T>(dz.data(), m, n * batch), dx.stores() ? 0 : 1);
  else
    detail::products(b, dx, Mat<T>(dx.data(), k, n, dx.batch_stride()),
                     Mat<const T>(w.data(), m, k, w.batch_stride()).t(),
                     Mat<const T>(dz.data(), m, n, m * n));
}

}  // namespace trellis::ops
