// SPDX-License-Identifier: Apache-2.0
//
// Attributes as text: "lr=0.01" on the command line, JSON in a model file.
#pragma once

#include <string>
#include <string_view>
#include <trellis/registry.hpp>
#include <vector>

#include "json.hpp"

namespace trellis::tools {

// Something that takes attributes, and those collected for it.
struct AttrTarget {
  std::string prefix;  // "trainer": what may stand before the key, with a dot
  ComponentInfo info;
  Attrs attrs;
};

// Hands each "key=value" or "prefix.key=value" to the target that has the key. Throws
// Error(argument): no target or several have it, or the value is not of its type.
void assign_attrs(std::string_view who, const std::vector<std::string>& texts,
                  std::vector<AttrTarget*> targets);

Json attrs_to_json(const Attrs& attrs);
Attrs attrs_from_json(const Json& object);  // throws std::runtime_error

}  // namespace trellis::tools
