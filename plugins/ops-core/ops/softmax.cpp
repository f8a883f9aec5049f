// SPDX-License-Identifier: Apache-2.0
//
// Softmax, its logarithm and the logarithm of the sum of exponentials along an axis, all with the
// largest value taken out, so that no exponential overflows.
//
//   softmax      y = exp(x) / sum exp(x)          dx = (dy - sum(dy y)) y
//   log_softmax  y = x - log sum exp(x)           dx = dy - exp(y) sum(dy)
//   logsumexp    y = log sum exp(x)               dx = exp(x - y) dy, zero where y is -inf

#include "kernels/lines.hpp"
#include "kernels/terms.hpp"

namespace trellis::ops {

namespace {

struct AxisAttrs {
  std::int64_t axis = 0;
};
constexpr auto kAxis =
    fields(field("axis", &AxisAttrs::axis, "axis; negative counts from the last", in_range(-8, 7)));

}  // namespace

template <bool kLog>
struct SoftmaxOp {
  using Attrs = AxisAttrs;
  static constexpr auto attrs = kAxis;
  static constexpr OpSpec spec = [] {
    OpSpec s{
        .name = "softmax",
        .summary = "exponentials that sum to one along an axis",
        .formula = "y_i = exp(x_i) / sum_j exp(x_j)",
        .examples =
            "softmax({5}); softmax({3,4}x2); softmax({3,4}x2, axis=1); softmax({2,3,2}, axis=-1)",
        .aliases = {"dynet.softmax"},
        .inputs = {"x"},
        .keeps = Keep::output};
    if (kLog) {
      s.name = "log_softmax";
      s.summary = "logarithm of the softmax along an axis";
      s.formula = "y_i = x_i - log sum_j exp(x_j)";
      s.examples =
          "log_softmax({5}); log_softmax({3,4}x2); log_softmax({3,4}x2, axis=1); "
          "log_softmax({2,3,2}, axis=-1)";
      s.aliases = {"dynet.log_softmax"};
    }
    return s;
  }();

  static Dim infer(const Attrs& a, Dims x) {
    axis_of(a.axis, x[0]);
    return x[0];
  }

  static void forward(const Attrs& a, const auto& f) {
    using T = typename std::remove_cvref_t<decltype(f)>::value_type;
    const auto x = f.x();
    const auto y = f.y();
    const Split s = split(y.raw_dim(), axis_of(a.axis, y.dim()));
    T* const shift = f.scratch(2 * s.inner);
    T* const sum = shift + s.inner;
    each_group(f.batch(), s, [&](std::uint32_t b, std::uint64_t at, std::uint64_t) {
      const T* from = x.data(b) + at;
      T* to = y.data(b) + at;
      shift_of_lines(s, from, shift);
      if constexpr (kLog) {
        sum_lines<T>(
            s, sum, [](auto v, auto m) { return simd::exp(v - m); }, Pointers<T, 1>{from},
            Pointers<T, 1>{shift});
        for (std::uint64_t i = 0; i < s.inner; ++i) sum[i] = std::log(sum[i]);
        map_lines<T>(
            s, to, [](auto v, auto m, auto z) { return v - m - z; }, Pointers<T, 1>{from},
            Pointers<T, 2>{shift, sum});
      } else {
        map_lines<T>(
            s, to, [](auto v, auto m) { return simd::exp(v - m); }, Pointers<T, 1>{from},
            Pointers<T, 1>{shift});
        sum_lines<T>(
            s, sum, [](auto v) { return v; }, Pointers<T, 1>{to}, Pointers<T, 0>{});
        for (std::uint64_t i = 0; i < s.inner; ++i) sum[i] = 1 / sum[i];
        for (std::uint64_t k = 0; k < s.n; ++k)
          for (std::uint64_t i = 0; i < s.inner; ++i) to[k * s.inner + i] *= sum[i];
      }
    });
  }

  static void backward(const Attrs& a, const auto& b) {
    using T = typename std::remove_cvref_t<decltype(b)>::value_type;
    const auto y = b.y(), dy = b.dy();
    const auto dx = b.dx();
    if (!dx) return;
    const Split s = split(y.raw_dim(), axis_of(a.axis, y.dim()));
    T* const sum = b.scratch(s.inner);
    each_group(b.batch(), s, [&](std::uint32_t i, std::uint64_t at, std::uint64_t) {
      const Pointers<T, 2> from{y.data(i) + at, dy.data(i) + at};
      T* to = dx.data(i) + at;
      if constexpr (kLog) {
        sum_lines<T>(
            s, sum, [](auto, auto g) { return g; }, from, Pointers<T, 0>{});
        grad_lines<T>(
            s, dx.stores(), to, [](auto v, auto g, auto z) { return g - simd::exp(v) * z; }, from,
            Pointers<T, 1>{sum});
      } else {
        sum_lines<T>(
            s, sum, [](auto v, auto g) { return v * g; }, from, Pointers<T, 0>{});
        grad_lines<T>(
            s, dx.stores(), to, [](auto v, auto g, auto z) { return (g - z) * v; }, from,
            Pointers<T, 1>{sum});
      }
    });
  }

  using uses = GradientOps;
  static Expr expand_grad(const Attrs& a, const auto& g) {
    const auto y = term(g, g.y()), dy = term(g, g.dy());
    const std::uint32_t axis = axis_of(a.axis, y.dim());
    if constexpr (kLog)
      return dy - simd::exp(y) * sum_kept(dy, axis);
    else
      return (dy - sum_kept(dy * y, axis)) * y;
  }
};

struct LogSumExp {
  using Attrs = AxisAttrs;
  static constexpr auto attrs = kAxis;
  static constexpr OpSpec spec{
      .name = "logsumexp",
      .summary = "logarithm of the sum of exponentials along an axis, which is removed",
      .doc = "A line of minus infinities gives minus infinity with zero gradient.",
      .formula = "y = log sum_j exp(x_j)",
      .examples =
          "logsumexp({5}); logsumexp({3,4}x2); logsumexp({3,4}x2, axis=1); "
          "logsumexp({2,3,2}, axis=-1)",
      .aliases = {"dynet.logsumexp_dim"},
      .inputs = {"x"},
      .keeps = Keep::both};

  static Dim infer(const Attrs& a, Dims x) { return x[0].without(axis_of(a.axis, x[0])); }

  static void forward(const Attrs& a, const auto& f) {
    using T = typename std::remove_cvref_t<decltype(f)>::value_type;
    const auto x = f.x();
    const auto y = f.y();
    const Split s = split(x.raw_dim(), axis_of(a.axis, x.dim()));
    T* const shift = f.scratch(s.inner);
    each_group(f.batch(), s, [&](std::uint32_t b, std::uint64_t at, std::uint64_t line) {
      const T* from = x.data(b) + at;
      T* to = y.data(b) + line;
      shift_of_lines(s, from, shift);
      sum_lines<T>(
          s, to, [](auto v, auto m) { return simd::exp(v - m); }, Pointers<T, 1>{from},
          Pointers<T, 1>{shift});
      for (std::uint64_t i = 0; i < s.inner; ++i) to[i] = shift[i] + std::log(to[i]);
    });
  }

  static void backward(const Attrs& a, const auto& b) {
    using T = typename std::remove_cvref_t<decltype(b)>::value_type;
    const auto x = b.x(), y = b.y(), dy = b.dy();
    const auto dx = b.dx_zeroed();
    if (!dx) return;
    const Split s = split(x.raw_dim(), axis_of(a.axis, x.dim()));
    each_group(b.batch(), s, [&](std::uint32_t i, std::uint64_t at, std::uint64_t line) {
      grad_lines<T>(
          s, false, dx.data(i) + at,
          [](auto v, auto z, auto g) {
            const decltype(z) nothing(-std::numeric_limits<T>::infinity());
            return simd::select(z == nothing, 0, g * simd::exp(v - z));
          },
          Pointers<T, 1>{x.data(i) + at}, Pointers<T, 2>{y.data(i) + line, dy.data(i) + line});
    });
  }

  using uses = GradientOps;
  static Expr expand_grad(const Attrs& a, const auto& g) {
    const auto x = term(g, g.x()), dy = term(g, g.dy());
    const std::uint32_t axis = axis_of(a.axis, x.dim());
    return x.template to<use::Softmax>(std::int64_t{axis}) * reshaped(dy, x.dim().with(axis, 1));
  }
};

TRL_OPS(softmax, SoftmaxOp<false>, SoftmaxOp<true>, LogSumExp)

}  // namespace trellis::ops
