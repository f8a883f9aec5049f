// SPDX-License-Identifier: Apache-2.0
//
// Adds normal noise in train mode.
//
//   y  = x + deviation * e
//   dx = dy

#include <trellis/sdk/op.hpp>

#include "kernels/simd.hpp"

namespace trellis::ops {

struct GaussianNoise {
  struct Attrs {
    double deviation = 1;
    bool always = false;
  };
  static constexpr auto attrs =
      fields(field("deviation", &Attrs::deviation, "standard deviation of the noise", at_least(0)),
             field("always", &Attrs::always, "add noise in inference mode, too"));
  static constexpr OpSpec spec{
      .name = "gaussian_noise",
      .summary = "adds normal noise in train mode",
      .doc = "In inference mode and with deviation 0 the result is x itself.",
      .formula = "y = x + deviation * e, e normal",
      .examples =
          "gaussian_noise({5}); gaussian_noise({3,2}x4, deviation=0.1); gaussian_noise({3}, "
          "deviation=0)",
      .aliases = {"dynet.noise"},
      .inputs = {"x"},
      .random = true,
      .mode = true,
  };

  static Shape infer(const Attrs& a, Dims x) {
    return noisy(a, x.training()) ? Shape(x[0]) : Shape(x[0]).view(0);
  }

  static void forward(const Attrs& a, const auto& f) {
    if (!noisy(a, f.training())) return map(f.x(), f.y(), [](auto v) { return v; });
    for (std::uint32_t b = 0; b < f.batch(); ++b)
      add_noise(f.streams()[b], a.deviation, f.y().size(), f.x().data(b), f.y().data(b));
  }
  static void backward(const Attrs&, const auto& b) {
    grad_zip(b.dy(), b.dx(), [](auto v) { return v; });
  }

  static Expr expand_grad(const Attrs&, const auto& g) { return g.dy(); }

 private:
  static bool noisy(const Attrs& a, bool training) {
    return a.deviation > 0 && (training || a.always);
  }

  // Box-Muller: words in pairs, one for the radius, one for the angle.
  template <class T>
  static void add_noise(const trl_stream& stream, double deviation, std::uint64_t n, const T* x,
                        T* y) {
    constexpr std::uint64_t kPairs = 64;
    std::uint32_t words[2 * kPairs];
    T u[kPairs], angle[kPairs], noise[2 * kPairs];
    Random random(stream);
    for (std::uint64_t at = 0; at < n; at += 2 * kPairs) {
      random.words(words, 2 * kPairs);
      for (std::uint64_t i = 0; i < kPairs; ++i) {
        u[i] = static_cast<T>((words[i] + 0.5) * 0x1p-32);
        angle[i] = static_cast<T>(6.283185307179586476925 * 0x1p-32 * words[kPairs + i]);
      }
      map_run(kPairs, noise, simd::wide([=](auto v, auto t) {
                return deviation * simd::sqrt(-2 * simd::log(v)) * simd::cos(t);
              }),
              u, angle);
      map_run(kPairs, noise + kPairs, simd::wide([=](auto v, auto t) {
                return deviation * simd::sqrt(-2 * simd::log(v)) * simd::sin(t);
              }),
              u, angle);
      map_run(
          n - at < 2 * kPairs ? n - at : 2 * kPairs, y + at, [](T v, T e) { return v + e; }, x + at,
          noise);
    }
  }
};

TRL_OPS(gaussian_noise, GaussianNoise)

}  // namespace trellis::ops
