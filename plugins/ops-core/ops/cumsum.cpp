// SPDX-License-Identifier: Apache-2.0
//
// Running sums along an axis.
//
//   y_k  = x_0 + ... + x_k
//   dx_k = dy_k + ... + dy_n

#include "kernels/terms.hpp"

namespace trellis::ops {

struct CumSum {
  struct Attrs {
    std::int64_t axis = 0;
  };
  static constexpr auto attrs =
      fields(field("axis", &Attrs::axis, "axis; negative counts from the last", in_range(-8, 7)));
  static constexpr OpSpec spec{
      .name = "cumsum",
      .summary = "running sums along an axis",
      .formula = "y_k = sum_{j <= k} x_j",
      .examples = "cumsum({5}); cumsum({3,4}x2, axis=1); cumsum({2,3,2}, axis=-2)",
      .aliases = {"dynet.cumsum"},
      .inputs = {"x"},
  };

  static Dim infer(const Attrs& a, Dims x) {
    axis_of(a.axis, x[0]);
    return x[0];
  }

  static void forward(const Attrs& a, const auto& f) {
    using T = typename std::remove_cvref_t<decltype(f)>::value_type;
    const Split s = split(f.y().raw_dim(), axis_of(a.axis, f.y().dim()));
    for (std::uint32_t b = 0; b < f.batch(); ++b)
      for (std::uint64_t o = 0; o < s.outer; ++o) {
        const T* x = f.x().data(b) + o * s.n * s.inner;
        T* y = f.y().data(b) + o * s.n * s.inner;
        for (std::uint64_t i = 0; i < s.inner; ++i) y[i] = x[i];
        for (std::uint64_t i = s.inner; i < s.n * s.inner; ++i) y[i] = y[i - s.inner] + x[i];
      }
  }

  static void backward(const Attrs& a, const auto& b) {
    using T = typename std::remove_cvref_t<decltype(b)>::value_type;
    const auto dx = b.dx_zeroed();
    if (!dx) return;
    const Split s = split(dx.raw_dim(), axis_of(a.axis, dx.dim()));
    T* const rest = b.scratch(s.inner);
    for (std::uint32_t e = 0; e < b.batch(); ++e)
      for (std::uint64_t o = 0; o < s.outer; ++o) {
        const T* dy = b.dy().data(e) + o * s.n * s.inner;
        T* to = dx.data(e) + o * s.n * s.inner;
        for (std::uint64_t i = 0; i < s.inner; ++i) rest[i] = 0;
        for (std::uint64_t k = s.n; k-- > 0;)
          for (std::uint64_t i = 0; i < s.inner; ++i)
            to[k * s.inner + i] += rest[i] += dy[k * s.inner + i];
      }
  }

  using uses = GradientOps;
  static Expr expand_grad(const Attrs& a, const auto& g) {
    const auto dy = term(g, g.dy());
    const std::uint32_t axis = axis_of(a.axis, dy.dim());
    return dy + (sum_kept(dy, axis) - dy.template to<use::CumSum>(std::int64_t{axis}));
  }
};

TRL_OPS(cumsum, CumSum)

}  // namespace trellis::ops
