// SPDX-License-Identifier: Apache-2.0
#include "plugin/trace.hpp"

#include <doctest/doctest.h>

using trellis::detail::Trace;
using trellis::detail::TraceTopic;

TEST_CASE("trace: topics are switched on by name") {
  const Trace two("search,load");
  CHECK(two.on(TraceTopic::search));
  CHECK(two.on(TraceTopic::load));
  CHECK_FALSE(two.on(TraceTopic::verify));
  CHECK_FALSE(two.on(TraceTopic::resolve));
  for (const char* all : {"all", "1", "nonsense,all"}) {
    CHECK(Trace(all).on(TraceTopic::verify));
    CHECK(Trace(all).on(TraceTopic::resolve));
  }
  for (const char* none : {"", "nonsense", ",,"}) CHECK_FALSE(Trace(none).on(TraceTopic::search));
}
