// SPDX-License-Identifier: Apache-2.0
//
// The language model: word vectors of 128, an LSTM of 256, scores of all words; loss summed over
// the sentences of a minibatch. Every sentence is a chain of its own; equal work is merged by the
// graph.

#include <cmath>

#include "trellis.hpp"

namespace bench {
namespace {

struct LanguageModel {
  explicit LanguageModel(uint32_t words)
      : model(runtime()),
        embedding(model.add_lookup("embedding", words, {128}, uniform(1.7))),
        rnn(model, "lstm", {{"input", 128}, {"hidden", 256}, {"forget_bias", 0.0}}),
        w(model.add_parameter("w", {words, 256}, uniform(1.0 / 16))),
        b(model.add_parameter("b", {words}, nothing())) {}

  // Word 0 stands before the first word and after the last.
  void add_losses(Graph& g, const std::vector<int>& sentence, std::vector<Expr>& losses) const {
    std::vector<Expr> xs{g.lookup(embedding, 0)};
    for (const int word : sentence) xs.push_back(g.lookup(embedding, id(word)));
    const Expr weights = g.parameter(w), bias = g.parameter(b);
    const std::vector<Expr> hs = rnn.transduce(g, xs);
    for (size_t i = 0; i < hs.size(); ++i) {
      const int next = i < sentence.size() ? sentence[i] : 0;
      losses.push_back(ops::linear_cross_entropy(bias, weights, hs[i], id(next)));
    }
  }

  Model model;
  LookupParameter embedding;
  Rnn rnn;
  Parameter w, b;
};

void run(const Options& options) {
  const TextData data(options.data());
  const size_t mb = options.mb();
  const LanguageModel lm(id(data.vocab));
  Trainer trainer = adam(lm.model);
  Graph train_graph(runtime()), dev_graph = inference_graph();

  size_t words = 0;
  const auto loss = [&](Graph& g, const std::vector<std::vector<int>>& sentences, size_t k) {
    std::vector<Expr> losses;
    g.clear();
    for (size_t i = k * mb; i < std::min((k + 1) * mb, sentences.size()); ++i)
      lm.add_losses(g, sentences[i], losses);
    words = losses.size();
    return ops::sum_list(losses);
  };
  const auto update = [&](size_t k) {
    train_graph.backward(loss(train_graph, data.train, k));
    trainer.update();
    return words;
  };

  const size_t train_batches = (data.train.size() + mb - 1) / mb;
  const size_t dev_batches = (data.dev.size() + mb - 1) / mb;
  Cycle order(train_batches), dev_order(dev_batches);
  Report report(options, "trellis", "lm");
  run_task(
      options, report, "perplexity", train_batches, [&] { return update(order.next()); },
      [&] { return loss(dev_graph, data.dev, dev_order.next()).scalar(), words; },
      [&] {
        double sum = 0, n = 0;
        for (size_t k = 0; k < dev_batches; ++k) {
          sum += loss(dev_graph, data.dev, k).scalar();
          n += static_cast<double>(words);
        }
        return std::exp(sum / n);
      });
  add_counts(options, report, train_graph);
  report.print();
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::guarded(argc, argv, bench::run); }
