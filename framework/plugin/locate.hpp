// SPDX-License-Identifier: Apache-2.0
//
// Which plugin somebody means: by id, by its manifest, or by one of its libraries.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "plugin/search.hpp"

namespace trellis::detail {

struct LocatedPlugin {
  std::filesystem::path manifest;        // empty: a library without one beside it
  std::filesystem::path library;         // the one that was named; empty: id or manifest was
  const FoundManifest* found = nullptr;  // where the search places have it; null: nowhere
};

// "found in TRELLIS_PLUGIN_PATH '/p'"; not found: "given by path".
std::string where(const FoundManifest* found);

// Throws Error(plugin) "[plugin] cannot <verb> ...": there is no such plugin or file.
LocatedPlugin locate_plugin(const std::string& id_or_file, const Places& places,
                            std::string_view verb);

}  // namespace trellis::detail
