// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

TEST_CASE("slice: a range of an axis, counted from both ends") {
  const In x{{4}, {1, 2, 3, 4}};
  const Result r = grad("slice", {x}, {{"start", 1}, {"end", 3}});
  check_near(r.value, {2, 3});
  check_near(r.gradient[0], {0, 1, 1, 0});
  check_near(eval("slice", {x}, {{"start", -2}}).value, {3, 4});
  check_near(eval("slice", {x}, {{"end", -1}}).value, {1, 2, 3});
}

TEST_CASE("slice: inside a matrix, with a batch") {
  const Result r = grad("slice", {{Dim({3, 2}, 2), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}},
                        {{"start", 1}, {"end", 2}});
  CHECK(r.dim == Dim({1, 2}, 2));
  check_near(r.value, {2, 5, 8, 11});
  check_near(r.gradient[0], {0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0});
}

TEST_CASE("slice: refuses a range that is not there") {
  const In x{{4}, {1, 2, 3, 4}};
  CHECK(refusal("slice", {x}, {{"start", 2}, {"end", 5}}) ==
        "[slice] no such range: 2 to 5 on axis 0 of {4} (need 0 <= start < end <= 4)");
  CHECK(refusal("slice", {x}, {{"start", 2}, {"end", 2}}) ==
        "[slice] no such range: 2 to 2 on axis 0 of {4} (need 0 <= start < end <= 4)");
}
