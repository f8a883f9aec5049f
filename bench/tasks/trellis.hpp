// SPDX-License-Identifier: Apache-2.0
//
// What the Trellis programs of the task benchmark share.
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

// The best class of computed scores.
inline int best(const Expr& scores) {
  const std::span<const float> y = scores.value().as<const float>();
  return static_cast<int>(std::max_element(y.begin(), y.end()) - y.begin());
}

}  // namespace bench
