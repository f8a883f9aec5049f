// SPDX-License-Identifier: Apache-2.0
//
// Growth curves with libtorch: the same work as bench/tasks/growth.cpp as people write it, cell by
// cell where a graph grows, whole sequences where a batch does.

#include "tasks/growth.hpp"

#include "torch.hpp"

namespace bench {
namespace {

// Construction and forward pass are one here.
template <class Forget, class Build>
void phases(const Rows& rows, const Curve& curve, double items, Forget&& forget, Build&& build) {
  Tensor y;
  const auto seconds = rows.least_each(
      [&] {
        y = Tensor();
        forget();
      },
      [&] { y = build(); }, [&] { y.backward(); });
  curve.point("construct + forward", seconds[1], items);
  curve.point("backward", seconds[2], items);
}

void chain(Rows& rows) {
  const Tensor p = torch::full({}, 1e-3f).requires_grad_();
  for (const int n : kGraphSizes) {
    if (n > kLargestStepwise) break;
    phases(
        rows, Curve("chain", n), n, [&] { forget({p}); },
        [&] {
          Tensor x = p;
          for (int i = 0; i < n; ++i) x = x + p;
          return x;
        });
  }
}

void wide(Rows& rows) {
  const Tensor w = leaf({kWidth, kWidth}), input = torch::full({kWidth}, 0.5f);
  for (const int n : kGraphSizes) {
    if (n > kLargestStepwise) break;
    phases(
        rows, Curve("wide", n), n, [&] { forget({w}); },
        [&] {
          std::vector<Tensor> ys;
          for (int i = 0; i < n / kNodesInBranch; ++i)
            ys.push_back(torch::tanh(torch::mv(w, input.clone())).sum());
          return torch::stack(ys).sum();
        });
  }
}

void tagger(Rows& rows) {
  const Tensor words = leaf({kWords, kVector});
  torch::nn::LSTMCell cells[2] = {torch::nn::LSTMCell(kVector, kHidden),
                                  torch::nn::LSTMCell(kVector, kHidden)};
  torch::nn::Linear layer(2 * kHidden, kLayer), scores(kLayer, kTags);
  std::vector<Tensor> leaves = {words};
  for (const auto& m :
       {layer->parameters(), scores->parameters(), cells[0]->parameters(), cells[1]->parameters()})
    leaves.insert(leaves.end(), m.begin(), m.end());
  const auto sentence = [&](int s) {
    Tensor outputs[2][kLength];
    for (const int end : {0, 1}) {
      Tensor h = torch::zeros({1, kHidden}), c = h;
      for (int k = 0; k < kLength; ++k) {
        const int i = end == 0 ? k : kLength - 1 - k;
        const Tensor x = torch::embedding(words, ids({word_at(s, i)}), -1, false, true);
        std::tie(h, c) = cells[end](x, std::make_tuple(h, c));
        outputs[end][i] = h;
      }
    }
    std::vector<Tensor> losses;
    for (int i = 0; i < kLength; ++i) {
      const Tensor z = torch::tanh(layer(torch::cat({outputs[0][i], outputs[1][i]}, 1)));
      losses.push_back(functional::cross_entropy(scores(z), ids({tag_at(s, i)}), summed()));
    }
    return torch::stack(losses).sum();
  };
  for (const int sentences : kSentences) {
    if (sentences > kLargestSentences) break;
    // Items are sentences: how many nodes Trellis makes of one is not known here.
    phases(
        rows, Curve("tagger", sentences), sentences, [&] { forget(leaves); },
        [&] {
          std::vector<Tensor> losses;
          for (int s = 0; s < sentences; ++s) losses.push_back(sentence(s));
          return torch::stack(losses).sum();
        });
  }
}

void batch(Rows& rows) {
  torch::nn::LSTM layer(kInput, kStates);
  for (const int n : kBatches) {
    const Tensor x = torch::full({kSteps, n, kInput}, 0.1f);
    const auto loss = [&] { return std::get<0>(layer(x)).sum(); };
    const double forward = rows.least(loss);
    const double both = rows.least([&] {
      forget(layer->parameters());
      loss().backward();
    });
    const Curve curve("batch", n);
    curve.point("forward", forward, kSteps * n);
    curve.point("backward", both - forward, kSteps * n);
  }
}

void table_rows(Rows& rows) {
  for (const int size : kTableSizes) {
    const Tensor table = torch::zeros({size, kTableWidth}).requires_grad_();
    const Tensor mean = torch::zeros_like(table), square = torch::zeros_like(table);
    RowNumbers numbers;
    std::vector<int64_t> v;
    const auto touch = [&] {
      forget({table});
      torch::embedding(table, ids(v), -1, false, true).sum().backward();
    };
    for (uint32_t part = 0; numbers.pages(v, part, static_cast<uint32_t>(size)); ++part) {
      touch();
      adam_rows(table, mean, square, 1);
    }
    const auto seconds = rows.least_each([&] { numbers.next(v, static_cast<uint32_t>(size)); },
                                         touch, [&] { adam_rows(table, mean, square, 1); });
    const Curve curve("rows", size);
    curve.point("look up, forward and backward", seconds[1], kTouched);
    curve.point("update (Adam)", seconds[2], kTouched);
  }
}

void classes(Rows& rows) {
  const Tensor x = leaf({kClassBatch, kClassInput});
  for (const int n : kClasses) {
    const Tensor w = leaf({n, kClassInput}), b = leaf({n});
    const Tensor y = torch::randint(n, {kClassBatch}, torch::kInt64);
    const auto loss = [&] {
      return functional::cross_entropy(torch::linear(x, w, b), y, summed());
    };
    const double forward = rows.least(loss);
    const double both = rows.least([&] {
      forget({x, w, b});
      loss().backward();
    });
    const Curve curve("classes", n);
    curve.point("forward", forward, n);
    curve.point("backward", both - forward, n);
  }
}

void run(const Options& options) {
  setup();
  Rows rows(options);
  rows.group("chain", [&] { chain(rows); });
  rows.group("wide", [&] { wide(rows); });
  rows.group("tagger", [&] { tagger(rows); });
  rows.group("batch", [&] { batch(rows); });
  rows.group("rows", [&] { table_rows(rows); });
  rows.group("classes", [&] { classes(rows); });
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::guarded(argc, argv, bench::run); }
