// SPDX-License-Identifier: Apache-2.0
//
// He, Zhang, Ren, Sun, "Delving deep into rectifiers", ICCV 2015.
//
//   w ~ N(0, gain^2 / fan_in)

#include <cmath>
#include <trellis/sdk/initializer.hpp>

namespace trellis::ops {

struct He {
  struct Attrs {
    double gain = 1.4142135623730951;
  };
  static constexpr auto attrs =
      fields(field("gain", &Attrs::gain, "sqrt(2) for relu, 1 for linear layers", at_least(0)));
  static constexpr InitializerSpec spec{
      .name = "he",
      .summary = "normal, scaled by the number of inputs; for layers before relu",
      .doc = "fan_in: matrix {out,in}: in; vector {n}: n; filters {h,w,in,out}: h w in",
      .formula = "w ~ N(0, gain^2 / fan_in)",
      .aliases = {"core.kaiming"}};

  static void fill(const Attrs& a, const auto& f) {
    const double deviation = a.gain / std::sqrt(static_cast<double>(f.fan_in()));
    f.random().normal(f.data(), f.size(), f.number(0), f.number(deviation));
  }
};

TRL_OPS(he, He)

}  // namespace trellis::ops
