// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

TEST_CASE("hinge_loss: values and gradient") {
  const In x{{2}, {1.4, 0.9}};
  const Result first = grad("hinge_loss", {x}, {{"ids", 0}}),
               second = grad("hinge_loss", {x}, {{"ids", 1}});
  check_near(first.value, {0.5});
  check_near(first.gradient[0], {-1, 1});
  check_near(second.value, {1.5});
  check_near(second.gradient[0], {1, -1});
  check_near(eval("hinge_loss", {x}, {{"ids", {0, 1}}, {"margin", 0.25}}).value, {0, 0.75});
}

TEST_CASE("hinge_loss: refuses a class that is not there") {
  CHECK(refusal("hinge_loss", {{{2}, {1.4, 0.9}}}, {{"ids", 2}}) ==
        "[hinge_loss] 'ids' is out of bounds: 2 (needs 0 to 1)");
}
