// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

TEST_CASE("sum, mean: over everything, and over axes, which are removed") {
  const In x{Dim({2, 3}, 2), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
  const Result all = eval("sum", {x});
  CHECK(all.dim == Dim({}, 2));
  check_near(all.value, {21, 57});
  const Result rows = grad("sum", {x}, {{"axes", {0}}}, {1, 2, 3, 4, 5, 6});
  CHECK(rows.dim == Dim({3}, 2));
  check_near(rows.value, {3, 7, 11, 15, 19, 23});
  check_near(rows.gradient[0], {1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6});
  check_near(eval("sum", {x}, {{"axes", {-1}}}).value, {9, 12, 27, 30});
  check_near(eval("mean", {x}, {{"axes", {1}}}).value, {3, 4, 9, 10});
  check_near(grad("mean", {x}).gradient[0], std::vector<double>(12, 1.0 / 6));
}

TEST_CASE("sum: an axis beyond the rank has size one") {
  const Result r = eval("sum", {{{3, 1}, {1, 2, 3}}}, {{"axes", {1}}});
  CHECK(r.dim == Dim{3});
  check_near(r.value, {1, 2, 3});
  CHECK(eval("sum", {{{3}, {1, 2, 3}}}, {{"axes", {1}}}).dim == Dim{3});
}

TEST_CASE("sum_batches, mean_batches: one example is left") {
  const In x{Dim({2}, 3), {1, 2, 3, 4, 5, 6}};
  const Result sum = grad("sum_batches", {x}), mean = grad("mean_batches", {x});
  CHECK(sum.dim == Dim{2});
  check_near(sum.value, {9, 12});
  check_near(sum.gradient[0], {1, 1, 1, 1, 1, 1});
  check_near(mean.value, {3, 4});
  check_near(mean.gradient[0], std::vector<double>(6, 1.0 / 3));
}

TEST_CASE("sum: refuses an axis that is not there") {
  CHECK(refusal("sum", {{{3}, {1, 2, 3}}}, {{"axes", {-2}}}) ==
        "[sum] no such axis: -2 of {3} (need from -1 to 7)");
}
