// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

TEST_CASE("cumsum: running sums, and what flows back") {
  const Result r = grad("cumsum", {{{3}, {1, 2, 3}}});
  check_near(r.value, {1, 3, 6});
  check_near(r.gradient[0], {3, 2, 1});
  check_near(eval("cumsum", {{{2, 2}, {1, 2, 3, 4}}}, {{"axis", -1}}).value, {1, 2, 4, 6});
}

TEST_CASE("cumsum: refuses an axis that is not there") {
  CHECK(refusal("cumsum", {{{3}, {1, 2, 3}}}, {{"axis", -2}}) ==
        "[cumsum] no such axis: -2 of {3} (need from -1 to 7)");
}
