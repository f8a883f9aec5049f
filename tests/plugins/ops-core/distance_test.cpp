// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

TEST_CASE("dot_product: a vector and a column of the same length") {
  const Result r = grad("dot_product", {{{3}, {1, 2, 3}}, {{3, 1}, {1, 2, 3}}});
  check_near(r.value, {14});
  check_near(r.gradient[0], {1, 2, 3});
}

TEST_CASE("squared_distance: no factor of one half") {
  const Result r = grad("squared_distance", {{{2}, {1, 2}}, {{2}, {3, 5}}});
  check_near(r.value, {13});
  check_near(r.gradient[0], {-4, -6});
  check_near(r.gradient[1], {4, 6});
}

TEST_CASE("l1_distance: the slope of equal elements is zero") {
  const Result r = grad("l1_distance", {{{2}, {1, 1}}, {{2}, {1, 2}}});
  check_near(r.value, {1});
  check_near(r.gradient[0], {0, -1});
}

TEST_CASE("huber_distance: a square near, a line far out") {
  const Result far = grad("huber_distance", {{{1}, {0}}, {{1}, {5}}}),
               near_by = grad("huber_distance", {{{1}, {0}}, {{1}, {1}}});
  check_near(far.value, {5.8204875});
  check_near(far.gradient[0], {-1.345});
  check_near(far.gradient[1], {1.345});
  check_near(near_by.value, {0.5});
  check_near(near_by.gradient[0], {-1});
}

TEST_CASE("binary_cross_entropy: values, and sure predictions stay finite") {
  const Result r = grad("binary_cross_entropy", {{{2}, {0.5, 0.25}}, {{2}, {1, 0}}});
  check_near(r.value, {0.9808292530117262});
  check_near(r.gradient[0], {-2, 1.3333333333333333});
  check_near(r.gradient[1], {0, 1.0986122886681098});
  const Result sure = grad("binary_cross_entropy", {{{2}, {1, 0}}, {{2}, {1, 0}}});
  check_near(sure.value, {0});
  check_near(sure.gradient[0], {0, 0});
  check_near(eval("binary_cross_entropy", {{{1}, {0}}, {{1}, {1}}}).value, {100});
}

TEST_CASE("distances refuse shapes that differ") {
  for (const char* op : {"dot_product", "squared_distance", "l1_distance", "huber_distance",
                         "binary_cross_entropy"}) {
    const std::string text = refusal(op, {{{2}, {1, 2}}, {{3}, {1, 2, 3}}});
    CHECK(text.find(std::string("[") + op + "] shapes differ: ") == 0);
    CHECK(text.find("is {2}, ") != text.npos);
    CHECK(text.find("is {3} (must be equal)") != text.npos);
  }
}
