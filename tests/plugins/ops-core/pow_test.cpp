// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

TEST_CASE("pow: whole powers of negative numbers") {
  const auto slope = [](double x, double y) {
    return grad("pow", {{{1}, {x}}, {{}, {y}}}).gradient[0][0];
  };
  CHECK(near(slope(-2, 2), -4));
  CHECK(near(slope(-1, 3), 3));
  CHECK(near(slope(0, 2), 0));
  check_near(eval("pow", {{{4}, {-2, -2, -2, -2}}, {{4}, {2, 3, -1, 5}}}).value,
             {4, -8, -0.5, -32});
  check_near(eval("pow", {{{1}, {-2}}, {{}, {0.5}}}).value, {kNan});
}

TEST_CASE("pow: corner cases") {
  const Result zero = grad("pow", {{{2}, {0, 1}}, {{}, {0}}});
  check_near(zero.value, {1, 1});
  check_near(zero.gradient[0], {0, 0});
  check_near(grad("pow", {{{}, {0}}, {{}, {1}}}).gradient[1], {0});
  check_near(grad("pow", {{{}, {2}}, {{}, {1}}}).gradient[1], {1.3862943611198906});
  check_near(eval("pow", {{{3}, {0, 0, 9}}, {{3}, {2, -1, 0.5}}}).value, {0, kInf, 3});
}
