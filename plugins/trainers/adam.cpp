// SPDX-License-Identifier: Apache-2.0
//
// Adam (Kingma, Ba, "Adam: a method for stochastic optimization", ICLR 2015), the form whose
// epsilon is outside of the bias correction.
//
//   m = beta1 m + (1 - beta1) g
//   v = beta2 v + (1 - beta2) g^2
//   w = w - lr sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + epsilon)

#include <cmath>
#include <trellis/sdk/trainer.hpp>

namespace trellis::ops {

struct Adam {
  struct Attrs {
    double lr = 0.001, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  };
  // Below 1, or the corrections divide by 0; epsilon not 0, or an element without gradients does.
  static constexpr auto attrs =
      fields(field("lr", &Attrs::lr, "learning rate", at_least(0)),
             field("beta1", &Attrs::beta1, "decay of the mean gradient", in_range(0, 0.9999999)),
             field("beta2", &Attrs::beta2, "decay of the mean square", in_range(0, 0.9999999)),
             field("epsilon", &Attrs::epsilon, "added to the root", at_least(1e-37)));
  static constexpr TrainerSpec spec{
      .name = "adam",
      .summary = "adaptive moments",
      .doc =
          "t counts the trainer's steps, for parameters added later too. sparse: rows that are "
          "not touched rest, their moments do not decay",
      .formula =
          "m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;  w = w - lr "
          "sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + epsilon)",
      .aliases = {"dynet.adam"},
      .slots = {Slot("m", "mean of gradients"), Slot("v", "mean of squared gradients")}};

  static void update(const Attrs& a, const auto& u) {
    const auto t = static_cast<double>(u.step());
    const auto rate = u.number(static_cast<double>(u.lr()) * std::sqrt(1 - std::pow(a.beta2, t)) /
                               (1 - std::pow(a.beta1, t)));
    const auto beta1 = u.number(a.beta1), beta2 = u.number(a.beta2), epsilon = u.number(a.epsilon);
    const auto rest1 = u.number(1 - a.beta1), rest2 = u.number(1 - a.beta2);
    u.each([=](auto& w, auto g, auto& m, auto& v) {
      m = beta1 * m + rest1 * g;
      v = beta2 * v + rest2 * g * g;
      w -= rate * m / (std::sqrt(v) + epsilon);
    });
  }
};

TRL_OPS(adam, Adam)

}  // namespace trellis::ops
