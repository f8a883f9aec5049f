// SPDX-License-Identifier: Apache-2.0
//
// A bias and the sum of any number of matrix products, in one node.
//
//   y   = b + w1 x1 + w2 x2 + ...
//   db  = dy          summed over the columns and the batch elements that share b
//   dwi = dy xi'
//   dxi = wi' dy

#include <algorithm>

#include "kernels/product.hpp"
#include "kernels/terms.hpp"

namespace trellis::ops {

struct Affine {
  static constexpr OpSpec spec{
      .name = "affine",
      .summary = "bias plus a sum of matrix products",
      .doc =
          "Inputs are b, w1, x1, w2, x2, ...; each w is {m,k}, each x {k} or {k,n}. b is {m}, or "
          "anything that broadcasts to the products' shape. Shared parameters are multiplied once "
          "for "
          "a whole batch.",
      .formula = "y = b + w1 x1 + w2 x2 + ...",
      .examples =
          "affine({3}, {3,2}, {2}); affine({3}, {3,2}, {2}x4, {3,4}, {4}x4); "
          "affine({3}, {3,2}, {2,5}); affine({3,2}x2, {3,2}x2, {2,2}); affine({}, {1,2}, {2}x3)",
      .aliases = {"dynet.affine_transform"},
      .inputs = {In("b").shared().about("bias"),
                 In("terms").shared().keep().variadic().about("w1, x1, w2, x2, ...")},
  };

  static Dim infer(Dims x) {
    TRL_REQUIRE(x.size() % 2 == 1, "needs a bias and pairs of matrix and vector: given ", x.size(),
                " inputs (need an odd number)");
    Dim y;
    for (std::uint32_t i = 1; i < x.size(); i += 2) {
      const std::string number = std::to_string((i + 1) / 2);
      const Dim z = matmul_dim(x[i], x[i + 1], "w" + number, "x" + number);
      TRL_REQUIRE(i == 1 || z.same_shape(y), "products differ: w1 x1 is ", y, ", w", number, " x",
                  number, " is ", z, " (must be equal)");
      if (i == 1) y = z;
    }
    const Dim b = x[0];
    for (std::uint32_t axis = 0; axis < b.rank; ++axis)
      TRL_REQUIRE(b[axis] == y[axis] || b[axis] == 1, "the bias does not fit: b is ",
                  b.with_batch(1), ", the products are ", y,
                  " (each axis of b must be equal or 1)");
    return y;
  }

  static void forward(const auto& f) {
    map(f.x(0), f.y(), [](auto v) { return v; });
    for (std::uint32_t i = 1; i < f.inputs(); i += 2) product(f, f.x(i), f.x(i + 1), f.y(), 1);
  }

  static void backward(const auto& b) {
    grad_zip(b.dy(), b.dx(0), [](auto v) { return v; });
    for (std::uint32_t i = 1; i < b.inputs(); i += 2) {
      product_grad_left(b, b.dy(), b.x(i + 1), b.dx(i));
      product_grad_right(b, b.x(i), b.dy(), b.dx(i + 1));
    }
  }

  using uses = GradientOps;
  static void expand_grad(const auto& g) {
    const auto dy = term(g, g.dy());
    g.dx(0, dy);
    for (std::uint32_t i = 1; i < g.inputs(); i += 2) {
      const auto w = term(g, g.x(i)), x = term(g, g.x(i + 1));
      if (g.wants(i)) g.dx(i, dy.template with<use::MatMul>(transposed(x)));
      if (g.wants(i + 1)) g.dx(i + 1, transposed(w).template with<use::MatMul>(dy));
    }
  }
};

// The first rows of such a product: for blocks of a weight that not every node needs (the forget
// gates of a leaf), without a copy of the weight.
struct AffineRows {
  struct Attrs {
    std::int64_t rows = 0;
  };
  static constexpr auto attrs =
      fields(field("rows", &Attrs::rows, "how many, from the first", required(), at_least(1)));
  static constexpr OpSpec spec{
      .name = "affine_rows",
      .summary = "the first rows of a bias plus a matrix product",
      .doc = "b is {m}, w {m,k}, x {k} or {k,n}; the result has `rows` rows, at most m.",
      .formula = "y = b[:rows] + w[:rows] x",
      .examples =
          "affine_rows({3}, {3,2}, {2}, rows=2); affine_rows({3}, {3,2}, {2}x4, rows=1); "
          "affine_rows({3}, {3,2}, {2,5}, rows=3); "
          "affine_rows({3}x2, {3,2}x2, {2,2}, rows=2)",
      .inputs = {In("b").shared().about("bias"), In("w").shared().keep().about("matrix"),
                 In("x").keep().about("vector or columns")},
  };

  static Dim infer(const Attrs& a, Dims x) {
    Dim y = matmul_dim(x[1], x[2], "w", "x");
    TRL_REQUIRE(x[0].with_batch(1).same_shape(Dim{x[1][0]}), "the bias does not fit: b is ",
                x[0].with_batch(1), ", w is ", x[1].with_batch(1), " (need {", x[1][0], "})");
    TRL_REQUIRE(a.rows <= x[1][0], "too many rows: ", a.rows, " of ", x[1].with_batch(1),
                " (at most ", x[1][0], ")");
    y.d[0] = static_cast<std::uint32_t>(a.rows);
    return y;
  }

  static void forward(const Attrs&, const auto& f) {
    const auto y = f.y();
    const std::uint64_t rows = y.dim(0), columns = y.dim(1);
    for (std::uint32_t i = 0; i < f.batch(); ++i)
      for (std::uint64_t k = 0; k < columns; ++k)
        std::copy_n(f.x(0).data(i), rows, y.data(i) + k * rows);
    product(f, f.x(1), f.x(2), y, 1);
  }

  static void backward(const Attrs&, const auto& b) {
    const auto dy = b.dy();
    const auto db = b.dx_zeroed(0);
    const std::uint64_t rows = dy.dim(0), columns = dy.dim(1);
    for (std::uint32_t i = 0; db && i < b.batch(); ++i)
      for (std::uint64_t k = 0; k < columns; ++k)
        add_run(
            rows, db.data(i), [](auto v) { return v; }, dy.data(i) + k * rows);
    product_grad_left(b, dy, b.x(2), b.dx_zeroed(1));
    product_grad_right(b, b.x(1), dy, b.dx(2));
  }

  using uses = GradientOps;
  static void expand_grad(const Attrs&, const auto& g) {
    const auto dy = term(g, g.dy()), x = term(g, g.x(2));
    const std::uint32_t all = term(g, g.x(1)).dim()[0];
    const auto padded_dy = padded(dy, 0, 0, all);
    g.dx(0, padded_dy);
    if (g.wants(1)) g.dx(1, padded_dy.template with<use::MatMul>(transposed(x)));
    if (g.wants(2)) g.dx(2, transposed(term(g, g.x(1))).template with<use::MatMul>(padded_dy));
  }
};

TRL_OPS(affine, Affine, AffineRows)

}  // namespace trellis::ops
