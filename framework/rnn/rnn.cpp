// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <trellis/rnn.hpp>

#include "rnn/roles.hpp"
#include "rnn/sequence.hpp"

namespace trellis {

using detail::GraphImpl;
using detail::RnnLayers;
using detail::RnnSequence;

namespace {

const BuilderEntry& builder_of(const Model& model, std::string_view name) {
  return model.runtime().core().registry->builder(name);
}

Model sub_model(Model& model, const BuilderEntry& builder, const RnnOptions& options) {
  return model.sub(options.name.empty() ? builder.name : options.name);
}

// A stack with its parameters in <sub-model>/layer0, /layer1, ...
std::shared_ptr<const RnnLayers> make_layers(Model& model, const BuilderEntry& builder,
                                             const Attrs& attrs, const RnnOptions& options) {
  Model own = sub_model(model, builder, options);
  std::vector<Model> models;
  for (uint32_t l = 0; l < options.layers; ++l)
    models.push_back(own.sub(fmt::format("layer{}", l)));
  return std::make_shared<const RnnLayers>(builder, attrs, options, own, models);
}

void need_chain(const BuilderEntry& builder) {
  const trl_builder_desc& desc = builder.desc;
  if (desc.min_pred > 1 || desc.max_pred != 1)
    fail(ErrorKind::argument,
         fmt::format(
             "[{}] not a chain: a step takes up to {} predecessor states (need 1; use TreeRnn)",
             builder.name,
             desc.max_pred == TRL_VARIADIC ? std::string("any number of")
                                           : fmt::format("{}", desc.max_pred)));
}

uint32_t rows_of_output(const RnnLayers& layers) {
  return layers.layers().back().state[layers.h_index()].rows();
}

}  // namespace

// ---- states

RnnSequence& RnnState::sequence() const {
  if (!sequence_)
    fail(ErrorKind::state, "[rnn] the state is empty: made by no sequence (need one from start)");
  return *sequence_;
}

RnnState RnnState::add(std::span<const Expr> in, SourceLine where) const {
  RnnSequence& q = sequence();
  return {sequence_, q.step({&index_, 1}, in, where)};
}

std::vector<RnnState> RnnState::add_all(std::span<const Expr> xs, SourceLine where) const {
  RnnSequence& q = sequence();
  const uint32_t first = q.steps(index_, xs, where);
  std::vector<RnnState> states;
  states.reserve(xs.size());
  for (uint32_t t = 0; t < xs.size(); ++t) states.push_back(RnnState(sequence_, first + t));
  return states;
}

std::vector<Expr> RnnState::transduce(std::span<const Expr> xs, SourceLine where) const {
  RnnSequence& q = sequence();
  const uint32_t first = q.steps(index_, xs, where);
  std::vector<Expr> outputs;
  outputs.reserve(xs.size());
  for (uint32_t t = 0; t < xs.size(); ++t) outputs.push_back(q.output(first + t));
  return outputs;
}

Expr RnnState::output() const { return sequence().output(index_); }
std::vector<Expr> RnnState::h() const { return sequence().h(index_); }
std::vector<Expr> RnnState::s() const { return sequence().s(index_); }
RnnState RnnState::set_h(std::span<const Expr> h) const {
  RnnSequence& q = sequence();
  return {sequence_, q.set_h(index_, h)};
}
RnnState RnnState::set_s(std::span<const Expr> s) const {
  RnnSequence& q = sequence();
  return {sequence_, q.set(index_, s)};
}
RnnState RnnState::prev() const {
  if (is_start()) fail(ErrorKind::state, "[rnn] the start state has no predecessor");
  return {sequence_, sequence().parent(index_)};
}
bool RnnState::is_start() const {
  sequence();
  return index_ == 0;
}

// ---- chains

Rnn::Rnn(Model model, std::string_view builder, const Attrs& attrs, const RnnOptions& options)
    : dropout_(options.dropout), constant_(options.constant) {
  const BuilderEntry& entry = builder_of(model, builder);
  need_chain(entry);
  layers_ = make_layers(model, entry, attrs, options);
}

Rnn::Rnn(std::shared_ptr<const RnnLayers> layers, const RnnOptions& options)
    : layers_(std::move(layers)), dropout_(options.dropout), constant_(options.constant) {}

RnnState Rnn::start(const Graph& graph, std::span<const Expr> s,
                    std::span<const Expr> contexts) const {
  return {std::make_shared<RnnSequence>(layers_, graph.impl(), dropout_, constant_, s, contexts),
          0};
}

void Rnn::set_dropout(const RnnDropout& dropout) {
  detail::check_dropout(layers_->who(), dropout);
  dropout_ = dropout;
}
uint32_t Rnn::layers() const { return layers_->count(); }
uint32_t Rnn::state_size() const { return layers_->state_size(); }
uint32_t Rnn::output_size() const { return rows_of_output(*layers_); }
Model Rnn::model() const { return layers_->model(); }

// ---- both directions

BiRnn::BiRnn(Model model, std::string_view builder, const Attrs& attrs, const RnnOptions& options)
    : model_(model), dropout_(options.dropout), residual_(options.residual) {
  const BuilderEntry& entry = builder_of(model, builder);
  need_chain(entry);
  if (options.layers == 0)
    fail(ErrorKind::argument,
         fmt::format("[{}] number of layers: 0 (need at least 1)", entry.name));
  if (options.layers > 1 && entry.desc.input_attr < 0)
    fail(ErrorKind::argument,
         fmt::format(
             "[{}] cannot be stacked: the builder does not say which attributes hold its sizes",
             entry.name));
  model_ = sub_model(model, entry, options);
  RnnOptions one = options;
  one.residual = false;
  one.dropout.output = 0;  // of the whole, below
  Attrs own = attrs;
  for (uint32_t l = 0; l < options.layers; ++l) {
    if (l > 0) {
      const std::string& key = entry.attrs[static_cast<size_t>(entry.desc.input_attr)].key;
      std::erase_if(own, [&](const Attr& a) { return a.key == key; });
      own.push_back({key, output_size()});
    }
    Model level = model_.sub(fmt::format("layer{}", l));
    for (std::vector<Rnn>* side : {&forward_, &backward_}) {
      const Model m = level.sub(side == &forward_ ? "forward" : "backward");
      side->push_back(
          Rnn(std::make_shared<const RnnLayers>(entry, own, one, m, std::span<const Model>(&m, 1)),
              one));
    }
  }
}

uint32_t BiRnn::output_size() const { return 2 * forward_.back().output_size(); }

void BiRnn::set_dropout(const RnnDropout& dropout) {
  RnnDropout inner = dropout;
  inner.output = 0;
  detail::check_dropout(forward_[0].layers_->who(), dropout);
  dropout_ = dropout;
  for (std::vector<Rnn>* side : {&forward_, &backward_})
    for (Rnn& r : *side) r.set_dropout(inner);
}

void BiRnn::set_constant(bool constant) {
  for (std::vector<Rnn>* side : {&forward_, &backward_})
    for (Rnn& r : *side) r.set_constant(constant);
}

std::vector<Expr> BiRnn::layer(const Graph& graph, size_t l, std::span<const Expr> xs,
                               SourceLine where) const {
  const std::vector<Expr> reversed(xs.rbegin(), xs.rend());
  const std::vector<Expr> left = forward_[l].transduce(graph, xs, where);
  const std::vector<Expr> right = backward_[l].transduce(graph, reversed, where);
  GraphImpl& g = graph.impl();
  const GraphImpl::LineScope line(g, where);
  std::vector<Expr> out;
  out.reserve(xs.size());
  for (size_t t = 0; t < xs.size(); ++t) {
    uint32_t y =
        detail::apply_role(g, Role::concat, {g.id_of(left[t]), g.id_of(right[xs.size() - 1 - t])});
    if (l > 0 && residual_) y = detail::apply_role(g, Role::add, {y, g.id_of(xs[t])});
    out.push_back(g.expr(y));
  }
  return out;
}

std::vector<Expr> BiRnn::below(const Graph& graph, std::span<const Expr> xs,
                               SourceLine where) const {
  std::vector<Expr> current(xs.begin(), xs.end());
  for (size_t l = 0; l + 1 < forward_.size(); ++l) current = layer(graph, l, current, where);
  return current;
}

std::vector<Expr> BiRnn::transduce(const Graph& graph, std::span<const Expr> xs,
                                   SourceLine where) const {
  if (xs.empty()) return {};
  std::vector<Expr> out = layer(graph, forward_.size() - 1, below(graph, xs, where), where);
  GraphImpl& g = graph.impl();
  const GraphImpl::LineScope line(g, where);
  detail::Dropper drop(g, dropout_.output, dropout_.variational);
  if (drop.acts())
    for (Expr& e : out) e = g.expr(drop(g, g.id_of(e)));
  return out;
}

std::vector<std::pair<RnnState, RnnState>> BiRnn::states(const Graph& graph,
                                                         std::span<const Expr> xs,
                                                         SourceLine where) const {
  if (xs.empty()) return {};
  const std::vector<Expr> in = below(graph, xs, where);
  const std::vector<Expr> reversed(in.rbegin(), in.rend());
  const std::vector<RnnState> left = forward_.back().start(graph).add_all(in, where);
  const std::vector<RnnState> right = backward_.back().start(graph).add_all(reversed, where);
  std::vector<std::pair<RnnState, RnnState>> out;
  for (size_t t = 0; t < in.size(); ++t) out.emplace_back(left[t], right[in.size() - 1 - t]);
  return out;
}

// ---- trees

TreeRnn::TreeRnn(Model model, std::string_view builder, const Attrs& attrs,
                 const RnnOptions& options)
    : dropout_(options.dropout), constant_(options.constant) {
  layers_ = make_layers(model, builder_of(model, builder), attrs, options);
}

RnnTree TreeRnn::start(const Graph& graph, std::span<const Expr> contexts) const {
  return RnnTree(RnnState(std::make_shared<RnnSequence>(layers_, graph.impl(), dropout_, constant_,
                                                        std::span<const Expr>(), contexts),
                          0));
}

void TreeRnn::set_dropout(const RnnDropout& dropout) {
  detail::check_dropout(layers_->who(), dropout);
  dropout_ = dropout;
}
uint32_t TreeRnn::layers() const { return layers_->count(); }
uint32_t TreeRnn::state_size() const { return layers_->state_size(); }
uint32_t TreeRnn::output_size() const { return rows_of_output(*layers_); }
Model TreeRnn::model() const { return layers_->model(); }

RnnState RnnTree::add(std::span<const RnnState> children, std::span<const Expr> in,
                      SourceLine where) const {
  RnnSequence& q = start_.sequence();
  std::vector<uint32_t> predecessors;
  for (const RnnState& child : children) {
    if (&child.sequence() != &q)
      fail(ErrorKind::argument,
           fmt::format("[{}] child {} belongs to another tree (make all nodes with one start)",
                       q.layers().who(), predecessors.size()));
    predecessors.push_back(child.index_);
  }
  return {start_.sequence_, q.step(predecessors, in, where)};
}

}  // namespace trellis
