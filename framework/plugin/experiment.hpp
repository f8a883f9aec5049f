// SPDX-License-Identifier: Apache-2.0
//
// trellis.toml: exactly the plugins an experiment loads.
//
//   allow_core_override = false             # whether plugins may replace what shipped ones provide
//   [plugins]
//   ops-core = "^0.1"                       # a range
//   acme-act = { version = "^1.4", path = "acme/acme-act.trellis.toml", options = { fast = true } }
//   [override]
//   "acme.gelu" = "lab-fast@2.1.0"          # one of two providers; also "role:add" = "..."
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/semver.hpp"

namespace trellis::detail {

// One wish: what to load, not yet where from.
struct PluginWish {
  std::string id;  // empty: that of the manifest at `path`
  VersionRange range;
  std::filesystem::path path;  // a manifest, or the library beside one; empty: search
  std::map<std::string, std::string> options;  // for "trl.options/1"; numbers and booleans as text
  std::string origin;                          // who asked, for messages: "'trellis.toml', line 3"
};

struct Override {
  std::string target;  // "acme.gelu", "role:add"
  std::string id;
  VersionRange range;
  std::string origin;
};

struct Experiment {
  std::vector<PluginWish> plugins;  // bytewise by id
  std::vector<Override> overrides;
  bool allow_core_override = false;
  std::vector<std::string> warnings;
};

// Relative paths are taken from the file's folder. Throws Error(plugin) naming file, line and key.
Experiment read_experiment(const std::filesystem::path& file);

// "ops-core", "ops-core@^0.1", a path of a manifest or of a library beside one (anything with a
// slash or a suffix). Throws Error(plugin).
PluginWish parse_wish(std::string_view text);

}  // namespace trellis::detail
