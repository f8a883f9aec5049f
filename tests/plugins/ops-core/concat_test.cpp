// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

TEST_CASE("concat: a single batch element is repeated, its gradient summed") {
  const Result r = grad("concat", {{Dim({1}, 3), {1, 2, 3}}, {{2}, {8, 9}}});
  CHECK(r.dim == Dim({3}, 3));
  check_near(r.value, {1, 8, 9, 2, 8, 9, 3, 8, 9});
  check_near(r.gradient[0], {1, 1, 1});
  check_near(r.gradient[1], {3, 3});
}

TEST_CASE("concat: along the second axis, and along one that was not there") {
  const In a{{2}, {1, 2}}, b{{2, 2}, {3, 4, 5, 6}};
  const Result wide = eval("concat", {a, b}, {{"axis", 1}});
  CHECK(wide.dim == Dim{2, 3});
  check_near(wide.value, {1, 2, 3, 4, 5, 6});
  CHECK(eval("concat", {a, a}, {{"axis", 2}}).dim == Dim{2, 1, 2});
  CHECK(eval("concat", {{{1, 2}, {1, 2}}, b}, {{"axis", 0}}).value ==
        std::vector<double>{1, 3, 4, 2, 5, 6});
}

TEST_CASE("concat: refuses what does not fit and nothing at all") {
  CHECK(refusal("concat", {{{3, 4}, std::vector<double>(12)}, {{3, 5}, std::vector<double>(15)}}) ==
        "[concat] sizes differ on axis 1: x0 is {3,4}, x1 is {3,5} (all but axis 0 must agree)");
  CHECK(refusal("concat",
                {{Dim({4}, 3), std::vector<double>(12)}, {Dim({4}, 2), std::vector<double>(8)}}) ==
        "[concat] batch sizes differ: input 1 is {4}x2 in a batch of 3 (all must be equal or 1)");
  CHECK(refusal("concat", {}) != "not refused");
}
