// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

namespace {

const In kW{{2, 2}, {1, 3, 2, 4}};

}  // namespace

TEST_CASE("affine: bias and products, the shape being that of the product") {
  const Result r = eval("affine", {{{2}, {10, 20}}, kW, {{2}, {1, 1}}, kW, {{2}, {1, 0}}});
  CHECK(r.dim == Dim{2});
  check_near(r.value, {14, 30});
}

TEST_CASE("affine: a batch of inputs over shared weights, gradients summed") {
  const Result r = grad("affine", {{{2}, {10, 20}}, kW, {Dim({2}, 2), {1, 1, 1, 1}}});
  CHECK(r.dim == Dim({2}, 2));
  check_near(r.value, {13, 27, 13, 27});
  check_near(r.gradient[0], {2, 2});
  check_near(r.gradient[1], {2, 2, 2, 2});
  check_near(r.gradient[2], {4, 6, 4, 6});
}

TEST_CASE("affine: a column bias goes to every column") {
  const Result r = grad("affine", {{{2}, {10, 20}}, kW, {{2, 3}, {1, 0, 0, 1, 1, 1}}});
  CHECK(r.dim == Dim{2, 3});
  check_near(r.value, {11, 23, 12, 24, 13, 27});
  check_near(r.gradient[0], {3, 3});
}

TEST_CASE("affine: refuses what does not fit") {
  const auto zeros = [](const Dim& d) { return In{d, std::vector<double>(d.total())}; };
  CHECK(
      refusal("affine", {zeros({2}), kW}) ==
      "[affine] needs a bias and pairs of matrix and vector: given 2 inputs (need an odd number)");
  CHECK(refusal("affine", {zeros({1}), zeros({1, 2, 3}), zeros({2, 3})}) ==
        "[affine] takes matrices: w1 is {1,2,3}, x1 is {2,3} (need at most 2 dimensions)");
  CHECK(refusal("affine", {zeros({2}), kW, zeros({2}), zeros({3, 2}), zeros({2})}) ==
        "[affine] products differ: w1 x1 is {2}, w2 x2 is {3} (must be equal)");
  CHECK(refusal("affine", {zeros({2, 3}), kW, zeros({2})}) ==
        "[affine] the bias does not fit: b is {2,3}, the products are {2} (each axis of b must be "
        "equal or 1)");
  CHECK(refusal("affine", {zeros({2}), zeros(Dim({2, 2}, 2)), zeros(Dim({2}, 3))}) ==
        "[affine] batch sizes differ: input 1 is {2,2}x2 in a batch of 3 (all must be equal or 1)");
  CHECK(refusal("affine", {}) != "not refused");
}

TEST_CASE("affine_rows: the first rows, and no gradient for the others") {
  const In b{{3}, {10, 20, 30}}, w{{3, 2}, {1, 3, 5, 2, 4, 6}};
  const Result r = grad("affine_rows", {b, w, {Dim({2}, 2), {1, 1, 0, 2}}}, {{"rows", 2}});
  CHECK(r.dim == Dim({2}, 2));
  check_near(r.value, {13, 27, 14, 28});
  check_near(r.gradient[0], {2, 2, 0});
  check_near(r.gradient[1], {1, 1, 0, 3, 3, 0});
  check_near(r.gradient[2], {4, 6, 4, 6});
  check_near(eval("affine_rows", {b, w, {{2, 2}, {1, 0, 0, 1}}}, {{"rows", 3}}).value,
             {11, 23, 35, 12, 24, 36});
  CHECK(refusal("affine_rows", {b, w, {{2}, {1, 1}}}, {{"rows", 4}}) ==
        "[affine_rows] too many rows: 4 of {3,2} (at most 3)");
  CHECK(refusal("affine_rows", {{{2}, {1, 1}}, w, {{2}, {1, 1}}}, {{"rows", 2}}) ==
        "[affine_rows] the bias does not fit: b is {2}, w is {3,2} (need {3})");
  CHECK(refusal("affine_rows", {b, w, {{2}, {1, 1}}}, {{"rows", 0}}) != "not refused");
}
