// SPDX-License-Identifier: Apache-2.0
#include "rnn_test.hpp"

using namespace rnn_test;

namespace {
// The values below were computed with the gates in the order input, forget left, forget right,
// output, candidate.
void reorder_gates(Parameter p) {
  const uint32_t order[] = {0, 3, 4, 1, 2};
  const Numbers from = p.value().as_doubles();
  Numbers to(from.size());
  const size_t rows = p.dim()[0], n = rows / 5;
  for (size_t i = 0; i < from.size(); ++i) {
    const size_t row = i % rows;
    to[i] = from[i - row + order[row / n] * n + row % n];
  }
  p.set_value(std::span<const double>(to));
}
void set_all_weights(Model& m) {
  set_weights(m.parameter("/tree_lstm/layer0/w"), 0);
  set_weights(m.parameter("/tree_lstm/layer0/ul"), 3);
  set_weights(m.parameter("/tree_lstm/layer0/ur"), 6);
  set_weights(m.parameter("/tree_lstm/layer0/b"), 5);
  for (const char* name : {"w", "ul", "ur", "b"})
    reorder_gates(m.parameter("/tree_lstm/layer0/" + std::string(name)));
}
}  // namespace

TEST_CASE("tree_lstm: two leaves and their parent, with and without an input of its own") {
  Model m(runtime(), DType::f64);
  const TreeRnn rnn(m, "tree_lstm", {{"input", 3}, {"hidden", 2}});
  set_all_weights(m);
  Graph g = graph();
  const std::vector<Expr> x = two_inputs(g);
  const RnnTree tree = rnn.start(g);
  const RnnState a = tree.leaf(x[0]), b = tree.leaf(x[1]);
  const RnnState root = tree.add({a, b});
  CHECK(near(root.output().value().as_doubles(), {-0.11596456208111003, 0.32994328198665707}));
  CHECK(near(root.s()[0].value().as_doubles(), {-0.3574351420532407, 0.6515272502455729}));
  const RnnState with_input = tree.add({a, b}, x[1]);
  CHECK(near(with_input.output().value().as_doubles(), {-0.1256594633612136, 0.30063364485626426}));
  const RnnState one_child = tree.add({a}, x[1]);
  CHECK(near(one_child.output().value().as_doubles(), {-0.08752411021663502, 0.244682702134394}));
}

TEST_CASE("tree_lstm: a node needs something to read, and at most two children") {
  Model m(runtime(), DType::f64);
  const TreeRnn rnn(m, "tree_lstm", {{"input", 3}, {"hidden", 2}});
  Graph g = graph();
  const RnnTree tree = rnn.start(g);
  CHECK_THROWS_WITH_AS(tree.add({}),
                       "[tree_lstm] a node has neither an input nor children (needs one)", Error);
  const RnnState a = tree.leaf(two_inputs(g)[0]);
  CHECK_THROWS_WITH_AS(tree.add({a, a, a}),
                       "[tree_lstm] wrong number of predecessor states: 3 (need 0 to 2)", Error);
}
