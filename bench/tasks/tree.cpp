// SPDX-License-Identifier: Apache-2.0
//
// The tree-LSTM: word vectors of 128 at the leaves, 128 hidden, a label on every node; loss summed
// over the trees of a minibatch.

#include "trellis.hpp"

namespace bench {
namespace {

struct TreeModel {
  explicit TreeModel(const TreeData& data)
      : model(runtime()),
        words(model.add_lookup("words", id(data.vocab), {128}, uniform(0.15))),
        rnn(model, "tree_lstm", {{"input", 128}, {"hidden", 128}}),
        w(model.add_parameter("w", {id(data.labels), 128})),
        b(model.add_parameter("b", {id(data.labels)}, nothing())) {}

  // The states of all nodes, the root last.
  std::vector<RnnState> states(Graph& g, const Tree& tree) const {
    const RnnTree nodes = rnn.start(g);
    std::vector<RnnState> out;
    for (size_t k = 0; k < tree.label.size(); ++k) {
      if (tree.left[k] < 0) {
        out.push_back(nodes.leaf(g.lookup(words, id(tree.word[k]))));
      } else {
        out.push_back(nodes.add({out[id(tree.left[k])], out[id(tree.right[k])]}));
      }
    }
    return out;
  }
  Expr scores(Graph& g, const RnnState& state) const {
    return ops::affine(g.parameter(b), g.parameter(w), state.output());
  }

  Model model;
  LookupParameter words;
  TreeRnn rnn;
  Parameter w, b;
};

void run(const Options& options) {
  const TreeData data(options.data());
  const size_t mb = options.mb();
  const TreeModel tree_model(data);
  Trainer trainer = adam(tree_model.model);
  Graph train_graph(runtime()), dev_graph = inference_graph();
  Cycle order(data.train.size()), dev_order(data.dev.size());

  const auto update = [&] {
    std::vector<Expr> losses;
    train_graph.clear();
    for (size_t k = 0; k < mb; ++k) {
      const Tree& tree = data.train[order.next()];
      const std::vector<RnnState> states = tree_model.states(train_graph, tree);
      for (size_t i = 0; i < states.size(); ++i) {
        const Expr scores = tree_model.scores(train_graph, states[i]);
        losses.push_back(ops::cross_entropy(scores, id(tree.label[i])));
      }
    }
    train_graph.backward(ops::sum_list(losses));
    trainer.update();
    return mb;
  };
  std::vector<int> labels;
  const auto label = [&](const std::vector<const Tree*>& trees) {
    std::vector<Expr> scores;
    dev_graph.clear();
    for (const Tree* t : trees)
      scores.push_back(tree_model.scores(dev_graph, tree_model.states(dev_graph, *t).back()));
    dev_graph.forward_all();
    labels.clear();
    for (const Expr& e : scores) labels.push_back(best(e));
    return trees.size();
  };

  Report report(options, "trellis", "tree");
  run_task(
      options, report, "accuracy", data.train.size() / mb, update,
      [&] {
        std::vector<const Tree*> trees;
        for (size_t k = 0; k < mb; ++k) trees.push_back(&data.dev[dev_order.next()]);
        return label(trees);
      },
      [&] {
        size_t right = 0;
        for (const Tree& t : data.dev) {
          label({&t});
          right += labels[0] == t.label.back();
        }
        return static_cast<double>(right) / static_cast<double>(data.dev.size());
      });
  add_counts(options, report, train_graph);
  report.print();
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::guarded(argc, argv, bench::run); }
