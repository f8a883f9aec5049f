// SPDX-License-Identifier: Apache-2.0
//
// Handles: what was moved from, and what outlives the runtime it was made from.

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <trellis/expr.hpp>
#include <trellis/model.hpp>
#include <trellis/ops/core.hpp>
#include <trellis/rnn.hpp>
#include <trellis/train.hpp>
#include <utility>

using namespace trellis;

TEST_CASE("handles: moving a runtime, graph or model is copying it") {
  Runtime r;
  const Runtime same = std::move(r);
  CHECK(r == same);
  Graph g(r);
  Graph g2 = std::move(g);
  const Expr x = g2.input(2.0);
  CHECK(g.size() == 1);
  CHECK((x * 3.0).scalar() == 6);
  Model m(r);
  Model m2 = std::move(m);
  m2.add_parameter("w", {2});
  CHECK(m.size() == 1);
  g = std::move(g2);
  m = std::move(m2);
  CHECK(g2.size() == 2);
  CHECK(m2.size() == 1);
}

TEST_CASE("handles: using a trainer or a block that was moved from throws") {
  Runtime r;
  Model m(r);
  const Parameter w = m.add_parameter("w", {2}, Init::from({1, 2}));
  Trainer t(m, "sgd");
  Trainer t2 = std::move(t);
  CHECK_THROWS_WITH_AS(t.update(), "[trainer] it was moved from (needs the one it was moved to)",
                       Error);
  CHECK_THROWS_AS(t.status(), Error);
  CHECK_THROWS_AS(t.learning_rate(), Error);
  GradientBlock b(m);
  GradientBlock b2 = std::move(b);
  CHECK_THROWS_WITH_AS(
      b.clear(), "[gradients] the block was moved from (needs the one it was moved to)", Error);
  CHECK_THROWS_AS(t2.update(b), Error);
  CHECK_THROWS_AS(b2.add(b), Error);
  {
    Graph g(r, {.gradients = &b});
    const Expr loss = ops::sum(g.parameter(w));
    CHECK_THROWS_AS(g.backward(loss), Error);
  }
  Graph g(r, {.gradients = &b2});
  g.backward(ops::sum(g.parameter(w)));
  t2.update(b2);
  CHECK(t2.updates() == 1);
}

TEST_CASE("handles: models, graphs, builders and trainers keep their runtime") {
  auto r = std::make_unique<Runtime>();
  Model m(*r);
  Rnn rnn(m, "lstm", {{"input", 2}, {"hidden", 3}});
  Trainer t(m, "adam");
  Graph g(*r);
  r.reset();
  for (int step = 0; step < 2; ++step) {
    g.clear();
    const std::vector<double> ones = {1, 1};
    const Expr x = g.input({2}, ones);
    const std::vector<Expr> xs = {x, x};
    const Expr loss = ops::sum(rnn.transduce(g, xs).back());
    g.backward(loss);
    t.update();
  }
  CHECK(t.updates() == 2);
  CHECK(m.runtime().devices().size() == 1);

  std::optional<Graph> last(g);
  m = Model(m.runtime());
  g = Graph(m.runtime());
  last.reset();
}

TEST_CASE("handles: a graph takes parameters of its own runtime only") {
  Runtime one, two;
  Model m(one);
  const Parameter w = m.add_parameter("w", {2});
  const LookupParameter e = m.add_lookup("e", 3, {2});
  Graph g(two);
  CHECK_THROWS_WITH_AS(
      g.parameter(w),
      "[parameter] '/w' is of a model of another runtime (needs one of the graph's)", Error);
  CHECK_THROWS_AS(g.lookup(e, 1), Error);
  CHECK(g.size() == 0);
}
