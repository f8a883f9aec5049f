// SPDX-License-Identifier: Apache-2.0
//
// In the steady state nothing is taken from the heap: not for a node, not for a call, not for a
// merged group, not for a gradient. Counted over the whole program, the plugins included.
#include "allocations.hpp"

#include <doctest/doctest.h>

#include <trellis/trellis.hpp>
#include <vector>

using namespace trellis;
using namespace trellis::test;

namespace {

const Runtime& runtime() {
  static const Runtime runtime([] {
    RuntimeOptions options;
    options.plugins = {"ops-core", "linalg-native", "initializers"};
    return options;
  }());
  return runtime;
}

Expr apply(const char* id, std::initializer_list<Expr> in,
           std::initializer_list<trl_attr> attrs = {}) {
  Expr out;
  apply_ordered(op_name_id(id), {in.begin(), in.size()}, {attrs.begin(), attrs.size()}, {&out, 1});
  return out;
}

struct Net {
  Model model{runtime()};
  Parameter w = model.add_parameter("w", {50, 50}), b = model.add_parameter("b", {50});
  LookupParameter table = model.add_lookup("e", 20, {50});
  uint32_t ids[2] = {3, 7};
  float values[50] = {};

  // Chains of different lengths, so that groups of several sizes come up; a node of every kind in
  // each step.
  Expr build(Graph& graph, int chains) {
    const Expr weight = graph.parameter(w), bias = graph.parameter(b);
    Expr total = graph.input(0.0);
    for (int c = 0; c < chains; ++c) {
      Expr x = graph.input({50}, std::span<const float>(values));
      for (int i = 0; i <= c % 5; ++i) {
        const Expr rows = graph.lookup(table, ids);
        x = apply("core.tanh", {weight * x + bias}) + roles::sum_batches(rows);
        x = roles::dropout(0.5 * x, 0.25);
      }
      total = total + roles::sum(x);
    }
    return total;
  }
};

}  // namespace

TEST_CASE("allocations: none for a graph like the one before, forward and backward") {
  if (!kCountsAllocations) return;
  for (const bool batching : {true, false}) {
    CAPTURE(batching);
    Net net;
    GraphOptions options;
    options.batching = batching;
    Graph graph(runtime(), options);
    uint64_t nodes = 0, forward = 0, backward = 0, cleared = 0;
    for (int round = 0; round < 4; ++round) {
      Expr loss;
      cleared = allocations_in([&] { graph.clear(); });
      nodes = allocations_in([&] { loss = net.build(graph, 12); });
      forward = allocations_in([&] { graph.value(loss); });
      backward = allocations_in([&] { graph.backward(loss); });
    }
    CHECK(cleared == 0);
    CHECK(nodes == 0);
    CHECK(forward == 0);
    CHECK(backward == 0);
    CHECK(graph.stats().forward_calls > 0);
    CHECK(graph.stats().backward_calls > 0);
  }
}

TEST_CASE("allocations: none for smaller graphs after a large one") {
  if (!kCountsAllocations) return;
  Net net;
  Graph graph(runtime());
  const auto run = [&](int chains) {
    graph.clear();
    const Expr loss = net.build(graph, chains);
    graph.value(loss);
    graph.backward(loss);
  };
  for (const int chains : {20, 1, 2, 3, 5, 8, 13, 20}) run(chains);
  CHECK(allocations_in([&] {
          for (const int chains : {1, 2, 3, 5, 8, 13, 20}) run(chains);
        }) == 0);
}

TEST_CASE("allocations: none for inference in the same graph") {
  if (!kCountsAllocations) return;
  Net net;
  GraphOptions options;
  options.mode = Mode::infer;
  Graph graph(runtime(), options);
  uint64_t last = 1;
  for (int round = 0; round < 4; ++round)
    last = allocations_in([&] {
      graph.clear();
      graph.value(net.build(graph, 12));
    });
  CHECK(last == 0);
}

TEST_CASE("allocations: the counter counts") {
  if (!kCountsAllocations) return;

  std::vector<int> v;
  CHECK(allocations_in([&] { v.reserve(1000); }) == 1);
}
