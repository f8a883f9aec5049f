// SPDX-License-Identifier: Apache-2.0
//
// The rows of the micro-benchmark through the public interface, one graph an iteration as in
// training: making the nodes is part of every forward pass.
//
//   --startup      only to the first result, forward and backward, then out

#include <unistd.h>

#include <optional>

#include "rows.hpp"
#include "trellis.hpp"

namespace bench {
namespace {

Expr total(const Expr& y) { return ops::sum_batches(ops::sum(y)); }
Expr filled_input(Graph& g, const Dim& dim, const std::vector<float>& values) {
  return g.input(dim, std::span<const float>(values.data(), dim.total()));
}
std::vector<float> random_values(size_t n) {
  std::mt19937 rng(5);
  std::normal_distribution<float> normal(0, 0.1f);
  std::vector<float> values(n);
  for (float& v : values) v = normal(rng);
  return values;
}

// A chain of scalars. What becomes of it as it grows: growth.cpp.
void nodes(Rows& rows) {
  Model model(runtime());
  const Parameter p = model.add_parameter("p", {1}, {"constant", {{"value", 1e-3}}});
  Graph g(runtime());
  Expr x;
  const auto [construct, forward, backward] = rows.least_each(
      [&] {
        g.clear();
        const Expr y = g.parameter(p);
        x = y;
        for (int i = 0; i < kChain; ++i) x = x + y;
      },
      [&] { x.value(); }, [&] { g.backward(x); });
  const std::string name = "scalar node, graph of " + text(kChain);
  rows.print(name + ", construct", "ns", 1e9 * construct / kChain);
  rows.print(name + ", forward", "ns", 1e9 * forward / kChain);
  rows.print(name + ", construct + forward", "ns", 1e9 * (construct + forward) / kChain);
  rows.print(name + ", backward", "ns", 1e9 * backward / kChain);

  // Shapes that their graph has never seen: the plugin is asked for the result's.
  constexpr uint32_t kShapes = 1000;
  std::optional<Graph> fresh;
  std::vector<Expr> inputs;
  const double unseen = rows.least_part(
      [&] {
        fresh.emplace(runtime());
        inputs.clear();
        for (uint32_t k = 0; k < kShapes; ++k)
          inputs.push_back(fresh->zeros({k % 40 + 1, k / 40 + 1}));
      },
      [&] {
        for (const Expr& input : inputs) ops::tanh(input);
      });
  rows.print("node of a shape never seen", "ns", 1e9 * unseen / kShapes);
}

void affine(Rows& rows) {
  const std::vector<float> values = random_values(64 * 256);
  Model model(runtime());
  const Parameter w = model.add_parameter("w", {256, 256}), b = model.add_parameter("b", {256});
  Graph g(runtime());
  for (const int batch : {1, 64}) {
    const auto y = [&] {
      g.clear();
      const Expr x = filled_input(g, Dim({256}, id(batch)), values);
      return ops::tanh(ops::affine(g.parameter(b), g.parameter(w), x));
    };
    rows.pair(
        "affine + tanh 256x256 batch " + text(batch), "us", 1e6, [&] { y().value(); },
        [&] { g.backward(total(y()), true); });
  }
}

void lstm(Rows& rows) {
  const std::vector<float> values = random_values(64 * 128);
  for (const LstmCase& c : kLstmCases) {
    Model model(runtime());
    const Rnn rnn(model, "lstm", {{"input", 128}, {"hidden", c.hidden}});
    Graph g(runtime());
    const auto loss = [&] {
      g.clear();
      std::vector<Expr> xs;
      for (int t = 0; t < kSteps; ++t)
        xs.push_back(filled_input(g, Dim({128}, id(c.batch)), values));
      return total(ops::sum_list(rnn.transduce(g, xs)));
    };
    rows.pair(
        lstm_name(c), "us", 1e6 / kSteps, [&] { loss().value(); }, [&] { g.backward(loss()); });
  }
}

void softmax(Rows& rows) {
  const std::vector<float> values = random_values(64 * 256);
  Model model(runtime());
  const Parameter w = model.add_parameter("w", {10000, 256}), b = model.add_parameter("b", {10000});
  Graph g(runtime());
  for (const int batch : {1, 64}) {
    std::vector<uint32_t> classes;
    for (int k = 0; k < batch; ++k) classes.push_back(id(7919 * (k + 1) % 10000));
    const auto loss = [&] {
      g.clear();
      const Expr x = filled_input(g, Dim({256}, id(batch)), values);
      const Expr scores = ops::affine(g.parameter(b), g.parameter(w), x);
      return ops::sum_batches(ops::cross_entropy(scores, classes));
    };
    rows.pair(
        "softmax loss 10,000 classes batch " + text(batch), "us", 1e6, [&] { loss().value(); },
        [&] { g.backward(loss(), true); });
  }
}

void products(Rows& rows) {
  Model model(runtime());
  const Parameter a = model.add_parameter("a", {512, 512}),
                  b = model.add_parameter("b", {512, 512});
  Graph g(runtime());
  rows.print("matmul 512^3", "ms", 1e3 * rows.least([&] {
    g.clear();
    (g.parameter(a) * g.parameter(b)).value();
  }));
}

void adam(Rows& rows) {
  Model model(runtime());
  std::vector<Parameter> parameters;
  for (int k = 0; k < 10; ++k) parameters.push_back(model.add_parameter("p", {1000, 1000}));
  Trainer trainer = bench::adam(model);
  const auto refill = [&] {
    for (const Parameter& p : parameters) {
      const TensorView gradient = p.gradient();
      std::fill_n(static_cast<float*>(gradient.data()), 1'000'000, 1e-3f);
    }
  };
  rows.print("Adam 10 M parameters", "ms",
             1e3 * rows.least_part(refill, [&] { trainer.update(); }));
  trainer.set_clip_threshold(1);
  rows.print("Adam 10 M parameters, clipped", "ms",
             1e3 * rows.least_part(refill, [&] { trainer.update(); }));
  if (trainer.clips() == 0) throw std::runtime_error("nothing was clipped");
}

void sparse(Rows& rows) {
  RowNumbers numbers;
  std::vector<uint32_t> ids;
  for (const char* rule : {"sgd", "adam"}) {
    Model model(runtime());
    const LookupParameter table = model.add_lookup("table", kTableRows, {kTableWidth}, nothing());
    Trainer trainer(model, rule);
    trainer.set_clip_threshold(0);
    Graph g(runtime());
    const auto touch_rows = [&] {
      g.clear();
      g.backward(total(g.lookup(table, ids)));
    };
    const auto touch = [&] {
      numbers.next(ids, kTableRows);
      touch_rows();
    };
    for (uint32_t part = 0; numbers.pages(ids, part); ++part) {
      touch_rows();
      trainer.update();
    }
    const double seconds = rows.least_part(touch, [&] { trainer.update(); });
    rows.print(
        std::string("sparse update, 20 rows of 1 M x 128, ") + (*rule == 's' ? "SGD" : "Adam"),
        "us", 1e6 * seconds);
  }
}

// save_weights() always syncs: on a file system in memory that costs nothing.
void files(Rows& rows) {
  Model model(runtime()), again(runtime());
  for (Model* m : {&model, &again})
    for (int k = 0; k < 10; ++k) {
      m->add_parameter("w", {1000, 1000});
      m->add_parameter("b", {1000});
    }
  for (const std::string folder : {"/dev/shm", "."}) {
    const std::string path = folder + "/trellis-micro." + std::to_string(getpid()) + ".safetensors";
    double save = 1e9, load = 1e9;
    for (int k = 0; k < 5; ++k) {
      const double t0 = wall_seconds();
      save_weights(model, path);
      const double t1 = wall_seconds();
      load_weights(again, path);
      const double t2 = wall_seconds();
      save = std::min(save, t1 - t0), load = std::min(load, t2 - t1);
    }
    unlink(path.c_str());
    const std::string where = folder == "." ? ", disk" : ", memory file system";
    rows.print("save 10 M parameters" + where, "ms", 1e3 * save);
    rows.print("load 10 M parameters" + where, "ms", 1e3 * load);
  }
}

// A runtime with one operator library: first in the process, then with the library mapped already.
void library(Rows& rows) {
  setenv("TRELLIS_PLUGIN_PATH", PLUGIN_DIR, 0);
  RuntimeOptions options;
  options.plugins = {"ops-core"};
  const double start = wall_seconds();
  { const Runtime first(options); }
  rows.print("load an operator library, first", "ms", 1e3 * (wall_seconds() - start));
  double best = 1e9;
  for (int k = 0; k < 50; ++k) {
    const double again = wall_seconds();
    const Runtime next(options);
    best = std::min(best, wall_seconds() - again);
  }
  rows.print("load an operator library, again", "ms", 1e3 * best);
}

void startup() {
  Model model(runtime());
  const Parameter w = model.add_parameter("w", {4, 4}, {"constant", {{"value", 1}}});
  Graph g(runtime());
  const Expr x = g.parameter(w);
  const Expr loss = total(ops::tanh(x * x));
  g.backward(loss);
  if (loss.scalar() <= 15 || w.gradient().as<const float>()[0] <= 0)
    throw std::runtime_error("wrong result");
  Rows::print_peak();
}

void run(const Options& options) {
  if (options.flag("startup")) return startup();
  Rows rows(options);
  rows.group("library", [&] { library(rows); });
  rows.group("nodes", [&] { nodes(rows); });
  rows.group("affine", [&] { affine(rows); });
  rows.group("lstm", [&] { lstm(rows); });
  rows.group("softmax", [&] { softmax(rows); });
  rows.group("products", [&] { products(rows); });
  rows.group("adam", [&] { adam(rows); });
  rows.group("sparse", [&] { sparse(rows); });
  rows.group("files", [&] { files(rows); });
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::guarded(argc, argv, bench::run); }
