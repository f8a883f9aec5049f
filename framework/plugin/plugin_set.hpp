// SPDX-License-Identifier: Apache-2.0
//
// From wishes to manifests: which plugins a runtime loads, from where, and in which order.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <trellis/runtime.hpp>
#include <vector>

#include "plugin/experiment.hpp"
#include "plugin/manifest.hpp"
#include "plugin/search.hpp"
#include "plugin/trace.hpp"

namespace trellis::detail {

struct ChosenPlugin {
  Manifest manifest;
  bool shipped = false;
  std::string why;  // "asked for by 'acme-act@^1.4'; found in TRELLIS_PLUGIN_PATH"
  std::map<std::string, std::string> options;
};

struct PluginSet {
  std::vector<ChosenPlugin> plugins;  // requirements first, else in search order
  std::vector<Override> overrides;
  bool allow_core_override = false;
  // True: somebody named the plugins, and one that fails is an error of the runtime. False:
  // everything shipped was found, and a plugin that fails is left out with those that require it.
  bool named = false;
  std::vector<std::string> left_out;  // why, for plugins found but not chosen; only when !named
  std::vector<std::string> warnings;
};

// Throws Error(plugin), one line for each plugin that cannot be had.
PluginSet choose_plugins(const RuntimeOptions& options, const Places& places, const Trace& trace);

// The manifest a path means: itself, or the one beside a library. Throws Error(plugin).
std::filesystem::path manifest_at(const std::filesystem::path& path);

}  // namespace trellis::detail
