// SPDX-License-Identifier: Apache-2.0
//
// States: order, replacing parts of them, whole sequences, trees, going on after a revert.
#include "rnn/sequence.hpp"

#include <doctest/doctest.h>

#include "test_builders.hpp"

using namespace trellis;
using namespace test_builders;

namespace {

Rnn make(Model& m, const char* builder, uint32_t layers = 1, const RnnDropout& dropout = {},
         bool residual = false) {
  RnnOptions o;
  o.layers = layers;
  o.dropout = dropout;
  o.residual = residual;
  return Rnn(m, builder, {{"input", 2}, {"hidden", 2}}, o);
}
std::vector<Expr> inputs(Graph& g, size_t n, uint32_t batch = 1) {
  std::vector<Expr> xs;
  for (size_t t = 0; t < n; ++t) {
    Numbers v(2 * batch);
    for (size_t i = 0; i < v.size(); ++i)
      v[i] = 0.1 * static_cast<double>((5 * t + 3 * i) % 7) - 0.3;
    xs.push_back(vec(g, Dim({2}, batch), v));
  }
  return xs;
}
std::vector<Numbers> values(const std::vector<Expr>& es) {
  std::vector<Numbers> all;
  for (const Expr& e : es) all.push_back(value(e));
  return all;
}
void copy_parameters(const Model& from, const Model& to) {
  const std::vector<Parameter> a = from.parameters(), b = to.parameters();
  for (size_t i = 0; i < a.size(); ++i) set(b[i], a[i].value().as_doubles());
}

}  // namespace

TEST_CASE("sequence: s() lists what is not the output for all layers, then the outputs") {
  Model m(runtime(), DType::f64);
  const Rnn rnn = make(m, "test.chain", 2);
  CHECK(rnn.state_size() == 6);
  Graph g = graph();
  const RnnState s = rnn.start(g).add(inputs(g, 1)[0]);
  const std::vector<Expr> all = s.s(), h = s.h();
  REQUIRE(all.size() == 6);
  // a of layers 0 and 1, b of layers 0 and 1 (b equals a), h of layers 0 and 1
  CHECK(value(all[0]) == value(all[2]));
  CHECK(value(all[1]) == value(all[3]));
  CHECK(value(all[0]) != value(all[1]));
  CHECK(all[4].id() == h[0].id());
  CHECK(all[5].id() == h[1].id());
  CHECK(s.output().id() == h[1].id());
}

TEST_CASE("sequence: a start state and set_s return what was given") {
  Model m(runtime(), DType::f64);
  const Rnn rnn = make(m, "test.chain", 2);
  Graph g = graph();
  const std::vector<Expr> given = inputs(g, 6);
  const RnnState start = rnn.start(g, given);
  CHECK(values(start.s()) == values(given));
  CHECK(values(rnn.start(g).set_s(given).s()) == values(given));
  CHECK(start.is_start());
  CHECK_FALSE(rnn.start(g).set_s(given).is_start());
  // Several start states in one graph do not disturb each other.
  const Expr x = inputs(g, 1)[0];
  const Numbers zero = value(rnn.start(g).add(x).output()), some = value(start.add(x).output());
  CHECK(zero != some);
  CHECK(value(rnn.start(g).add(x).output()) == zero);
  CHECK(value(start.add(x).output()) == some);
}

TEST_CASE("sequence: set_h keeps the rest of the state it is called on") {
  Model m(runtime(), DType::f64);
  const Rnn rnn = make(m, "test.chain", 2);
  Graph g = graph();
  const std::vector<Expr> xs = inputs(g, 3);
  const RnnState one = rnn.start(g).add(xs[0]);
  one.add(xs[1]);  // a later step must not matter
  const RnnState changed = one.set_h(std::vector<Expr>{xs[1], xs[2]});
  CHECK(value(changed.s()[0]) == value(one.s()[0]));
  CHECK(value(changed.s()[1]) == value(one.s()[1]));
  CHECK(values(changed.h()) == values({xs[1], xs[2]}));
  CHECK(changed.output().id() == xs[2].id());
  CHECK(value(changed.prev().output()) == value(one.output()));
}

TEST_CASE("sequence: wrong numbers of expressions are refused with what is needed") {
  Model m(runtime(), DType::f64);
  const Rnn one = make(m, "test.chain"), two = make(m, "test.chain", 2);
  Graph g = graph();
  const std::vector<Expr> xs = inputs(g, 4);
  const RnnState start = two.start(g);
  CHECK(refusal([&] { two.start(g, xs); }) ==
        "[chain] wrong number of start expressions: 4 (need none, or 6: 3 for each of 2 layers)");
  CHECK(refusal([&] { one.start(g, xs); }) ==
        "[chain] wrong number of start expressions: 4 (need none, or 3)");
  CHECK(refusal([&] { start.set_s({}); }) ==
        "[chain] set_s: wrong number of expressions: 0 (need 6: 3 for each of 2 layers)");
  CHECK(refusal([&] { start.set_h(xs); }) ==
        "[chain] set_h: wrong number of expressions: 4 (need 2: 1 for each of 2 layers)");
  CHECK(refusal([&] { start.add(xs); }) == "[chain] wrong number of inputs: 4 (need 1)");
  CHECK(refusal([&] { start.prev(); }) == "[rnn] the start state has no predecessor");
  CHECK(refusal([&] { RnnState().add(xs[0]); }) ==
        "[rnn] the state is empty: made by no sequence (need one from start)");
}

TEST_CASE("sequence: a whole sequence equals its steps, and is used where nothing forbids it") {
  Model m(runtime(), DType::f64), n(runtime(), DType::f64);
  for (const bool residual : {false, true}) {
    const Rnn whole = make(m, "test.whole", 2, {}, residual),
              stepped = make(n, "test.chain", 2, {}, residual);
    copy_parameters(m, n);
    Graph g = graph();
    const std::vector<Expr> xs = inputs(g, 4, 3);
    counts = {};
    const std::vector<RnnState> at_once = whole.start(g).add_all(xs);
    CHECK(counts.sequence == 2);
    CHECK(counts.step == 0);
    RnnState s = stepped.start(g);
    for (size_t t = 0; t < xs.size(); ++t) {
      s = s.add(xs[t]);
      CHECK(value(at_once[t].output()) == value(s.output()));
      CHECK(values(at_once[t].s()) == values(s.s()));
    }
    CHECK(value(at_once[3].prev().output()) == value(at_once[2].output()));
    CHECK(at_once[0].prev().is_start());
    // and goes on from any of its states
    CHECK(value(at_once[1].add(xs[2]).output()) == value(at_once[2].output()));
  }
  counts = {};
  Graph g = graph();
  make(m, "test.whole", 1, {.hidden = 0.5}).transduce(g, inputs(g, 3));
  CHECK(counts.sequence == 0);
  CHECK(counts.step == 3);
  counts = {};
  make(m, "test.whole", 1, {.input = 0.5, .output = 0.5}).transduce(g, inputs(g, 3));
  CHECK(counts.sequence == 1);
}

TEST_CASE("sequence: none of nothing") {
  Model m(runtime(), DType::f64);
  Graph g = graph();
  for (const char* builder : {"test.chain", "test.whole", "lstm", "gru"}) {
    const Rnn rnn = make(m, builder);
    CHECK(rnn.transduce(g, {}).empty());
    CHECK(rnn.start(g).add_all({}).empty());
    CHECK(value(rnn.start(g).output()) == Numbers{0, 0});
  }
  const BiRnn both(m, "lstm", {{"input", 2}, {"hidden", 2}});
  CHECK(both.transduce(g, {}).empty());
  CHECK(both.states(g, {}).empty());
}

TEST_CASE("sequence: several inputs a step") {
  Model m(runtime(), DType::f64);
  const Rnn rnn(m, "test.pair", {});
  set(m.parameter("/pair/layer0/w"), {1, 0, 0, 1});
  Graph g = graph();
  const std::vector<Expr> xs{vec(g, {2}, {1, 2}), vec(g, {2}, {10, 20})};
  CHECK(value(rnn.start(g).add(xs).add(xs).output()) == Numbers{22, 44});
  CHECK(refusal([&] { rnn.start(g).add(xs[0]); }) == "[pair] wrong number of inputs: 1 (need 2)");
  CHECK(refusal([&] { rnn.transduce(g, xs); }) == "[pair] wrong number of inputs: 1 (need 2)");
}

TEST_CASE(
    "sequence: trees whose builder takes a fixed number of children see zeros for missing ones") {
  Model m(runtime(), DType::f64);
  const TreeRnn rnn(m, "test.twos", {});
  Graph g = graph();
  const RnnTree tree = rnn.start(g);
  const RnnState a = tree.leaf(vec(g, {2}, {1, 2})), b = tree.leaf(vec(g, {2}, {3, 4}));
  CHECK(value(a.output()) == Numbers{1, 2});
  CHECK(value(tree.add({a, b}, vec(g, {2}, {10, 10})).output()) == Numbers{14, 16});
  CHECK(value(tree.add({b}, vec(g, {2}, {10, 10})).output()) == Numbers{13, 14});
  CHECK(refusal([&] {
          tree.add({a, b, a}, vec(g, {2}, {1, 1}));
        }) == "[twos] wrong number of predecessor states: 3 (need 0 to 2)");
  const RnnTree other = rnn.start(g);
  CHECK(refusal([&] {
          other.add({a}, vec(g, {2}, {1, 1}));
        }) == "[twos] child 0 belongs to another tree (make all nodes with one start)");
  CHECK(value(tree.add({a, b}, vec(g, {2}, {0, 0})).prev().output()) == value(a.output()));
}

TEST_CASE("sequence: states and masks made after a mark go with it, earlier ones stay") {
  Model m(runtime(), DType::f64);
  const Rnn rnn = make(m, "test.chain", 2, {.input = 0.5});
  Graph g = graph();
  const std::vector<Expr> xs = inputs(g, 3);
  const RnnState start = rnn.start(g);
  g.checkpoint();
  const RnnState gone = start.add(xs[0]);
  g.revert();
  CHECK(refusal([&] { gone.add(xs[1]); }).find("older graph") != std::string::npos);
  const RnnState one = start.add(xs[1]);  // makes the masks anew
  CHECK(one.output().value().dim() == Dim{2});
  g.clear();
  CHECK(refusal([&] { one.add(inputs(g, 1)[0]); }).find("older graph") != std::string::npos);
}

TEST_CASE("sequence: states and inputs of two graphs do not mix") {
  Model m(runtime(), DType::f64);
  const Rnn rnn = make(m, "test.chain");
  Graph g = graph(), other = graph();
  const RnnState start = rnn.start(g);
  const Expr x = inputs(other, 1)[0];
  CHECK(refusal([&] { start.add(x); }).find("another graph") != std::string::npos);
}
