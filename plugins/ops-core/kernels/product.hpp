// SPDX-License-Identifier: Apache-2.0
//
// z = w x per batch element, with as few products as the sharing of operands allows: one for the
// whole batch where w is shared, in both directions. Where z has fewer rows than w it is that of the
// first rows of w.
#pragma once

#include <trellis/sdk/linalg.hpp>
#include <trellis/sdk/op.hpp>

namespace trellis::ops {

namespace detail {

// The first m rows of a matrix of each batch element.
template <class T>
Mat<T> first_rows(const Tensor<T>& w, std::uint64_t m) {
  Mat<T> to(w.data(), m, w.dim(1), w.batch_stride());
  to.ld = w.dim(0);
  return to;
}

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
  const std::uint64_t m = z.dim(0), k = w.dim(1), n = x.dim(1), batch = f.batch();
  const Mat<const T> left = detail::first_rows(w, m);
  if (w.shared() && x.batch() == batch)
    gemm(f, Mat<T>(z.data(), m, n * batch), left, Mat<const T>(x.data(), k, n * batch), beta);
  else
    gemm(f, Mat<T>(z.data(), m, n, m * n), left, Mat<const T>(x.data(), k, n, x.batch_stride()),
         beta, batch);
}

// dw = dz x', stored or added, summed over the batch where w is shared. Rows of dw beyond those of dz
// are not touched.
template <class T>
void product_grad_left(const auto& b, const Tensor<const T>& dz, const Tensor<const T>& x,
                       const Tensor<T>& dw) {
  if (!dw) return;
  const std::uint64_t m = dz.dim(0), k = dw.dim(1), n = x.dim(1), batch = b.batch();
  const Mat<T> to = detail::first_rows(dw, m);
  if (dw.batch() == 1 && x.batch() == batch)
    gemm(b, to, Mat<const T>(dz.data(), m, n * batch), Mat<const T>(x.data(), k, n * batch).t(),
         dw.stores() ? 0 : 1);
  else
    detail::products(b, dw, to, Mat<const T>(dz.data(), m, n, m * n),
                     Mat<const T>(x.data(), k, n, x.batch_stride()).t());
}

// dx = w' dz, stored or added, summed over the batch where x is shared.
template <class T>
void product_grad_right(const auto& b, const Tensor<const T>& w, const Tensor<const T>& dz,
                        const Tensor<T>& dx) {
  if (!dx) return;
  const std::uint64_t m = dz.dim(0), k = w.dim(1), n = dx.dim(1), batch = b.batch();
  const Mat<const T> left = detail::first_rows(w, m).t();
  if (w.shared() && dx.batch() == batch)
    gemm(b, Mat<T>(dx.data(), k, n * batch), left, Mat<const T>(dz.data(), m, n * batch),
         dx.stores() ? 0 : 1);
  else
    detail::products(b, dx, Mat<T>(dx.data(), k, n, dx.batch_stride()), left,
                     Mat<const T>(dz.data(), m, n, m * n));
}

}  // namespace trellis::ops
