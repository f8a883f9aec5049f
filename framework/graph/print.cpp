// SPDX-License-Identifier: Apache-2.0
//
// Text for people: shapes, one node, the context of an error.

#include "graph/graph_impl.hpp"

namespace trellis::detail {
namespace {

std::string kind_text(Kind k) {
  switch (k) {
    case Kind::op:
    case Kind::view:
    case Kind::copy_view:
      return "";
    case Kind::input:
      return "input";
    case Kind::input_pointer:
      return "input_pointer";
    case Kind::constant:
      return "constant";
    case Kind::parameter:
      return "parameter";
    case Kind::const_parameter:
      return "const_parameter";
    case Kind::table:
      return "table";
    case Kind::const_table:
      return "const_table";
    case Kind::lookup:
      return "lookup";
    case Kind::const_lookup:
      return "const_lookup";
  }
  return "";
}

}  // namespace

std::string GraphImpl::shapes(uint32_t node) const {
  std::string t;
  const auto in = inputs(node);
  for (size_t i = 0; i < in.size() && i < 8; ++i) {
    if (i) t += " ";
    t += in[i] ? cls_of(in[i]).dim.to_string() : "-";
  }
  if (in.size() > 8) t += " ..";
  return t;
}

std::string GraphImpl::describe(uint32_t id) const {
  const uint32_t node = node_of(id);
  const Pattern& p = pattern_of(node);
  std::string t = "node #" + std::to_string(node) + " = ";
  if (is_leaf(p.kind)) {
    t += kind_text(p.kind);
    if (values_[node].payload)
      if (const Payload& pay = *payloads_[values_[node].payload]; pay.record) {
        t += " " + pay.record->name;
        if (pay.ids) {
          t += "[";
          for (uint32_t i = 0; i < pay.n_ids && i < 4; ++i)
            t += (i ? "," : "") + std::to_string(pay.ids[i]);
          t += pay.n_ids > 4 ? ",..]" : "]";
        }
      }
  } else {
    t += p.op->id + "(";
    const auto in = inputs(node);
    for (size_t i = 0; i < in.size() && i < 8; ++i)
      t += (i ? ", " : "") + (in[i] ? "#" + std::to_string(in[i]) : std::string("-"));
    t += in.size() > 8 ? ", ..)" : ")";
  }
  t += " " + cls_of(id).dim.to_string();
  if (id != node) t += ", output " + std::to_string(id - node);
  return t;
}

std::string GraphImpl::context(uint32_t node, const char* phase) const {
  const Pattern& p = pattern_of(node);
  std::string t = "; ";
  if (p.op) t += p.op->plugin->id + " " + p.op->plugin->version + ", ";
  t += "node #" + std::to_string(node) + ", " + phase;
  if (const std::string s = shapes(node); !s.empty()) t += ", inputs " + s;
  if (lines_[node]) t += ", made at " + line_text(lines_[node]);
  return t;
}

std::string GraphImpl::line_text(uint64_t line) {
  if (!line) return "";
  return std::string(reinterpret_cast<const char*>(line >> 16)) + ":" +
         std::to_string(line & 0xFFFF);
}

}  // namespace trellis::detail
