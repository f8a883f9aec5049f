// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

namespace {

In filled(const Dim& dim, double v) { return {dim, std::vector<double>(dim.total(), v)}; }

}  // namespace

TEST_CASE("layer_norm: statistics are over an example, not over the batch") {
  const Result r = grad(
      "layer_norm", {{Dim({4}, 2), {1, 2, 3, 4, 10, 20, 30, 40}}, filled({4}, 1), filled({4}, 0)},
      {}, {1, 0, 0, 0, 0, 0, 0, 0});
  check_near(r.value,
             {-1.3416407864998738, -0.4472135954999579, 0.4472135954999579, 1.3416407864998738,
              -1.3416407864998738, -0.4472135954999579, 0.4472135954999579, 1.3416407864998738});
  check_near(r.gradient[0], {0.26832815729997477, -0.3577708763999664, -0.08944271909999159,
                             0.17888543819998318, 0, 0, 0, 0});
}

TEST_CASE("layer_norm: equal elements give the bias, with zero gradient") {
  for (const double v : {2.0, 0.1}) {
    const Result r =
        grad("layer_norm", {filled({3}, v), filled({3}, 1), filled({3}, 0.5)}, {}, {1, 2, 4});
    check_near(r.value, {0.5, 0.5, 0.5});
    check_near(r.gradient[0], {0, 0, 0});
  }
  check_near(eval("layer_norm", {filled({1}, 7), filled({1}, 1), filled({1}, 0.5)}).value, {0.5});
}

TEST_CASE("layer_norm: epsilon moves the values") {
  check_near(
      eval("layer_norm", {{{2}, {-1, 1}}, filled({2}, 1), filled({2}, 0)}, {{"epsilon", 3.0}})
          .value,
      {-0.5, 0.5});
}

TEST_CASE("layer_norm: refuses gains of another shape") {
  CHECK(refusal("layer_norm", {filled({3}, 1), filled({4}, 1), filled({3}, 1)}) ==
        "[layer_norm] shapes differ: x is {3}, gain is {4} (must be equal)");
}
