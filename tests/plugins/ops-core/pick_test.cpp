// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

TEST_CASE("pick: one entry per batch element, an id for all or one for each") {
  const In x{Dim({2}, 3), {1, 2, 3, 4, 5, 6}};
  CHECK(eval("pick", {x}, {{"ids", 0}}).dim == Dim({}, 3));
  check_near(eval("pick", {x}, {{"ids", 1}}).value, {2, 4, 6});
  const Result r = grad("pick", {x}, {{"ids", {0, 1, 0}}});
  check_near(r.value, {1, 4, 5});
  check_near(r.gradient[0], {1, 0, 0, 1, 1, 0});
}

TEST_CASE("pick: many ids out of one tensor make a batch") {
  const Result r = grad("pick", {{{3}, {5, 7, 9}}}, {{"ids", {2, 2, 0}}});
  CHECK(r.dim == Dim({}, 3));
  check_near(r.value, {9, 9, 5});
  check_near(r.gradient[0], {1, 0, 2});
}

TEST_CASE("pick: along another axis") {
  const Result r = eval("pick", {{{2, 3}, {1, 2, 3, 4, 5, 6}}}, {{"ids", 1}, {"axis", 1}});
  CHECK(r.dim == Dim{2});
  check_near(r.value, {3, 4});
}

TEST_CASE("pick: refuses an index that is not there when the node is made") {
  CHECK(refusal("pick", {{{2}, {5, 7}}}, {{"ids", 2}}) ==
        "[pick] 'ids' is out of bounds: 2 (needs 0 to 1)");
  CHECK(refusal("pick", {{{2}, {5, 7}}}, {{"ids", 10}}) ==
        "[pick] 'ids' is out of bounds: 10 (needs 0 to 1)");
  CHECK(refusal("pick", {{{2, 3}, std::vector<double>(6)}}, {{"ids", 3}, {"axis", 1}}) ==
        "[pick] 'ids' is out of bounds: 3 (needs 0 to 2)");
}

TEST_CASE("select: repeated entries add up their gradients") {
  const Result r = grad("select", {{{3}, {10, 20, 30}}}, {{"ids", {0, 0, 2}}});
  check_near(r.value, {10, 10, 30});
  check_near(r.gradient[0], {2, 0, 1});
}

TEST_CASE("select: keeps the batch on every axis") {
  const In x{Dim({5, 2}, 3), std::vector<double>(30)};
  CHECK(eval("select", {x}, {{"ids", {0}}, {"axis", 1}}).dim == Dim({5, 1}, 3));
  CHECK(eval("select", {{Dim({5, 2}, 3), std::vector<double>(30)}}, {{"ids", {0}}}).dim ==
        Dim({1, 2}, 3));
}

TEST_CASE("select: refuses an index that is not there") {
  CHECK(refusal("select", {{{3}, {1, 2, 3}}}, {{"ids", {0, 3}}}) ==
        "[select] 'ids' is out of bounds: 3 on axis 0 of {3} (needs 0 to 2)");
}

TEST_CASE("scatter: one place of a new axis per batch element, the rest zero") {
  const Result one =
      grad("scatter", {{{2}, {5, 6}}}, {{"ids", 1}, {"size", 3}}, {1, 2, 3, 4, 5, 6});
  CHECK(one.dim == Dim({3, 2}));
  check_near(one.value, {0, 5, 0, 0, 6, 0});
  check_near(one.gradient[0], {2, 5});
  const std::vector<int64_t> ids{2, 0};
  const Result two =
      grad("scatter", {{Dim({}, 2), {5, 6}}}, {{"ids", ids}, {"size", 3}, {"axis", 1}});
  CHECK(two.dim == Dim({1, 3}, 2));
  check_near(two.value, {0, 0, 5, 6, 0, 0});
  check_near(two.gradient[0], {1, 1});
}

TEST_CASE("scatter: refuses places beyond the axis when it runs") {
  CHECK(refusal("scatter", {{{2}, {5, 6}}}, {{"ids", 3}, {"size", 3}}) ==
        "[scatter] 'ids' is out of bounds: 3, batch element 0 (needs 0 to 2)");
  CHECK(refusal("scatter", {{{2}, {5, 6}}}, {{"ids", -1}, {"size", 3}}) ==
        "[scatter] 'ids' is out of bounds: -1, batch element 0 (needs 0 to 2)");
}
