// SPDX-License-Identifier: Apache-2.0
//
// Adagrad (Duchi, Hazan, Singer, "Adaptive subgradient methods for online learning and stochastic
// optimization", JMLR 2011).
//
//   s = s + g^2
//   w = w - lr g / sqrt(s + epsilon)

#include <cmath>
#include <trellis/sdk/trainer.hpp>

namespace trellis::ops {

struct Adagrad {
  struct Attrs {
    double lr = 0.1, epsilon = 1e-20;
  };
  static constexpr auto attrs =
      fields(field("lr", &Attrs::lr, "learning rate", at_least(0)),
             // Not 0: an element that never had a gradient would be 0 / 0.
             field("epsilon", &Attrs::epsilon, "added to the sum of squares", at_least(1e-37)));
  static constexpr TrainerSpec spec{.name = "adagrad",
                                    .summary = "a rate per element, by its past gradients",
                                    .doc = "sparse and dense steps are the same",
                                    .formula = "s = s + g^2;  w = w - lr g / sqrt(s + epsilon)",
                                    .aliases = {"dynet.adagrad"},
                                    .slots = {Slot("s", "sum of squared gradients")}};

  static void update(const Attrs& a, const auto& u) {
    const auto lr = u.lr(), epsilon = u.number(a.epsilon);
    u.each([=](auto& w, auto g, auto& s) {
      s += g * g;
      w -= lr * g / std::sqrt(s + epsilon);
    });
  }
};

TRL_OPS(adagrad, Adagrad)

}  // namespace trellis::ops
