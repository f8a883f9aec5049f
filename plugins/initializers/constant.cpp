// SPDX-License-Identifier: Apache-2.0
//
//   w = value

#include <trellis/sdk/initializer.hpp>

namespace trellis::ops {

struct Constant {
  struct Attrs {
    double value = 0;
  };
  static constexpr auto attrs = fields(field("value", &Attrs::value, "what every element becomes"));
  static constexpr InitializerSpec spec{.name = "constant",
                                        .summary = "one value everywhere",
                                        .formula = "w = value",
                                        .aliases = {"dynet.const"}};

  static void fill(const Attrs& a, const auto& f) { f.value().fill(f.number(a.value)); }
};

TRL_OPS(constant, Constant)

}  // namespace trellis::ops
