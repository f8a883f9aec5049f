// SPDX-License-Identifier: Apache-2.0
//
// Hyperbolic tangent, element by element.
//
//   y  = tanh(x)
//   dx = dy * (1 - y*y)          from y, so x need not be kept

#include "kernels/simd.hpp"
#include "kernels/terms.hpp"

namespace trellis::ops {

struct Tanh {
  static constexpr OpSpec spec{
      .name = "tanh",
      .summary = "hyperbolic tangent, element by element",
      .formula = "y = tanh(x)",
      .examples = "tanh({3}); tanh({2,3}x4); tanh({})",
      .aliases = {"dynet.tanh"},
      .inputs = {"x"},
      .batch = Batch::elementwise,  // any number of tanh nodes may run as one
      .keeps = Keep::output,
  };

  static Dim infer(Dims x) { return x[0]; }

  static void forward(auto x, auto y) {
    map(x, y, simd::wide([](auto v) { return simd::tanh(v); }));
  }

  static void backward(const auto& b) {
    grad_zip(b.y(), b.dy(), b.dx(), [](auto y, auto dy) { return dy * (1 - y * y); });
  }

  using uses = GradientOps;
  static Expr expand_grad(const auto& g) {
    const auto y = term(g, g.y()), dy = term(g, g.dy());
    return dy * (1 - y * y);
  }
};

TRL_OPS(tanh, Tanh)

}  // namespace trellis::ops
