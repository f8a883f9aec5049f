// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

TEST_CASE("leaky_relu, elu, silu, gelu: values and slopes") {
  const In x{{2}, {-1, 2}};
  const Result leaky = grad("leaky_relu", {x}, {{"slope", 0.1}});
  check_near(leaky.value, {-0.1, 2});
  check_near(leaky.gradient[0], {0.1, 1});
  const Result elu = grad("elu", {x}, {{"alpha", 0.5}});
  check_near(elu.value, {-0.31606027941427883, 2});
  check_near(elu.gradient[0], {0.18393972058572117, 1});
  const Result selu =
      eval("elu", {x}, {{"alpha", 1.6732632423543772}, {"scale", 1.0507009873554805}});
  check_near(selu.value, {-1.1113307378125625, 2.101401974710961});
  const Result silu = grad("silu", {x}, {{"beta", 2.0}});
  check_near(silu.value, {-0.11920292202211755, 1.9640275800758169});
  check_near(silu.gradient[0], {-0.09078424878489955, 1.0526646148910728});
  check_near(eval("gelu", {x}).value, {-0.15865525393145707, 1.9544997361036416});
  check_near(eval("gelu", {x}, {{"form", "tanh"}}).value,
             {-0.15880800939172324, 1.954597694087775});
}

TEST_CASE("activations with different settings do not run as one") {
  Graph g(runtime(), options(Mode::infer));
  const Expr x = g.input(-1.0);
  const Expr a = g.apply1("elu", {x}, {{"alpha", 1.0}}), b = g.apply1("elu", {x}, {{"alpha", 2.0}});
  g.forward_all();
  CHECK(b.scalar() == doctest::Approx(2 * a.scalar()));
}

TEST_CASE("gelu: refuses a form it does not know") {
  CHECK(refusal("gelu", {{{1}, {1}}}, {{"form", "fast"}}).find("[gelu]") == 0);
}
