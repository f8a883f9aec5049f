// SPDX-License-Identifier: Apache-2.0
//
// Matrix product per batch element. The left operand is shared when it is a parameter: then all
// columns of a batch, and of merged nodes, are one product.
//
//   z  = x y
//   dx = dz y'     summed over the batch where x is shared: one product over all columns
//   dy = x' dz

#include <trellis/sdk/linalg.hpp>
#include <trellis/sdk/op.hpp>

namespace trellis::ops {

struct MatMul {
  static constexpr OpSpec spec{
      .name = "matmul",
      .summary = "matrix product",
      .doc =
          "x is {m,k}; y is {k} or {k,n}, and the result {m} or {m,n}. One product serves a whole "
          "batch when x is a parameter.",
      .formula = "z = x y",
      .examples =
          "matmul({3,4}, {4}); matmul({3,4}, {4}x5); matmul({3,4}x2, {4,2}x2); "
          "matmul({3,4}x3, {4,2}); matmul({3}, {1,2})",
      .role = "matmul",
      .inputs = {In("x").shared().keep(), In("y").keep()},
      .outputs = {"z"},
  };

  static Dim infer(Dims x) { return matmul_dim(x[0], x[1]); }

  static void forward(const auto& f) {
    using T = typename std::remove_cvref_t<decltype(f)>::value_type;
    const auto x = f.x(0), y = f.x(1);
    const auto z = f.y();
    const std::uint64_t m = x.dim(0), k = x.dim(1), n = y.dim(1), batch = f.batch();
    if (x.shared() && y.packed() && y.batch() == batch) {
      gemm(f, Mat<T>(z.data(), m, n * batch), Mat<const T>(x.data(), m, k),
           Mat<const T>(y.data(), k, n * batch));
    } else {
      gemm(f, Mat<T>(z.data(), m, n, m * n), Mat<const T>(x.data(), m, k, x.batch_stride()),
           Mat<const T>(y.data(), k, n, y.batch_stride()), 0, batch);
    }
  }

  static void backward(const auto& b) {
    using T = typename std::remove_cvref_t<decltype(b)>::value_type;
    const auto x = b.x(0), y = b.x(1), dz = b.dy();
    const std::uint64_t m = dz.dim(0), n = dz.dim(1), batch = b.batch();
    if (const auto dx = b.dx(0)) {
      const std::uint64_t k = y.dim(0);
      if (dx.batch() == 1 && y.batch() == batch) {
        gemm(b, Mat<T>(dx.data(), m, k), Mat<const T>(dz.data(), m, n * batch),
             Mat<const T>(y.data(), k, n * batch).t(), keep(dx));
      } else {
        products(b, dx, Mat<T>(dx.data(), m, k, dx.batch_stride()),
                 Mat<const T>(dz.data(), m, n, m * n),
                 Mat<const T>(y.data(), k, n, y.batch_stride()).t());
      }
    }
    if (const auto dy = b.dx(1)) {
      const std::uint64_t k = dy.dim(0);
      if (x.shared() && dy.batch() == batch) {
        gemm(b, Mat<T>(dy.data(), k, n * batch), Mat<const T>(x.data(), m, k).t(),
             Mat<const T>(dz.data(), m, n * batch), keep(dy));
      } else {
        products(b, dy, Mat<T>(dy.data(), k, n, dy.batch_stride()),
                 Mat<const T>(x.data(), m, k, x.batch_stride()).t(),
                 Mat<const T>(dz.data(), m, n, m * n));
      }
    }
  }

 private:
  // What a product does with the old gradient.
  static double keep(const auto& d) { return d.stores() ? 0.0 : 1.0; }

  // One product per batch element; where the gradient is shared they add up.
  template <class T>
  static void products(const auto& b, const Tensor<T>& d, Mat<T> to, Mat<const T> left,
                       Mat<const T> right) {
    if (d.batch() == b.batch()) return gemm(b, to, left, right, keep(d), b.batch());
    for (std::uint32_t i = 0; i < b.batch(); ++i) {
      gemm(b, to, left, right, i == 0 ? keep(d) : 1.0);
      left.data += left.stride;
      right.data += right.stride;
    }
  }
};

TRL_OPS(matmul, MatMul)

}  // namespace trellis::ops
