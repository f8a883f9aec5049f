// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "graph/graph_impl.hpp"
#include "support/test_ops.hpp"

using namespace trellis;
using test::apply;
using test::TestRuntime;

TEST_CASE("print: leaves, operators and outputs") {
  TestRuntime rt;
  Model m(rt);
  const Parameter p = m.add_parameter("p", Dim({2}));
  const LookupParameter t = m.add_lookup("t", 9, Dim({2}));
  Graph g(rt);
  const Expr x = g.parameter(p);
  const uint32_t ids[] = {1, 2, 3, 4, 5};
  CHECK(g.describe(x) == "node #1 = parameter /p {2}");
  CHECK(g.describe(g.lookup(t, ids)) == "node #2 = lookup /t[1,2,3,4,..] {2}x5");
  CHECK(g.describe(g.constant(Dim({3}), 1)) == "node #3 = constant {3}");
  const auto out = g.apply("test.both", std::vector<Expr>{x, x}, {}, {});
  CHECK(g.describe(out[1]) == "node #4 = test.both(#1, #1) {2}, output 1");
  CHECK(g.impl().shapes(4) == "{2} {2}");
  CHECK(g.impl().context(4, "forward") == "; test-ops 1.0.0, node #4, forward, inputs {2} {2}");
}
