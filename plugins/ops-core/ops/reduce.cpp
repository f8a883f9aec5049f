// SPDX-License-Identifier: Apache-2.0
//
// Sums and means over axes, and over the batch.
//
//   sum          y = sum of x over the axes, which are removed        dx = dy
//   mean         y = sum / number of elements summed                  dx = dy / number
//   sum_batches  y = sum of x over the batch                          dx = dy for every batch
//   element mean_batches y = sum_batches / batch                              dx = dy / batch

#include "kernels/terms.hpp"

namespace trellis::ops {

template <bool kMean>
struct Sum {
  struct Attrs {
    Ints axes;
  };
  static constexpr auto attrs = fields(
      field("axes", &Attrs::axes, "axes to remove; none: all. Negative ones count from the last",
            in_range(-8, 7), each(0, 8)));
  static constexpr OpSpec spec = [] {
    OpSpec s{.name = "sum",
             .summary = "sum over all elements of each example, or over some axes",
             .doc = "The axes are removed from the shape. The batch stays: see sum_batches.",
             .formula = "y = sum(x)",
             .examples =
                 "sum({3}); sum({2,3}x4); sum({2,3}x4, axes=[0]); sum({2,3}x4, axes=[1]); "
                 "sum({2,3,2,2}, axes=[0,-2]); sum({3}, axes=[1])",
             .role = "sum",
             .aliases = {"dynet.sum_elems", "dynet.sum_dim"},
             .inputs = {"x"}};
    if (kMean) {
      s.name = "mean";
      s.summary = "mean over all elements of each example, or over some axes";
      s.doc = "The axes are removed from the shape. The batch stays: see mean_batches.";
      s.formula = "y = sum(x) / n";
      s.examples =
          "mean({3}); mean({2,3}x4); mean({2,3}x4, axes=[0]); mean({2,3,2,2}, axes=[0,-2])";
      s.role = "";
      s.aliases = {"dynet.mean_elems", "dynet.mean_dim"};
    }
    return s;
  }();

  static Dim infer(const Attrs& a, Dims x) { return drop_reduced(x[0], axes_of(a.axes, x[0])); }

  static void forward(const Attrs& a, const auto& f) {
    using T = typename std::remove_cvref_t<decltype(f)>::value_type;
    const auto x = f.x();
    const auto y = f.y();
    if (y.size() == 1) {
      for (std::uint32_t b = 0; b < f.batch(); ++b) *y.data(b) = sum_run(x.size(), x.data(b));
    } else {
      reduce(x, y, axes_of(a.axes, x.dim()));
    }
    if constexpr (kMean) {
      const double part = share(x, y);
      T* const to = y.data();
      for (std::uint64_t i = 0; i < y.total(); ++i) to[i] = static_cast<T>(to[i] * part);
    }
  }

  static void backward(const Attrs& a, const auto& b) {
    using T = typename std::remove_cvref_t<decltype(b)>::value_type;
    if (!b.dx()) return;
    Dim kept = keep_reduced(b.dx().raw_dim(), axes_of(a.axes, b.dx().dim()));
    kept.batch = b.dy().batch();
    const auto dy = b.dy().viewed_as(kept);
    if constexpr (kMean)
      grad_zip(dy, b.dx(), [part = static_cast<T>(share(b.dx(), dy))](T v) { return v * part; });
    else
      grad_zip(dy, b.dx(), [](T v) { return v; });
  }

  using uses = GradientOps;
  static Expr expand_grad(const Attrs& a, const auto& g) {
    const Dim x = g.shape(g.x());
    const auto dy = reshaped(term(g, g.dy()), keep_reduced(x, axes_of(a.axes, x)));
    if constexpr (kMean)
      return dy * (static_cast<double>(dy.dim().size()) / static_cast<double>(x.size()));
    else
      return dy;
  }

 private:
  static double share(const auto& whole, const auto& part) {
    return static_cast<double>(part.size()) / static_cast<double>(whole.size());
  }
};

template <bool kMean>
struct SumBatches {
  static constexpr OpSpec spec = [] {
    OpSpec s{.name = "sum_batches",
             .summary = "sum over the batch; the result has batch 1",
             .formula = "y = sum_b x_b",
             .examples = "sum_batches({3}x4); sum_batches({2,3}); sum_batches({}x5)",
             .role = "sum_batches",
             .aliases = {"dynet.sum_batches"},
             .inputs = {"x"},
             .batch = Batch::never};
    if (kMean) {
      s.name = "mean_batches";
      s.summary = "mean over the batch; the result has batch 1";
      s.formula = "y = sum_b x_b / batch";
      s.examples = "mean_batches({3}x4); mean_batches({2,3}); mean_batches({}x5)";
      s.role = "";
      s.aliases = {"dynet.mean_batches"};
    }
    return s;
  }();

  static Dim infer(Dims x) { return x[0].with_batch(1); }

  static void forward(const auto& f) {
    using T = typename std::remove_cvref_t<decltype(f)>::value_type;
    f.y().fill(T(0));
    grad_zip(f.x(), f.y(), [part = share<T>(f.x())](T v) { return v * part; });
  }
  static void backward(const auto& b) {
    using T = typename std::remove_cvref_t<decltype(b)>::value_type;
    grad_zip(b.dy(), b.dx(), [part = share<T>(b.x())](T v) { return v * part; });
  }

  using uses = GradientOps;
  static Expr expand_grad(const auto& g) {
    const auto dy = term(g, g.dy());
    if constexpr (kMean)
      return dy / g.shape(g.x()).batch;
    else
      return dy;
  }

 private:
  template <class T>
  static T share(const auto& x) {
    return kMean ? T(1) / static_cast<T>(x.batch()) : T(1);
  }
};

TRL_OPS(reduce, Sum<false>, Sum<true>, SumBatches<false>, SumBatches<true>)

}  // namespace trellis::ops
