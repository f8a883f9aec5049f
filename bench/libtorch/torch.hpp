// SPDX-License-Identifier: Apache-2.0
//
// What libtorch's programs share: an update with sparse gradients of tables.
//
//   --style step   one cell, one projection and one loss a step, as people write it
//   --style seq    whole sequences, projections and losses of the minibatch at once (the default)
//   --dense        tables get dense gradients and libtorch's own Adam
#pragma once

#include <torch/torch.h>

#include "tasks/common.hpp"

namespace bench {

using torch::Tensor;
namespace functional = torch::nn::functional;

constexpr int64_t kPad = -1;  // as a target: no loss here

inline void setup() {
  at::set_num_threads(1);
  torch::manual_seed(1);
}
inline Tensor ids(const std::vector<int64_t>& v) { return torch::tensor(v, torch::kInt64); }
inline Tensor leaf(at::IntArrayRef shape) { return torch::randn(shape).mul_(0.1).requires_grad_(); }
inline void forget(const std::vector<Tensor>& leaves) {
  for (const Tensor& t : leaves) t.mutable_grad() = Tensor();
}
inline auto summed() {
  return functional::CrossEntropyFuncOptions().reduction(torch::kSum).ignore_index(kPad);
}
inline torch::nn::Embedding table(int64_t rows, int64_t size, const Options& options) {
  return torch::nn::Embedding(
      torch::nn::EmbeddingOptions(rows, size).sparse(!options.flag("dense")));
}

// Adam's step number `time` on the rows that have a gradient; the C++ API has no sparse one.
inline void adam_rows(const Tensor& table, const Tensor& mean, const Tensor& square, int64_t time,
                      double lr = 1e-3) {
  torch::NoGradGuard guard;
  const double b1 = 0.9, b2 = 0.999, t = static_cast<double>(time);
  const double rate = lr * std::sqrt(1 - std::pow(b2, t)) / (1 - std::pow(b1, t));
  const Tensor grad = table.grad().coalesce();
  const Tensor rows = grad.indices()[0], values = grad.values();
  Tensor m = mean.index_select(0, rows).mul_(b1).add_(values, 1 - b1);
  Tensor v = square.index_select(0, rows).mul_(b2).addcmul_(values, values, 1 - b2);
  mean.index_copy_(0, rows, m);
  square.index_copy_(0, rows, v);
  table.index_add_(0, rows, m.div_(v.sqrt_().add_(1e-8)), -rate);
}

// Adam at rate 1e-3; tables have the row-wise step.
class Updater {
 public:
  Updater(const Options& options, torch::nn::Module& model, const std::vector<Tensor>& tables)
      : params_(model.parameters()) {
    std::vector<Tensor> regular;
    for (const Tensor& p : params_) {
      const bool is_table =
          std::any_of(tables.begin(), tables.end(), [&](const Tensor& t) { return t.is_same(p); });
      if (is_table && !options.flag("dense"))
        tables_.push_back({p, torch::zeros_like(p), torch::zeros_like(p)});
      else
        regular.push_back(p);
    }
    adam_ = std::make_unique<torch::optim::Adam>(regular, torch::optim::AdamOptions(kRate));
  }

  template <class Loss>
  void update(Loss&& loss) {
    for (Tensor& p : params_) p.mutable_grad() = Tensor();
    const Tensor value = loss();
    value.backward();
    adam_->step();
    step_tables();
  }

 private:
  struct Table {
    Tensor weight, mean, square;
  };
  void step_tables() {
    ++time_;
    for (Table& t : tables_) {
      if (!t.weight.grad().defined()) continue;
      adam_rows(t.weight, t.mean, t.square, time_, kRate);
    }
  }

  static constexpr double kRate = 1e-3;
  std::unique_ptr<torch::optim::Optimizer> adam_;
  std::vector<Tensor> params_;
  std::vector<Table> tables_;
  int64_t time_ = 0;
};

inline bool stepwise(const Options& options) {
  const std::string style = options.text("style", "seq");
  if (style != "step" && style != "seq") throw std::runtime_error("unknown style " + style);
  return style == "step";
}
inline std::string program_name(const Options& options) {
  return stepwise(options) ? "libtorch-step" : "libtorch";
}

}  // namespace bench
