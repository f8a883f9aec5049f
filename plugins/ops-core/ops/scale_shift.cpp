// SPDX-License-Identifier: Apache-2.0
//
// What numbers do to expressions: 0.37 * x + 2. The numbers vary freely without hindering batching.
//
//   y  = scale * x + shift
//   dx = scale * dy

#include "kernels/terms.hpp"

namespace trellis::ops {

struct ScaleShift {
  struct Attrs {
    Scalars scale{1.0}, shift{0.0};
  };
  static constexpr auto attrs = fields(field("scale", &Attrs::scale, "factor"),
                                       field("shift", &Attrs::shift, "what is added"));
  static constexpr OpSpec spec{
      .name = "scale_shift",
      .summary = "multiplies by a number and adds one",
      .formula = "y = scale * x + shift",
      .examples =
          "scale_shift({3}, scale=0.5); scale_shift({2,3}x4, scale=-2, shift=1); scale_shift({})",
      .role = "scale_shift",
      .inputs = {"x"},
  };

  static Dim infer(const Attrs&, Dims x) { return x[0]; }

  static void forward(const Attrs& a, const auto& f) {
    using T = typename std::remove_cvref_t<decltype(f)>::value_type;
    const auto x = f.x();
    const auto y = f.y();
    const std::uint64_t n = y.size();
    for (std::uint32_t b = 0; b < f.batch(); ++b) {
      const T scale = static_cast<T>(a.scale[b]), shift = static_cast<T>(a.shift[b]);
      map_run(
          n, y.data(b), [=](T v) { return scale * v + shift; }, x.data(b));
    }
  }

  static void backward(const Attrs& a, const auto& b) {
    using T = typename std::remove_cvref_t<decltype(b)>::value_type;
    const auto dy = b.dy();
    const auto dx = b.dx_zeroed();
    if (!dx) return;
    const std::uint64_t n = dx.size();
    for (std::uint32_t i = 0; i < b.batch(); ++i) {
      const T scale = static_cast<T>(a.scale[i]);
      add_run(
          n, dx.data(i), [=](T v) { return scale * v; }, dy.data(i));
    }
  }

  using uses = GradientOps;
  static Expr expand_grad(const Attrs&, const auto& g) {
    return g.template apply<use::Scale>({g.dy()}, g.attr(0));
  }
};

TRL_OPS(scale_shift, ScaleShift)

}  // namespace trellis::ops
