// SPDX-License-Identifier: Apache-2.0
//
// What --json prints: always an array of objects. The keys are those of trellis-schema.
#pragma once

#include <nlohmann/json.hpp>
#include <trellis/plugin.hpp>
#include <trellis/registry.hpp>

namespace trellis::tools {

using Json = nlohmann::ordered_json;

Json to_json(const AttrValue& value);
Json to_json(const AttrInfo& attr);
Json to_json(const InputInfo& in);
Json to_json(const OutputInfo& out);
Json to_json(const ComponentInfo& component);
Json to_json(const OpInfo& op);
Json to_json(const PluginInfo& plugin);

// Text that is not UTF-8 (a path) gets replacement characters.
void print_json(const Json& array);

}  // namespace trellis::tools
