// SPDX-License-Identifier: Apache-2.0
//
// Swish (Ramachandran, Zoph, Le, 2017): x times its own gate.
//
//   s = sigmoid(beta x),  y = x s,  dx = dy (s + beta y (1 - s))

#include <cmath>
#include <trellis/sdk/op.hpp>

namespace acme {

using namespace trellis::sdk;

struct Swish {
  struct Attrs {
    double beta = 1;
  };
  static constexpr auto attrs = fields(field("beta", &Attrs::beta, "steepness of the gate"));
  static constexpr OpSpec spec{.name = "swish",
                               .summary = "x gated by its own sigmoid, element by element",
                               .formula = "y = x / (1 + exp(-beta x))",
                               .examples = "swish({3}); swish({2,3}x4, beta=1.7)",
                               .inputs = {"x"},
                               .batch = Batch::elementwise,
                               .keeps = Keep::input};

  template <class T>
  static T gate(const Attrs& a, T x) {
    return 1 / (1 + std::exp(-static_cast<T>(a.beta) * x));
  }

  static Dim infer(const Attrs&, Dims x) { return x[0]; }
  static void forward(const Attrs& a, auto x, auto y) {
    map(x, y, [&](auto v) { return v * gate(a, v); });
  }
  static void backward(const Attrs& a, const auto& b) {
    grad_zip(b.x(0), b.dy(), b.dx(0), [&](auto x, auto dy) {
      const auto s = gate(a, x);
      return dy * (s + static_cast<decltype(x)>(a.beta) * x * s * (1 - s));
    });
  }
};

TRL_OPS(swish, Swish)

}  // namespace acme
