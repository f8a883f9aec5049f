// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

TEST_CASE("mul: a row times a matrix, a scalar times a matrix") {
  const In y{{3, 2}, {1, 2, 3, 4, 5, 6}};
  const Result row = grad("mul", {{{1, 2}, {1, 2}}, y});
  check_near(row.value, {1, 2, 3, 8, 10, 12});
  check_near(row.gradient[0], {6, 15});
  const Result scalar = grad("mul", {{{}, {2}}, y});
  check_near(scalar.value, {2, 4, 6, 8, 10, 12});
  check_near(scalar.gradient[0], {21});
}

TEST_CASE("div: broadcasts on both sides") {
  const Result r = grad("div", {{{2, 2}, {2, 6, 4, 8}}, {{1, 2}, {2, 4}}});
  check_near(r.value, {1, 3, 1, 2});
  check_near(r.gradient[1], {-2, -0.75});
  check_near(eval("div", {{{1, 2}, {8, 12}}, {{2, 1}, {2, 4}}}).value, {4, 2, 6, 3});
}

TEST_CASE("add: missing trailing dimensions count as one, so a vector goes to every column") {
  const Result r = eval("add", {{{2, 2}, {1, 2, 3, 4}}, {{2}, {10, 20}}});
  CHECK(r.dim == Dim{2, 2});
  check_near(r.value, {11, 22, 13, 24});
}

TEST_CASE("sub: one batch element serves the others, its gradient is their sum") {
  const Result r = grad("sub", {{Dim({2}, 2), {5, 6, 7, 8}}, {{2}, {1, 2}}});
  check_near(r.value, {4, 4, 6, 6});
  check_near(r.gradient[1], {-2, -2});
}

TEST_CASE("maximum, minimum: the gradient of a tie goes to the second, NaN passes") {
  const Result up = grad("maximum", {{{3}, {1, 2, 3}}, {{3}, {3, 2, 1}}});
  check_near(up.value, {3, 2, 3});
  check_near(up.gradient[0], {0, 0, 1});
  check_near(up.gradient[1], {1, 1, 0});
  const Result down = grad("minimum", {{{3}, {1, 2, 3}}, {{3}, {3, 2, 1}}});
  check_near(down.value, {1, 2, 1});
  check_near(down.gradient[0], {1, 0, 0});
  check_near(down.gradient[1], {0, 1, 1});
  check_near(eval("maximum", {{{2}, {kNan, 1}}, {{2}, {1, kNan}}}).value, {kNan, kNan});
  check_near(eval("dynet.min", {{{1}, {kNan}}, {{1}, {1}}}).value, {kNan});
}

TEST_CASE("binary operators refuse shapes and batches that do not fit") {
  for (const char* op : {"add", "sub", "mul", "div", "maximum", "minimum"}) {
    const std::string who = std::string("[") + op + "] ";
    CHECK(refusal(op, {{{2, 3}, std::vector<double>(6)}, {{2, 4}, std::vector<double>(8)}}) ==
          who + "sizes differ on axis 1: x is {2,3}, y is {2,4} (each axis must be equal or 1)");
    CHECK(refusal(op, {{Dim({1}, 2), {1, 2}}, {Dim({1}, 3), {1, 2, 3}}}) ==
          who + "batch sizes differ: input 0 is {1}x2 in a batch of 3 (all must be equal or 1)");
  }
}
