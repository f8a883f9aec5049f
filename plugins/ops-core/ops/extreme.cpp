// SPDX-License-Identifier: Apache-2.0
//
// The largest and smallest value along an axis, and where it is. Among equals the lowest index
// counts; NaN wins.
//
//   max, min        dx = dy at the place of the value, 0 elsewhere
//   argmax, argmin  the index, i64, no gradient

#include <trellis/sdk/op.hpp>

namespace trellis::ops {

namespace {

struct ExtremeAttrs {
  std::int64_t axis = 0;
};
constexpr auto kExtremeAttrs = fields(field(
    "axis", &ExtremeAttrs::axis, "axis to remove; negative counts from the last", in_range(-8, 7)));

template <bool kMax, class T>
bool beats(T a, T b) {
  return kMax ? a > b || (a != a && b == b) : a < b || (a != a && b == b);
}

// Calls f(index along the axis, place of the line in the result) for each line of one batch
// element.
template <bool kMax, class T, class F>
void each_extreme(const Split& s, const T* x, F&& f) {
  for (std::uint64_t o = 0; o < s.outer; ++o)
    for (std::uint64_t i = 0; i < s.inner; ++i) {
      const T* line = x + o * s.n * s.inner + i;
      std::uint64_t best = 0;
      for (std::uint64_t k = 1; k < s.n; ++k)
        if (beats<kMax>(line[k * s.inner], line[best * s.inner])) best = k;
      f(best, o * s.inner + i);
    }
}
// Element k of a line of the input.
constexpr std::uint64_t place(const Split& s, std::uint64_t k, std::uint64_t line) {
  return (line / s.inner * s.n + k) * s.inner + line % s.inner;
}

}  // namespace

template <bool kMax>
struct Extreme {
  using Attrs = ExtremeAttrs;
  static constexpr auto attrs = kExtremeAttrs;
  static constexpr OpSpec spec = [] {
    OpSpec s{
        .name = "max",
        .summary = "largest value along an axis, which is removed",
        .doc =
            "The gradient goes to the lowest index among equals. The larger of two expressions is "
            "maximum.",
        .formula = "y = max_k x_k",
        .examples = "max({5}); max({3,4}x2); max({3,4}x2, axis=1); max({2,3,2}, axis=-1)",
        .aliases = {"dynet.max_dim"},
        .inputs = {"x"},
        .keeps = Keep::input};
    if (!kMax) {
      s.name = "min";
      s.summary = "smallest value along an axis, which is removed";
      s.doc =
          "The gradient goes to the lowest index among equals. The smaller of two expressions is "
          "minimum.";
      s.formula = "y = min_k x_k";
      s.examples = "min({5}); min({3,4}x2); min({3,4}x2, axis=1); min({2,3,2}, axis=-1)";
      s.aliases = {"dynet.min_dim"};
    }
    return s;
  }();

  static Dim infer(const Attrs& a, Dims x) { return x[0].without(axis_of(a.axis, x[0])); }

  static void forward(const Attrs& a, const auto& f) {
    const Split s = split(f.x().raw_dim(), axis_of(a.axis, f.x().dim()));
    for (std::uint32_t b = 0; b < f.batch(); ++b) {
      const auto* x = f.x().data(b);
      auto* y = f.y().data(b);
      each_extreme<kMax>(
          s, x, [&](std::uint64_t k, std::uint64_t line) { y[line] = x[place(s, k, line)]; });
    }
  }

  static void backward(const Attrs& a, const auto& b) {
    const auto dx = b.dx_zeroed();
    if (!dx) return;
    const Split s = split(b.x().raw_dim(), axis_of(a.axis, b.x().dim()));
    for (std::uint32_t i = 0; i < b.batch(); ++i) {
      const auto* dy = b.dy().data(i);
      auto* to = dx.data(i);
      each_extreme<kMax>(s, b.x().data(i), [&](std::uint64_t k, std::uint64_t line) {
        to[place(s, k, line)] += dy[line];
      });
    }
  }
};

template <bool kMax>
struct ArgExtreme {
  using Attrs = ExtremeAttrs;
  static constexpr auto attrs = kExtremeAttrs;
  static constexpr OpSpec spec = [] {
    OpSpec s{.name = "argmax",
             .summary = "index of the largest value along an axis, which is removed",
             .doc = "The lowest index among equals; an i64 tensor without gradient.",
             .formula = "y = argmax_k x_k",
             .examples = "argmax({5}); argmax({3,4}x2); argmax({3,4}x2, axis=1)",
             .inputs = {In("x").no_grad()},
             .outputs = {Out("y").of(TRL_I64).no_grad()}};
    if (!kMax) {
      s.name = "argmin";
      s.summary = "index of the smallest value along an axis, which is removed";
      s.formula = "y = argmin_k x_k";
      s.examples = "argmin({5}); argmin({3,4}x2); argmin({3,4}x2, axis=1)";
    }
    return s;
  }();

  static Dim infer(const Attrs& a, Dims x) { return x[0].without(axis_of(a.axis, x[0])); }

  static void forward(const Attrs& a, const auto& f) {
    const auto y = f.template y_as<std::int64_t>();
    const Split s = split(f.x().raw_dim(), axis_of(a.axis, f.x().dim()));
    for (std::uint32_t b = 0; b < f.batch(); ++b)
      each_extreme<kMax>(s, f.x().data(b), [to = y.data(b)](std::uint64_t k, std::uint64_t line) {
        to[line] = static_cast<std::int64_t>(k);
      });
  }
};

TRL_OPS(extreme, Extreme<true>, Extreme<false>, ArgExtreme<true>, ArgExtreme<false>)

}  // namespace trellis::ops
