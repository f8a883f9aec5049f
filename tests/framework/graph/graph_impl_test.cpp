// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_impl.hpp"

#include <doctest/doctest.h>

#include "support/test_ops.hpp"

using namespace trellis;
using test::apply;
using test::TestRuntime;

TEST_CASE("graph_impl: c expressions carry node, output and epoch") {
  TestRuntime rt;
  Graph g(rt);
  const Expr x = g.input(1);
  const auto out = g.apply("test.both", std::vector<Expr>{x, x});
  detail::GraphImpl& impl = g.impl();
  const trl_expr e = impl.to_c(out[1].id());
  CHECK(e.node == out[0].id());
  CHECK(e.output == 1);
  CHECK(impl.from_c(e) == out[1].id());
  CHECK(impl.from_c({}) == detail::GraphImpl::kAbsent);
  g.clear();
  CHECK_THROWS_AS(impl.from_c(e), Error);
  g.input(1);
  CHECK_THROWS_WITH_AS(impl.from_c({1, 7, e.epoch}),
                       "[graph] a plugin passed an expression of an older graph: node 1 (graphs "
                       "keep nothing for plugins)",
                       Error);
}

TEST_CASE("graph_impl: expressions made before a truncation stay alive, later ones do not") {
  TestRuntime rt;
  Graph g(rt);
  const Expr a = g.input(1);
  const uint32_t n = g.impl().size();
  const Expr b = g.input(2);
  g.impl().truncate(n);
  CHECK(a.alive());
  CHECK_FALSE(b.alive());
  const Expr c = g.input(3);
  CHECK(c.id() == b.id());
  CHECK_FALSE(b.alive());
  CHECK(c.scalar() == 3);
  CHECK(a.scalar() == 1);
}

TEST_CASE("graph_impl: a model must outlive the use of its parameters") {
  TestRuntime rt;
  Graph g(rt);
  Parameter p;
  {
    Model m(rt);
    p = m.add_parameter("p", Dim({1}), Init::from({4}));
    g.parameter(p);
  }
  CHECK(g.parameter(p).value().as_vector() == std::vector<float>{4});  // the graph keeps it
}
