// SPDX-License-Identifier: Apache-2.0
#include "validate/loss.hpp"

#include "validate/numbers.hpp"

namespace trellis::validate {

std::vector<Expr> projection(Graph& g, std::span<const Expr> outputs, uint64_t seed,
                             uint64_t first) {
  std::vector<Expr> losses;
  for (const DType dtype : {DType::f64, DType::f32}) {
    std::vector<Expr> of;
    std::vector<Numbers> weights;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].dtype() != dtype) continue;
      of.push_back(outputs[i]);
      RandomEngine random(seed, first + i);
      weights.push_back(uniform_numbers(outputs[i].dim().total(), random));
    }
    if (of.empty()) continue;
    losses.push_back(g.custom(
        std::span<const Expr>(of), Dim(),
        [weights](auto inputs, const TensorView& y) {
          double sum = 0;
          for (size_t i = 0; i < inputs.size(); ++i)
            for (size_t k = 0; k < weights[i].size(); ++k) sum += weights[i][k] * inputs[i].at(k);
          y.set(0, sum);
        },
        [weights](auto, const TensorView&, const TensorView& d_y, auto d_inputs) {
          const double scale = d_y.at(0);
          for (size_t i = 0; i < d_inputs.size(); ++i) {
            if (d_inputs[i].empty()) continue;
            for (size_t k = 0; k < weights[i].size(); ++k)
              d_inputs[i].set(k, d_inputs[i].at(k) + scale * weights[i][k]);
          }
        }));
  }
  return losses;
}

}  // namespace trellis::validate
