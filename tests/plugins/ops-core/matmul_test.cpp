// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

TEST_CASE("matmul: a matrix times a vector and times a matrix") {
  const In w{{2, 3}, {1, 4, 2, 5, 3, 6}};
  check_near(eval("matmul", {w, {{3}, {1, 1, 1}}}).value, {6, 15});
  const Result r = grad("matmul", {w, {{3, 2}, {1, 0, 0, 0, 1, 1}}});
  CHECK(r.dim == Dim{2, 2});
  check_near(r.value, {1, 4, 5, 11});
  check_near(r.gradient[0], {1, 1, 1, 1, 1, 1});
  check_near(r.gradient[1], {5, 7, 9, 5, 7, 9});
}

TEST_CASE("matmul: two vectors make an outer product only as column and row") {
  CHECK(eval("matmul", {{{2}, {1, 2}}, {{1, 3}, {1, 10, 100}}}).dim == Dim{2, 3});
}

TEST_CASE("matmul: one operand may serve the whole batch") {
  const Result r = grad("matmul", {{{1, 2}, {1, 2}}, {Dim({2}, 2), {3, 4, 5, 6}}});
  CHECK(r.dim == Dim({1}, 2));
  check_near(r.value, {11, 17});
  check_near(r.gradient[0], {8, 10});
}

TEST_CASE("matmul: refuses what does not fit") {
  CHECK(refusal("matmul", {{{3, 4}, std::vector<double>(12)}, {{5, 2}, std::vector<double>(10)}}) ==
        "[matmul] inner sizes differ: x is {3,4}, y is {5,2} (need columns of x == rows of y)");
  CHECK(
      refusal("matmul", {{{1, 2, 3}, std::vector<double>(6)}, {{2, 3}, std::vector<double>(6)}}) ==
      "[matmul] takes matrices: x is {1,2,3}, y is {2,3} (need at most 2 dimensions)");
  CHECK(refusal("matmul",
                {{Dim({1}, 5), std::vector<double>(5)}, {Dim({1}, 6), std::vector<double>(6)}}) ==
        "[matmul] batch sizes differ: input 0 is {1}x5 in a batch of 6 (all must be equal or 1)");
}
