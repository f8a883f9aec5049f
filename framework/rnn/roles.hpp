// SPDX-License-Identifier: Apache-2.0
//
// Nodes made by role: what the C++ operators and the combinators of builders are written in.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "graph/graph_impl.hpp"

namespace trellis::detail {

struct RoleAttr {
  std::string_view key;
  trl_attr value;
};

// Applies the operator that has the role; attributes not given take their defaults. Throws
// Error(plugin) when there is none, or when it lacks an attribute that the role calls for. Returns
// the first output.
uint32_t apply_role(GraphImpl& graph, Role role, std::span<const uint32_t> in,
                    std::initializer_list<RoleAttr> attrs = {}, SourceLine where = {});
inline uint32_t apply_role(GraphImpl& graph, Role role, std::initializer_list<uint32_t> in,
                           std::initializer_list<RoleAttr> attrs = {}, SourceLine where = {}) {
  return apply_role(graph, role, std::span<const uint32_t>(in.begin(), in.size()), attrs, where);
}

}  // namespace trellis::detail
