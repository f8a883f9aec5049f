// SPDX-License-Identifier: Apache-2.0

#include "rnn/sequence.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "rnn/roles.hpp"

namespace trellis::detail {
namespace {

std::string count_text(const RnnLayers& layers, uint32_t each) {
  if (layers.count() == 1) return fmt::format("{}", each);
  return fmt::format("{}: {} for each of {} layers", layers.count() * each, each, layers.count());
}

void check_range(std::string_view who, std::string_view what, size_t given, uint32_t lo,
                 uint32_t hi) {
  if (given >= lo && (hi == TRL_VARIADIC || given <= hi)) return;
  const std::string needed = lo == hi             ? fmt::format("{}", lo)
                             : hi == TRL_VARIADIC ? fmt::format("at least {}", lo)
                                                  : fmt::format("{} to {}", lo, hi);
  fail(ErrorKind::argument,
       fmt::format("[{}] wrong number of {}: {} (need {})", who, what, given, needed));
}

}  // namespace

RnnSequence::RnnSequence(std::shared_ptr<const RnnLayers> layers, GraphImpl& graph,
                         const RnnDropout& dropout, bool constant, std::span<const Expr> s,
                         std::span<const Expr> contexts)
    : layers_(std::move(layers)),
      n_state_(layers_->n_state()),
      h_index_(layers_->h_index()),
      row_size_(layers_->state_size() + 1),
      contexts_(contexts.begin(), contexts.end()),
      drop_in_(layers_->count(), Dropper(graph, dropout.input, dropout.variational)),
      drop_h_(layers_->count(), Dropper(graph, dropout.hidden, dropout.variational)),
      drop_out_(graph, dropout.output, dropout.variational) {
  const trl_builder_desc& desc = layers_->builder().desc;
  check_range(layers_->who(), "contexts", contexts.size(), desc.min_context, desc.max_context);
  if (!s.empty() && s.size() != layers_->state_size())
    fail(ErrorKind::argument,
         fmt::format("[{}] wrong number of start expressions: {} (need none, or {})",
                     layers_->who(), s.size(), count_text(*layers_, n_state_)));
  for (const Expr& e : contexts_) c_contexts_.push_back(graph.to_c(graph.id_of(e)));

  std::vector<Expr> start;
  for (uint32_t l = 0; l < layers_->count(); ++l) {
    const RnnLayers::Layer& layer = layers_->layers()[l];
    std::vector<Expr> params;
    for (size_t i = 0; i < layer.parameters.size(); ++i)
      params.push_back(
          graph.expr(graph.parameter(layer.parameters[i].record(), constant || layer.constant[i])));
    prepared_.push_back(layers_->prepared(graph, l, params, contexts, constant));
    params_.push_back(std::move(params));
    for (uint32_t i = 0; i < n_state_ && s.empty(); ++i) {
      const auto same = [&](const Expr& e) { return e.dim() == layer.state[i]; };
      const auto made = std::find_if(start.begin(), start.end(), same);
      start.push_back(made != start.end() ? *made
                                          : graph.expr(graph.constant(
                                                layer.state[i], layers_->model().dtype(), 0)));
    }
  }
  if (!s.empty()) {
    start.resize(layers_->state_size());
    for (uint32_t k = 0; k < s.size(); ++k) {
      const auto [l, i] = place(k);
      start[l * n_state_ + i] = graph.expr(graph.id_of(s[k]));
    }
  }
  start.push_back(start[(layers_->count() - 1) * n_state_ + h_index_]);
  append(0, start);
}

std::pair<uint32_t, uint32_t> RnnSequence::place(uint32_t k) const {
  const uint32_t n = layers_->count(), i = k / n;
  if (i == n_state_ - 1) return {k % n, h_index_};
  return {k % n, i < h_index_ ? i : i + 1};
}

void RnnSequence::append(uint32_t parent, std::span<const Expr> row) {
  table_.insert(table_.end(), row.begin(), row.end());
  parents_.push_back(parent);
}

std::vector<Expr> RnnSequence::s(uint32_t state) const {
  std::vector<Expr> out(layers_->state_size());
  for (uint32_t k = 0; k < out.size(); ++k) {
    const auto [l, i] = place(k);
    out[k] = at(state, l, i);
  }
  return out;
}

std::vector<Expr> RnnSequence::h(uint32_t state) const {
  std::vector<Expr> out;
  for (uint32_t l = 0; l < layers_->count(); ++l) out.push_back(at(state, l, h_index_));
  return out;
}

uint32_t RnnSequence::set(uint32_t from, std::span<const Expr> s) {
  if (s.size() != layers_->state_size())
    fail(ErrorKind::argument,
         fmt::format("[{}] set_s: wrong number of expressions: {} (need {})", layers_->who(),
                     s.size(), count_text(*layers_, n_state_)));
  GraphImpl& graph = graph_of(from, {});
  row_.assign(row_size_, {});
  for (uint32_t k = 0; k < s.size(); ++k) {
    const auto [l, i] = place(k);
    row_[l * n_state_ + i] = graph.expr(graph.id_of(s[k]));
  }
  row_.back() = row_[(layers_->count() - 1) * n_state_ + h_index_];
  append(from, row_);
  return static_cast<uint32_t>(parents_.size() - 1);
}

uint32_t RnnSequence::set_h(uint32_t from, std::span<const Expr> h) {
  if (h.size() != layers_->count())
    fail(ErrorKind::argument, fmt::format("[{}] set_h: wrong number of expressions: {} (need {})",
                                          layers_->who(), h.size(), count_text(*layers_, 1)));
  GraphImpl& graph = graph_of(from, {});
  row_.assign(table_.begin() + static_cast<std::ptrdiff_t>(row(from)),
              table_.begin() + static_cast<std::ptrdiff_t>(row(from) + row_size_));
  for (uint32_t l = 0; l < layers_->count(); ++l)
    row_[l * n_state_ + h_index_] = graph.expr(graph.id_of(h[l]));
  row_.back() = row_[(layers_->count() - 1) * n_state_ + h_index_];
  append(from, row_);
  return static_cast<uint32_t>(parents_.size() - 1);
}

GraphImpl& RnnSequence::graph_of(uint32_t state, std::span<const Expr> in) const {
  GraphImpl& graph = GraphImpl::of(at(state, 0, 0));
  for (const Expr& e : in) graph.id_of(e);
  return graph;
}

void RnnSequence::fill_args(trl_step_args& a, Call& call, uint32_t l) {
  GraphImpl& graph = *call.graph;
  const RnnLayers::Layer& layer = layers_->layers()[l];
  c_params_.clear();
  for (const Expr& e : params_[l]) c_params_.push_back(graph.to_c(graph.id_of(e)));
  c_prepared_.clear();
  for (const Expr& e : prepared_[l]) c_prepared_.push_back(graph.to_c(graph.id_of(e)));
  for (size_t i = 0; i < contexts_.size(); ++i)
    c_contexts_[i] = graph.to_c(graph.id_of(contexts_[i]));
  a = trl_step_args{};
  a.struct_size = sizeof a;
  a.call = &call;
  a.attrs = layer.attrs.all().data();
  a.n_attrs = static_cast<uint32_t>(layer.attrs.all().size());
  a.params = c_params_.data();
  a.n_params = static_cast<uint32_t>(c_params_.size());
  a.prepared = c_prepared_.data();
  a.n_prepared = static_cast<uint32_t>(c_prepared_.size());
  a.context = c_contexts_.data();
  a.n_context = static_cast<uint32_t>(c_contexts_.size());
  a.n_state = n_state_;
}

uint32_t RnnSequence::step(std::span<const uint32_t> predecessors, std::span<const Expr> in,
                           SourceLine where) {
  const trl_builder_desc& desc = layers_->builder().desc;
  check_range(layers_->who(), "inputs", in.size(), desc.min_in, desc.max_in);
  check_range(layers_->who(), "predecessor states", predecessors.size(), 0, desc.max_pred);
  GraphImpl& graph = graph_of(predecessors.empty() ? 0 : predecessors[0], in);
  const GraphImpl::LineScope line(graph, where);
  // A builder that always takes n states sees zeros for those that are missing.
  const size_t n_pred = std::max<size_t>(predecessors.size(), desc.min_pred);
  const auto predecessor = [&](size_t k) { return k < predecessors.size() ? predecessors[k] : 0; };

  Call call = layers_->graph_call(graph);
  row_.assign(row_size_, {});
  ids_.clear();
  for (const Expr& e : in) ids_.push_back(graph.id_of(e));
  for (uint32_t l = 0; l < layers_->count(); ++l) {
    uint32_t batch = 1;
    for (const uint32_t id : ids_) batch = std::max(batch, graph.cls_of(id).dim.batch);
    const uint32_t below = ids_.empty() ? 0 : ids_[0];
    // Masks of a layer's further inputs would need masks of their own shape: only the first is
    // masked.
    if (!ids_.empty()) ids_[0] = drop_in_[l](graph, below, batch);
    trl_step_args a;
    fill_args(a, call, l);
    c_in_.clear();
    for (const uint32_t id : ids_) c_in_.push_back(graph.to_c(id));
    c_pred_.clear();
    for (size_t k = 0; k < n_pred; ++k)
      for (uint32_t i = 0; i < n_state_; ++i) {
        uint32_t id = graph.id_of(at(predecessor(k), l, i));
        if (i == h_index_) id = drop_h_[l](graph, id, batch);
        c_pred_.push_back(graph.to_c(id));
      }
    c_out_.assign(n_state_, {});
    a.in = c_in_.data();
    a.n_in = static_cast<uint32_t>(c_in_.size());
    a.pred = c_pred_.data();
    a.n_pred = static_cast<uint32_t>(n_pred);
    a.state_out = c_out_.data();
    layers_->run(call, [&] { return desc.step(&a); });
    for (uint32_t i = 0; i < n_state_; ++i) row_[l * n_state_ + i] = result(graph, c_out_[i]);
    uint32_t y = graph.id_of(row_[l * n_state_ + h_index_]);
    if (l > 0 && layers_->residual()) y = apply_role(graph, Role::add, {y, below});
    ids_.assign(1, y);
  }
  row_.back() = graph.expr(drop_out_(graph, ids_[0]));
  append(predecessors.empty() ? 0 : predecessors[0], row_);
  return static_cast<uint32_t>(parents_.size() - 1);
}

Expr RnnSequence::result(GraphImpl& graph, trl_expr e) const {
  const uint32_t id = graph.from_c(e);
  if (id == GraphImpl::kAbsent)
    fail(
        ErrorKind::plugin,
        fmt::format("[{}] a step of the builder left a part of the new state out", layers_->who()));
  return graph.expr(id);
}

bool RnnSequence::whole_sequence() const {
  const trl_builder_desc& desc = layers_->builder().desc;
  return desc.sequence && !drop_h_[0].acts();  // what returns into a step lies inside the builder
}

uint32_t RnnSequence::steps(uint32_t from, std::span<const Expr> xs, SourceLine where) {
  const auto first = static_cast<uint32_t>(parents_.size());
  if (xs.empty()) return first;
  if (!whole_sequence()) {
    for (const Expr& x : xs) from = step({&from, 1}, {&x, 1}, where);
    return first;
  }
  const trl_builder_desc& desc = layers_->builder().desc;
  check_range(layers_->who(), "inputs", 1, desc.min_in, desc.max_in);
  GraphImpl& graph = graph_of(from, xs);
  const GraphImpl::LineScope line(graph, where);
  Call call = layers_->graph_call(graph);
  std::vector<Expr> rows(xs.size() * row_size_);
  std::vector<uint32_t> ids, below;
  for (const Expr& x : xs) ids.push_back(graph.id_of(x));
  for (uint32_t l = 0; l < layers_->count(); ++l) {
    below = ids;
    for (uint32_t& id : ids) id = drop_in_[l](graph, id);
    trl_step_args a;
    fill_args(a, call, l);
    c_in_.clear();
    for (const uint32_t id : ids) c_in_.push_back(graph.to_c(id));
    c_pred_.clear();
    for (uint32_t i = 0; i < n_state_; ++i)
      c_pred_.push_back(graph.to_c(graph.id_of(at(from, l, i))));
    c_out_.assign(xs.size() * n_state_, {});
    a.in = c_in_.data();
    a.n_in = 1;
    a.pred = c_pred_.data();
    a.n_pred = 1;
    trl_sequence_args q{sizeof q, static_cast<uint32_t>(xs.size()), &a, c_out_.data()};
    layers_->run(call, [&] { return desc.sequence(&q); });
    for (size_t t = 0; t < xs.size(); ++t) {
      for (uint32_t i = 0; i < n_state_; ++i)
        rows[t * row_size_ + l * n_state_ + i] = result(graph, c_out_[t * n_state_ + i]);
      ids[t] = graph.id_of(rows[t * row_size_ + l * n_state_ + h_index_]);
      if (l > 0 && layers_->residual()) ids[t] = apply_role(graph, Role::add, {ids[t], below[t]});
    }
  }
  for (size_t t = 0; t < xs.size(); ++t) {
    rows[(t + 1) * row_size_ - 1] = graph.expr(drop_out_(graph, ids[t]));
    append(t == 0 ? from : first + static_cast<uint32_t>(t) - 1,
           std::span<const Expr>(rows).subspan(t * row_size_, row_size_));
  }
  return first;
}

}  // namespace trellis::detail
