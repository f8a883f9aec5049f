// SPDX-License-Identifier: Apache-2.0
//
// The same elements in the same order under another shape, or as another batch: a view.

#include "kernels/terms.hpp"

namespace trellis::ops {

struct Reshape {
  struct Attrs {
    Ints shape;
    std::int64_t batch = 0;
  };
  static constexpr auto attrs =
      fields(field("shape", &Attrs::shape, "new sizes; one may be -1, meaning what is left",
                   required(), each(0, 8)),
             field("batch", &Attrs::batch, "new batch size; 0 leaves it as it is", at_least(0)));
  static constexpr OpSpec spec{
      .name = "reshape",
      .summary = "the same elements under another shape",
      .doc =
          "The batch stays unless `batch` is given: then elements may move between shape and "
          "batch.",
      .formula = "y = x",
      .examples =
          "reshape({6}, shape=[2,3]); reshape({2,3}x4, shape=[3,-1]); reshape({8}, shape=[1], "
          "batch=8); reshape({2}x3, shape=[6], batch=1); reshape({1}, shape=[])",
      .role = "reshape",
      .aliases = {"dynet.reshape"},
      .inputs = {"x"},
      .batch = Batch::never,
  };

  static Shape infer(const Attrs& a, Dims x) {
    const auto fits = [](std::int64_t n) { return n >= 1 && n <= 0xFFFFFFFFll; };
    Dim to;
    std::uint64_t known = 1;
    int open = -1;
    for (const std::int64_t n : a.shape) {
      TRL_REQUIRE(fits(n) || (n == -1 && open < 0), "impossible size: ", n,
                  " (need a positive size, or -1 once)");
      if (n == -1)
        open = static_cast<int>(to.rank);
      else
        known *= static_cast<std::uint64_t>(n);
      to.push(n == -1 ? 1 : static_cast<std::uint32_t>(n));
    }
    TRL_REQUIRE(a.batch == 0 || fits(a.batch), "impossible batch: ", a.batch);
    to.batch = a.batch == 0 ? x[0].batch : static_cast<std::uint32_t>(a.batch);
    const std::uint64_t total = x[0].size() * x[0].batch;
    if (open >= 0) {
      const std::uint64_t left = total / (known * to.batch);
      to.d[open] = static_cast<std::uint32_t>(left == 0 ? 1 : left);
    }
    TRL_REQUIRE(to.size() * to.batch == total, "numbers of elements differ: x is ", x[0],
                ", the new shape is ", to, " (need ", total, " elements)");
    return Shape(to).view(0);
  }

  static void forward(const Attrs&, const auto& f) {
    map_run(
        f.x().total(), f.y().data(), [](auto v) { return v; }, f.x().data());
  }
  static void backward(const Attrs&, const auto& b) {
    if (const auto dx = b.dx_zeroed())
      add_run(
          dx.total(), dx.data(), [](auto v) { return v; }, b.dy().data());
  }

  using uses = GradientOps;
  static Expr expand_grad(const Attrs&, const auto& g) {
    return reshaped(term(g, g.dy()), g.shape(g.x()));
  }
};

TRL_OPS(reshape, Reshape)

}  // namespace trellis::ops
