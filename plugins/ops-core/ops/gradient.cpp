// SPDX-License-Identifier: Apache-2.0
//
// Operators that leave values alone and change what flows back.
//
//   stop_gradient      dx = 0
//   scale_gradient     dx = factor * dy
//   gradient_reversal  dx = -dy

#include "kernels/terms.hpp"

namespace trellis::ops {

struct StopGradient {
  static constexpr OpSpec spec{.name = "stop_gradient",
                               .summary = "x, as a constant for gradients",
                               .formula = "y = x",
                               .examples = "stop_gradient({3}); stop_gradient({2,3}x4)",
                               .aliases = {"dynet.nobackprop"},
                               .inputs = {In("x").no_grad()},
                               .batch = Batch::elementwise,
                               .unchecked = "gradient: it is zero by intent"};

  static Shape infer(Dims x) { return Shape(x[0]).view(0).stop_gradient(); }
  static void forward(auto x, auto y) {
    map(x, y, [](auto v) { return v; });
  }
};

struct ScaleGradient {
  struct Attrs {
    double factor = 1;
  };
  static constexpr auto attrs = fields(field("factor", &Attrs::factor, "factor of the gradient"));
  static constexpr OpSpec spec{
      .name = "scale_gradient",
      .summary = "x, with its gradient multiplied by a number",
      .formula = "y = x, dx = factor * dy",
      .examples = "scale_gradient({3}); scale_gradient({2,3}x4, factor=-0.5)",
      .aliases = {"dynet.scale_gradient"},
      .inputs = {"x"},
      .batch = Batch::elementwise,
      .unchecked = "gradient: it is not that of the value, by intent"};

  static Dim infer(const Attrs&, Dims x) { return x[0]; }
  static void forward(const Attrs&, auto x, auto y) {
    map(x, y, [](auto v) { return v; });
  }
  static void backward(const Attrs& a, const auto& b) {
    using T = typename std::remove_cvref_t<decltype(b)>::value_type;
    grad_zip(b.dy(), b.dx(), [f = static_cast<T>(a.factor)](T dy) { return f * dy; });
  }

  using uses = GradientOps;
  static Expr expand_grad(const Attrs& a, const auto& g) { return term(g, g.dy()) * a.factor; }
};

struct GradientReversal {
  static constexpr OpSpec spec{.name = "gradient_reversal",
                               .summary = "x, with its gradient turned round",
                               .formula = "y = x, dx = -dy",
                               .examples = "gradient_reversal({3}); gradient_reversal({2,3}x4)",
                               .aliases = {"dynet.flip_gradient"},
                               .inputs = {"x"},
                               .batch = Batch::elementwise,
                               .unchecked = "gradient: it is not that of the value, by intent"};

  static Dim infer(Dims x) { return x[0]; }
  static void forward(auto x, auto y) {
    map(x, y, [](auto v) { return v; });
  }
  static void backward(const auto& b) {
    grad_zip(b.dy(), b.dx(), [](auto dy) { return -dy; });
  }

  using uses = GradientOps;
  static Expr expand_grad(const auto& g) { return -term(g, g.dy()); }
};

TRL_OPS(gradient, StopGradient, ScaleGradient, GradientReversal)

}  // namespace trellis::ops
