// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cfloat>
#include <iterator>
#include <trellis/registry.hpp>

#include "registry/registry.hpp"

namespace trellis {
namespace {

std::string text(const trl_str& s) {
  return s.p == nullptr ? std::string() : std::string(s.p, s.n);
}

template <size_t N>
std::string word(const char* const (&words)[N], uint32_t i) {
  return i < N ? words[i] : "?";
}

std::string optional_dtype(uint16_t dtype) {
  return dtype == 0 ? std::string() : std::string(dtype_name(static_cast<DType>(dtype)));
}

std::optional<AttrValue> default_of(const AttrSpec& spec) {
  if (spec.required()) return std::nullopt;
  const trl_attr& a = spec.dflt;
  switch (spec.type) {
    case TRL_ATTR_I64:
      return AttrValue(a.v.i);
    case TRL_ATTR_F64:
      return AttrValue(a.v.f);
    case TRL_ATTR_BOOL:
      return AttrValue(a.v.i != 0);
    case TRL_ATTR_CHOICE:
      return AttrValue(spec.choices.at(static_cast<size_t>(a.v.i)));
    case TRL_ATTR_STR:
      return AttrValue(text(a.v.s));
    case TRL_ATTR_I64S:
      if (a.count == 0) return std::nullopt;
      return AttrValue(std::vector<int64_t>(a.v.is, a.v.is + a.count));
    case TRL_ATTR_F64S:
      if (a.count == 0) return std::nullopt;
      return AttrValue(std::vector<double>(a.v.fs, a.v.fs + a.count));
    default:
      return std::nullopt;
  }
}

// `inputs`: names of the operator's inputs, for bounds.
AttrInfo attr_info(const AttrSpec& spec, const std::vector<AttrSpec>& all,
                   const std::vector<InputInfo>& inputs) {
  constexpr const char* kTypes[] = {"?", "i64", "f64", "bool", "choice", "i64s", "f64s", "str"};
  AttrInfo info;
  info.key = spec.key;
  info.doc = spec.doc;
  info.type = word(kTypes, spec.type);
  info.required = spec.required();
  info.per_batch = (spec.flags & TRL_ATTR_PER_BATCH) != 0;
  info.value = (spec.flags & TRL_ATTR_VALUE) != 0;
  info.default_value = default_of(spec);
  if (spec.lo <= spec.hi && spec.lo > -DBL_MAX) info.lo = spec.lo;
  if (spec.lo <= spec.hi && spec.hi < DBL_MAX) info.hi = spec.hi;
  info.choices = spec.choices;
  if (spec.bound_input >= 0 && static_cast<size_t>(spec.bound_input) < inputs.size()) {
    const std::string axis =
        spec.bound_axis >= 0
            ? std::to_string(spec.bound_axis)
            : fmt::format("'{}'", all.at(static_cast<size_t>(spec.bound_axis_attr)).key);
    info.bound = fmt::format("0 <= {} {} size of {} along axis {}", spec.key,
                             spec.flags & TRL_ATTR_BOUND_CLOSED ? "<=" : "<",
                             inputs[static_cast<size_t>(spec.bound_input)].name, axis);
  }
  return info;
}

// What all kinds of entries but providers of products have.
template <class Entry>
void fill_common(ComponentInfo& info, const char* kind, const Entry& entry,
                 const std::vector<InputInfo>& inputs = {}) {
  info.kind = kind;
  info.id = entry.id;
  info.name = entry.name;
  info.version = entry.desc.version;
  info.summary = text(entry.desc.summary);
  info.doc = text(entry.desc.doc);
  if constexpr (requires { entry.desc.formula; }) info.formula = text(entry.desc.formula);
  info.source = text(entry.desc.source);
  info.aliases = entry.aliases;
  for (const AttrSpec& spec : entry.attrs)
    info.attrs.push_back(attr_info(spec, entry.attrs, inputs));
  info.plugin = entry.plugin->id;
  info.plugin_version = entry.plugin->version;
}

template <class Entry>
ComponentInfo component(const char* kind, const Entry& entry) {
  ComponentInfo info;
  fill_common(info, kind, entry);
  return info;
}

ComponentInfo component(const LinalgEntry& entry) {
  ComponentInfo info;
  info.kind = "linalg";
  info.id = entry.id;
  info.name = entry.id.substr(entry.id.find('.') + 1);
  info.summary = text(entry.desc.summary);
  info.plugin = entry.plugin->id;
  info.plugin_version = entry.plugin->version;
  return info;
}

OpInfo op_info(const OpEntry& entry) {
  constexpr const char* kMerge[] = {"concat", "shared", "never"};
  constexpr const char* kDomain[] = {"any",         "positive",  "unit",
                                     "probability", "above_one", "nonzero"};
  OpInfo info;
  for (const trl_in_spec& in : entry.in) {
    info.inputs.push_back({text(in.name), text(in.doc), optional_dtype(in.dtype),
                           word(kDomain, in.domain), word(kMerge, in.merge),
                           (in.flags & TRL_IN_OPTIONAL) != 0, (in.flags & TRL_IN_VARIADIC) != 0,
                           (in.flags & TRL_IN_NO_GRAD) == 0});
  }
  fill_common(info, "operator", entry, info.inputs);
  for (const trl_out_spec& out : entry.out) {
    if (out.flags & TRL_OUT_HIDDEN) continue;
    info.outputs.push_back({text(out.name), text(out.doc), optional_dtype(out.dtype),
                            (out.flags & TRL_OUT_NO_GRAD) == 0});
  }
  const trl_op_desc& desc = entry.desc;
  info.since_version = desc.since_version;
  info.example = text(desc.example);
  info.role = text(desc.role);
  info.unchecked = text(desc.unchecked);
  if (entry.f32) info.dtypes.emplace_back(dtype_name(DType::f32));
  if (entry.f64) info.dtypes.emplace_back(dtype_name(DType::f64));
  info.composite = desc.expand != nullptr;
  info.expression_gradient =
      desc.expand_grad != nullptr || (info.composite && !entry.f32 && !entry.f64);
  info.differentiable = info.composite || desc.expand_grad != nullptr ||
                        (entry.f32 && entry.f32.desc.backward) ||
                        (entry.f64 && entry.f64.desc.backward);
  info.elementwise = entry.elementwise;
  info.stochastic = entry.stochastic;
  return info;
}

// Leaves belong to the kernel: functions of Graph, no registered operators.
struct Leaf {
  const char *id, *summary, *example;
  bool gradient;
};
constexpr Leaf kLeaves[] = {
    {"kernel.input", "numbers of the program, copied when the node is made",
     "graph.input({3}, values)", false},
    {"kernel.input_pointer", "numbers of the program, read anew at every forward()",
     "graph.input_pointer({3}, values)", false},
    {"kernel.constant", "a tensor filled with one number", "graph.constant({3}, 1)", false},
    {"kernel.parameter", "a parameter of a model", "graph.parameter(w)", true},
    {"kernel.const_parameter", "a parameter without gradient", "graph.const_parameter(w)", false},
    {"kernel.lookup", "rows of a table by id, one a batch element", "graph.lookup(words, ids)",
     true},
    {"kernel.const_lookup", "rows of a table without gradient", "graph.const_lookup(words, ids)",
     false},
    {"kernel.table", "a whole table, its rows along the last dimension", "graph.table(words)",
     true},
    {"kernel.const_table", "a whole table without gradient", "graph.const_table(words)", false},
};

OpInfo leaf_info(const Leaf& leaf) {
  OpInfo info;
  info.kind = "operator";
  info.id = leaf.id;
  info.name = info.id.substr(info.id.find('.') + 1);
  info.version = info.since_version = 1;
  info.summary = leaf.summary;
  info.example = leaf.example;
  info.source = "framework/graph/leaves.cpp";
  info.plugin = "kernel";
  info.plugin_version = version();
  info.outputs.push_back({"y", "", "", leaf.gradient});
  info.leaf = true;
  info.differentiable = leaf.gradient;
  for (const DType t : {DType::f32, DType::f64}) info.dtypes.emplace_back(dtype_name(t));
  return info;
}

}  // namespace

std::vector<OpInfo> list_ops(const Runtime& runtime) {
  std::vector<OpInfo> out;
  for (const Leaf& leaf : kLeaves) out.push_back(leaf_info(leaf));
  for (const auto& entry : runtime.registry().ops()) out.push_back(op_info(*entry));
  return out;
}

OpInfo describe_op(const Runtime& runtime, std::string_view name) {
  const Registry& registry = runtime.registry();
  // A plugin's operator goes first, so that a bare name means here what it means to apply().
  if (const OpEntry* entry = registry.find_op(name)) return op_info(*entry);
  for (const Leaf& leaf : kLeaves) {
    const std::string_view id = leaf.id;
    if (name == id || name == id.substr(id.find('.') + 1)) return leaf_info(leaf);
  }
  return op_info(registry.op(name));  // throws
}

std::vector<ComponentInfo> list_components(const Runtime& runtime) {
  const Registry& registry = runtime.registry();
  std::vector<ComponentInfo> out;
  for (const auto& e : registry.builders()) out.push_back(component("builder", *e));
  for (const auto& e : registry.softmaxes()) out.push_back(component("softmax_builder", *e));
  for (const auto& e : registry.initializers()) out.push_back(component("initializer", *e));
  for (const auto& e : registry.trainers()) out.push_back(component("trainer", *e));
  // A provider has an entry for each dtype; here it is one.
  for (const auto& e : registry.linalgs())
    if (out.empty() || out.back().id != e->id) out.push_back(component(*e));
  return out;
}

BuilderInfo describe_builder(const Runtime& runtime, std::string_view name) {
  const BuilderEntry& entry = runtime.registry().builder(name);
  const auto key_of = [&](int16_t attr) {
    return attr < 0 ? std::string() : entry.attrs.at(static_cast<size_t>(attr)).key;
  };
  BuilderInfo info;
  fill_common(info, "builder", entry);
  info.min_predecessors = entry.desc.min_pred;
  info.max_predecessors = entry.desc.max_pred;
  info.input_attr = key_of(entry.desc.input_attr);
  info.hidden_attr = key_of(entry.desc.hidden_attr);
  return info;
}

ComponentInfo describe_trainer(const Runtime& runtime, std::string_view name) {
  return component("trainer", runtime.registry().trainer(name));
}

}  // namespace trellis
