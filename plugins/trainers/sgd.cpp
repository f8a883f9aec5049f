// SPDX-License-Identifier: Apache-2.0
//
// Stochastic gradient descent.
//
//   w = w - lr g

#include <trellis/sdk/trainer.hpp>

namespace trellis::ops {

struct Sgd {
  struct Attrs {
    double lr = 0.1;
  };
  static constexpr auto attrs = fields(field("lr", &Attrs::lr, "learning rate", at_least(0)));
  static constexpr TrainerSpec spec{
      .name = "sgd",
      .summary = "stochastic gradient descent",
      .doc = "no state; rows of a lookup table that were not touched are as if the step were dense",
      .formula = "w = w - lr g",
      .aliases = {"dynet.simple_sgd"}};

  static void update(const Attrs&, const auto& u) {
    const auto lr = u.lr();
    u.each([=](auto& w, auto g) { w -= lr * g; });
  }
};

TRL_OPS(sgd, Sgd)

}  // namespace trellis::ops
