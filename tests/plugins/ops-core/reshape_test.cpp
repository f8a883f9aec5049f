// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

TEST_CASE("reshape: between shape and batch, and back") {
  const In x{{8}, {1, 2, 3, 4, 5, 6, 7, 8}};
  const Result r = grad("reshape", {x}, {{"shape", {1}}, {"batch", 8}});
  CHECK(r.dim == Dim({1}, 8));
  CHECK(r.value == x.numbers);
  CHECK(r.gradient[0] == std::vector<double>(8, 1));
  const Result back = eval("reshape", {{Dim({1}, 8), x.numbers}}, {{"shape", {8}}, {"batch", 1}});
  CHECK(back.dim == Dim{8});
  CHECK(back.value == x.numbers);
}

TEST_CASE("reshape: keeps the batch, and finds one size by itself") {
  CHECK(eval("reshape", {{Dim({2, 3}, 2), std::vector<double>(12)}}, {{"shape", {3, -1}}}).dim ==
        Dim({3, 2}, 2));
}

TEST_CASE("reshape: refuses another number of elements") {
  CHECK(refusal("reshape", {{{8}, std::vector<double>(8)}}, {{"shape", {3}}}) ==
        "[reshape] numbers of elements differ: x is {8}, the new shape is {3} (need 8 elements)");
  CHECK(refusal("reshape", {{{8}, std::vector<double>(8)}}, {{"shape", {3, -1}}}) ==
        "[reshape] numbers of elements differ: x is {8}, the new shape is {3,2} (need 8 elements)");
  CHECK(refusal("reshape", {{{8}, std::vector<double>(8)}}, {{"shape", {0, 8}}}) ==
        "[reshape] impossible size: 0 (need a positive size, or -1 once)");
}
