// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

TEST_CASE("cast: goes from one float type to the other and back, gradients too") {
  Graph g(runtime(), options(Mode::train));
  const std::vector<double> third(1, 1.0 / 3);
  const Expr x = g.input(Dim{1}, std::span<const double>(third));
  const Expr y = g.apply1("cast", {x}, {{"dtype", "f32"}});
  CHECK(y.dtype() == DType::f32);
  CHECK(y.scalar() == static_cast<double>(1.0f / 3));
  const Expr z = g.apply1("cast", {y}, {{"dtype", "f64"}});
  CHECK(z.dtype() == DType::f64);
  g.backward(z, true);
  CHECK(x.gradient().as_scalar() == 1);
}

TEST_CASE("cast: to the type it has is the input itself") {
  CHECK(eval("cast", {{{2}, {1, 2}}}, {{"dtype", "f64"}}).value == std::vector<double>{1, 2});
}
