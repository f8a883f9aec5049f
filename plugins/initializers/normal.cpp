// SPDX-License-Identifier: Apache-2.0
//
//   w ~ N(mean, std^2)

#include <trellis/sdk/initializer.hpp>

namespace trellis::ops {

// No alias of DyNet's name: its second number was the variance.
struct Normal {
  struct Attrs {
    double mean = 0, std = 1;
  };
  static constexpr auto attrs =
      fields(field("mean", &Attrs::mean, "mean"),
             field("std", &Attrs::std, "standard deviation, not the variance", at_least(0)));
  static constexpr InitializerSpec spec{
      .name = "normal", .summary = "normal distribution", .formula = "w ~ N(mean, std^2)"};

  static void fill(const Attrs& a, const auto& f) {
    f.random().normal(f.data(), f.size(), f.number(a.mean), f.number(a.std));
  }
};

TRL_OPS(normal, Normal)

}  // namespace trellis::ops
