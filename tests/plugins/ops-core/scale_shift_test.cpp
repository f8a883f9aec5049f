// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

TEST_CASE("scale_shift: value and slope") {
  const Result r = grad("scale_shift", {{{2}, {1, -2}}}, {{"scale", -0.5}, {"shift", 3.0}});
  check_near(r.value, {2.5, 4});
  check_near(r.gradient[0], {-0.5, -0.5});
}

TEST_CASE("scale_shift: different numbers in one graph stay different") {
  Graph g(runtime(), options(Mode::infer));
  const Expr x = g.input(1.0);
  std::vector<Expr> y;
  for (const double c : {1.1, 1.2, 1.3}) y.push_back(g.apply1("scale_shift", {x}, {{"shift", c}}));
  g.forward_all();
  for (size_t i = 0; i < 3; ++i)
    CHECK(y[i].scalar() == doctest::Approx(2.1 + 0.1 * static_cast<double>(i)));
}
