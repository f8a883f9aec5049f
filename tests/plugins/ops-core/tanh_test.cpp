// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

TEST_CASE("tanh: values and slopes") {
  const Result r = grad("tanh", {{{3}, {0, 1, -1}}});
  check_near(r.value, {0, 0.7615941559557649, -0.7615941559557649});
  check_near(r.gradient[0], {1, 0.4199743416140261, 0.4199743416140261});
}

TEST_CASE("tanh: is one at infinity and passes NaN") {
  check_near(eval("tanh", {{{3}, {kInf, -kInf, kNan}}}).value, {1, -1, kNan});
}

TEST_CASE("tanh: refuses two inputs") {
  CHECK(refusal("tanh", {{{1}, {1}}, {{1}, {1}}}) == "[tanh] takes 1 input: got 2");
}
