// SPDX-License-Identifier: Apache-2.0

#include "rnn/roles.hpp"

#include <array>
#include <string>

namespace trellis::detail {

uint32_t apply_role(GraphImpl& graph, Role role, std::span<const uint32_t> in,
                    std::initializer_list<RoleAttr> given, SourceLine where) {
  const OpEntry& op = graph.core().registry->role(role);
  std::array<trl_attr, 16> attrs;
  const auto refuse = [&](const std::string& fact) {
    fail(ErrorKind::plugin,
         "[" + op.id + "] has the role '" + std::string(role_name(role)) + "' but " + fact);
  };
  if (op.attrs.size() > attrs.size())
    refuse("too many attributes: " + std::to_string(op.attrs.size()) + " (at most 16)");
  size_t found = 0;
  for (size_t i = 0; i < op.attrs.size(); ++i) {
    attrs[i] = op.attrs[i].dflt;
    bool set = false;
    for (const RoleAttr& a : given)
      if (a.key == op.attrs[i].key) attrs[i] = a.value, set = true;
    found += set;
    if (!set && op.attrs[i].required()) refuse("needs the attribute '" + op.attrs[i].key + "'");
  }
  if (found != given.size())
    for (const RoleAttr& a : given) {
      bool known = false;
      for (const AttrSpec& spec : op.attrs) known = known || spec.key == a.key;
      if (!known) refuse("no attribute '" + std::string(a.key) + "'");
    }
  return graph.apply(op, in, std::span<const trl_attr>(attrs.data(), op.attrs.size()), 0, where);
}

}  // namespace trellis::detail
