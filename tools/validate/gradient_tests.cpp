// SPDX-License-Identifier: Apache-2.0
//
// Level 5: gradients, in f64.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "validate/op_tests.hpp"
#include "validate/tests.hpp"

namespace trellis::validate {
namespace {

// The outputs' projection on the gradients given to backward, and the sum of its terms' sizes.
struct Projection {
  double value = 0, size = 0;
};
Projection project(BenchHost& bench, const Case& c, const Values& v,
                   const std::vector<Numbers>& d_out) {
  KernelRun run(bench, c, v);
  run.forward();
  Projection p;
  for (uint32_t o = 0; o < run.n_visible(); ++o) {
    if (d_out[o].empty()) continue;
    const Numbers y = run.output(o);
    for (size_t e = 0; e < y.size(); ++e) {
      p.value += y[e] * d_out[o][e];
      p.size += std::abs(y[e] * d_out[o][e]);
    }
  }
  return p;
}

// Whether the slope along a direction in input i is `expected`: central differences of fourth
// order, at several steps, because a kink may lie within one of them. The last one is returned.
bool has_slope(BenchHost& bench, const Case& c, const Values& v, const std::vector<Numbers>& d_out,
               size_t i, const Numbers& direction, double expected, double* numeric) {
  const auto at = [&](double h) {
    Values moved = v;
    for (size_t k = 0; k < moved[i].size(); ++k) moved[i][k] += h * direction[k];
    return project(bench, c, moved, d_out);
  };
  for (const double h : {1e-4, 1e-5, 1e-6}) {
    const Projection a = at(h), b = at(-h), far = at(2 * h), near = at(-2 * h);
    *numeric = (8 * (a.value - b.value) - (far.value - near.value)) / (12 * h);
    const double noise = 1e-15 * (a.size + b.size + 1) / h;
    const double tolerance =
        1e-6 * std::max(std::abs(*numeric), std::abs(expected)) + 10 * noise + 1e-9;
    if (std::abs(*numeric - expected) <= tolerance) return true;
  }
  return false;
}

void gradient_difference(Context& ctx, const Subject& subject) {
  for_each_gradient(
      ctx, subject, "gradient.difference", [&](const Case& c, const Values& v, KernelRun& run) {
        const std::vector<Numbers> d_out = draw_gradients(run, ctx.seed());
        run.backward(d_out, all_wanted(run, Wanted::add));
        const std::vector<Numbers> gradients = run.gradients();
        RandomEngine random(ctx.seed(), 5);
        for (size_t i = 0; i < gradients.size(); ++i) {
          if (gradients[i].empty()) continue;
          for (int trial = 0; trial < 2; ++trial) {
            Numbers direction(gradients[i].size());
            double expected = 0, numeric = 0;
            for (size_t k = 0; k < direction.size(); ++k) {
              direction[k] = 2 * random.uniform() - 1;
              expected += direction[k] * gradients[i][k];
            }
            if (has_slope(ctx.bench(), c, v, d_out, i, direction, expected, &numeric)) continue;
            // Which element it is: one at a time.
            for (size_t k = 0; k < direction.size() && k < 256; ++k) {
              Numbers unit(direction.size(), 0.0);
              unit[k] = 1;
              if (has_slope(ctx.bench(), c, v, d_out, i, unit, gradients[i][k], &numeric)) continue;
              ctx.fail(fmt::format(
                  "{}: gradient of input {} element {} is {} (differences give {}; input value {})",
                  run.text(), i, k, gradients[i][k], numeric, v[i][k]));
            }
            ctx.fail(fmt::format(
                "{}: gradient of input {} along a random direction is {} (differences give {})",
                run.text(), i, expected, numeric));
          }
        }
      });
}

constexpr Test kTests[] = {
    {"gradient.difference", 5, Kind::op,
     "backward agrees with central differences in f64, for every float input", gradient_difference},
};

}  // namespace

std::span<const Test> gradient_tests() { return kTests; }

}  // namespace trellis::validate
