// SPDX-License-Identifier: Apache-2.0
//
// Any number of tensors, added or averaged in one node.
//
//   sum_list   y = x0 + x1 + ...          dxi = dy
//   mean_list  y = (x0 + x1 + ...) / n    dxi = dy / n

#include "kernels/terms.hpp"

namespace trellis::ops {

template <bool kMean>
struct SumList {
  static constexpr OpSpec spec = [] {
    OpSpec s{.name = "sum_list",
             .summary = "sum of any number of tensors",
             .doc = "Shapes broadcast as for add.",
             .formula = "y = x0 + x1 + ...",
             .examples =
                 "sum_list({3}, {3}, {3}); sum_list({2,3}x4, {2,3}); sum_list({3}); "
                 "sum_list({2,1}, {1,3}x2, {})",
             .aliases = {"dynet.sum", "dynet.esum"},
             .inputs = {In("x").variadic()},
             .batch = Batch::elementwise};
    if (kMean) {
      s.name = "mean_list";
      s.summary = "mean of any number of tensors";
      s.formula = "y = (x0 + x1 + ...) / n";
      s.examples =
          "mean_list({3}, {3}, {3}); mean_list({2,3}x4, {2,3}); mean_list({2,1}, {1,3}x2, {})";
      s.aliases = {"dynet.average"};
    }
    return s;
  }();

  static Dim infer(Dims x) { return broadcast(x); }

  static void forward(auto x, auto y) {
    using T = typename decltype(y.first())::value_type;
    const T part = share<T>(x.size());
    if (x.size() == 1) return map(x[0], y, [](T v) { return v; });
    zip(x[0], x[1], y, [part](T a, T b) { return part * (a + b); });
    for (std::uint32_t i = 2; i < x.size(); ++i)
      grad_zip(x[i], y.first(), [part](T v) { return part * v; });
  }
  static void backward(const auto& b) {
    using T = typename std::remove_cvref_t<decltype(b)>::value_type;
    for (std::uint32_t i = 0; i < b.inputs(); ++i)
      grad_zip(b.dy(), b.dx(i), [part = share<T>(b.inputs())](T v) { return part * v; });
  }

  using uses = GradientOps;
  static void expand_grad(const auto& g) {
    auto dy = term(g, g.dy());
    if constexpr (kMean) dy = dy / g.inputs();
    for (std::uint32_t i = 0; i < g.inputs(); ++i) g.dx(i, dy);
  }

 private:
  template <class T>
  static T share(std::uint32_t n) {
    return kMean ? T(1) / static_cast<T>(n) : T(1);
  }
};

TRL_OPS(sum_list, SumList<false>, SumList<true>)

}  // namespace trellis::ops
