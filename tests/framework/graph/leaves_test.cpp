// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "support/test_ops.hpp"

using namespace trellis;
using test::apply;
using test::TestRuntime;

TEST_CASE("leaves: a parameter is one node a graph, also after clear and revert") {
  TestRuntime rt;
  Model m(rt);
  std::vector<Parameter> ps;
  for (int i = 0; i < 200; ++i)
    ps.push_back(m.add_parameter("p" + std::to_string(i), Dim({1}), Init::from({double(i)})));
  Graph g(rt);
  for (int round = 0; round < 3; ++round) {
    for (int k = 0; k < 2; ++k)
      for (int i = 0; i < 200; ++i) CHECK(g.parameter(ps[i]).scalar() == i);
    CHECK(g.size() == 200);
    CHECK(g.const_parameter(ps[0]).scalar() == 0);
    CHECK(g.size() == 201);
    g.clear();
  }
  g.checkpoint();
  g.parameter(ps[7]);
  g.revert();
  const Expr x = g.input(5);
  CHECK(g.parameter(ps[7]).scalar() == 7);
  CHECK(x.scalar() == 5);
}

TEST_CASE("leaves: parameters are used in place") {
  TestRuntime rt;
  Model m(rt);
  Parameter p = m.add_parameter("p", Dim({2}), Init::from({1, 2}));
  Graph g(rt);
  CHECK(g.parameter(p).value().data() == p.value().data());
}

TEST_CASE("leaves: ids of lookups and sparse inputs are checked when the node is made") {
  TestRuntime rt;
  Model m(rt);
  const LookupParameter t = m.add_lookup("t", 4, Dim({2}));
  Graph g(rt);
  CHECK_THROWS_WITH_AS(g.lookup(t, 4), "[lookup] id is out of bounds: 4 of '/t' (needs 0 to 3)",
                       Error);
  const uint32_t ids[] = {1, 101};
  CHECK_THROWS_WITH_AS(g.lookup(t, ids),
                       "[lookup] id is out of bounds: 101, batch element 1 of '/t' (needs 0 to 3)",
                       Error);
  CHECK_THROWS_WITH_AS(g.lookup(t, std::span<const uint32_t>()),
                       "[lookup] no ids given for '/t' (needs at least one)", Error);
  const uint64_t at[] = {2};
  const double one[] = {1}, two[] = {1, 2};
  CHECK_THROWS_WITH_AS(g.sparse_input(Dim({2}), at, one),
                       "[sparse_input] id is out of bounds: 2 in {2} (needs 0 to 1)", Error);
  CHECK_THROWS_WITH_AS(
      g.sparse_input(Dim({2}), at, two),
      "[sparse_input] numbers of ids and values differ: 1 ids, 2 values (must be equal)", Error);
  CHECK(g.size() == 0);
}
