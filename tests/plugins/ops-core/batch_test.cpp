// SPDX-License-Identifier: Apache-2.0
#include <trellis/expr.hpp>

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

TEST_CASE("reshape, slice: a batch is unpacked into its elements, one node each and no copy") {
  for (const bool batching : {false, true}) {
    Graph g(runtime(), {.batching = batching});
    const std::vector<float> values{1, 2, 3, 4, 5, 6};
    const Expr x = -g.input(Dim({2}, 3), std::span<const float>(values));
    const Expr flat = g.apply1("reshape", {x}, {{"shape", {2, 3}}, {"batch", 1}});
    const size_t before = g.size();
    std::vector<Expr> elements;
    for (int i = 0; i < 3; ++i)
      elements.push_back(g.apply1("slice", {flat}, {{"start", i}, {"end", i + 1}, {"axis", 1}}));
    CHECK(g.size() == before + 3);
    for (size_t i = 0; i < 3; ++i) {
      CHECK(elements[i].value().data() == x.value().as<float>().data() + 2 * i);
      CHECK(elements[i].value().as_vector() ==
            std::vector<float>{-values[2 * i], -values[2 * i + 1]});
    }
    g.backward(roles::sum(elements[0] + elements[2] * 3), true);
    CHECK(x.gradient().as_vector() == std::vector<float>{1, 1, 0, 0, 3, 3});
  }
}
