// SPDX-License-Identifier: Apache-2.0
//
// Growth curves through the public interface, one graph an update as in training.

#include "growth.hpp"

#include "trellis.hpp"

namespace bench {
namespace {

// Construct, forward and backward of a graph that `build` makes anew and whose result it returns.
template <class Build>
void phases(const Rows& rows, const Curve& curve, Graph& g, double items, Build&& build) {
  Expr y;
  const auto [construct, forward, backward] = rows.least_each(
      [&] {
        g.clear();
        y = build();
      },
      [&] { y.value(); }, [&] { g.backward(y); });
  curve.point("construct", construct, items);
  curve.point("forward", forward, items);
  curve.point("backward", backward, items);
}

// One scalar after another: nothing to merge.
void chain(Rows& rows) {
  Model model(runtime());
  const Parameter p = model.add_parameter("p", {1}, {"constant", {{"value", 1e-3}}});
  for (const int n : kGraphSizes) {
    Graph g(runtime());
    phases(rows, Curve("chain", n), g, n, [&] {
      const Expr y = g.parameter(p);
      Expr x = y;
      for (int i = 0; i < n; ++i) x = x + y;
      return x;
    });
  }
}

// Everything can be merged, in three groups.
void wide(Rows& rows) {
  const std::vector<float> values(kWidth, 0.5f);
  Model model(runtime());
  const Parameter p = model.add_parameter("w", {kWidth, kWidth});
  for (const int n : kGraphSizes) {
    Graph g(runtime());
    std::vector<Expr> ys;
    phases(rows, Curve("wide", n), g, n, [&] {
      ys.clear();
      const Expr w = g.parameter(p);
      for (int i = 0; i < n / kNodesInBranch; ++i)
        ys.push_back(ops::sum(ops::tanh(w * g.input({kWidth}, std::span<const float>(values)))));
      return ops::sum_list(ys);
    });
  }
}

void tagger(Rows& rows) {
  Model model(runtime());
  const LookupParameter words = model.add_lookup("words", kWords, {kVector});
  const BiRnn rnn(model, "lstm", {{"input", kVector}, {"hidden", kHidden}});
  const Parameter w1 = model.add_parameter("w1", {kLayer, rnn.output_size()}),
                  b1 = model.add_parameter("b1", {kLayer}),
                  w2 = model.add_parameter("w2", {kTags, kLayer}),
                  b2 = model.add_parameter("b2", {kTags});
  for (const int sentences : kSentences) {
    Graph g(runtime());
    std::vector<Expr> losses;
    const auto build = [&] {
      losses.clear();
      const Expr hidden_w = g.parameter(w1), hidden_b = g.parameter(b1);
      const Expr out_w = g.parameter(w2), out_b = g.parameter(b2);
      for (int s = 0; s < sentences; ++s) {
        std::vector<Expr> xs;
        for (int i = 0; i < kLength; ++i) xs.push_back(g.lookup(words, id(word_at(s, i))));
        const std::vector<Expr> hs = rnn.transduce(g, xs);
        for (int i = 0; i < kLength; ++i) {
          const Expr z = ops::tanh(ops::affine(hidden_b, hidden_w, hs[static_cast<size_t>(i)]));
          losses.push_back(ops::cross_entropy(ops::affine(out_b, out_w, z), id(tag_at(s, i))));
        }
      }
      return ops::sum_list(losses);
    };
    const Curve curve("tagger", sentences);
    build();
    const uint64_t nodes = g.stats().nodes;
    curve.nodes(nodes);
    phases(rows, curve, g, static_cast<double>(nodes), build);
  }
}

// A minibatch as one value, and as so many chains of their own, which the graph merges.
void batch(Rows& rows) {
  Model model(runtime());
  const Rnn rnn(model, "lstm", {{"input", kInput}, {"hidden", kStates}});
  const auto total = [](const Expr& y) { return ops::sum_batches(ops::sum(y)); };
  for (const int n : kBatches) {
    const std::vector<float> values(static_cast<size_t>(n) * kInput, 0.1f);
    Graph g(runtime());
    std::vector<Expr> xs, sums;
    const auto outputs = [&](int size) {
      xs.clear();
      const Dim dim({kInput}, id(size));
      for (int t = 0; t < kSteps; ++t)
        xs.push_back(g.input(dim, std::span<const float>(values.data(), dim.total())));
      return total(ops::sum_list(rnn.transduce(g, xs)));
    };
    const auto one_value = [&] {
      g.clear();
      return outputs(n);
    };
    const auto chains = [&] {
      g.clear();
      sums.clear();
      for (int k = 0; k < n; ++k) sums.push_back(outputs(1));
      return ops::sum_list(sums);
    };
    const Curve curve("batch", n);
    const double items = kSteps * n;
    const auto measured = [&](const std::string& name, const auto& loss) {
      const double forward = rows.least([&] { loss().value(); });
      const double both = rows.least([&] { g.backward(loss()); });
      curve.point(name + "forward", forward, items);
      curve.point(name + "backward", both - forward, items);
    };
    measured("", one_value);
    measured("chains, ", chains);
  }
}

// Twenty rows of a table, others each time: into a graph and back, then the update.
void table_rows(Rows& rows) {
  for (const int size : kTableSizes) {
    Model model(runtime());
    const LookupParameter table = model.add_lookup("table", id(size), {kTableWidth}, nothing());
    Trainer trainer = adam(model);
    Graph g(runtime());
    RowNumbers numbers;
    std::vector<uint32_t> ids(kTouched);
    for (uint32_t part = 0; numbers.pages(ids, part, id(size)); ++part) {
      g.clear();
      g.backward(ops::sum_batches(ops::sum(g.lookup(table, ids))));
      trainer.update();
    }
    const auto seconds =
        rows.least_each([&] { numbers.next(ids, id(size)); },
                        [&] {
                          g.clear();
                          g.backward(ops::sum_batches(ops::sum(g.lookup(table, ids))));
                        },
                        [&] { trainer.update(); });
    const Curve curve("rows", size);
    curve.point("look up, forward and backward", seconds[1], kTouched);
    curve.point("update (Adam)", seconds[2], kTouched);
  }
}

void classes(Rows& rows) {
  const std::vector<float> values(kClassBatch * kClassInput, 0.1f);
  for (const int n : kClasses) {
    Model model(runtime());
    const Parameter w = model.add_parameter("w", {id(n), kClassInput}),
                    b = model.add_parameter("b", {id(n)});
    Graph g(runtime());
    std::vector<uint32_t> wanted;
    for (int k = 0; k < kClassBatch; ++k) wanted.push_back(id((k + 1) * 7919 % n));
    const auto loss = [&] {
      g.clear();
      const Expr x = g.input(Dim({kClassInput}, kClassBatch), std::span<const float>(values));
      return ops::sum_batches(ops::linear_cross_entropy(g.parameter(b), g.parameter(w), x, wanted));
    };
    const double forward = rows.least([&] { loss().value(); });
    const double both = rows.least([&] { g.backward(loss(), true); });
    const Curve curve("classes", n);
    curve.point("forward", forward, n);
    curve.point("backward", both - forward, n);
  }
}

void run(const Options& options) {
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
