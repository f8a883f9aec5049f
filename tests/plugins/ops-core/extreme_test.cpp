// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

TEST_CASE("max, argmax: the lowest index among equals, which gets the whole gradient") {
  const In x{{3}, {1, 3, 3}};
  const Result r = grad("max", {x});
  check_near(r.value, {3});
  check_near(r.gradient[0], {0, 1, 0});
  check_near(eval("argmax", {x}).value, {1});
  check_near(eval("argmax", {{{2001}, std::vector<double>(2001)}}).value, {0});
  check_near(eval("argmin", {x}).value, {0});
}

TEST_CASE("min: along the second axis") {
  const Result r = grad("min", {{{2, 2}, {1, 4, 3, 2}}}, {{"axis", 1}});
  CHECK(r.dim == Dim{2});
  check_near(r.value, {1, 2});
  check_near(r.gradient[0], {1, 0, 0, 1});
}

TEST_CASE("max, argmax: NaN wins") {
  const In x{{3}, {1, kNan, 3}};
  check_near(eval("max", {x}).value, {kNan});
  check_near(eval("argmax", {x}).value, {1});
}

TEST_CASE("argmax: gives integers") {
  Graph g(runtime(), options(Mode::infer));
  CHECK(g.apply1("argmax", {g.ones(Dim({3}, 2))}).dtype() == DType::i64);
}
