// SPDX-License-Identifier: Apache-2.0
//
// The tagger: word vectors of 128, an LSTM of 50 from each end, a layer of 32 with tanh, scores of
// the tags; loss summed over the sentences of a minibatch.
//
//   --char         rare words are spelt: character vectors of 20, an LSTM of 64 from each end

#include <optional>

#include "trellis.hpp"

namespace bench {
namespace {

struct Tagger {
  Tagger(const TagData& data, bool spell)
      : model(runtime()),
        words(model.add_lookup("words", id(data.words), {128}, uniform(0.3))),
        rnn(model, "lstm", {{"input", 128}, {"hidden", 50}}),
        w1(model.add_parameter("w1", {32, rnn.output_size()})),
        b1(model.add_parameter("b1", {32}, nothing())),
        w2(model.add_parameter("w2", {id(data.tags), 32})),
        b2(model.add_parameter("b2", {id(data.tags)}, nothing())) {
    if (!spell) return;
    chars = model.add_lookup("chars", id(data.chars), {20}, uniform(1));
    speller.emplace(model, "lstm", Attrs{{"input", 20}, {"hidden", 64}});
  }

  // The last output of each direction.
  Expr spelt(Graph& g, const std::vector<int>& spelling) const {
    std::vector<Expr> xs;
    for (const int c : spelling) xs.push_back(g.lookup(chars, id(c)));
    const auto states = speller->states(g, xs);
    return ops::concat({states.back().first.output(), states.front().second.output()});
  }

  void add_scores(Graph& g, const Sentence& s, std::vector<Expr>& scores) const {
    std::vector<Expr> xs;
    for (size_t i = 0; i < s.words.size(); ++i) {
      xs.push_back(s.words[i] == kRare ? spelt(g, s.spelling[i]) : g.lookup(words, id(s.words[i])));
    }
    const Expr hidden_w = g.parameter(w1), hidden_b = g.parameter(b1);
    const Expr out_w = g.parameter(w2), out_b = g.parameter(b2);
    for (const Expr& h : rnn.transduce(g, xs)) {
      const Expr z = ops::tanh(ops::affine(hidden_b, hidden_w, h));
      scores.push_back(ops::affine(out_b, out_w, z));
    }
  }

  Model model;
  LookupParameter words, chars;
  BiRnn rnn;
  Parameter w1, b1, w2, b2;
  std::optional<BiRnn> speller;
};

void run(const Options& options) {
  const bool spell = options.flag("char");
  const TagData data(options.data(), spell);
  const size_t mb = options.mb();
  const Tagger tagger(data, spell);
  Trainer trainer = adam(tagger.model);
  Graph train_graph(runtime()), dev_graph = inference_graph();
  Cycle order(data.train.size()), dev_order(data.dev.size());

  const auto update = [&] {
    std::vector<Expr> scores, losses;
    train_graph.clear();
    for (size_t k = 0; k < mb; ++k) {
      const Sentence& s = data.train[order.next()];
      const size_t first = scores.size();
      tagger.add_scores(train_graph, s, scores);
      for (size_t i = 0; i < s.tags.size(); ++i)
        losses.push_back(ops::cross_entropy(scores[first + i], id(s.tags[i])));
    }
    train_graph.backward(ops::sum_list(losses));
    trainer.update();
    return losses.size();
  };
  std::vector<int> tags;
  const auto tag = [&](const std::vector<const Sentence*>& sentences) {
    std::vector<Expr> scores;
    dev_graph.clear();
    for (const Sentence* s : sentences) tagger.add_scores(dev_graph, *s, scores);
    dev_graph.forward_all();
    tags.clear();
    for (const Expr& e : scores) tags.push_back(best(e));
    return tags.size();
  };

  Report report(options, "trellis", spell ? "tagger-char" : "tagger");
  run_task(
      options, report, "accuracy", (data.train.size() + mb - 1) / mb, update,
      [&] {
        std::vector<const Sentence*> sentences;
        for (size_t k = 0; k < mb; ++k) sentences.push_back(&data.dev[dev_order.next()]);
        return tag(sentences);
      },
      [&] {
        size_t right = 0, n = 0;
        for (const Sentence& s : data.dev) {
          n += tag({&s});
          for (size_t i = 0; i < s.tags.size(); ++i) right += tags[i] == s.tags[i];
        }
        return static_cast<double>(right) / static_cast<double>(n);
      });
  add_counts(options, report, train_graph);
  report.print();
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::guarded(argc, argv, bench::run); }
