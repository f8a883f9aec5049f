// SPDX-License-Identifier: Apache-2.0
//
// The tree-LSTM with libtorch: node by node (--style step) or all nodes of one height at once;
// further options in torch.hpp.

#include "torch.hpp"

namespace bench {
namespace {

using Forest = std::vector<const Tree*>;
constexpr int64_t kHidden = 128;

struct State {
  Tensor h, c;
};

struct TreeModel : torch::nn::Module {
  TreeModel(const TreeData& data, const Options& options) {
    using namespace torch::nn;
    words = register_module("words", table(data.vocab, 128, options));
    leaf = register_module("leaf", Linear(128, 3 * kHidden));
    inner = register_module("inner", Linear(2 * kHidden, 3 * kHidden));
    const auto no_bias = LinearOptions(kHidden, kHidden).bias(false);
    forget_left = register_module("forget_left", Linear(no_bias));
    forget_right = register_module("forget_right", Linear(no_bias));
    forget_bias = register_parameter("forget_bias", torch::zeros({kHidden}));
    out = register_module("out", Linear(kHidden, data.labels));
  }

  State leaf_state(const Tensor& vectors) {
    const auto g = leaf(vectors).chunk(3, 1);
    const Tensor c = torch::sigmoid(g[0]) * torch::tanh(g[2]);
    return {torch::sigmoid(g[1]) * torch::tanh(c), c};
  }
  State inner_state(const State& a, const State& b) {
    const auto g = inner(torch::cat({a.h, b.h}, 1)).chunk(3, 1);
    const Tensor fa = torch::sigmoid(forget_left(a.h) + forget_bias);
    const Tensor fb = torch::sigmoid(forget_right(b.h) + forget_bias);
    const Tensor c = torch::sigmoid(g[0]) * torch::tanh(g[2]) + fa * a.c + fb * b.c;
    return {torch::sigmoid(g[1]) * torch::tanh(c), c};
  }
  // Of one tree, node by node.
  std::vector<State> states(const Tree& t) {
    std::vector<State> all;
    for (size_t k = 0; k < t.label.size(); ++k) {
      if (t.left[k] < 0)
        all.push_back(leaf_state(words(ids({t.word[k]}))));
      else
        all.push_back(inner_state(all[size_t(t.left[k])], all[size_t(t.right[k])]));
    }
    return all;
  }

  torch::nn::Embedding words{nullptr};
  torch::nn::Linear leaf{nullptr}, inner{nullptr}, forget_left{nullptr}, forget_right{nullptr},
      out{nullptr};
  Tensor forget_bias;
};

// The nodes of a forest regrouped by height.
struct Schedule {
  struct Level {
    std::vector<int64_t> left, right;  // rows; empty at height 0
  };
  std::vector<int64_t> words, labels, roots;
  std::vector<Level> levels;

  explicit Schedule(const Forest& forest) {
    int height = 0;
    for (const auto* t : forest) height = std::max(height, t->height.back());
    std::vector<std::vector<std::pair<size_t, size_t>>> nodes(size_t(height) + 1);
    std::vector<std::vector<int64_t>> row(forest.size());
    for (size_t f = 0; f < forest.size(); ++f) {
      row[f].resize(forest[f]->label.size());
      for (size_t k = 0; k < row[f].size(); ++k)
        nodes[size_t(forest[f]->height[k])].emplace_back(f, k);
    }
    levels.resize(nodes.size());
    int64_t next = 0;
    for (size_t h = 0; h < nodes.size(); ++h)
      for (const auto& [f, k] : nodes[h]) {
        const Tree& t = *forest[f];
        row[f][k] = next++;
        labels.push_back(t.label[k]);
        if (h == 0) {
          words.push_back(t.word[k]);
        } else {
          levels[h].left.push_back(row[f][size_t(t.left[k])]);
          levels[h].right.push_back(row[f][size_t(t.right[k])]);
        }
      }
    for (const auto& r : row) roots.push_back(r.back());
  }
};

// Outputs of all nodes, rows in the order of the schedule.
Tensor level_states(TreeModel& m, const Schedule& s) {
  State all = m.leaf_state(m.words(ids(s.words)));
  for (size_t h = 1; h < s.levels.size(); ++h) {
    const Tensor l = ids(s.levels[h].left), r = ids(s.levels[h].right);
    const State next = m.inner_state({all.h.index_select(0, l), all.c.index_select(0, l)},
                                     {all.h.index_select(0, r), all.c.index_select(0, r)});
    all = {torch::cat({all.h, next.h}), torch::cat({all.c, next.c})};
  }
  return all.h;
}

void run(const Options& options) {
  setup();
  const TreeData data(options.data());
  const size_t mb = options.mb();
  const bool step = stepwise(options);
  TreeModel model(data, options);
  Updater updater(options, model, {model.words->weight});
  Cycle order(data.train.size()), dev_order(data.dev.size());

  const auto loss = [&](const Forest& forest) {
    if (!step) {
      const Schedule s(forest);
      return functional::cross_entropy(model.out(level_states(model, s)), ids(s.labels), summed());
    }
    std::vector<Tensor> terms;
    for (const auto* t : forest) {
      const std::vector<State> states = model.states(*t);
      for (size_t k = 0; k < states.size(); ++k)
        terms.push_back(
            functional::cross_entropy(model.out(states[k].h), ids({t->label[k]}), summed()));
    }
    return torch::stack(terms).sum();
  };
  const auto best = [&](const Forest& forest) {
    if (!step) {
      const Schedule s(forest);
      return model.out(level_states(model, s).index_select(0, ids(s.roots))).argmax(1);
    }
    std::vector<Tensor> roots;
    for (const auto* t : forest) roots.push_back(model.states(*t).back().h);
    return model.out(torch::cat(roots)).argmax(1);
  };
  const auto next = [&](Cycle& cycle, const std::vector<Tree>& trees) {
    Forest forest;
    for (size_t k = 0; k < mb; ++k) forest.push_back(&trees[cycle.next()]);
    return forest;
  };
  Report report(options, program_name(options), "tree");
  run_task(
      options, report, "accuracy", data.train.size() / mb,
      [&] {
        const Forest forest = next(order, data.train);
        updater.update([&] { return loss(forest); });
        return mb;
      },
      [&] {
        c10::InferenceMode guard;
        best(next(dev_order, data.dev));
        return mb;
      },
      [&] {
        c10::InferenceMode guard;
        double right = 0;
        for (const Tree& t : data.dev)
          right += best({&t}).item<int64_t>() == int64_t(t.label.back());
        return right / double(data.dev.size());
      });
  report.print();
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::guarded(argc, argv, bench::run); }
