// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "graph/graph_impl.hpp"
#include "support/test_ops.hpp"

using namespace trellis;
using test::apply;
using test::TestRuntime;

namespace {
uint32_t key(const Expr& e) { return e.impl().pattern_of(e.id()).key; }
Expr vec(Graph& g, uint32_t n, uint32_t batch = 1) {
  return g.input(Dim({n}, batch), std::vector<float>(n * batch, 1.f));
}
}  // namespace

TEST_CASE("intern: the key of a node is complete") {
  TestRuntime rt;
  Model m(rt);
  const Parameter w = m.add_parameter("w", Dim({2, 2})), u = m.add_parameter("u", Dim({2, 2}));
  Graph g(rt);
  const auto product = [&](const Expr& a, const Expr& x) { return key(apply(g, "apply", {a, x})); };
  const uint32_t base = product(g.parameter(w), vec(g, 2));
  CHECK(base != 0);
  CHECK(product(g.parameter(w), vec(g, 2)) == base);
  CHECK(product(g.parameter(w), vec(g, 2, 3)) == base);     // the batch size is not part of it
  CHECK(product(g.parameter(u), vec(g, 2)) != base);        // another parameter
  CHECK(product(g.const_parameter(w), vec(g, 2)) != base);  // without gradient
  CHECK(product(g.input(Dim({2, 2}), std::vector<float>(4)), vec(g, 2)) != base);
  // attributes and types
  CHECK(key(apply(g, "faulty", {vec(g, 4)}, {{"when", 0}})) !=
        key(apply(g, "faulty", {vec(g, 4)}, {{"when", 3}})));
  CHECK(key(apply(g, "faulty", {vec(g, 4)})) != key(apply(g, "faulty", {vec(g, 5)})));
  CHECK(key(apply(g, "square", {vec(g, 4)})) ==
        key(apply(g, "square", {vec(g, 5)})));  // element-wise
  CHECK(key(apply(g, "mul", {vec(g, 2, 3), vec(g, 2)})) !=
        key(apply(g, "mul", {vec(g, 2), vec(g, 2)})));
  // ids, free scalars and random addresses are not part of it
  const auto pick = [&](int64_t id, double times) {
    return key(apply(g, "pick", {vec(g, 4)}, {{"ids", id}, {"times", times}}));
  };
  CHECK(pick(0, 1) == pick(3, 0.25));
  CHECK(key(apply(g, "noise", {vec(g, 4)})) == key(apply(g, "noise", {vec(g, 4)})));
  // operators that change the batch never merge
  CHECK(key(apply(g, "total_batches", {vec(g, 4, 2)})) == 0);
}

TEST_CASE("intern: keys and patterns of parameters are stable across clear") {
  TestRuntime rt;
  Model m(rt);
  const Parameter w = m.add_parameter("w", Dim({2, 2}));
  Graph g(rt);
  const uint32_t before = key(apply(g, "apply", {g.parameter(w), vec(g, 2)}));
  const uint64_t infers = g.stats().infer_calls;
  CHECK(infers == 1);
  g.clear();
  CHECK(key(apply(g, "apply", {g.parameter(w), vec(g, 2)})) == before);
  CHECK(g.stats().infer_calls == 0);
}

TEST_CASE("intern: tables are bounded: they are flushed at clear when they have grown") {
  TestRuntime rt;
  Graph g(rt);
  for (int round = 0; round < 2; ++round) {
    for (uint32_t n = 1; n <= 70000; ++n)
      apply(g, "faulty", {g.input_pointer(Dim({n}), reinterpret_cast<const float*>(&rt))});
    g.clear();
    CHECK(g.impl().key_count() < 10);
  }
  CHECK(apply(g, "square", {g.input(3)}).scalar() == 9);
}
