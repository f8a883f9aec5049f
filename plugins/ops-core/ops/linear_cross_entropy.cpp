// SPDX-License-Identifier: Apache-2.0
//
// The loss of an output layer over a large vocabulary in one node: scores and their gradients never
// exist as a whole. Classes are gone through in blocks small enough to stay in the cache; what is
// kept of a block are its exponentials, against its own largest score, so that backward multiplies
// where it would take exponentials again.
//
//   s  = b + w x
//   y  = log sum exp(s) - s[id]
//   ds = (softmax(s) - [i == id]) dy,   db = ds,   dw = ds x',   dx = w' ds
#include <algorithm>
#include <trellis/sdk/linalg.hpp>

#include "kernels/lines.hpp"
#include "kernels/terms.hpp"

namespace trellis::ops {

struct LinearCrossEntropy {
  struct Attrs {
    Ids ids;
  };
  static constexpr auto attrs =
      fields(field("ids", &Attrs::ids, "the right class of each batch element", within(0, 0)));
  static constexpr OpSpec spec{
      .name = "linear_cross_entropy",
      .summary = "cross-entropy of scores b + w x at one class per example, in one node",
      .doc =
          "Equal to cross_entropy(affine(b, w, x), ids) with half its memory; without gradients to "
          "come it keeps no scores at all. For output layers over many classes.",
      .formula = "s = b + w x\ny = log sum_j exp(s_j) - s_id",
      .examples =
          "linear_cross_entropy({4}, {4,3}, {3}, ids=2); "
          "linear_cross_entropy({4}, {4,3}, {3}x3, ids=[0,3,1]); "
          "linear_cross_entropy({300}, {300,3}, {3}x2, ids=[299,128]); "
          "linear_cross_entropy({4}x2, {4,3}x2, {3}x2, ids=[1,2]); "
          "linear_cross_entropy({4}, {4,3}, {3}, ids=[1,1,0]); "
          "linear_cross_entropy({4}x2, {4,3}, {3}, ids=[1,0]); "
          "linear_cross_entropy({1}, {1,1}, {1}, ids=0)",
      .inputs = {In("b").shared().about("bias, one number a class"),
                 In("w").shared().keep().about("weights, one row a class"),
                 In("x").keep().about("vector")},
      .outputs = {"y", Out("exponentials").hidden(), Out("shifts").hidden()},
  };

  static constexpr std::uint64_t kBlock = 128;  // classes against one largest score
  static std::uint64_t blocks(std::uint64_t classes) { return (classes + kBlock - 1) / kBlock; }
  // Classes in one product: few examples take many, so that the columns of w are read in long runs.
  static std::uint64_t span(std::uint64_t classes, std::uint64_t examples) {
    return std::min(classes, kBlock * std::max<std::uint64_t>(1, kBlock / examples));
  }

  static std::array<Dim, 3> infer(const Attrs&, Dims x) {
    const Dim s = matmul_dim(x[1], x[2], "w", "x");
    TRL_REQUIRE(x[2].rank <= 1, "takes a vector: x is ", x[2].with_batch(1),
                " (need one column; a second dimension is not the batch)");
    TRL_REQUIRE(x[0].with_batch(1).same_shape(s.with_batch(1)), "the bias does not fit: b is ",
                x[0].with_batch(1), ", w is ", x[1].with_batch(1), " (need {", s[0], "})");
    const auto n = static_cast<std::uint32_t>(blocks(s[0]));
    return {Dim{}, Dim{s[0]}, Dim{n + 1}};
  }

  // Examples that share b and w, and whose x lie one after another, go together.
  static std::uint32_t step(const auto& call) {
    const bool together =
        call.x(0).shared() && call.x(1).shared() && call.x(2).batch() == call.batch();
    return together || call.batch() == 1 ? call.batch() : 1;
  }

  static void forward(const Attrs& a, const auto& f) {
    using T = typename std::remove_cvref_t<decltype(f)>::value_type;
    const auto bias = f.x(0), w = f.x(1), x = f.x(2);
    const auto kept = f.y(1), shifts = f.y(2);
    const std::uint64_t classes = w.dim(0), k = w.dim(1), n = step(f), most = span(classes, n);
    T* const part = kept ? nullptr : f.scratch(most * n);
    T* const state = f.scratch(3 * n);  // of each example: largest score, sum, score at its id
    for (std::uint64_t i = 0; i < f.batch(); i += n) {
      T *const peak = state, *const total = state + n, *const right = state + 2 * n;
      std::fill_n(peak, n, -std::numeric_limits<T>::infinity());
      std::fill_n(total, n, T(0));
      for (std::uint64_t from = 0; from < classes; from += most) {
        const std::uint64_t size = std::min(most, classes - from), ld = kept ? classes : size;
        T* const scores = kept ? kept.data(i) + from : part;
        Mat<T> to(scores, size, n);
        to.ld = ld;
        Mat<const T> rows(w.data(i) + from, size, k);
        rows.ld = classes;
        gemm(f, to, rows, Mat<const T>(x.data(i), k, n));
        for (std::uint64_t c = 0; c < n; ++c) {
          T* const s = scores + c * ld;
          map_run(size, s, simd::wide([](auto u, auto v) { return u + v; }), s,
                  bias.data(i + c) + from);
          const std::uint64_t id = static_cast<std::uint64_t>(a.ids[i + c]);
          if (id >= from && id < from + size) right[c] = s[id - from];
          for (std::uint64_t at = 0; at < size; at += kBlock) {
            const std::uint64_t m = std::min(kBlock, size - at);
            T shift;
            shift_of_lines(Split{1, m, 1}, s + at, &shift);
            map_run(m, s + at, simd::wide([shift](auto v) { return simd::exp(v - shift); }),
                    s + at);
            merge(sum_run(m, s + at), shift, total[c], peak[c]);
            if (kept) shifts.data(i + c)[(from + at) / kBlock] = shift;
          }
        }
      }
      for (std::uint64_t c = 0; c < n; ++c) {
        const T log_sum =
            std::isfinite(peak[c]) ? peak[c] + std::log(total[c]) : std::log(total[c]);
        *f.y().data(i + c) = log_sum - right[c];
        if (kept) shifts.data(i + c)[blocks(classes)] = log_sum;
      }
    }
  }

  static void backward(const Attrs& a, const auto& b) {
    using T = typename std::remove_cvref_t<decltype(b)>::value_type;
    const auto w = b.x(1), x = b.x(2), kept = b.y(1), shifts = b.y(2), dy = b.dy();
    const auto db = b.dx_zeroed(0);
    const auto dw = b.dx(1), dx = b.dx(2);
    const std::uint64_t classes = w.dim(0), k = w.dim(1), n = step(b), most = span(classes, n);
    T* const ds = b.scratch(most * n);
    for (std::uint64_t i = 0; i < b.batch(); i += n) {
      for (std::uint64_t from = 0; from < classes; from += most) {
        const std::uint64_t size = std::min(most, classes - from);
        for (std::uint64_t c = 0; c < n; ++c) {
          const T *const e = kept.data(i + c) + from, *const shift = shifts.data(i + c);
          const T g = *dy.data(i + c), log_sum = shift[blocks(classes)];
          T* const d = ds + c * size;
          for (std::uint64_t at = 0; at < size; at += kBlock) {
            // exp(shift - log_sum) is at most 1.
            const T scale = g * std::exp(shift[(from + at) / kBlock] - log_sum);
            map_run(std::min(kBlock, size - at), d + at,
                    simd::wide([scale](auto v) { return v * scale; }), e + at);
          }
          const std::uint64_t id = static_cast<std::uint64_t>(a.ids[i + c]);
          if (id >= from && id < from + size) d[id - from] -= g;
          if (db) add_run(size, db.data(i + c) + from, simd::wide([](auto v) { return v; }), d);
        }
        const Mat<const T> grad(ds, size, n);
        if (dw) {
          Mat<T> to(dw.data(i) + from, size, k);
          to.ld = classes;
          gemm(b, to, grad, Mat<const T>(x.data(i), k, n).t(), dw.stores() ? 0 : 1);
        }
        if (dx) {
          Mat<const T> rows(w.data(i) + from, size, k);
          rows.ld = classes;
          gemm(b, Mat<T>(dx.data(i), k, n), rows.t(), grad, dx.stores() && from == 0 ? 0 : 1);
        }
      }
    }
  }

  using uses = GradientOps;
  static Expr expand(const Attrs&, const auto& g) {
    return g.template apply<use::CrossEntropy>({g.template apply<use::Affine>(g.in())}, g.attr(0));
  }
  static void expand_grad(const Attrs&, const auto& g) {
    const auto w = term(g, g.x(1)), x = term(g, g.x(2)), dy = term(g, g.dy());
    const std::int64_t classes = w.dim()[0], axis = 0;
    const auto s = term(g, g.template apply<use::Affine>({g.x(0), g.x(1), g.x(2)}));
    const auto ds = s.template to<use::Softmax>(axis) * dy -
                    dy.template to<use::Scatter>(g.attr(0), classes, axis);
    g.dx(0, ds);
    if (g.wants(1)) g.dx(1, ds.template with<use::MatMul>(transposed(x)));
    if (g.wants(2)) g.dx(2, transposed(w).template with<use::MatMul>(ds));
  }

 private:
  // sum exp(s - shift) joins total = sum exp(.. - peak).
  template <class T>
  static void merge(T sum, T shift, T& total, T& peak) {
    if (sum == 0) return;  // nothing above minus infinity: its shift says nothing
    if (!(shift > peak)) {
      total += sum * std::exp(shift - peak);
    } else {
      total = total * std::exp(peak - shift) + sum;
      peak = shift;
    }
  }
};

TRL_OPS(linear_cross_entropy, LinearCrossEntropy)

}  // namespace trellis::ops
