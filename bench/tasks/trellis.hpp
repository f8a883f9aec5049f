// SPDX-License-Identifier: Apache-2.0
//
// What the Trellis programs of the task benchmark share.
//
//   --counts       adds the nodes, groups and calls of the last update
#pragma once

#include <algorithm>
#include <cstdlib>
#include <trellis/ops/core.hpp>
#include <trellis/trellis.hpp>
#include <vector>

#include "common.hpp"

namespace bench {

using namespace trellis;

// This build's plugins, unless told otherwise.
inline const Runtime& runtime() {
  static const Runtime runtime = [] {
    setenv("TRELLIS_PLUGIN_PATH", PLUGIN_DIR, 0);
    return Runtime();
  }();
  return runtime;
}

inline Graph inference_graph() {
  GraphOptions options;
  options.mode = Mode::infer;
  options.values = KeptValues::requested;
  return Graph(runtime(), options);
}

// Adam as the peers have it: rate 1e-3, nothing clipped, table rows only when they were used.
inline Trainer adam(const Model& model) {
  Trainer trainer(model, "adam", {{"lr", 1e-3}});
  trainer.set_clip_threshold(0);
  return trainer;
}

inline uint32_t id(int number) { return static_cast<uint32_t>(number); }
inline Init uniform(double range) { return {"uniform", {{"lo", -range}, {"hi", range}}}; }
inline Init nothing() { return {"constant", {{"value", 0.0}}}; }

// --counts: what the last update did, in numbers of the graph.
inline void add_counts(const Options& options, Report& report, const Graph& graph) {
  if (!options.flag("counts")) return;
  const GraphStats s = graph.stats();
  const auto add = [&](const char* name, uint64_t n) {
    report.number(name, static_cast<double>(n));
  };
  add("nodes", s.nodes);
  add("groups", s.groups);
  add("forward_calls", s.forward_calls);
  add("backward_calls", s.backward_calls);
  add("infer_calls", s.infer_calls);
  add("gathers", s.gathers);
  add("forward_mib", s.forward_bytes >> 20);
  add("backward_mib", s.backward_bytes >> 20);
  add("reserved_mib", s.reserved_bytes >> 20);
}

// The best class of computed scores.
inline int best(const Expr& scores) {
  const std::span<const float> y = scores.value().as<const float>();
  return static_cast<int>(std::max_element(y.begin(), y.end()) - y.begin());
}

}  // namespace bench
