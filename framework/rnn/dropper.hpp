// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <trellis/graph.hpp>

#include "rnn/roles.hpp"

namespace trellis::detail {

// Dropout at one place of a network: with one mask for all calls (variational), or a fresh one
// each. Does nothing in graphs in inference mode.
class Dropper {
 public:
  Dropper(const GraphImpl& graph, double p, bool variational)
      : p_(graph.options().mode == Mode::train ? p : 0), variational_(variational) {}

  bool acts() const { return p_ > 0; }
  // The mask is made at the first call, for the shape of x and a batch of at least `batch`.
  uint32_t operator()(GraphImpl& graph, uint32_t x, uint32_t batch = 1) {
    if (p_ == 0) return x;
    trl_attr rate{TRL_ATTR_F64, 1, {}, nullptr};
    rate.v.f = p_;
    if (!variational_) return apply_role(graph, Role::dropout, {x}, {{"p", rate}});
    if (!graph.alive(mask_)) {
      const ClassInfo info = graph.cls_of(x);
      const uint32_t ones =
          graph.constant(info.dim.with_batch(std::max(batch, info.dim.batch)), info.dtype, 1);
      mask_ = graph.expr(apply_role(graph, Role::dropout, {ones}, {{"p", rate}}));
    }
    return apply_role(graph, Role::mul, {x, graph.id_of(mask_)});
  }

 private:
  double p_;
  bool variational_;
  Expr mask_;
};

}  // namespace trellis::detail
