// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_impl.hpp"
#include "host/host.hpp"
#include "plugin/handles.hpp"
#include "plugin/loader.hpp"

namespace trellis::detail {
namespace {

constexpr uint32_t kMaxInputs = 1u << 20;

trl_status require_graph(trl_call* c, std::string_view what) noexcept {
  if (const trl_status st = require_phase(c, what, Phase::graph); st != TRL_OK) return st;
  return as_call(c).graph ? trl_status{TRL_OK} : wrong_phase(c, what);
}

trl_status apply(trl_call* c, trl_op_handle handle, const trl_expr* in, uint32_t n_in,
                 const trl_attr* attrs, uint32_t n_attrs, trl_expr* out, uint32_t n_out) noexcept {
  if (const trl_status st = require_graph(c, "apply"); st != TRL_OK) return st;
  return guard_host(c, [&] {
    const Call& call = as_call(c);
    const OpHandle* h = call.core->loader->handles().find(handle);
    if (!h || !h->op)
      return record(c, TRL_E_INVALID,
                    "[trl.graph/1] apply with handle " + std::to_string(handle) +
                        " (needs one that resolve returned)");
    const OpEntry& op = *h->op;
    if (n_out > op.n_visible || n_in > kMaxInputs || (n_in > 0 && !in))
      return record(c, TRL_E_INVALID,
                    "[" + op.id + "] applied with " + std::to_string(n_in) + " inputs and " +
                        std::to_string(n_out) + " outputs (has " + std::to_string(op.n_visible) +
                        " outputs)");
    GraphImpl& graph = *call.graph;
    Buffer<uint32_t, 16> ids(n_in);
    for (uint32_t i = 0; i < n_in; ++i) ids[i] = graph.from_c(in[i]);
    Buffer<trl_attr, 16> all(h->defaults.size());
    OpHandles::arrange(*h, {attrs, n_attrs}, all.data());
    // Lists that are passed on have as many entries as the node has batch elements.
    uint32_t attr_batch = 0;
    for (uint32_t i = 0; i < n_attrs; ++i)
      if (attrs[i].offsets) attr_batch = call.attr_batch;
    const uint32_t first = graph.apply(op, ids.span(), all.span(), attr_batch);
    for (uint32_t o = 0; o < n_out; ++o) out[o] = graph.to_c(first + o);
    return trl_status{TRL_OK};
  });
}

trl_status constant(trl_call* c, const trl_dim* dim, uint16_t dtype, double value,
                    trl_expr* out) noexcept {
  if (const trl_status st = require_graph(c, "constant"); st != TRL_OK) return st;
  return guard_host(c, [&] {
    if (dtype > TRL_BOOL)
      return record(c, TRL_E_DTYPE,
                    "[trl.graph/1] constant of element type " + std::to_string(dtype));
    GraphImpl& graph = *as_call(c).graph;
    const DType type = dtype ? static_cast<DType>(dtype) : graph.options().dtype;
    *out = graph.to_c(graph.constant(Dim(*dim), type, value));
    return trl_status{TRL_OK};
  });
}

trl_status shape(trl_call* c, trl_expr e, trl_dim* out, uint16_t* dtype) noexcept {
  if (const trl_status st = require_graph(c, "shape"); st != TRL_OK) return st;
  return guard_host(c, [&] {
    const GraphImpl& graph = *as_call(c).graph;
    const uint32_t id = graph.from_c(e);
    if (id == GraphImpl::kAbsent)
      return record(c, TRL_E_INVALID, "[trl.graph/1] shape of an absent expression");
    const ClassInfo& info = graph.cls_of(id);
    if (out) *out = info.dim;
    if (dtype) *dtype = static_cast<uint16_t>(info.dtype);
    return trl_status{TRL_OK};
  });
}

}  // namespace

const trl_graph_api kGraphApi = {sizeof(trl_graph_api), 0, apply, constant, shape};

}  // namespace trellis::detail
