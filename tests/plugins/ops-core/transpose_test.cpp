// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

TEST_CASE("transpose: a matrix, a vector, a column") {
  const Result r = grad("transpose", {{{2, 3}, {1, 2, 3, 4, 5, 6}}}, {}, {1, 2, 3, 4, 5, 6});
  CHECK(r.dim == Dim{3, 2});
  check_near(r.value, {1, 3, 5, 2, 4, 6});
  check_near(r.gradient[0], {1, 4, 2, 5, 3, 6});
  CHECK(eval("transpose", {{{10}, std::vector<double>(10)}}).dim == Dim{1, 10});
  CHECK(eval("transpose", {{{128, 1}, std::vector<double>(128)}}).dim == Dim{1, 128});
}

TEST_CASE("transpose: permutations of three and four axes") {
  In x{{2, 3, 2}, std::vector<double>(12)};
  for (size_t k = 0, n = 0; k < 2; ++k)
    for (size_t j = 0; j < 3; ++j)
      for (size_t i = 0; i < 2; ++i) x.numbers[n++] = static_cast<double>(i + 10 * j + 100 * k);
  const Result r = eval("transpose", {x}, {{"dims", {2, 0, 1}}});
  CHECK(r.dim == Dim{2, 2, 3});
  CHECK(r.value[1 + 2 * (0 + 2 * 2)] == 120);
  check_near(eval("transpose", {{{2, 2, 1, 1}, {1, 2, 3, 4}}}, {{"dims", {0, 2, 3, 1}}}).value,
             {1, 2, 3, 4});
}

TEST_CASE("transpose: refuses what is no permutation") {
  const In x{{2, 3}, std::vector<double>(6)};
  CHECK(refusal("transpose", {x}, {{"dims", {0, 0}}}) ==
        "[transpose] no permutation: axis 0 in a list of 2 (need each of 0 to 1 once)");
  CHECK(refusal("transpose", {{{2, 3, 1}, std::vector<double>(6)}}) ==
        "[transpose] too few axes: 2 for {2,3,1} (need 3)");
  CHECK(refusal("transpose", {{{2, 3}, std::vector<double>(6)}}, {{"dims", {0}}}) ==
        "[transpose] too few axes: 1 for {2,3} (need 2)");
}
