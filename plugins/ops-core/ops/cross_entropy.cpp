// SPDX-License-Identifier: Apache-2.0
//
// The fused loss of a classifier: minus the logarithm of the softmax at the right class. Nothing
// underflows, however small the probability.
//
//   y  = log sum exp(x) - x[id]
//   dx = (softmax(x) - [i == id]) dy
//
// Kept between the two: the largest value and the logarithm of the rest, two numbers per example.

#include "kernels/lines.hpp"
#include "kernels/terms.hpp"

namespace trellis::ops {

struct CrossEntropy {
  struct Attrs {
    Ids ids;
  };
  static constexpr auto attrs =
      fields(field("ids", &Attrs::ids, "the right class of each batch element", within(0, 0)));
  static constexpr OpSpec spec{
      .name = "cross_entropy",
      .summary = "minus the log of the softmax at one class per example",
      .doc =
          "x holds the scores of the classes, a vector per example; the result is one number per "
          "example.",
      .formula = "y = log sum_j exp(x_j) - x_id",
      .examples =
          "cross_entropy({4}, ids=2); cross_entropy({4}x3, ids=[0,3,1]); "
          "cross_entropy({4}, ids=[1,1,0]); cross_entropy({5,1}x2, ids=4)",
      .aliases = {"dynet.pickneglogsoftmax"},
      .inputs = {In("x").keep().about("scores")},
      .outputs = {"y", Out("parts").hidden()},
  };

  static std::array<Dim, 2> infer(const Attrs&, Dims x) {
    require_vector(x, 0);
    return {Dim{}, Dim{2}};
  }

  static void forward(const Attrs& a, const auto& f) {
    using T = typename std::remove_cvref_t<decltype(f)>::value_type;
    const auto x = f.x();
    const auto y = f.y(0), parts = f.y(1);
    const Split s{1, x.size(), 1};
    for (std::uint32_t b = 0; b < f.batch(); ++b) {
      const T* from = x.data(b);
      T part[2];
      shift_of_lines(s, from, part);
      sum_lines<T>(
          s, part + 1, [](auto v, auto m) { return simd::exp(v - m); }, Pointers<T, 1>{from},
          Pointers<T, 1>{part});
      part[1] = std::log(part[1]);
      *y.data(b) = part[1] - (from[a.ids[b]] - part[0]);
      if (!parts) continue;
      parts.data(b)[0] = part[0];
      parts.data(b)[1] = part[1];
    }
  }

  static void backward(const Attrs& a, const auto& b) {
    using T = typename std::remove_cvref_t<decltype(b)>::value_type;
    const auto x = b.x(), parts = b.y(1), dy = b.dy();
    const auto dx = b.dx_zeroed();
    if (!dx) return;
    const Split s{1, x.size(), 1};
    for (std::uint32_t i = 0; i < b.batch(); ++i) {
      const T* part = parts.data(i);
      const T* g = dy.data(i);
      T* to = dx.data(i);
      grad_lines<T>(
          s, false, to, [](auto v, auto m, auto z, auto d) { return d * simd::exp(v - m - z); },
          Pointers<T, 1>{x.data(i)}, Pointers<T, 3>{part, part + 1, g});
      to[a.ids[i]] -= *g;
    }
  }

  using uses = GradientOps;
  static Expr expand_grad(const Attrs&, const auto& g) {
    const auto x = term(g, g.x()), dy = term(g, g.dy());
    const std::int64_t classes = x.dim()[0], axis = 0;
    return x.template to<use::Softmax>(axis) * dy -
           dy.template to<use::Scatter>(g.attr(0), classes, axis);
  }
};

TRL_OPS(cross_entropy, CrossEntropy)

}  // namespace trellis::ops
