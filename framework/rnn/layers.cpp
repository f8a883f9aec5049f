// SPDX-License-Identifier: Apache-2.0

#include "rnn/layers.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace trellis::detail {
namespace {

AttrValue value_of(const trl_attr& a) {
  switch (a.type) {
    case TRL_ATTR_BOOL:
      return a.v.i != 0;
    case TRL_ATTR_I64:
      return a.v.i;
    case TRL_ATTR_F64:
      return a.v.f;
    case TRL_ATTR_I64S:
      return std::vector<int64_t>(a.v.is, a.v.is + a.count);
    case TRL_ATTR_F64S:
      return std::vector<double>(a.v.fs, a.v.fs + a.count);
    default:
      return std::string(a.v.s.p, a.v.s.n);
  }
}

Init init_of(const trl_param_spec& spec) {
  Init init(std::string(spec.initializer.p, spec.initializer.n));
  for (uint32_t i = 0; i < spec.n_init_attrs; ++i)
    init.attrs.push_back(
        {std::string(spec.init_keys[i].p, spec.init_keys[i].n), value_of(spec.init_attrs[i])});
  return init;
}

void check_count(std::string_view who, std::string_view what, uint64_t given, uint32_t lo,
                 uint32_t hi) {
  if (given < lo || given > hi)
    fail(ErrorKind::plugin,
         fmt::format("[{}] the builder declares {} {} (need {} to {})", who, given, what, lo, hi));
}

}  // namespace

void check_dropout(std::string_view who, const RnnDropout& dropout) {
  for (const double p : {dropout.input, dropout.hidden, dropout.output})
    if (!(p >= 0 && p <= 1))
      fail(ErrorKind::argument,
           fmt::format("[{}] dropout rate out of range: {} (need 0 to 1)", who, p));
}

RnnLayers::RnnLayers(const BuilderEntry& builder, const Attrs& attrs, const RnnOptions& options,
                     Model model, std::span<const Model> models)
    : builder_(&builder), model_(std::move(model)), residual_(options.residual) {
  if (models.empty())
    fail(ErrorKind::argument, fmt::format("[{}] number of layers: 0 (need at least 1)", who()));
  check_dropout(who(), options.dropout);
  layers_.reserve(models.size());
  for (const Model& m : models) make_layer(attrs, options, m);
  for (const auto& pair : options.bind) {
    const auto is_bound = [&](const Parameter& p) { return &p.record() == &pair.second.record(); };
    if (std::none_of(layers_[0].parameters.begin(), layers_[0].parameters.end(), is_bound))
      fail(ErrorKind::argument,
           fmt::format("[{}] no parameter '{}' that can be bound", who(), pair.first));
  }
}

void RnnLayers::escaped() const {
  fail(ErrorKind::plugin,
       fmt::format("[{}] an exception left the builder (a plugin must stop its own)", who()));
}

void RnnLayers::failed(Call& call, trl_status status) const {
  const std::string text = call.take_text(status);
  fail(kind_of(status), text.starts_with("[") ? text : fmt::format("[{}] {}", who(), text));
}

Call RnnLayers::graph_call(GraphImpl& graph) const {
  Call call(graph.core());
  call.plugin_id = builder_->plugin->id;
  call.scratch = &graph.scratch();
  call.graph = &graph;
  call.begin(Phase::graph, builder_->plugin->self);
  return call;
}

void RnnLayers::make_layer(const Attrs& attrs, const RnnOptions& options, Model model) {
  const trl_builder_desc& desc = builder_->desc;
  const std::string& name = who();
  Layer layer;
  layer.attrs = BoundAttrs(name, builder_->attrs, attrs);
  if (!layers_.empty()) {
    if (desc.input_attr < 0 || desc.hidden_attr < 0)
      fail(ErrorKind::argument,
           fmt::format(
               "[{}] cannot be stacked: the builder does not say which attributes hold its sizes",
               name));
    if (desc.min_in > 1)
      fail(ErrorKind::argument,
           fmt::format("[{}] cannot be stacked: a step takes at least {} inputs (need 1)", name,
                       desc.min_in));
    const int64_t size = layers_.back().attrs.all()[desc.hidden_attr].v.i;
    layer.attrs.set(name, builder_->attrs, builder_->attrs[desc.input_attr].key, AttrValue(size));
  }
  const std::span<const trl_attr> values = layer.attrs.all();
  const auto n = static_cast<uint32_t>(values.size());

  Call call(model.runtime().core());
  call.plugin_id = builder_->plugin->id;
  call.begin(Phase::describe, builder_->plugin->self);
  layer.info.struct_size = sizeof layer.info;
  run(call, [&] { return desc.describe(&call, values.data(), n, &layer.info); });
  check_count(name, "expressions in a state", layer.info.n_state, 1, 64);
  check_count(name, "parameters", layer.info.n_params, 0, 4096);
  check_count(name, "prepared expressions", layer.info.n_prepared, 0, 4096);
  if (layer.info.h_index >= layer.info.n_state)
    fail(ErrorKind::plugin,
         fmt::format("[{}] the builder declares expression {} of {} as its output", name,
                     layer.info.h_index, layer.info.n_state));
  for (uint32_t i = 0; i < layer.info.n_state; ++i) {
    trl_dim dim{};
    dim.batch = 1;
    run(call, [&] { return desc.state(&call, values.data(), n, i, &dim); });
    layer.state.push_back(Dim(dim).single_batch());
  }
  for (uint32_t i = 0; i < layer.info.n_params; ++i) {
    trl_param_spec spec{};
    spec.struct_size = sizeof spec;
    spec.dim.batch = 1;
    run(call, [&] { return desc.param(&call, values.data(), n, i, &spec); });
    const std::string key(spec.name.p, spec.name.n);
    const Dim dim = Dim(spec.dim).single_batch();
    layer.constant.push_back((spec.flags & TRL_PARAM_CONSTANT) != 0);
    const auto bound = std::find_if(options.bind.begin(), options.bind.end(),
                                    [&](const auto& pair) { return pair.first == key; });
    if (bound != options.bind.end() && (spec.flags & TRL_PARAM_EXTERNAL)) {
      const Dim& given = bound->second.dim();
      if (!(given == (spec.flags & TRL_PARAM_LOOKUP ? dim.appended(spec.n_rows) : dim)))
        fail(ErrorKind::shape,
             fmt::format("[{}] parameter '{}' is bound to one of another shape: {} (need {})", name,
                         key, given.to_string(), dim.to_string()));
      layer.parameters.push_back(bound->second);
    } else if (spec.flags & TRL_PARAM_LOOKUP) {
      layer.parameters.push_back(model.add_lookup(key, spec.n_rows, dim, init_of(spec)));
    } else {
      layer.parameters.push_back(model.add_parameter(key, dim, init_of(spec)));
    }
    if (layer.constant.back()) layer.parameters.back().set_trainable(false);
  }
  layers_.push_back(std::move(layer));
}

std::vector<Expr> RnnLayers::prepared(GraphImpl& graph, uint32_t l, std::span<const Expr> params,
                                      std::span<const Expr> contexts, bool constant) const {
  const Layer& layer = layers_[l];
  const uint32_t n = layer.info.n_prepared;
  if (n == 0 || !builder_->desc.prepare) return {};
  const std::lock_guard lock(mutex_);
  if (contexts.empty()) {
    for (const Prepared& p : prepared_)
      if (p.layer == l && p.constant == constant && graph.alive(p.exprs.back())) return p.exprs;
    constexpr size_t kKept =
        64;  // of graphs that are gone, or belong to other threads: dropped in turn
    if (prepared_.size() >= kKept) prepared_.erase(prepared_.begin());
  }
  std::vector<trl_expr> given, out(n);
  for (const Expr& e : params) given.push_back(graph.to_c(graph.id_of(e)));
  for (const Expr& e : contexts) given.push_back(graph.to_c(graph.id_of(e)));
  Call call = graph_call(graph);
  trl_step_args a{};
  a.struct_size = sizeof a;
  a.call = &call;
  a.attrs = layer.attrs.all().data();
  a.n_attrs = static_cast<uint32_t>(layer.attrs.all().size());
  a.params = given.data();
  a.n_params = static_cast<uint32_t>(params.size());
  a.context = given.data() + params.size();
  a.n_context = static_cast<uint32_t>(contexts.size());
  a.n_state = n_state();
  run(call, [&] { return builder_->desc.prepare(&a, out.data()); });
  std::vector<Expr> exprs;
  for (const trl_expr& e : out) exprs.push_back(graph.expr(graph.from_c(e)));
  if (contexts.empty()) prepared_.push_back({l, constant, exprs});
  return exprs;
}

}  // namespace trellis::detail
