// SPDX-License-Identifier: Apache-2.0
//
// A stack of builders with their parameters: what all sequences of an Rnn share.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <trellis/rnn.hpp>
#include <vector>

#include "graph/graph_impl.hpp"

namespace trellis::detail {

class RnnLayers {
 public:
  // One layer for each of `models`. The first layer above which sizes are derived from the one
  // below is layer 1.
  RnnLayers(const BuilderEntry& builder, const Attrs& attrs, const RnnOptions& options, Model model,
            std::span<const Model> models);

  struct Layer {
    BoundAttrs attrs;
    trl_builder_info info{};
    std::vector<Dim> state;             // shapes of a state's expressions
    std::vector<Parameter> parameters;  // by index
    std::vector<bool> constant;         // declared so by the builder
  };

  const BuilderEntry& builder() const { return *builder_; }
  const std::string& who() const { return builder_->name; }  // in error texts
  std::span<const Layer> layers() const { return layers_; }
  uint32_t count() const { return static_cast<uint32_t>(layers_.size()); }
  uint32_t n_state() const { return layers_[0].info.n_state; }  // of one layer; the same in all
  uint32_t h_index() const { return layers_[0].info.h_index; }
  uint32_t state_size() const { return count() * n_state(); }
  const Model& model() const { return model_; }
  bool residual() const { return residual_; }

  // The results of `prepare` for layer l in this graph; made once a graph where no contexts enter.
  std::vector<Expr> prepared(GraphImpl& graph, uint32_t l, std::span<const Expr> params,
                             std::span<const Expr> contexts, bool constant) const;

  // Runs a callback of the builder; throws with its text when it fails.
  template <class F>
  void run(Call& call, F&& callback) const {
    trl_status status = TRL_OK;
    try {
      status = callback();
    } catch (...) {
      escaped();
    }
    if (status != TRL_OK) failed(call, status);
  }
  // A call in which the builder may add nodes.
  Call graph_call(GraphImpl& graph) const;

 private:
  struct Prepared {
    uint32_t layer;
    bool constant;
    std::vector<Expr> exprs;
  };
  [[noreturn]] void escaped() const;
  [[noreturn]] void failed(Call& call, trl_status status) const;
  void make_layer(const Attrs& attrs, const RnnOptions& options, Model model);

  const BuilderEntry* builder_;
  Model model_;
  bool residual_;
  std::vector<Layer> layers_;
  mutable std::mutex mutex_;  // graphs on several threads
  mutable std::vector<Prepared> prepared_;
};

// Where `dropout` holds no rate outside [0, 1]; else throws Error(argument).
void check_dropout(std::string_view who, const RnnDropout& dropout);

}  // namespace trellis::detail
