// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

TEST_CASE("cross_entropy: values and gradient") {
  const In s{{3}, {1, 2, 3}};
  const Result r = grad("cross_entropy", {s}, {{"ids", 0}});
  CHECK(r.dim == Dim{});
  check_near(r.value, {2.4076059644443806});
  check_near(r.gradient[0], {-0.9099694268296196, 0.2447284710547977, 0.6652409557748219});
  check_near(eval("cross_entropy", {s}, {{"ids", {0, 1, 2}}}).value,
             {2.4076059644443806, 1.4076059644443806, 0.4076059644443806});
}

TEST_CASE("cross_entropy: does not underflow") {
  const Result r = grad("cross_entropy", {{{2}, {0, 200}}}, {{"ids", 0}});
  check_near(r.value, {200});
  check_near(r.gradient[0], {-1, 1});
  check_near(eval("cross_entropy", {{{5}, {0, -150, 0, 0, 0}}}, {{"ids", 1}}).value,
             {151.38629436111989});
  check_near(eval("cross_entropy", {{{2}, {-kInf, 1}}}, {{"ids", 1}}).value, {0});
}

TEST_CASE("cross_entropy: refuses a class that is not there, and a matrix") {
  const In s{{3}, {1, 2, 3}};
  CHECK(refusal("cross_entropy", {s}, {{"ids", 3}}) ==
        "[cross_entropy] 'ids' is out of bounds: 3 (needs 0 to 2)");
  CHECK(refusal("cross_entropy", {{Dim({3}, 2), {1, 2, 3, 4, 5, 6}}}, {{"ids", {0, 100}}}) ==
        "[cross_entropy] 'ids' is out of bounds: 100, batch element 1 (needs 0 to 2)");
  CHECK(refusal("cross_entropy", {s}, {{"ids", -1}}) != "not refused");
  CHECK(refusal("cross_entropy", {{{3, 2}, std::vector<double>(6)}}, {{"ids", 0}}) ==
        "[cross_entropy] takes a vector: x is {3,2} (need one column; a second dimension is not "
        "the batch)");
}
