// SPDX-License-Identifier: Apache-2.0
//
//   w ~ U[lo, hi)

#include <trellis/sdk/initializer.hpp>

namespace trellis::ops {

struct Uniform {
  struct Attrs {
    double lo = -1, hi = 1;
  };
  static constexpr auto attrs =
      fields(field("lo", &Attrs::lo, "lower end"), field("hi", &Attrs::hi, "upper end, above lo"));
  static constexpr InitializerSpec spec{.name = "uniform",
                                        .summary = "uniform between two ends",
                                        .formula = "w ~ U[lo, hi)",
                                        .aliases = {"dynet.uniform"}};

  static void fill(const Attrs& a, const auto& f) {
    if (!(a.lo < a.hi))
      sdk::fail(TRL_E_INVALID, "empty interval: ", a.lo, "..", a.hi, " (lo < hi)");
    f.random().uniform(f.data(), f.size(), f.number(a.lo), f.number(a.hi));
  }
};

TRL_OPS(uniform, Uniform)

}  // namespace trellis::ops
