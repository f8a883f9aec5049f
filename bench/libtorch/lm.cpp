// SPDX-License-Identifier: Apache-2.0
//
// The language model with libtorch; options in torch.hpp.

#include "torch.hpp"

namespace bench {
namespace {

struct Batch {
  Tensor input, target;  // [time, batch]; target is kPad beyond the end of a sentence
  Tensor real;           // flat positions of the real targets, undefined without padding
  int64_t tokens = 0;
};

Batch make_batch(const std::vector<std::vector<int>>& sentences, size_t first, size_t size) {
  const size_t count = std::min(size, sentences.size() - first);
  const size_t time = sentences[first].size() + 1;  // sorted: the first is the longest
  Batch b;
  b.input = torch::full({int64_t(time), int64_t(count)}, 0, torch::kInt64);
  b.target = torch::full({int64_t(time), int64_t(count)}, kPad, torch::kInt64);
  auto* in = b.input.data_ptr<int64_t>();
  auto* out = b.target.data_ptr<int64_t>();
  std::vector<int64_t> real;
  for (size_t k = 0; k < count; ++k) {
    const auto& s = sentences[first + k];
    for (size_t t = 0; t <= s.size(); ++t) {
      out[t * count + k] = t < s.size() ? s[t] : 0;
      if (t + 1 < time && t < s.size()) in[(t + 1) * count + k] = s[t];
    }
    b.tokens += int64_t(s.size()) + 1;
  }
  if (b.tokens != int64_t(time * count)) {
    for (size_t p = 0; p < time * count; ++p)
      if (out[p] != kPad) real.push_back(int64_t(p));
    b.real = ids(real);
  }
  return b;
}

struct LanguageModel : torch::nn::Module {
  LanguageModel(int64_t words, const Options& options) : stepwise(bench::stepwise(options)) {
    embed = register_module("embed", table(words, 128, options));
    if (stepwise)
      cell = register_module("cell", torch::nn::LSTMCell(128, kHidden));
    else
      lstm = register_module("lstm", torch::nn::LSTM(128, kHidden));
    project = register_module("project", torch::nn::Linear(kHidden, words));
  }

  Tensor loss(const Batch& b) {
    if (stepwise) {
      const auto inputs = b.input.unbind(0), targets = b.target.unbind(0);
      Tensor h = torch::zeros({b.input.size(1), kHidden}), c = torch::zeros_like(h);
      std::vector<Tensor> terms;
      for (size_t t = 0; t < inputs.size(); ++t) {
        std::tie(h, c) = cell(embed(inputs[t]), std::make_tuple(h, c));
        terms.push_back(functional::cross_entropy(project(h), targets[t], summed()));
      }
      return torch::stack(terms).sum();
    }
    Tensor states = std::get<0>(lstm(embed(b.input))).reshape({-1, kHidden});
    Tensor targets = b.target.reshape({-1});
    if (b.real.defined()) {
      states = states.index_select(0, b.real);
      targets = targets.index_select(0, b.real);
    }
    return functional::cross_entropy(project(states), targets, summed());
  }

  static constexpr int64_t kHidden = 256;
  bool stepwise;
  torch::nn::Embedding embed{nullptr};
  torch::nn::LSTMCell cell{nullptr};
  torch::nn::LSTM lstm{nullptr};
  torch::nn::Linear project{nullptr};
};

void run(const Options& options) {
  setup();
  const TextData data(options.data());
  const size_t mb = options.mb();
  LanguageModel model(data.vocab, options);
  Updater updater(options, model, {model.embed->weight});
  const size_t train_batches = (data.train.size() + mb - 1) / mb;
  const size_t dev_batches = (data.dev.size() + mb - 1) / mb;
  Cycle order(train_batches), dev_order(dev_batches);
  const auto dev_loss = [&](size_t k, int64_t& words) {
    c10::InferenceMode guard;
    const Batch b = make_batch(data.dev, k * mb, mb);
    words = b.tokens;
    return double(model.loss(b).item<float>());
  };
  Report report(options, program_name(options), "lm");
  run_task(
      options, report, "perplexity", train_batches,
      [&] {
        const Batch b = make_batch(data.train, order.next() * mb, mb);
        updater.update([&] { return model.loss(b); });
        return b.tokens;
      },
      [&] {
        int64_t words = 0;
        dev_loss(dev_order.next(), words);
        return words;
      },
      [&] {
        double loss = 0, n = 0;
        for (size_t k = 0; k < dev_batches; ++k) {
          int64_t words = 0;
          loss += dev_loss(k, words);
          n += double(words);
        }
        return std::exp(loss / n);
      });
  report.print();
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::guarded(argc, argv, bench::run); }
