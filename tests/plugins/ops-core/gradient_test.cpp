// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

TEST_CASE("stop_gradient, scale_gradient, gradient_reversal: values pass, gradients do not") {
  const In x{{1}, {3}};
  const auto check = [&](const char* op, const Attrs& attrs, double slope) {
    CAPTURE(op);
    Graph g(runtime(), options(Mode::train));
    const Expr e = g.input(x.dim, std::span<const double>(x.numbers));
    const Expr y = g.apply1("mul", {g.apply1(op, {e}, attrs), g.input(5.0)});
    CHECK(y.scalar() == 15);
    const Expr loss = g.apply1("add", {y, g.apply1("mul", {e, g.input(0.0)})});
    g.backward(loss, true);
    CHECK(e.gradient().as_scalar() == slope);
  };
  check("gradient_reversal", {}, -5);
  check("scale_gradient", {{"factor", -0.5}}, -2.5);
  check("stop_gradient", {}, 0);
}
