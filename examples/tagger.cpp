// SPDX-License-Identifier: Apache-2.0
//
// A small part-of-speech tagger: a recurrent network over the words from both ends, one softmax a
// word. `trellis train tagger` is its big sister.
//
//   tagger FILE    FILE: CoNLL-U or word|tag, plain or .gz; the last tenth is kept for checking

#include <algorithm>
#include <cstdio>
#include <exception>
#include <trellis/ops/core.hpp>
#include <trellis/trellis.hpp>

using namespace trellis;

namespace {

struct Tagger {
  Tagger(const Runtime& runtime, uint32_t words, uint32_t tags)
      : model(runtime),
        embedding(model.add_lookup("embedding", words, {32})),
        rnn(model, "lstm", {{"input", 32}, {"hidden", 32}}),
        w(model.add_parameter("w", {tags, rnn.output_size()})),
        b(model.add_parameter("b", {tags})) {}

  // The scores of all tags, for each word.
  std::vector<Expr> scores(Graph& g, const std::vector<uint32_t>& words) const {
    std::vector<Expr> xs, out;
    for (uint32_t word : words) xs.push_back(g.lookup(embedding, word));
    for (const Expr& h : rnn.transduce(g, xs))
      out.push_back(ops::affine(g.parameter(b), g.parameter(w), h));
    return out;
  }

  Model model;
  LookupParameter embedding;
  BiRnn rnn;
  Parameter w, b;
};

uint32_t best(const Expr& scores) {
  const std::vector<float> y = scores.value().as_vector();
  return static_cast<uint32_t>(std::max_element(y.begin(), y.end()) - y.begin());
}

void run(const char* file) {
  const std::vector<TaggedSentence> corpus = read_tagged(file);
  const size_t n_train = corpus.size() - corpus.size() / 10;
  Vocabulary words, tags;
  words.set_unk();
  for (size_t i = 0; i < corpus.size(); ++i) {
    for (const std::string& tag : corpus[i].tags) tags.add(tag);
    if (i >= n_train) continue;  // words of the rest are unknown, as they would be in real life
    for (const std::string& word : corpus[i].words) words.add(word);
  }

  const Runtime runtime;
  const Tagger tagger(runtime, words.size(), tags.size());
  Trainer trainer(tagger.model, "adam", {{"lr", 0.005}});
  Graph g(runtime);
  for (int epoch = 1; epoch <= 3; ++epoch) {
    double loss = 0;
    for (size_t i = 0; i < n_train; ++i) {
      g.clear();
      std::vector<Expr> losses;
      const std::vector<Expr> scores = tagger.scores(g, words.ids(corpus[i].words));
      for (size_t k = 0; k < scores.size(); ++k)
        losses.push_back(ops::cross_entropy(scores[k], tags.id(corpus[i].tags[k])));
      const Expr sum = ops::sum_list(losses);  // nodes of the same kind run together
      loss += sum.scalar();
      g.backward(sum);
      trainer.update();
    }
    size_t right = 0, all = 0;
    for (size_t i = n_train; i < corpus.size(); ++i) {
      g.clear();
      const std::vector<Expr> scores = tagger.scores(g, words.ids(corpus[i].words));
      for (size_t k = 0; k < scores.size(); ++k)
        right += best(scores[k]) == tags.id(corpus[i].tags[k]);
      all += scores.size();
    }
    std::printf("epoch %d: loss %.1f, %zu of %zu words right\n", epoch, loss, right, all);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: tagger FILE\n");
    return 2;
  }
  try {
    run(argv[1]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
