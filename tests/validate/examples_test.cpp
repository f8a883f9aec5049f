// SPDX-License-Identifier: Apache-2.0
#include "validate/examples.hpp"

#include <doctest/doctest.h>

using namespace trellis;
using namespace trellis::validate;

TEST_CASE("examples: shapes, absent inputs and attributes of every type") {
  const auto all =
      parse_examples("f({2}x3, -, axis=-1, ids=[1,2], p=0.5, on=true, how=fast); g({})");
  REQUIRE(all.size() == 2);
  CHECK(all[0].inputs.size() == 2);
  CHECK(*all[0].inputs[0] == Dim({2}, 3));
  CHECK(!all[0].inputs[1]);
  CHECK(all[0].attrs.size() == 5);
  CHECK(*all[1].inputs[0] == Dim());
}

TEST_CASE("examples: what cannot be read is named") {
  CHECK_THROWS_AS(parse_examples("f({2"), Error);
  CHECK_THROWS_AS(parse_examples("f({2}) g({2})"), Error);
  CHECK_THROWS_AS(parse_examples("f(axis=)"), Error);
}
