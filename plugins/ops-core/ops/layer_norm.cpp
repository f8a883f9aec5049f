// SPDX-License-Identifier: Apache-2.0
//
// Layer normalisation over all elements of each example.
//
//   n  = (x - mean) r,  r = 1 / sqrt(variance + epsilon)      0 where all elements are equal and
//   epsilon is 0 y  = gain n + bias dx = r (h - mean(h) - n mean(h n)),  h = gain dy
//
// Kept: mean and r, two numbers per example.

#include <algorithm>
#include <cmath>

#include "kernels/simd.hpp"
#include "kernels/terms.hpp"

namespace trellis::ops {

struct LayerNorm {
  struct Attrs {
    double epsilon = 0;
  };
  static constexpr auto attrs =
      fields(field("epsilon", &Attrs::epsilon,
                   "added to the variance; it moves every value a little", at_least(0)));
  static constexpr OpSpec spec{
      .name = "layer_norm",
      .summary = "normalises each example to mean 0 and deviation 1, then scales and shifts",
      .doc =
          "Statistics are over all elements of an example, never over the batch. Without epsilon "
          "an "
          "example of equal elements gives the bias, with zero gradient.",
      .formula = "y = gain * (x - mean(x)) / sqrt(var(x) + epsilon) + bias",
      .examples =
          "layer_norm({4}, {4}, {4}); layer_norm({3,2}x4, {3,2}, {3,2}); layer_norm({5}x2, {5}x2, "
          "{5}, epsilon=0.1)",
      .aliases = {"dynet.layer_norm"},
      .inputs = {In("x").keep(), In("gain").shared().keep(), In("bias").shared()},
      .outputs = {"y", Out("moments").hidden()},
  };

  static std::array<Dim, 2> infer(const Attrs&, Dims x) { return {same_as(x), Dim{2}}; }

  static void forward(const Attrs& a, const auto& f) {
    using T = typename std::remove_cvref_t<decltype(f)>::value_type;
    const auto x = f.x(0), gain = f.x(1), bias = f.x(2);
    const auto y = f.y(0), moments = f.y(1);
    const std::uint64_t n = y.size();
    for (std::uint32_t b = 0; b < f.batch(); ++b) {
      const T* from = x.data(b);
      const T mean = sum_run(
                         n, [](T v) { return v; }, from) /
                     static_cast<T>(n);
      const T variance = sum_run(
                             n, [=](T v) { return (v - mean) * (v - mean); }, from) /
                         static_cast<T>(n);
      // Rounding leaves a constant example with some variance: equality is what counts.
      const bool constant = std::all_of(from, from + n, [=](T v) { return v == *from; });
      const T r = constant ? T(0) : 1 / std::sqrt(variance + static_cast<T>(a.epsilon));
      map_run(
          n, y.data(b), [=](T v, T g, T c) { return (v - mean) * r * g + c; }, from, gain.data(b),
          bias.data(b));
      if (!moments) continue;
      moments.data(b)[0] = mean;
      moments.data(b)[1] = r;
    }
  }

  static void backward(const Attrs&, const auto& b) {
    using T = typename std::remove_cvref_t<decltype(b)>::value_type;
    const auto x = b.x(0), gain = b.x(1), moments = b.y(1), dy = b.dy();
    const auto dx = b.dx(0), d_gain = b.dx_zeroed(1);
    const std::uint64_t n = x.size();
    const auto share = T(1) / static_cast<T>(n);
    for (std::uint32_t i = 0; i < b.batch(); ++i) {
      const T *from = x.data(i), *g = gain.data(i), *d = dy.data(i);
      const T mean = moments.data(i)[0], r = moments.data(i)[1];
      if (d_gain)
        add_run(
            n, d_gain.data(i), [=](T v, T e) { return (v - mean) * r * e; }, from, d);
      if (!dx) continue;
      const T h = share * sum_run(
                              n, [](T v, T e) { return v * e; }, g, d);
      const T hn =
          share * sum_run(
                      n, [=](T v, T w, T e) { return w * e * (v - mean) * r; }, from, g, d);
      const auto slope = [=](T v, T w, T e) { return r * (w * e - h - (v - mean) * r * hn); };
      if (dx.stores() && (i == 0 || dx.batch() > 1))
        map_run(n, dx.data(i), slope, from, g, d);
      else
        add_run(n, dx.data(i), slope, from, g, d);
    }
    grad_zip(dy, b.dx(2), [](auto e) { return e; });
  }

  using uses = GradientOps;
  static void expand_grad(const Attrs& a, const auto& g) {
    const auto x = term(g, g.x(0)), dy = term(g, g.dy());
    const double n = static_cast<double>(x.dim().size());
    const auto mean = [n](const auto& v) { return sum_all(v) / n; };
    const auto centred = x - mean(x);
    const auto variance = mean(centred * centred);
    const auto r = simd::step(variance) / simd::sqrt(simd::max(variance + a.epsilon, 1e-30));
    const auto normal = centred * r;
    if (g.wants(0)) {
      const auto h = term(g, g.x(1)) * dy;
      g.dx(0, r * (h - mean(h) - normal * mean(h * normal)));
    }
    if (g.wants(1)) g.dx(1, dy * normal);
    g.dx(2, dy);
  }
};

TRL_OPS(layer_norm, LayerNorm)

}  // namespace trellis::ops
