// SPDX-License-Identifier: Apache-2.0
//
// What it costs to make a node, batching key included, and to call a kernel through the graph;
// beside it the same kernel compiled in and called through the pointer of its plugin.
#include <vector>

#include "micro.hpp"
#include "registry/registry.hpp"
#include "runtime/call.hpp"

namespace trellis::bench {
namespace {

constexpr int kNodes = 10000;

Expr apply(uint32_t op, std::initializer_list<Expr> in) {
  Expr out;
  apply_ordered(op, {in.begin(), in.size()}, {}, {&out, 1});
  return out;
}

// A chain of scalars through one operator with one operand.
Expr chain(Graph& graph, uint32_t op) {
  Expr x = graph.input(0.5);
  for (int i = 0; i < kNodes; ++i) x = apply(op, {x});
  return x;
}

void node_unary(benchmark::State& state) {
  const uint32_t op = op_name_id("core.neg");
  Graph graph(runtime());
  measure(state, kNodes, [&] {
    graph.clear();
    chain(graph, op);
  });
}

void node_by_name(benchmark::State& state) {
  Graph graph(runtime());
  measure(state, kNodes, [&] {
    graph.clear();
    Expr x = graph.input(0.5);
    for (int i = 0; i < kNodes; ++i) x = graph.apply1("neg", {x});
  });
}

void node_binary(benchmark::State& state) {
  Graph graph(runtime());
  Model model(runtime());
  const Parameter p = model.add_parameter("p", {64});
  measure(state, kNodes, [&] {
    graph.clear();
    Expr w = graph.parameter(p), x = w;
    for (int i = 0; i < kNodes; ++i) x = x + w;
  });
}

void node_matmul(benchmark::State& state) {
  Graph graph(runtime());
  Model model(runtime());
  const Parameter p = model.add_parameter("w", {64, 64});
  const std::vector<float> values(64, 1);
  measure(state, kNodes, [&] {
    graph.clear();
    Expr w = graph.parameter(p), x = graph.input({64}, std::span<const float>(values));
    for (int i = 0; i < kNodes; ++i) x = w * x;
  });
}

// Every node has a shape that its graph has never seen: the memo misses and the plugin is asked.
void node_unseen(benchmark::State& state) {
  constexpr uint32_t kShapes = 1000;
  const uint32_t op = op_name_id("core.neg");
  double best = 1e9;
  for (auto _ : state) {
    Graph graph(runtime());
    std::vector<Expr> inputs;
    for (uint32_t i = 0; i < kShapes; ++i) inputs.push_back(graph.zeros({i % 40 + 1, i / 40 + 1}));
    const double start = cpu_seconds();
    for (const Expr& x : inputs) apply(op, {x});
    const double seconds = cpu_seconds() - start;
    state.SetIterationTime(seconds);
    best = std::min(best, seconds);
  }
  state.counters["best"] = best / kShapes;
  state.counters["each"] = benchmark::Counter(
      kShapes, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void node_input(benchmark::State& state) {
  Graph graph(runtime());
  const std::vector<float> values(64, 1);
  measure(state, kNodes, [&] {
    graph.clear();
    for (int i = 0; i < kNodes; ++i) graph.input({64}, std::span<const float>(values));
  });
}

void node_lookup(benchmark::State& state) {
  Graph graph(runtime());
  Model model(runtime());
  const LookupParameter table = model.add_lookup("e", 1000, {64});
  measure(state, kNodes, [&] {
    graph.clear();
    for (uint32_t i = 0; i < kNodes; ++i) graph.lookup(table, i % 1000);
  });
}

// The kernel that core.neg has, compiled in.
template <class T>
[[gnu::noinline]] void negate(const T* x, T* y, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) y[i] = -x[i];
}

void call_compiled_in(benchmark::State& state) {
  std::vector<float> values(kNodes + 1, 0.5f);
  measure(state, kNodes, [&] {
    for (int i = 0; i < kNodes; ++i) negate(&values[i], &values[i + 1], 1);
    benchmark::ClobberMemory();
  });
}

void call_pointer(benchmark::State& state) {
  detail::RuntimeCore& core = runtime().core();
  const KernelEntry& kernel = core.registry->op("core.neg").f32;
  detail::Call call(core);
  call.begin(detail::Phase::exec, kernel.plugin->self);
  std::vector<float> values(kNodes + 1, 0.5f);
  trl_tensor in{}, out{};
  in.dtype = out.dtype = TRL_F32;
  in.dim = out.dim = Dim();
  in.batch_stride = out.batch_stride = 1;
  trl_fwd_args args{};
  args.struct_size = sizeof args;
  args.call = &call;
  args.in = &in;
  args.out = &out;
  args.n_in = args.n_out = args.batch = 1;
  measure(state, kNodes, [&] {
    for (int i = 0; i < kNodes; ++i) {
      in.data = &values[i];
      out.data = &values[i + 1];
      kernel.desc.forward(&args);
    }
    benchmark::ClobberMemory();
  });
}

void graph_forward(benchmark::State& state, bool batching) {
  GraphOptions options;
  options.batching = batching;
  Graph graph(runtime(), options);
  const Expr y = chain(graph, op_name_id("core.neg"));
  measure(state, kNodes, [&] { graph.forward(y); });
}

void graph_backward(benchmark::State& state, bool batching) {
  GraphOptions options;
  options.batching = batching;
  Graph graph(runtime(), options);
  const Expr y = chain(graph, op_name_id("core.neg"));
  graph.forward(y);
  measure(state, kNodes, [&] { graph.backward(y, true); });
}

// 64 chains side by side, where merging pays: a small product in each step.
void graph_merged(benchmark::State& state, bool batching) {
  constexpr int kChains = 64, kSteps = 20;
  GraphOptions options;
  options.batching = batching;
  Graph graph(runtime(), options);
  Model model(runtime());
  const Parameter p = model.add_parameter("w", {50, 50});
  const std::vector<float> values(50, 1);
  const uint32_t tanh = op_name_id("core.tanh");
  measure(state, kChains * kSteps, [&] {
    graph.clear();
    const Expr w = graph.parameter(p);
    for (int c = 0; c < kChains; ++c) {
      Expr x = graph.input({50}, std::span<const float>(values));
      for (int i = 0; i < kSteps; ++i) x = apply(tanh, {w * x});
    }
    graph.forward_all();
  });
}

}  // namespace

BENCHMARK(node_unary)->UseManualTime();
BENCHMARK(node_binary)->UseManualTime();
BENCHMARK(node_matmul)->UseManualTime();
BENCHMARK(node_input)->UseManualTime();
BENCHMARK(node_lookup)->UseManualTime();
BENCHMARK(node_by_name)->UseManualTime();
BENCHMARK(node_unseen)->UseManualTime();
BENCHMARK(call_compiled_in)->UseManualTime();
BENCHMARK(call_pointer)->UseManualTime();
BENCHMARK_CAPTURE(graph_forward, batching, true)->UseManualTime();
BENCHMARK_CAPTURE(graph_forward, sequential, false)->UseManualTime();
BENCHMARK_CAPTURE(graph_backward, batching, true)->UseManualTime();
BENCHMARK_CAPTURE(graph_backward, sequential, false)->UseManualTime();
BENCHMARK_CAPTURE(graph_merged, batching, true)->UseManualTime();
BENCHMARK_CAPTURE(graph_merged, sequential, false)->UseManualTime();

}  // namespace trellis::bench
