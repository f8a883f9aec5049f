// SPDX-License-Identifier: Apache-2.0
#include "json.hpp"

#include <cstdio>
#include <variant>

namespace trellis::tools {
namespace {

template <class T>
Json list(const std::vector<T>& items) {
  Json out = Json::array();
  for (const T& item : items) out.push_back(to_json(item));
  return out;
}

}  // namespace

Json to_json(const InputInfo& in) {
  return {{"name", in.name},         {"doc", in.doc},          {"dtype", in.dtype},
          {"merge", in.merge},       {"domain", in.domain},    {"optional", in.optional},
          {"variadic", in.variadic}, {"gradient", in.gradient}};
}

Json to_json(const OutputInfo& out) {
  return {{"name", out.name}, {"doc", out.doc}, {"dtype", out.dtype}, {"gradient", out.gradient}};
}

Json to_json(const AttrValue& value) {
  return std::visit([](const auto& v) { return Json(v); }, value.get());
}

Json to_json(const AttrInfo& attr) {
  Json j = {{"key", attr.key}, {"type", attr.type}, {"doc", attr.doc}};
  if (attr.per_batch) j["per_batch"] = true;
  if (attr.value) j["value"] = true;
  if (attr.required) {
    j["required"] = true;
  } else {
    j["default"] = attr.default_value ? to_json(*attr.default_value) : Json(nullptr);
  }
  if (attr.lo) j["lo"] = *attr.lo;
  if (attr.hi) j["hi"] = *attr.hi;
  if (!attr.choices.empty()) j["choices"] = attr.choices;
  if (!attr.bound.empty()) j["bound"] = attr.bound;
  return j;
}

Json to_json(const ComponentInfo& c) {
  return {{"id", c.id},
          {"kind", c.kind},
          {"plugin", c.plugin},
          {"plugin_version", c.plugin_version},
          {"version", c.version},
          {"summary", c.summary},
          {"doc", c.doc},
          {"formula", c.formula},
          {"source", c.source},
          {"aliases", c.aliases},
          {"attrs", list(c.attrs)}};
}

Json to_json(const OpInfo& op) {
  Json j = to_json(static_cast<const ComponentInfo&>(op));
  j["since_version"] = op.since_version;
  j["example"] = op.example;
  j["role"] = op.role;
  j["unchecked"] = op.unchecked;
  j["leaf"] = op.leaf;
  j["differentiable"] = op.differentiable;
  j["elementwise"] = op.elementwise;
  j["stochastic"] = op.stochastic;
  j["composite"] = op.composite;
  j["expression_gradient"] = op.expression_gradient;
  j["dtypes"] = op.dtypes;
  j["inputs"] = list(op.inputs);
  j["outputs"] = list(op.outputs);
  return j;
}

Json to_json(const PluginInfo& p) {
  return {{"id", p.id},
          {"version", p.version},
          {"state", p.state},
          {"reason", p.reason},
          {"abi", p.abi},
          {"built_with", p.built_with},
          {"path", p.library.string()},
          {"manifest", p.manifest.string()},
          {"target", p.target},
          {"device", p.device},
          {"cpu", p.cpu},
          {"libraries", p.libraries},
          {"license", p.license},
          {"summary", p.summary},
          {"authors", p.authors},
          {"namespaces", p.namespaces},
          {"requires", p.required},
          {"ops", p.ops},
          {"builders", p.builders},
          {"softmaxes", p.softmaxes},
          {"initializers", p.initializers},
          {"trainers", p.trainers},
          {"linalg", p.linalg},
          {"needed", p.needed},
          {"glibc", p.glibc},
          {"glibcxx", p.glibcxx},
          {"warnings", p.warnings}};
}

void print_json(const Json& array) {
  const std::string text = array.dump(2, ' ', false, Json::error_handler_t::replace);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
}

}  // namespace trellis::tools
