// SPDX-License-Identifier: Apache-2.0
//
// One run of a stack over one graph: the tree of its states, its parameters as expressions, its
// dropout masks. States are rows of one growing table, and what a call needs in passing lies in
// memory that the thread keeps: a short sequence costs four allocations.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rnn/dropper.hpp"
#include "rnn/layers.hpp"

namespace trellis::detail {

class RnnSequence {
 public:
  // State 0 is the start: `s` in the order of RnnState::s(), or zeros.
  RnnSequence(std::shared_ptr<const RnnLayers> layers, GraphImpl& graph, const RnnDropout& dropout,
              bool constant, std::span<const Expr> s, std::span<const Expr> contexts);

  // Each of these makes states and returns the first one's index.
  uint32_t step(std::span<const uint32_t> predecessors, std::span<const Expr> in, SourceLine where);
  uint32_t steps(uint32_t from, std::span<const Expr> xs,
                 SourceLine where);  // xs.size() of them, each the next one's predecessor
  uint32_t set(uint32_t from, std::span<const Expr> s);
  uint32_t set_h(uint32_t from, std::span<const Expr> h);

  const RnnLayers& layers() const { return *layers_; }
  uint32_t parent(uint32_t state) const { return parents_[state]; }
  // Expression i of layer l.
  const Expr& at(uint32_t state, uint32_t l, uint32_t i) const {
    return table_[row(state) + l * n_state_ + i];
  }
  const Expr& output(uint32_t state) const { return table_[row(state) + row_size_ - 1]; }
  std::vector<Expr> s(uint32_t state) const;
  std::vector<Expr> h(uint32_t state) const;

 private:
  size_t row(uint32_t state) const { return size_t{state} * row_size_; }
  // Place k of the order of s() as layer and expression.
  std::pair<uint32_t, uint32_t> place(uint32_t k) const;
  void append(uint32_t parent, std::span<const Expr> row);
  struct Passing;  // lists that live as long as a call
  static Passing& passing();
  void fill_args(trl_step_args& a, Passing& p, Call& call, uint32_t l) const;
  // Input x of layer l with its mask, or as it is.
  uint32_t dropped(std::vector<Dropper>& droppers, uint32_t l, GraphImpl& graph, uint32_t x,
                   uint32_t batch = 1) {
    return droppers.empty() ? x : droppers[l](graph, x, batch);
  }
  GraphImpl& graph_of(uint32_t state, std::span<const Expr> in) const;
  uint32_t result(GraphImpl& graph, trl_expr e) const;
  bool whole_sequence() const;

  std::shared_ptr<const RnnLayers> layers_;
  uint32_t n_state_, h_index_, row_size_;
  std::vector<Expr> params_;                 // of all layers, one after another
  std::vector<std::vector<Expr>> prepared_;  // by layer; empty: the builder prepares nothing
  std::vector<Expr> contexts_;
  std::vector<Dropper> drop_in_, drop_h_;  // by layer; empty: no dropout
  Dropper drop_out_;

  std::vector<Expr> table_;  // a row a state: the expressions of each layer, then the output
  std::vector<uint32_t> parents_;
};

}  // namespace trellis::detail
