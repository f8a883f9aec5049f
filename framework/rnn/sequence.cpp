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

struct RnnSequence::Passing {
  std::vector<trl_expr> params, prepared, contexts, pred, in, out;
  std::vector<uint32_t> ids, below;
};

// No call of a builder leads to another: one set of lists a thread is enough.
RnnSequence::Passing& RnnSequence::passing() {
  static thread_local Passing lists;
  return lists;
}

RnnSequence::RnnSequence(std::shared_ptr<const RnnLayers> layers, GraphImpl& graph,
                         const RnnDropout& dropout, bool constant, std::span<const Expr> s,
                         std::span<const Expr> contexts)
    : layers_(std::move(layers)),
      n_state_(layers_->n_state()),
      h_index_(layers_->h_index()),
      row_size_(layers_->state_size() + 1),
      contexts_(contexts.begin(), contexts.end()),
      drop_out_(graph, dropout.output, dropout.variational) {
  const trl_builder_desc& desc = layers_->builder().desc;
  check_range(layers_->who(), "contexts", contexts.size(), desc.min_context, desc.max_context);
  if (!s.empty() && s.size() != layers_->state_size())
    fail(ErrorKind::argument,
         fmt::format("[{}] wrong number of start expressions: {} (need none, or {})",
                     layers_->who(), s.size(), count_text(*layers_, n_state_)));
  for (const Expr& e : contexts_) graph.id_of(e);
  if (const Dropper d(graph, dropout.input, dropout.variational); d.acts())
    drop_in_.assign(layers_->count(), d);
  if (const Dropper d(graph, dropout.hidden, dropout.variational); d.acts())
    drop_h_.assign(layers_->count(), d);

  const bool prepares = layers_->builder().desc.prepare != nullptr;
  params_.reserve(layers_->count() * layers_->layers()[0].parameters.size());
  table_.reserve(8 * row_size_);
  parents_.reserve(8);
  table_.resize(row_size_);
  Expr* const start = table_.data();
  for (uint32_t l = 0; l < layers_->count(); ++l) {
    const RnnLayers::Layer& layer = layers_->layers()[l];
    const size_t first = params_.size();
    for (size_t i = 0; i < layer.parameters.size(); ++i)
      params_.push_back(
          graph.expr(graph.parameter(layer.parameters[i].record(), constant || layer.constant[i])));
    if (prepares)
      prepared_.push_back(
          layers_->prepared(graph, l, std::span(params_).subspan(first), contexts, constant));
    for (uint32_t i = 0; i < n_state_ && s.empty(); ++i) {
      Expr* const here = start + l * n_state_ + i;
      const auto same = [&](const Expr& e) { return e.dim() == layer.state[i]; };
      Expr* const made = std::find_if(start, here, same);
      *here = made != here
                  ? *made
                  : graph.expr(graph.constant(layer.state[i], layers_->model().dtype(), 0));
    }
  }
  for (uint32_t k = 0; k < s.size(); ++k) {
    const auto [l, i] = place(k);
    start[l * n_state_ + i] = graph.expr(graph.id_of(s[k]));
  }
  start[row_size_ - 1] = start[(layers_->count() - 1) * n_state_ + h_index_];
  parents_.push_back(0);
}

std::pair<uint32_t, uint32_t> RnnSequence::place(uint32_t k) const {
  const uint32_t n = layers_->count(), i = k / n;
  if (i == n_state_ - 1) return {k % n, h_index_};
  return {k % n, i < h_index_ ? i : i + 1};
}

void RnnSequence::append(uint32_t parent, std::span<const Expr> row) {
  table_.resize(size_t{parents_.size()} * row_size_);  // nothing of a step that failed
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
  std::vector<Expr> made(row_size_);
  for (uint32_t k = 0; k < s.size(); ++k) {
    const auto [l, i] = place(k);
    made[l * n_state_ + i] = graph.expr(graph.id_of(s[k]));
  }
  made.back() = made[(layers_->count() - 1) * n_state_ + h_index_];
  append(from, made);
  return static_cast<uint32_t>(parents_.size() - 1);
}

uint32_t RnnSequence::set_h(uint32_t from, std::span<const Expr> h) {
  if (h.size() != layers_->count())
    fail(ErrorKind::argument, fmt::format("[{}] set_h: wrong number of expressions: {} (need {})",
                                          layers_->who(), h.size(), count_text(*layers_, 1)));
  GraphImpl& graph = graph_of(from, {});
  std::vector<Expr> made(table_.begin() + static_cast<std::ptrdiff_t>(row(from)),
                         table_.begin() + static_cast<std::ptrdiff_t>(row(from) + row_size_));
  for (uint32_t l = 0; l < layers_->count(); ++l)
    made[l * n_state_ + h_index_] = graph.expr(graph.id_of(h[l]));
  made.back() = made[(layers_->count() - 1) * n_state_ + h_index_];
  append(from, made);
  return static_cast<uint32_t>(parents_.size() - 1);
}

GraphImpl& RnnSequence::graph_of(uint32_t state, std::span<const Expr> in) const {
  GraphImpl& graph = GraphImpl::of(at(state, 0, 0));
  for (const Expr& e : in) graph.id_of(e);
  return graph;
}

void RnnSequence::fill_args(trl_step_args& a, Passing& p, Call& call, uint32_t l) const {
  GraphImpl& graph = *call.graph;
  const RnnLayers::Layer& layer = layers_->layers()[l];
  const auto list = [&](std::vector<trl_expr>& to, std::span<const Expr> from) {
    to.clear();
    for (const Expr& e : from) to.push_back(graph.to_c(graph.id_of(e)));
  };
  size_t first = 0;
  for (uint32_t k = 0; k < l; ++k) first += layers_->layers()[k].parameters.size();
  list(p.params, std::span(params_).subspan(first, layer.parameters.size()));
  list(p.prepared,
       prepared_.empty() ? std::span<const Expr>() : std::span<const Expr>(prepared_[l]));
  list(p.contexts, contexts_);
  a = trl_step_args{};
  a.struct_size = sizeof a;
  a.call = &call;
  a.attrs = layer.attrs.all().data();
  a.n_attrs = static_cast<uint32_t>(layer.attrs.all().size());
  a.params = p.params.data();
  a.n_params = static_cast<uint32_t>(p.params.size());
  a.prepared = p.prepared.data();
  a.n_prepared = static_cast<uint32_t>(p.prepared.size());
  a.context = p.contexts.data();
  a.n_context = static_cast<uint32_t>(p.contexts.size());
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
  Passing& lists = passing();
  std::vector<uint32_t>& ids = lists.ids;
  ids.clear();
  for (const Expr& e : in) ids.push_back(graph.id_of(e));
  // The new row becomes a state when it is complete.
  const auto made = static_cast<uint32_t>(parents_.size());
  table_.resize(row(made));
  table_.resize(row(made) + row_size_);
  for (uint32_t l = 0; l < layers_->count(); ++l) {
    uint32_t batch = 1;
    for (const uint32_t id : ids) batch = std::max(batch, graph.cls_of(id).dim.batch);
    const uint32_t below = ids.empty() ? 0 : ids[0];
    // Masks of a layer's further inputs would need masks of their own shape: only the first is
    // masked.
    if (!ids.empty()) ids[0] = dropped(drop_in_, l, graph, below, batch);
    trl_step_args a;
    fill_args(a, lists, call, l);
    lists.in.clear();
    for (const uint32_t id : ids) lists.in.push_back(graph.to_c(id));
    lists.pred.clear();
    for (size_t k = 0; k < n_pred; ++k)
      for (uint32_t i = 0; i < n_state_; ++i) {
        uint32_t id = graph.id_of(at(predecessor(k), l, i));
        if (i == h_index_) id = dropped(drop_h_, l, graph, id, batch);
        lists.pred.push_back(graph.to_c(id));
      }
    lists.out.assign(n_state_, {});
    a.in = lists.in.data();
    a.n_in = static_cast<uint32_t>(lists.in.size());
    a.pred = lists.pred.data();
    a.n_pred = static_cast<uint32_t>(n_pred);
    a.state_out = lists.out.data();
    layers_->run(call, [&] { return desc.step(&a); });
    Expr* const to = &table_[row(made) + l * n_state_];
    uint32_t y = 0;
    for (uint32_t i = 0; i < n_state_; ++i) {
      const uint32_t id = result(graph, lists.out[i]);
      to[i] = graph.expr(id);
      if (i == h_index_) y = id;
    }
    if (l > 0 && layers_->residual()) y = apply_role(graph, Role::add, {y, below});
    ids.assign(1, y);
  }
  table_.back() = graph.expr(drop_out_(graph, ids[0]));
  parents_.push_back(predecessors.empty() ? 0 : predecessors[0]);
  return made;
}

uint32_t RnnSequence::result(GraphImpl& graph, trl_expr e) const {
  const uint32_t id = graph.from_c(e);
  if (id == GraphImpl::kAbsent)
    fail(
        ErrorKind::plugin,
        fmt::format("[{}] a step of the builder left a part of the new state out", layers_->who()));
  return id;
}

bool RnnSequence::whole_sequence() const {
  const trl_builder_desc& desc = layers_->builder().desc;
  return desc.sequence && drop_h_.empty();  // what returns into a step lies inside the builder
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
  Passing& lists = passing();
  std::vector<uint32_t>&ids = lists.ids, &below = lists.below;
  ids.clear();
  for (const Expr& x : xs) ids.push_back(graph.id_of(x));
  // The new rows become states when they are complete.
  table_.resize(row(first));
  table_.resize(row(first) + xs.size() * row_size_);
  for (uint32_t l = 0; l < layers_->count(); ++l) {
    below = ids;
    for (uint32_t& id : ids) id = dropped(drop_in_, l, graph, id);
    trl_step_args a;
    fill_args(a, lists, call, l);
    lists.in.clear();
    for (const uint32_t id : ids) lists.in.push_back(graph.to_c(id));
    lists.pred.clear();
    for (uint32_t i = 0; i < n_state_; ++i)
      lists.pred.push_back(graph.to_c(graph.id_of(at(from, l, i))));
    lists.out.assign(xs.size() * n_state_, {});
    a.in = lists.in.data();
    a.n_in = 1;
    a.pred = lists.pred.data();
    a.n_pred = 1;
    trl_sequence_args q{sizeof q, static_cast<uint32_t>(xs.size()), &a, lists.out.data()};
    layers_->run(call, [&] { return desc.sequence(&q); });
    for (uint32_t t = 0; t < xs.size(); ++t) {
      Expr* const to = &table_[row(first + t) + l * n_state_];
      for (uint32_t i = 0; i < n_state_; ++i) {
        const uint32_t id = result(graph, lists.out[t * n_state_ + i]);
        to[i] = graph.expr(id);
        if (i == h_index_) ids[t] = id;
      }
      if (l > 0 && layers_->residual()) ids[t] = apply_role(graph, Role::add, {ids[t], below[t]});
    }
  }
  for (uint32_t t = 0; t < xs.size(); ++t) {
    table_[row(first + t + 1) - 1] = graph.expr(drop_out_(graph, ids[t]));
    parents_.push_back(t == 0 ? from : first + t - 1);
  }
  return first;
}

}  // namespace trellis::detail
