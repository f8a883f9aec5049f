// SPDX-License-Identifier: Apache-2.0
//
// Lion (Chen et al., "Symbolic discovery of optimization algorithms", 2023): steps of equal length
// in the direction of the sign of a momentum.
//
//   w = w - lr sign(beta1 m + (1 - beta1) g),  m = beta2 m + (1 - beta2) g

#include <trellis/sdk/trainer.hpp>

namespace acme {

using namespace trellis::sdk;

struct Lion {
  struct Attrs {
    double lr = 0.0003, beta1 = 0.9, beta2 = 0.99;
  };
  static constexpr auto attrs =
      fields(field("lr", &Attrs::lr, "length of a step", at_least(0)),
             field("beta1", &Attrs::beta1, "share of the momentum in the step", in_range(0, 1)),
             field("beta2", &Attrs::beta2, "decay of the momentum", in_range(0, 1)));
  static constexpr TrainerSpec spec{
      .name = "lion",
      .summary = "the sign of a momentum",
      .formula = "w = w - lr sign(beta1 m + (1 - beta1) g);  m = beta2 m + (1 - beta2) g",
      .slots = {Slot("m", "momentum")}};

  static void update(const Attrs& a, const auto& u) {
    const auto lr = u.lr(), beta1 = u.number(a.beta1), beta2 = u.number(a.beta2);
    u.each([=](auto& w, auto g, auto& m) {
      const auto step = beta1 * m + (1 - beta1) * g;
      w -= step > 0 ? lr : step < 0 ? -lr : 0;
      m = beta2 * m + (1 - beta2) * g;
    });
  }
};

TRL_OPS(lion, Lion)

}  // namespace acme
