// SPDX-License-Identifier: Apache-2.0
//
// Matrix product per batch element. The left operand is shared when it is a parameter: then all
// columns of a batch, and of merged nodes, are one product.
//
//   z  = x y
//   dx = dz y'     summed over the batch where x is shared: one product over all columns
//   dy = x' dz

#include "kernels/product.hpp"
#include "kernels/terms.hpp"

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

  static void forward(const auto& f) { product(f, f.x(0), f.x(1), f.y(), 0); }

  static void backward(const auto& b) {
    product_grad_left(b, b.dy(), b.x(1), b.dx(0));
    product_grad_right(b, b.x(0), b.dy(), b.dx(1));
  }

  using uses = GradientOps;
  static void expand_grad(const auto& g) {
    const auto x = term(g, g.x(0)), y = term(g, g.x(1)), dz = term(g, g.dy());
    if (g.wants(0)) g.dx(0, dz.template with<use::MatMul>(transposed(y)));
    if (g.wants(1)) g.dx(1, transposed(x).template with<use::MatMul>(dz));
  }
};

TRL_OPS(matmul, MatMul)

}  // namespace trellis::ops
