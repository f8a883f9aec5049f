// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <trellis/ops.hpp>

#include "graph/graph_impl.hpp"

namespace trellis {
namespace {

using detail::GraphImpl;

[[noreturn, gnu::noinline, gnu::cold]] void refuse_attrs(const OpEntry& op, size_t given) {
  fail(ErrorKind::argument, "[" + op.id + "] wrong number of attributes: " + std::to_string(given) +
                                " (need " + std::to_string(op.attrs.size()) +
                                "; was the typed header made from another version of the plugin?)");
}

[[noreturn, gnu::noinline, gnu::cold]] void refuse_empty(uint32_t name_id) {
  fail(ErrorKind::argument, "[" + Registry::name_of(name_id) + "] no inputs: 0 (at least 1)");
}

void apply_ids(GraphImpl& g, uint32_t name_id, std::span<const uint32_t> ids,
               std::span<const trl_attr> attrs, std::span<Expr> out, uint32_t attr_batch,
               SourceLine where) {
  const OpEntry& op = g.core().registry->op_by_name_id(name_id);
  if (attrs.size() != op.attrs.size()) [[unlikely]]
    refuse_attrs(op, attrs.size());
  const uint32_t first = g.apply(op, ids, attrs, attr_batch, where);
  const size_t n = out.size() < op.n_visible ? out.size() : op.n_visible;
  for (size_t i = 0; i < n; ++i) out[i] = g.expr(first + static_cast<uint32_t>(i));
}

}  // namespace

uint32_t op_name_id(std::string_view full_id) { return Registry::name_id(full_id); }

void apply_ordered(uint32_t name_id, std::span<const Expr> in, std::span<const trl_attr> attrs,
                   std::span<Expr> out, uint32_t attr_batch, SourceLine where) {
  constexpr size_t kInline = 16;
  if (in.empty()) [[unlikely]]
    refuse_empty(name_id);
  GraphImpl& g = GraphImpl::of(in[0]);
  size_t n = in.size();
  while (n > 1 && in[n - 1].empty()) --n;  // one form for what is left out, so that nodes batch
  if (n <= kInline) [[likely]] {
    uint32_t ids[kInline];
    for (size_t i = 0; i < n; ++i) ids[i] = g.id_or_absent(in[i]);
    return apply_ids(g, name_id, {ids, n}, attrs, out, attr_batch, where);
  }
  std::vector<uint32_t> ids(n);
  for (size_t i = 0; i < n; ++i) ids[i] = g.id_or_absent(in[i]);
  apply_ids(g, name_id, ids, attrs, out, attr_batch, where);
}

void apply_ordered(uint32_t name_id, const Graph& graph, std::span<const trl_attr> attrs,
                   std::span<Expr> out, uint32_t attr_batch, SourceLine where) {
  apply_ids(graph.impl(), name_id, {}, attrs, out, attr_batch, where);
}

}  // namespace trellis
