// SPDX-License-Identifier: Apache-2.0
//
// Gradient descent with momentum (Polyak, "Some methods of speeding up the convergence of iteration
// methods", 1964).
//
//   v = mu v - lr g
//   w = w + v

#include <trellis/sdk/trainer.hpp>

namespace trellis::ops {

struct Momentum {
  struct Attrs {
    double lr = 0.01, mu = 0.9;
  };
  static constexpr auto attrs = fields(field("lr", &Attrs::lr, "learning rate", at_least(0)),
                                       field("mu", &Attrs::mu, "momentum", in_range(0, 1)));
  static constexpr TrainerSpec spec{
      .name = "momentum",
      .summary = "gradient descent with momentum",
      .doc = "sparse: rows that are not touched rest, their velocity neither moves them nor decays",
      .formula = "v = mu v - lr g;  w = w + v",
      .aliases = {"core.momentum_sgd", "dynet.momentum_sgd"},
      .slots = {Slot("v", "velocity")}};

  static void update(const Attrs& a, const auto& u) {
    const auto lr = u.lr(), mu = u.number(a.mu);
    u.each([=](auto& w, auto g, auto& v) {
      v = mu * v - lr * g;
      w += v;
    });
  }
};

TRL_OPS(momentum, Momentum)

}  // namespace trellis::ops
