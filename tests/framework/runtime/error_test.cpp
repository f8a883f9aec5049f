// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <trellis/error.hpp>

using namespace trellis;

TEST_CASE("error: fail throws the kind and the text") {
  CHECK_THROWS_WITH_AS(fail(ErrorKind::range, "[pick] no element 3"), "[pick] no element 3", Error);
  try {
    fail(ErrorKind::range, "x");
  } catch (const std::runtime_error& e) {
    CHECK(dynamic_cast<const Error&>(e).kind() == ErrorKind::range);
  }
}
