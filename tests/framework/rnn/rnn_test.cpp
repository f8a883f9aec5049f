// SPDX-License-Identifier: Apache-2.0
//
// The combinators over real builders: dropout, residual connections, both directions, constants,
// sharing.
#include <doctest/doctest.h>

#include <cmath>
#include <trellis/rnn.hpp>

#include "test_builders.hpp"

using namespace trellis;
using namespace test_builders;

namespace {

const Attrs kSizes{{"input", 5}, {"hidden", 4}};

std::vector<Expr> inputs(Graph& g, size_t n, uint32_t batch, double scale = 1) {
  std::vector<Expr> xs;
  for (size_t t = 0; t < n; ++t) {
    Numbers v(5 * batch);
    for (size_t i = 0; i < v.size(); ++i)
      v[i] = scale * (0.1 * static_cast<double>((5 * t + 3 * i) % 11) - 0.4);
    xs.push_back(vec(g, Dim({5}, batch), v));
  }
  return xs;
}
std::vector<Expr> ones(Graph& g, size_t n, uint32_t batch = 1) {
  return std::vector<Expr>(n, g.ones(Dim({5}, batch)));
}

}  // namespace

TEST_CASE("rnn: dropout acts where its rates say and is scaled") {
  Model m(runtime(), DType::f64);
  const Attrs sizes{{"input", 400}, {"hidden", 1}};
  Rnn rnn(m, "test.chain", sizes);
  for (const Parameter& p : m.parameters())
    set(p, Numbers(p.dim().total(), p.name().back() == 'w' ? 1.0 : 0.0));
  Graph g = graph();
  const Expr x = g.ones(Dim{400});
  // w x without dropout is 400; with p = 0.5 about half of the ones count twice.
  const auto sum_after = [&](const RnnDropout& d) {
    rnn.set_dropout(d);
    return value(rnn.start(g).add(x).s()[0])[0];
  };
  CHECK(sum_after({}) == 400);
  const double masked = sum_after({.input = 0.5});
  CHECK(masked != 400);
  CHECK(masked > 300);
  CHECK(masked < 500);
  CHECK(masked / 2 == std::floor(masked / 2));  // kept ones are scaled to 2
  CHECK(sum_after({.input = 1}) == 0);
}

TEST_CASE("rnn: rates of zero make no nodes, other rates change the result") {
  Model m(runtime(), DType::f64);
  Rnn rnn(m, "lstm", kSizes);
  Graph g = graph();
  const auto run = [&](const RnnDropout& d) {
    rnn.set_dropout(d);
    const size_t before = g.size();
    const std::vector<Expr> xs = ones(g, 3);
    const Numbers last = value(rnn.transduce(g, xs).back());
    return std::pair(last, g.size() - before);
  };
  run({});  // makes the nodes of the parameters
  const auto plain = run({});
  CHECK(run({}) == plain);
  CHECK(run({.input = 0, .hidden = 0, .output = 0}) == plain);
  CHECK(run({.input = 0.5}).first != plain.first);
  CHECK(run({.hidden = 0.5}).first != plain.first);
  CHECK(run({.input = 0.5, .hidden = 0.5}).first != plain.first);
  CHECK(run({.output = 0.5}).first != plain.first);
}

TEST_CASE("rnn: one mask a sequence, a new one for the next; plain dropout draws each step") {
  Model m(runtime(), DType::f64);
  const Attrs sizes{{"input", 50}, {"hidden", 50}};
  Rnn rnn(m, "test.chain", sizes);
  Numbers identity(2500, 0.0);
  for (size_t i = 0; i < 50; ++i) identity[51 * i] = 1;
  set(m.parameter("/chain/layer0/w"), identity);
  set(m.parameter("/chain/layer0/u"), Numbers(2500, 0.0));
  Graph g = graph();
  const Expr x = g.ones(Dim{50});
  // a grows by the masked input each step
  const auto masks = [&] {
    const RnnState one = rnn.start(g).add(x), two = one.add(x);
    Numbers first = value(one.s()[0]), second = value(two.s()[0]);
    for (size_t i = 0; i < 50; ++i) second[i] -= first[i];
    return std::pair(first, second);
  };
  rnn.set_dropout({.input = 0.5});
  const auto a = masks(), b = masks();
  CHECK(a.first == a.second);
  CHECK(b.first == b.second);
  CHECK(a.first != b.first);
  rnn.set_dropout({.input = 0.5, .variational = false});
  const auto c = masks();
  CHECK(c.first != c.second);
}

TEST_CASE("rnn: set_dropout acts from the next sequence on") {
  Model m(runtime(), DType::f64);
  Rnn rnn(m, "lstm", kSizes);
  Graph g = graph();
  const std::vector<Expr> xs = ones(g, 2);
  const RnnState started = rnn.start(g);
  const Numbers before = value(started.add(xs[0]).output());
  rnn.set_dropout({.input = 0.9});
  CHECK(value(started.add(xs[0]).output()) == before);
  CHECK(value(rnn.start(g).add(xs[0]).output()) != before);
  CHECK(refusal([&] { rnn.set_dropout({.hidden = 1.5}); }) ==
        "[lstm] dropout rate out of range: 1.5 (need 0 to 1)");
  CHECK(refusal([&] { rnn.set_dropout({.output = std::nan("")}); }) ==
        "[lstm] dropout rate out of range: nan (need 0 to 1)");
  RnnOptions o;
  o.dropout.input = -0.5;
  CHECK(refusal([&] { Rnn(m, "lstm", kSizes, o); }) ==
        "[lstm] dropout rate out of range: -0.5 (need 0 to 1)");
}

TEST_CASE("rnn: dropout does nothing in inference") {
  Model m(runtime(), DType::f64);
  Rnn rnn(m, "lstm", kSizes);
  Graph g = graph(Mode::infer);
  const std::vector<Expr> xs = ones(g, 3);
  const Numbers plain = value(rnn.transduce(g, xs).back());
  rnn.set_dropout({.input = 0.5, .hidden = 0.5, .output = 0.5});
  CHECK(value(rnn.transduce(g, xs).back()) == plain);
}

TEST_CASE("rnn: batches of several sizes in one graph, each batch element with its own mask") {
  Model m(runtime(), DType::f64);
  for (const double p : {0.0, 0.5})
    for (const bool batching : {true, false}) {
      RnnOptions o;
      o.dropout = {.input = p, .hidden = p};
      const BiRnn rnn(m, "lstm", kSizes, o);
      GraphOptions go;
      go.dtype = DType::f64;
      go.batching = batching;
      Graph g(runtime(), go);
      std::vector<Expr> last;
      for (const uint32_t batch : {2u, 3u, 1u, 1u})
        last.push_back(rnn.transduce(g, ones(g, 4, batch)).back());
      g.forward_all();
      CHECK(last[0].dim() == Dim({8}, 2));
      CHECK(last[1].dim() == Dim({8}, 3));
      CHECK(last[2].dim() == Dim{8});
      CHECK(last[3].dim() == Dim{8});
      const Numbers v = value(last[0]);
      const bool same = std::equal(v.begin(), v.begin() + 8, v.begin() + 8);
      CHECK(same == (p == 0));
    }
}

TEST_CASE("rnn: residual connections add the input from the second layer on") {
  Model m(runtime(), DType::f64), n(runtime(), DType::f64);
  RnnOptions o;
  o.layers = 2;
  const Rnn plain(m, "gru", kSizes, o);
  o.residual = true;
  const Rnn residual(n, "gru", kSizes, o);
  for (size_t i = 0; i < m.parameters().size(); ++i)
    set(n.parameters()[i], m.parameters()[i].value().as_doubles());
  Graph g = graph();
  const std::vector<Expr> xs = inputs(g, 1, 1);
  const RnnState a = plain.start(g).add(xs[0]), b = residual.start(g).add(xs[0]);
  CHECK(value(b.h()[1]) == value(a.h()[1]));
  Numbers expected = value(a.h()[0]);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += value(a.h()[1])[i];
  const Numbers got = value(b.output());
  for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]));
}

TEST_CASE("rnn: both directions are two chains, one reading backwards") {
  Model m(runtime(), DType::f64);
  RnnOptions o;
  o.layers = 2;
  const BiRnn both(m, "gru", kSizes, o);
  CHECK(both.output_size() == 8);
  CHECK(m.parameter("/gru/layer1/backward/w").dim() == Dim{8, 8});
  Model single(runtime(), DType::f64);
  const Rnn left(single, "gru", kSizes);
  const char* names[] = {"w", "u", "b", "wn", "un", "bn"};
  Graph g = graph();
  const std::vector<Expr> xs = inputs(g, 3, 2);
  const BiRnn one(m, "gru", kSizes);
  const std::vector<Expr> y = one.transduce(g, xs);
  for (const char* name : names)
    set(single.parameter("/gru/layer0/" + std::string(name)),
        m.parameter("/gru_1/layer0/backward/" + std::string(name)).value().as_doubles());
  const std::vector<Expr> reversed(xs.rbegin(), xs.rend());
  const std::vector<Expr> z = left.transduce(g, reversed);
  for (size_t t = 0; t < 3; ++t) CHECK(value(roles::slice(y[t], 4, 8)) == value(z[2 - t]));
  const auto states = one.states(g, xs);
  CHECK(value(roles::concat({states[1].first.output(), states[1].second.output()})) == value(y[1]));
  CHECK(both.transduce(g, xs).size() == 3);
}

TEST_CASE("rnn: both directions with residual connections and dropout of the output") {
  Model m(runtime(), DType::f64);
  RnnOptions o;
  o.layers = 2;
  o.residual = true;
  BiRnn rnn(m, "lstm", kSizes, o);
  Graph g = graph();
  const std::vector<Expr> xs = inputs(g, 2, 1);
  const Numbers plain = value(rnn.transduce(g, xs)[0]);
  rnn.set_dropout({.output = 1});
  CHECK(value(rnn.transduce(g, xs)[0]) == Numbers(8, 0.0));
  rnn.set_dropout({});
  CHECK(value(rnn.transduce(g, xs)[0]) == plain);
  CHECK(refusal([&] { rnn.set_dropout({.input = 2}); }) ==
        "[lstm] dropout rate out of range: 2 (need 0 to 1)");
}

TEST_CASE("rnn: constant parameters get no gradient; copies share parameters but not rates") {
  Model m(runtime(), DType::f64);
  Rnn rnn(m, "lstm", kSizes);
  Rnn copy = rnn;
  copy.set_constant(true);
  copy.set_dropout({.input = 0.5});
  CHECK(rnn.dropout().input == 0);
  CHECK(m.parameters().size() == 3);
  const auto gradient = [&](const Rnn& r) {
    m.reset_gradient();
    Graph g = graph();
    g.backward(roles::sum(r.transduce(g, ones(g, 2)).back()), true);
    return m.gradient_norm();
  };
  CHECK(gradient(copy) == 0);
  CHECK(gradient(rnn) > 0);
}

TEST_CASE("rnn: gradients of a whole batch equal those of its sequences, batched or not") {
  Model m(runtime(), DType::f64);
  RnnOptions o;
  o.layers = 2;
  const BiRnn rnn(m, "lstm", kSizes, o);
  const auto gradients = [&](bool batching) {
    m.reset_gradient();
    GraphOptions go;
    go.dtype = DType::f64;
    go.batching = batching;
    go.always_group = batching;
    Graph g(runtime(), go);
    Expr loss = g.input(0);
    for (const size_t length : {3, 1, 4, 3})
      for (const Expr& y : rnn.transduce(g, inputs(g, length, 1, static_cast<double>(length))))
        loss += roles::sum(y);
    g.backward(loss);
    std::vector<Numbers> all;
    for (const Parameter& p : m.parameters()) all.push_back(p.gradient().as_doubles());
    return all;
  };
  const std::vector<Numbers> a = gradients(true), b = gradients(false);
  for (size_t k = 0; k < a.size(); ++k)
    for (size_t i = 0; i < a[k].size(); ++i)
      CHECK(a[k][i] == doctest::Approx(b[k][i]).epsilon(1e-10));
}

TEST_CASE("rnn: what cannot be a chain or a stack is refused") {
  Model m(runtime(), DType::f64);
  CHECK(refusal([&] { Rnn(m, "tree_lstm", kSizes); }) ==
        "[tree_lstm] not a chain: a step takes up to 2 predecessor states (need 1; use TreeRnn)");
  RnnOptions two;
  two.layers = 2;
  CHECK(refusal([&] { Rnn(m, "test.pair", {}, two); }) ==
        "[pair] cannot be stacked: the builder does not say which attributes hold its sizes");
  CHECK(refusal([&] { BiRnn(m, "test.pair", {}, two); }) ==
        "[pair] cannot be stacked: the builder does not say which attributes hold its sizes");
  two.layers = 0;
  CHECK(refusal([&] { BiRnn(m, "lstm", kSizes, two); }) ==
        "[lstm] number of layers: 0 (need at least 1)");
  CHECK(refusal([&] { Rnn(m, "lstmm", kSizes); }).find("lstm") != std::string::npos);
  CHECK(refusal([&] {
          Rnn(m, "lstm", {{"input", 5}});
        }).find("'hidden' is missing") != std::string::npos);
}
