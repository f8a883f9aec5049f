// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

TEST_CASE(
    "sum_list, mean_list: one node for many tensors; a shared one gets the sum of its gradients") {
  const In a{Dim({2}, 3), {1, 2, 3, 4, 5, 6}}, b{{2}, {10, 20}};
  const Result sum = grad("sum_list", {a, b, b}), mean = grad("mean_list", {a, b});
  check_near(sum.value, {21, 42, 23, 44, 25, 46});
  check_near(sum.gradient[1], {3, 3});
  check_near(mean.value, {5.5, 11, 6.5, 12, 7.5, 13});
  check_near(mean.gradient[0], std::vector<double>(6, 0.5));
  check_near(mean.gradient[1], {1.5, 1.5});
  check_near(eval("sum_list", {a}).value, a.numbers);
}

TEST_CASE("sum_list: answers to DyNet's sum of a list, and refuses an empty one") {
  check_near(eval("dynet.sum", {{{1}, {1}}, {{1}, {2}}}).value, {3});
  CHECK(refusal("sum_list", {}) != "not refused");
}
