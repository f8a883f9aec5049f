// SPDX-License-Identifier: Apache-2.0
//
// The tagger with libtorch, with and without spelt words (--char); further options in torch.hpp.

#include "torch.hpp"

namespace bench {
namespace {

namespace rnn = torch::nn::utils::rnn;

using Group = std::vector<const Sentence*>;  // longest first

size_t longest(const Group& g) { return g.front()->words.size(); }

struct Tagger : torch::nn::Module {
  Tagger(const TagData& data, const Options& options)
      : stepwise(bench::stepwise(options)), spell(options.flag("char")) {
    using namespace torch::nn;
    words = register_module("words", table(data.words, kWord, options));
    if (stepwise) {
      fwd = register_module("fwd", LSTMCell(kWord, kHidden));
      bwd = register_module("bwd", LSTMCell(kWord, kHidden));
    } else {
      both = register_module("both", LSTM(LSTMOptions(kWord, kHidden).bidirectional(true)));
    }
    if (spell) {
      chars = register_module("chars", table(data.chars, kChar, options));
      if (stepwise) {
        char_fwd = register_module("char_fwd", LSTMCell(kChar, kCharHidden));
        char_bwd = register_module("char_bwd", LSTMCell(kChar, kCharHidden));
      } else {
        char_both =
            register_module("char_both", LSTM(LSTMOptions(kChar, kCharHidden).bidirectional(true)));
      }
    }
    dense = register_module("dense", Linear(2 * kHidden, 32));
    out = register_module("out", Linear(32, data.tags));
  }

  std::vector<Tensor> tables() const {
    std::vector<Tensor> t{words->weight};
    if (spell) t.push_back(chars->weight);
    return t;
  }

  Tensor loss(const Group& g) {
    if (!stepwise) return functional::cross_entropy(seq_scores(g), flat_tags(g), summed());
    const std::vector<Tensor> scores = step_scores(g);
    std::vector<Tensor> terms;
    for (size_t t = 0; t < scores.size(); ++t) {
      std::vector<int64_t> y;
      for (const auto* s : g) y.push_back(t < s->tags.size() ? s->tags[t] : kPad);
      terms.push_back(functional::cross_entropy(scores[t], ids(y), summed()));
    }
    return torch::stack(terms).sum();
  }
  // The best tag of every position, laid out [time * batch].
  Tensor best(const Group& g) {
    if (!stepwise) return seq_scores(g).argmax(1);
    std::vector<Tensor> tags;
    for (const Tensor& s : step_scores(g)) tags.push_back(s.argmax(1));
    return torch::cat(tags);
  }

 private:
  static Tensor flat_tags(const Group& g) {
    std::vector<int64_t> y;
    for (size_t t = 0, n = longest(g); t < n; ++t)
      for (const auto* s : g) y.push_back(t < s->tags.size() ? s->tags[t] : kPad);
    return ids(y);
  }

  // One [batch, tags] tensor a step.
  std::vector<Tensor> step_scores(const Group& g) {
    const int64_t batch = int64_t(g.size());
    const size_t time = longest(g);
    std::vector<Tensor> x(time), mask(time), left(time), right(time), scores(time);
    for (size_t t = 0; t < time; ++t) {
      if (spell) {
        std::vector<Tensor> rows;
        for (const auto* s : g)
          rows.push_back(t < s->words.size() ? word_vector(*s, t) : torch::zeros({1, kWord}));
        x[t] = torch::cat(rows);
      } else {
        std::vector<int64_t> w;
        for (const auto* s : g) w.push_back(t < s->words.size() ? s->words[t] : 0);
        x[t] = words(ids(w));
      }
      if (batch == 1) continue;
      std::vector<float> m;
      for (const auto* s : g) m.push_back(t < s->words.size() ? 1.f : 0.f);
      mask[t] = torch::tensor(m).unsqueeze(1);
    }
    Tensor h = torch::zeros({batch, kHidden}), c = torch::zeros_like(h);
    for (size_t t = 0; t < time; ++t) {
      std::tie(h, c) = fwd(x[t], std::make_tuple(h, c));
      left[t] = h;
    }
    h = torch::zeros({batch, kHidden}), c = torch::zeros_like(h);
    for (size_t t = time; t-- > 0;) {
      std::tie(h, c) = bwd(x[t], std::make_tuple(h, c));
      if (batch > 1) h = h * mask[t], c = c * mask[t];  // padding comes first here
      right[t] = h;
    }
    for (size_t t = 0; t < time; ++t)
      scores[t] = out(torch::tanh(dense(torch::cat({left[t], right[t]}, 1))));
    return scores;
  }
  Tensor word_vector(const Sentence& s, size_t t) {
    if (s.words[t] != kRare) return words(ids({s.words[t]}));
    std::vector<Tensor> x;
    for (const int c : s.spelling[t]) x.push_back(chars(ids({c})));
    Tensor hf = torch::zeros({1, kCharHidden}), cf = torch::zeros_like(hf), hb = cf, cb = cf;
    for (size_t k = 0; k < x.size(); ++k)
      std::tie(hf, cf) = char_fwd(x[k], std::make_tuple(hf, cf));
    for (size_t k = x.size(); k-- > 0;) std::tie(hb, cb) = char_bwd(x[k], std::make_tuple(hb, cb));
    return torch::cat({hf, hb}, 1);
  }

  // [time * batch, tags] at once.
  Tensor seq_scores(const Group& g) {
    const int64_t batch = int64_t(g.size()), time = int64_t(longest(g));
    const Tensor x = inputs(g, time).view({time, batch, kWord});
    Tensor states;
    if (batch == 1) {
      states = std::get<0>(both(x));
    } else {
      std::vector<int64_t> lengths;
      for (const auto* s : g) lengths.push_back(int64_t(s->words.size()));
      auto packed = rnn::pack_padded_sequence(x, ids(lengths), false, true);
      packed = std::get<0>(both->forward_with_packed_input(packed));
      states = std::get<0>(rnn::pad_packed_sequence(packed, false, 0.0, time));
    }
    return out(torch::tanh(dense(states.reshape({time * batch, 2 * kHidden}))));
  }
  Tensor inputs(const Group& g, int64_t time) {
    std::vector<int64_t> known{0}, where;  // row 0 also serves the padding
    std::vector<const std::vector<int>*> rare;
    for (size_t t = 0; t < size_t(time); ++t)
      for (const auto* s : g) {
        if (t >= s->words.size()) {
          where.push_back(0);
        } else if (s->words[t] != kRare) {
          where.push_back(int64_t(known.size()));
          known.push_back(s->words[t]);
        } else {
          where.push_back(-1 - int64_t(rare.size()));
          rare.push_back(&s->spelling[t]);
        }
      }
    if (!spell) {  // as they stand, without a second gather
      for (int64_t& w : where) w = known[size_t(w)];
      return words(ids(where));
    }
    for (int64_t& w : where)
      if (w < 0) w = int64_t(known.size()) - 1 - w;
    Tensor rows = words(ids(known));
    if (!rare.empty()) rows = torch::cat({rows, spelt(rare)});
    return rows.index_select(0, ids(where));
  }
  Tensor spelt(const std::vector<const std::vector<int>*>& rare) {
    std::vector<int64_t> lengths;
    for (const auto* r : rare) lengths.push_back(int64_t(r->size()));
    const int64_t tall = *std::max_element(lengths.begin(), lengths.end());
    const int64_t wide = int64_t(rare.size());
    Tensor grid = torch::zeros({tall, wide}, torch::kInt64);
    auto* cells = grid.data_ptr<int64_t>();
    for (int64_t r = 0; r < wide; ++r)
      for (int64_t k = 0; k < lengths[size_t(r)]; ++k)
        cells[k * wide + r] = (*rare[size_t(r)])[size_t(k)];
    const auto packed = rnn::pack_padded_sequence(chars(grid), ids(lengths), false, false);
    const Tensor last = std::get<0>(std::get<1>(char_both->forward_with_packed_input(packed)));
    return last.transpose(0, 1).reshape({wide, 2 * kCharHidden});
  }

  static constexpr int64_t kWord = 128, kHidden = 50, kChar = 20, kCharHidden = 64;
  bool stepwise, spell;
  torch::nn::Embedding words{nullptr}, chars{nullptr};
  torch::nn::LSTMCell fwd{nullptr}, bwd{nullptr}, char_fwd{nullptr}, char_bwd{nullptr};
  torch::nn::LSTM both{nullptr}, char_both{nullptr};
  torch::nn::Linear dense{nullptr}, out{nullptr};
};

void run(const Options& options) {
  setup();
  const bool spell = options.flag("char");
  const TagData data(options.data(), spell);
  const size_t mb = options.mb();
  Tagger model(data, options);
  Updater updater(options, model, model.tables());
  Cycle order(data.train.size()), dev_order(data.dev.size());
  const auto next = [&](Cycle& cycle, const std::vector<Sentence>& sentences) {
    Group g;
    for (size_t k = 0; k < mb; ++k) g.push_back(&sentences[cycle.next()]);
    std::stable_sort(g.begin(), g.end(),
                     [](auto* a, auto* b) { return a->words.size() > b->words.size(); });
    return g;
  };
  const auto tokens = [](const Group& g) {
    size_t n = 0;
    for (const auto* s : g) n += s->words.size();
    return n;
  };
  Report report(options, program_name(options), spell ? "tagger-char" : "tagger");
  run_task(
      options, report, "accuracy", (data.train.size() + mb - 1) / mb,
      [&] {
        const Group g = next(order, data.train);
        updater.update([&] { return model.loss(g); });
        return tokens(g);
      },
      [&] {
        c10::InferenceMode guard;
        const Group g = next(dev_order, data.dev);
        model.best(g);
        return tokens(g);
      },
      [&] {
        c10::InferenceMode guard;
        double right = 0, n = 0;
        for (const Sentence& s : data.dev) {
          const std::vector<int64_t> tags(s.tags.begin(), s.tags.end());
          right += double(model.best({&s}).eq(ids(tags)).sum().item<int64_t>());
          n += double(tags.size());
        }
        return right / n;
      });
  report.print();
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::guarded(argc, argv, bench::run); }
