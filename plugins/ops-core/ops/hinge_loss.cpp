// SPDX-License-Identifier: Apache-2.0
//
// Every class that comes closer to the right one than the margin costs the difference.
//
//   y   = sum over j != id of max(0, margin - x[id] + x[j])
//   dxj = dy where j costs; dx[id] = -dy * number of those

#include "kernels/simd.hpp"
#include "kernels/terms.hpp"

namespace trellis::ops {

struct HingeLoss {
  struct Attrs {
    Ids ids;
    double margin = 1;
  };
  static constexpr auto attrs =
      fields(field("ids", &Attrs::ids, "the right class of each batch element", within(0, 0)),
             field("margin", &Attrs::margin, "distance that costs nothing", at_least(0)));
  static constexpr OpSpec spec{
      .name = "hinge_loss",
      .summary = "margin loss at one class per example",
      .doc =
          "x holds the scores of the classes, a vector per example; the result is one number per "
          "example.",
      .formula = "y = sum_{j != id} max(0, margin - x_id + x_j)",
      .examples =
          "hinge_loss({4}, ids=2); hinge_loss({4}x3, ids=[0,3,1]); hinge_loss({4}, ids=[1,0], "
          "margin=0.3)",
      .aliases = {"dynet.hinge"},
      .inputs = {In("x").keep().about("scores")},
  };

  static Dim infer(const Attrs&, Dims x) {
    require_vector(x, 0);
    return Dim{};
  }

  static void forward(const Attrs& a, const auto& f) {
    using T = typename std::remove_cvref_t<decltype(f)>::value_type;
    const std::uint64_t n = f.x().size();
    for (std::uint32_t b = 0; b < f.batch(); ++b) {
      const T* x = f.x().data(b);
      const auto id = static_cast<std::uint64_t>(a.ids[b]);
      const auto cost = [slack = static_cast<T>(a.margin) - x[id]](T v) {
        return slack + v > 0 ? slack + v : T(0);
      };
      *f.y().data(b) = sum_run(id, cost, x) + sum_run(n - id - 1, cost, x + id + 1);
    }
  }

  static void backward(const Attrs& a, const auto& b) {
    using T = typename std::remove_cvref_t<decltype(b)>::value_type;
    const auto dx = b.dx_zeroed();
    if (!dx) return;
    const std::uint64_t n = dx.size();
    for (std::uint32_t i = 0; i < b.batch(); ++i) {
      const T* x = b.x().data(i);
      const T dy = *b.dy().data(i);
      T* to = dx.data(i);
      const auto id = static_cast<std::uint64_t>(a.ids[i]);
      const T slack = static_cast<T>(a.margin) - x[id];
      T right = 0;
      for (std::uint64_t j = 0; j < n; ++j) {
        const T d = j != id && slack + x[j] > 0 ? dy : T(0);
        to[j] += d;
        right += d;
      }
      to[id] -= right;
    }
  }

  using uses = GradientOps;
  static Expr expand_grad(const Attrs& a, const auto& g) {
    const auto x = term(g, g.x()), dy = term(g, g.dy());
    const std::int64_t classes = x.dim()[0], axis = 0;
    trl_attr ids = g.attr(0);
    ids.offsets = nullptr;  // one each, also where x is one example and the ids are several
    const auto right = [&](const auto& v) { return v.template to<use::Pick>(ids, axis); };
    const auto at_right = [&](const auto& v) {
      return v.template to<use::Scatter>(ids, classes, axis);
    };
    const auto all = simd::step(x - right(x) + a.margin);
    const auto costs = all - at_right(right(all));
    return costs * dy - at_right(sum_all(costs) * dy);
  }
};

TRL_OPS(hinge_loss, HingeLoss)

}  // namespace trellis::ops
