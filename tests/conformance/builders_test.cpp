// SPDX-License-Identifier: Apache-2.0
//
// One test for all builders: it walks what the plugins declare and runs each as a chain, as a
// stack, from both ends or over a tree. A line per builder says what was done.

#include <doctest/doctest.h>

#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <trellis/expr.hpp>
#include <trellis/random.hpp>
#include <trellis/registry.hpp>
#include <trellis/rnn.hpp>
#include <vector>

#include "numbers.hpp"

using namespace trellis;
using namespace conformance;

namespace {

Runtime& runtime() {
  static Runtime r;
  return r;
}

constexpr uint32_t kInput = 3, kHidden = 2;

struct Outcome {
  std::vector<Numbers> values, gradients;
};

// Parameters with numbers of their own, and inputs; what runs on them is the caller's.
class Bench {
 public:
  Bench(const BuilderInfo& builder, DType dtype, uint32_t layers)
      : model_(runtime(), dtype), layers_(layers) {
    attrs_ = {{builder.input_attr, kInput}, {builder.hidden_attr, kHidden}};
    if (builder.max_predecessors == 1)
      chain_.emplace(model_, builder.id, attrs_, options());
    else
      tree_.emplace(model_, builder.id, attrs_, options());
    RandomEngine random(11);
    for (Parameter p : model_.parameters())
      p.set_value(std::span<const double>(numbers(p.dim(), random)));
  }
  const Rnn& chain() const { return *chain_; }
  const TreeRnn& tree() const { return *tree_; }
  Model& model() { return model_; }

  Graph graph(bool batching = true, Mode mode = Mode::train) const {
    GraphOptions o;
    o.dtype = model_.dtype();
    o.batching = batching;
    o.always_group = batching;
    o.mode = mode;
    return Graph(runtime(), o);
  }
  static Numbers numbers(const Dim& dim, RandomEngine& random) {
    Numbers v(dim.total());
    for (double& x : v) x = 1.6 * random.uniform() - 0.8;
    return v;
  }
  // A sequence of inputs, the same for the same seed.
  static std::vector<Expr> inputs(Graph& g, size_t n, uint32_t batch, uint64_t seed) {
    RandomEngine random(100 + seed);
    std::vector<Expr> xs;
    for (size_t t = 0; t < n; ++t) {
      const Dim dim({kInput}, batch);
      xs.push_back(g.input(dim, std::span<const double>(numbers(dim, random))));
    }
    return xs;
  }

 private:
  RnnOptions options() const {
    RnnOptions o;
    o.layers = layers_;
    return o;
  }
  Model model_;
  uint32_t layers_;
  Attrs attrs_;
  std::optional<Rnn> chain_;
  std::optional<TreeRnn> tree_;
};

// Outputs of what a network made of several inputs: chains give one a step, trees one a node.
using Network = std::function<std::vector<Expr>(const Bench&, Graph&, const std::vector<Expr>&)>;

std::vector<Expr> run_chain(const Bench& b, Graph& g, const std::vector<Expr>& xs) {
  return b.chain().transduce(g, xs);
}
// ((x0 x1) x2) x3 ...: every input is a leaf, every inner node has two children.
std::vector<Expr> run_tree(const Bench& b, Graph& g, const std::vector<Expr>& xs) {
  const RnnTree tree = b.tree().start(g);
  std::vector<Expr> out;
  std::optional<RnnState> left;
  for (const Expr& x : xs) {
    const RnnState leaf = tree.leaf(x);
    left = left ? tree.add({*left, leaf}) : leaf;
    out.push_back(left->output());
  }
  return out;
}

// Several sequences of different lengths in one graph, their outputs weighted and added.
Outcome run(Bench& b, const Network& network, bool batching,
            const std::vector<std::pair<size_t, uint32_t>>& sequences, double* loss_out = nullptr,
            Mode mode = Mode::train) {
  b.model().reset_gradient();
  Graph g = b.graph(batching, mode);
  std::vector<Expr> in, out;
  uint64_t seed = 0;
  for (const auto& [length, batch] : sequences) {
    const std::vector<Expr> xs = Bench::inputs(g, length, batch, seed++);
    in.insert(in.end(), xs.begin(), xs.end());
    for (const Expr& y : network(b, g, xs)) out.push_back(y);
  }
  RandomEngine random(5);
  Expr loss = g.constant(Dim(), 0);
  for (const Expr& y : out) {
    const Numbers w = Bench::numbers(y.dim(), random);
    loss +=
        roles::sum_batches(roles::sum(roles::mul(y, g.input(y.dim(), std::span<const double>(w)))));
  }
  if (loss_out) {
    *loss_out = loss.scalar();
    return {};
  }
  Outcome r;
  g.value(loss);
  for (const Expr& y : out) r.values.push_back(y.value().as_doubles());
  if (mode == Mode::infer) return r;
  g.backward(loss, true);
  for (const Expr& x : in) r.gradients.push_back(x.gradient().as_doubles());
  for (const Parameter& p : b.model().parameters())
    r.gradients.push_back(p.gradient().as_doubles());
  return r;
}

// Everything but what only chains have.
void common(const BuilderInfo& info, const Network& network, uint32_t layers, std::string& done) {
  CAPTURE(layers);
  Bench b(info, DType::f64, layers);
  const std::vector<std::pair<size_t, uint32_t>> many{{3, 1}, {1, 1}, {4, 2}, {3, 1}, {2, 3}};
  const Outcome batched = run(b, network, true, many), alone = run(b, network, false, many);
  CHECK(difference(batched.values, alone.values, 1e-12, 1e-12) == "");
  CHECK(difference(batched.gradients, alone.gradients, 1e-11, 1e-11) == "");
  const Outcome again = run(b, network, true, many);
  CHECK(difference(again.values, batched.values, 0, 0) == "");
  CHECK(difference(again.gradients, batched.gradients, 0, 0) == "");
  const Outcome infer = run(b, network, true, many, nullptr, Mode::infer);
  CHECK(difference(infer.values, batched.values, 0, 0) == "");

  Bench single(info, DType::f32, layers);
  const Outcome f32 = run(single, network, true, many);
  CHECK(difference(f32.values, batched.values, 1e-5, 1e-5) == "");
  CHECK(difference(f32.gradients, batched.gradients, 1e-4, 1e-4) == "");

  // Every number of every parameter by differences.
  const std::vector<std::pair<size_t, uint32_t>> few{{3, 1}, {2, 2}};
  const Outcome exact = run(b, network, true, few);
  size_t at = exact.gradients.size() - b.model().parameters().size(), numbers = 0;
  for (Parameter p : b.model().parameters()) {
    CAPTURE(p.name());
    const TensorView value = p.value();
    for (uint64_t i = 0; i < value.dim().total(); ++i) {
      const double x = value.at(i);
      const double expected = slope(
          [&](double v) {
            value.set(i, v);
            double loss = 0;
            run(b, network, true, few, &loss);
            return loss;
          },
          x);
      value.set(i, x);
      CHECK(close(exact.gradients[at][i], expected, 1e-6, 1e-8));
      ++numbers;
    }
    ++at;
  }
  done += (done.empty() ? "" : ", ") + std::to_string(layers) +
          (layers == 1 ? " layer: " : " layers: ") + std::to_string(numbers) + " gradients";
}

// A step is pure in the state: going on from an old state again gives the same, and leaves it as it
// was.
void purity(const BuilderInfo& info, std::string& done) {
  Bench b(info, DType::f64, 2);
  Graph g = b.graph();
  const std::vector<Expr> xs = Bench::inputs(g, 3, 2, 1);
  const RnnState start = b.chain().start(g), one = start.add(xs[0]);
  const Numbers before = one.output().value().as_doubles();
  const RnnState a = one.add(xs[1]), other = one.add(xs[2]), again = one.add(xs[1]);
  CHECK(a.output().value().as_doubles() == again.output().value().as_doubles());
  CHECK(a.output().value().as_doubles() != other.output().value().as_doubles());
  CHECK(one.output().value().as_doubles() == before);
  done += ", branches";

  // A whole sequence is its steps, one after another, in value and gradient; from a start state as
  // from zeros. Products of all steps at once may round differently from products of one.
  const auto outcome = [&](bool whole) {
    b.model().reset_gradient();
    Outcome r;
    std::vector<Expr> out;
    if (whole) {
      out = start.transduce(xs);
    } else {
      RnnState s = start;
      for (const Expr& x : xs) out.push_back((s = s.add(x)).output());
    }
    Expr loss = g.constant(Dim(), 0);
    double weight = 1;
    for (const Expr& y : out) {
      r.values.push_back(y.value().as_doubles());
      loss += roles::sum_batches(roles::sum(y)) * (weight += 0.5);
    }
    g.backward(loss, true);
    for (const Expr& x : xs) r.gradients.push_back(x.gradient().as_doubles());
    for (const Parameter& p : b.model().parameters())
      r.gradients.push_back(p.gradient().as_doubles());
    return r;
  };
  const Outcome whole = outcome(true), steps = outcome(false);
  REQUIRE(whole.values.size() == xs.size());
  CHECK(difference(whole.values, steps.values, 1e-13, 1e-13) == "");
  CHECK(difference(whole.gradients, steps.gradients, 1e-12, 1e-12) == "");
  const RnnState from_zeros = b.chain().start(g, start.s()).add(xs[0]);
  CHECK(from_zeros.output().value().as_doubles() == before);
  CHECK(start.transduce({}).empty());
  done += ", sequences";
}

}  // namespace

TEST_CASE("builders: every builder of every plugin keeps its contract") {
  int builders = 0;
  for (const ComponentInfo& component : list_components(runtime())) {
    if (component.kind != "builder") continue;
    ++builders;
    const BuilderInfo info = describe_builder(runtime(), component.id);
    CAPTURE(info.id);
    std::string done;
    REQUIRE(!info.input_attr.empty());
    REQUIRE(!info.hidden_attr.empty());
    const bool is_chain = info.max_predecessors == 1;
    for (const uint32_t layers : {1u, 2u})
      common(info, is_chain ? run_chain : run_tree, layers, done);
    if (is_chain) purity(info, done);
    std::printf("%-20s %s\n", info.id.c_str(), done.c_str());
  }
  CHECK(builders > 0);
}
