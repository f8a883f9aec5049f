// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

TEST_CASE("pick_batch: takes elements of a batch, repeated ones get their gradients added") {
  const Result r = grad("pick_batch", {{Dim({2}, 3), {1, 2, 3, 4, 5, 6}}}, {{"ids", {2, 0, 2}}});
  CHECK(r.dim == Dim({2}, 3));
  check_near(r.value, {5, 6, 1, 2, 5, 6});
  check_near(r.gradient[0], {1, 1, 0, 0, 2, 2});
}

TEST_CASE("pick_batch: refuses an element that is not there") {
  CHECK(refusal("pick_batch", {{Dim({1}, 3), {1, 2, 3}}}, {{"ids", {3}}}) ==
        "[pick_batch] 'ids' is out of bounds: 3 in a batch of 3 (needs 0 to 2)");
}

TEST_CASE("concat_batch: joins batches of any sizes; a column counts as a vector") {
  const Result r =
      grad("concat_batch", {{Dim({2}, 2), {1, 2, 3, 4}}, {{2, 1}, {5, 6}}}, {}, {1, 2, 3, 4, 5, 6});
  CHECK(r.dim == Dim({2}, 3));
  check_near(r.value, {1, 2, 3, 4, 5, 6});
  check_near(r.gradient[0], {1, 2, 3, 4});
  check_near(r.gradient[1], {5, 6});
}

TEST_CASE("concat_batch: refuses shapes that differ") {
  CHECK(refusal("concat_batch", {{{2}, {1, 2}}, {{3}, {1, 2, 3}}}) ==
        "[concat_batch] shapes differ: x0 is {2}, x1 is {3} (must be equal)");
}
