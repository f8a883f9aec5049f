// SPDX-License-Identifier: Apache-2.0
#include "rnn_test.hpp"

using namespace rnn_test;

TEST_CASE("lstm: two steps with known weights") {
  Model m(runtime(), DType::f64);
  const Rnn rnn(m, "lstm", {{"input", 3}, {"hidden", 2}});
  set_weights(m.parameter("/lstm/layer0/w"), 0);
  set_weights(m.parameter("/lstm/layer0/u"), 3);
  set_weights(m.parameter("/lstm/layer0/b"), 5);
  Graph g = graph();
  const RnnState last = rnn.start(g).add_all(two_inputs(g)).back();
  CHECK(near(last.output().value().as_doubles(), {0.05185452266723905, 0.05667737204671892}));
  CHECK(near(last.s()[0].value().as_doubles(), {0.09522825394606896, 0.12948756865984928}));
}

TEST_CASE("lstm: the plain equations with forget bias 1, or another") {
  for (const auto& [bias, c, h] :
       {std::tuple{1.0, 0.9710616, 0.6125026}, {0.0, 0.9444197, 0.6027538}}) {
    Model m(runtime(), DType::f64);
    const Rnn rnn(m, "lstm", {{"input", 1}, {"hidden", 1}, {"forget_bias", bias}});
    set_all(m, 1);
    Graph g = graph();
    const RnnState s = rnn.start(g, std::vector<Expr>{g.input(0.25), g.input(0.5)}).add(g.input(1));
    CHECK(near(s.s()[0].value().as_doubles(), {c}, 1e-7));
    CHECK(near(s.output().value().as_doubles(), {h}, 1e-7));
  }
  for (const auto& [bias, c, h] : {std::tuple{1.0, 0.7310586, 0.3118563}, {0.0, 0.5, 0.2310586}}) {
    Model m(runtime(), DType::f64);
    const Rnn rnn(m, "lstm", {{"input", 1}, {"hidden", 1}, {"forget_bias", bias}});
    set_all(m, 0);
    Graph g = graph();
    const RnnState s = rnn.start(g, std::vector<Expr>{g.input(1), g.input(0)}).add(g.input(1));
    CHECK(near(s.s()[0].value().as_doubles(), {c}, 1e-7));
    CHECK(near(s.output().value().as_doubles(), {h}, 1e-7));
  }
}

TEST_CASE("lstm: a step is two nodes") {
  Model m(runtime(), DType::f64);
  const Rnn rnn(m, "lstm", {{"input", 3}, {"hidden", 2}});
  Graph g = graph();
  const std::vector<Expr> x = two_inputs(g);
  const RnnState start = rnn.start(g);
  const size_t before = g.size();
  start.add(x[0]).add(x[1]);
  CHECK(g.size() - before == 4);
}

TEST_CASE("lstm: biases start at 0, sizes must be positive") {
  Model m(runtime(), DType::f64);
  const Rnn rnn(m, "lstm", {{"input", 3}, {"hidden", 2}});
  CHECK(m.parameter("/lstm/layer0/b").value().as_doubles() == Numbers(8, 0.0));
  CHECK_THROWS_WITH_AS(Rnn(m, "lstm", {{"input", 0}, {"hidden", 2}}),
                       "[lstm] attribute 'input': 0 (needed at least 1)", Error);
}
