// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <memory>

#include "support/test_ops.hpp"

using namespace trellis;
using test::apply;
using test::counts;
using test::TestRuntime;

namespace {
std::vector<float> v(std::initializer_list<float> x) { return x; }
Expr vec(Graph& g, std::vector<float> x) { return g.input(Dim({uint32_t(x.size())}), x); }
Expr total(Graph& g, const Expr& x) { return apply(g, "total", {x}); }
}  // namespace

TEST_CASE("backward: a parameter used twice receives the sum") {
  TestRuntime rt;
  Model m(rt);
  Parameter p = m.add_parameter("p", Dim({2}), Init::from({3, 4}));
  Graph g(rt);
  const Expr x = g.parameter(p);
  const Expr loss = total(g, apply(g, "mul", {x, x}));
  g.backward(loss);
  CHECK(p.gradient().as_vector() == v({6, 8}));
  CHECK(x.gradient().as_vector() == v({6, 8}));
}

TEST_CASE("backward: parameter gradients accumulate over calls and graphs until they are reset") {
  TestRuntime rt;
  Model m(rt);
  Parameter p = m.add_parameter("p", Dim({1}), Init::from({2}));
  for (int i = 0; i < 2; ++i) {
    Graph g(rt);
    const Expr loss = total(g, apply(g, "square", {g.parameter(p)}));
    g.backward(loss);
    g.backward(loss);
    CHECK(loss.gradient().as_scalar() == 1);
  }
  CHECK(p.gradient().as_vector() == v({16}));
  m.reset_gradient();
  CHECK(p.gradient().as_vector() == v({0}));
}

TEST_CASE("backward: refuses what is not a scalar, with a hint") {
  TestRuntime rt;
  Graph g(rt);
  CHECK_THROWS_WITH_AS(g.backward(vec(g, {1, 2})),
                       "[backward] needs a scalar: got {2} (one element, batch 1)", Error);
  const Expr batched = g.input(Dim({}, 3), v({1, 2, 3}));
  CHECK_THROWS_WITH_AS(g.backward(batched),
                       "[backward] needs a scalar: got {}x3 (reduce the batch first: sum_batches)",
                       Error);
  Graph infer(rt, {.mode = Mode::infer});
  CHECK_THROWS_WITH_AS(infer.backward(infer.input(1)),
                       "[backward] the graph is in infer mode and kept nothing for gradients (make "
                       "it with mode = train)",
                       Error);
}

TEST_CASE("backward: gradients of nodes, and of inputs when asked for all") {
  TestRuntime rt;
  Graph g(rt);
  const Expr x = vec(g, {3, 4});
  const Expr y = apply(g, "square", {x});
  const Expr loss = total(g, y);
  CHECK_THROWS_WITH_AS(
      x.gradient(),
      "[gradient] no backward was run on this graph since it changed (call backward first)", Error);
  counts = {};
  g.backward(loss);
  CHECK(counts.backward == 0);  // no parameter below
  CHECK(x.gradient().as_vector() == v({0, 0}));
  g.backward(loss, true);
  CHECK(x.gradient().as_vector() == v({6, 8}));
  CHECK(y.gradient().as_vector() == v({1, 1}));
  const Expr later = total(g, y);
  CHECK_THROWS_WITH_AS(later.gradient(),
                       "[gradient] node #4 was made after node #3, where backward started (call "
                       "backward from a later node)",
                       Error);
}

TEST_CASE("backward: a loss that is a view, or a parameter itself, still has its gradient") {
  TestRuntime rt;
  Model m(rt);
  Parameter p = m.add_parameter("p", Dim({4}), Init::from({1, 2, 3, 4}));
  Graph g(rt);
  const Expr part = apply(g, "part", {g.parameter(p)}, {{"start", 2}});
  g.backward(total(g, apply(g, "square", {part})));
  CHECK(p.gradient().as_vector() == v({0, 0, 6, 8}));
  Parameter s = m.add_parameter("s", Dim({1}), Init::from({5}));
  Graph h(rt);
  h.backward(h.parameter(s));
  CHECK(s.gradient().as_vector() == v({1}));
}

TEST_CASE("backward: a loss below which nothing is trained has the gradient 1") {
  TestRuntime rt;
  for (const bool batching : {false, true}) {
    Graph g(rt, {.batching = batching});
    const Expr x = vec(g, {3, 4}), y = total(g, apply(g, "part", {x}, {{"start", 0}}));
    g.backward(y);
    CHECK(y.gradient().as_scalar() == 1);
    CHECK(x.gradient().as_vector() == v({0, 0}));
  }
}

TEST_CASE("backward: overlapping views of one value add up") {
  TestRuntime rt;
  for (const bool batching : {false, true}) {
    Model m(rt);
    Parameter p = m.add_parameter("p", Dim({3}), Init::from({1, 2, 3}));
    Graph g(rt, {.batching = batching});
    const Expr x = g.parameter(p);
    const Expr a = apply(g, "part", {x}, {{"start", 0}}), b = apply(g, "part", {x}, {{"start", 1}});
    g.backward(total(g, apply(g, "mul", {a, b})));  // x0 x1 + x1 x2
    CHECK(p.gradient().as_vector() == v({2, 4, 2}));
  }
}

TEST_CASE("backward: one of several outputs") {
  TestRuntime rt;
  for (const int which : {0, 1}) {
    Model m(rt);
    Parameter p = m.add_parameter("p", Dim({2}), Init::from({1, 2})),
              q = m.add_parameter("q", Dim({2}), Init::from({3, 4}));
    Graph g(rt);
    const auto out = g.apply("test.both", std::vector<Expr>{g.parameter(p), g.parameter(q)});
    g.backward(total(g, out[which]));
    CHECK(p.gradient().as_vector() == v({1, 1}));
    CHECK(q.gradient().as_vector() == (which == 0 ? v({1, 1}) : v({-1, -1})));
  }
}

TEST_CASE("backward: lookups, equal ids add up, untouched rows have no memory") {
  TestRuntime rt;
  Model m(rt);
  LookupParameter t = m.add_lookup("t", 1000000, Dim({2}));
  Graph g(rt);
  const uint32_t ids[] = {7, 9, 7};
  g.backward(apply(g, "total_batches", {total(g, g.lookup(t, ids))}));
  CHECK(std::vector<uint32_t>(t.touched_rows().begin(), t.touched_rows().end()) ==
        std::vector<uint32_t>{7, 9});
  CHECK(t.row_gradient(7).as_vector() == v({2, 2}));
  CHECK(t.row_gradient(9).as_vector() == v({1, 1}));
  CHECK(t.row_gradient(8).empty());
  g.clear();
  g.backward(apply(g, "total_batches", {total(g, g.const_lookup(t, ids))}));
  CHECK(t.row_gradient(7).as_vector() == v({2, 2}));
}

TEST_CASE("backward: constant and frozen parameters receive nothing") {
  TestRuntime rt;
  Model m(rt);
  Parameter p = m.add_parameter("p", Dim({2}), Init::from({1, 2}));
  Graph g(rt);
  g.backward(total(g, apply(g, "mul", {g.const_parameter(p), g.parameter(p)})));
  CHECK(p.gradient().as_vector() == v({1, 2}));
  m.reset_gradient();
  p.set_trainable(false);
  g.clear();
  g.backward(total(g, apply(g, "square", {g.parameter(p)})));
  CHECK(p.gradient().as_vector() == v({0, 0}));
}

TEST_CASE("backward: broadcast inputs receive the sum over the batch") {
  TestRuntime rt;
  for (const bool batching : {false, true}) {
    Model m(rt);
    Parameter p = m.add_parameter("p", Dim({2}), Init::from({1, 2}));
    Graph g(rt, {.batching = batching});
    const Expr x = g.input(Dim({2}, 3), v({1, 2, 3, 4, 5, 6}));
    const Expr h = apply(g, "square", {g.parameter(p)});  // not a leaf, batch 1
    g.backward(apply(g, "total_batches", {total(g, apply(g, "mul", {x, h}))}));
    CHECK(p.gradient().as_vector() == v({2 * 1 * 9, 2 * 2 * 12}));
  }
}

TEST_CASE("backward: a failure clears the gradients and leaves the values") {
  TestRuntime rt;
  Model m(rt);
  Parameter p = m.add_parameter("p", Dim({2}), Init::from({1, 2}));
  Graph g(rt);
  const Expr x = g.parameter(p);
  const Expr good = total(g, apply(g, "square", {x}));
  const Expr bad = total(g, apply(g, "faulty", {x}, {{"when", 3}}));
  g.backward(good);
  CHECK_THROWS_WITH_AS(
      g.backward(bad),
      "[faulty] failed: as asked (backward); test-ops 1.0.0, node #4, backward, inputs {2}", Error);
  CHECK(p.gradient().as_vector() == v({0, 0}));
  CHECK_THROWS_AS(x.gradient(), Error);
  CHECK(p.value().as_vector() == v({1, 2}));
  g.backward(good);
  CHECK(p.gradient().as_vector() == v({2, 4}));
}

TEST_CASE("backward: a node outside the loss keeps its Inf to itself") {
  TestRuntime rt;
  Model m(rt);
  Parameter p = m.add_parameter("p", Dim({2, 2}), Init::from({1, 2, 3, 4}));
  Graph g(rt);
  const Expr w = g.parameter(p);
  std::vector<Expr> ys;
  for (int i = 0; i < 64; ++i) {
    const float x = i == 5 ? INFINITY : 1;
    ys.push_back(apply(g, "apply", {w, vec(g, {x, 1})}));
  }
  g.forward(ys);
  g.backward(total(g, ys[0]));
  CHECK(p.gradient().as_vector() == v({1, 1, 1, 1}));
}

TEST_CASE("backward: into a block of its own, merged in order") {
  TestRuntime rt;
  Model m(rt);
  Parameter p = m.add_parameter("p", Dim({2}), Init::from({1, 2}));
  LookupParameter t = m.add_lookup("t", 5, Dim({2}));
  GradientBlock a(m), b(m);
  for (GradientBlock* block : {&a, &b}) {
    Graph g(rt, {.gradients = block});
    g.backward(total(g, apply(g, "mul", {g.parameter(p), g.lookup(t, 3)})));
    g.backward(total(g, apply(g, "square", {g.parameter(p)})));
  }
  CHECK(p.gradient().as_vector() == v({0, 0}));
  m.gradients().add(a);
  m.gradients().add(b);
  CHECK(p.gradient().as_vector() == v({4, 8}));
  CHECK(t.row_gradient(3).as_vector() == v({2, 4}));
}

TEST_CASE("backward: a hook sees a complete gradient and may change it before it flows on") {
  TestRuntime rt;
  for (const bool batching : {false, true}) {
    Model m(rt);
    Parameter p = m.add_parameter("p", Dim({2}), Init::from({1, 2}));
    Graph g(rt, {.batching = batching});
    const Expr x = g.parameter(p), h = apply(g, "square", {x});
    const Expr loss = total(g, apply(g, "mul", {h, h}));
    std::vector<float> seen, at_leaf;
    g.on_gradient(h, [&](const TensorView& d) {
      seen = d.as_vector();
      tensor_tools::fill(d, 1);
    });
    g.on_gradient(x, [&](const TensorView& d) { at_leaf = d.as_vector(); });
    g.backward(loss);
    CHECK(seen == v({2, 8}));  // d h^2 / dh
    CHECK(p.gradient().as_vector() == v({2, 4}));
    CHECK(at_leaf == v({2, 4}));
    CHECK_THROWS_WITH_AS(g.on_gradient(h, {}),
                         "[on_gradient] the function is empty (needs one to call)", Error);
    g.on_gradient(h, [](const TensorView&) { throw std::runtime_error("stop"); });
    CHECK_THROWS_WITH(g.backward(loss), "stop");
    CHECK(p.gradient().as_vector() == v({0, 0}));
  }
}

TEST_CASE("backward: what a hook asks of its own graph is refused, and nothing is lost") {
  TestRuntime rt;
  for (const bool batching : {false, true}) {
    Model m(rt);
    Parameter p = m.add_parameter("p", Dim({2}), Init::from({1, 2}));
    Graph g(rt, {.batching = batching, .always_group = batching});
    const Expr w = g.parameter(p), x = apply(g, "square", {w}), loss = total(g, x);
    const Expr other = apply(g, "square", {x});  // not computed
    std::function<void()> act;
    g.on_gradient(x, [&](const TensorView&) { act(); });
    const std::pair<const char*, std::function<void()>> acts[] = {
        {"given a node", [&] { apply(g, "square", {x}); }},
        {"given a node", [&] { g.input(1.0); }},
        {"given a node",
         [&] {
           vec(g, {1, 2, 3, 4, 5, 6, 7});
         }},
        {"given a hook", [&] { g.on_gradient(x, [](const TensorView&) {}); }},
        {"asked for a value", [&] { other.value(); }},
        {"asked for every value", [&] { g.forward_all(); }},
        {"invalidated", [&] { g.forward(x); }},
        {"cleared", [&] { g.clear(); }},
        {"asked for gradients", [&] { g.backward(loss); }},
    };
    for (const auto& [what, f] : acts) {
      act = f;
      m.reset_gradient();
      CHECK_THROWS_WITH_AS(g.backward(loss),
                           ("[graph] it is " + std::string(what) +
                            " while it computes: by a function that it called (do that before or "
                            "after, or with another graph)")
                               .c_str(),
                           Error);
      CHECK(p.gradient().as_vector() == v({0, 0}));
    }
    std::vector<float> seen;
    act = [&] {
      seen = x.value().as_vector();  // what is computed may be read
      Graph h(rt);                   // and other graphs be used
      CHECK(apply(h, "square", {h.input(3)}).scalar() == 9);
    };
    g.backward(loss);
    CHECK(seen == v({1, 4}));
    CHECK(p.gradient().as_vector() == v({2, 4}));
    CHECK(other.value().as_vector() == v({1, 16}));
  }
}

TEST_CASE("backward: a graph lives until its backward ends, whatever a hook lets go") {
  TestRuntime rt;
  Model m(rt);
  Parameter p = m.add_parameter("p", Dim({2}), Init::from({1, 2}));
  auto g = std::make_unique<Graph>(rt);
  const Expr x = apply(*g, "square", {g->parameter(p)}), loss = total(*g, x);
  g->on_gradient(x, [&](const TensorView&) { g.reset(); });
  g->backward(loss);
  CHECK(p.gradient().as_vector() == v({2, 4}));
  CHECK_FALSE(x.alive());
}
