// SPDX-License-Identifier: Apache-2.0
//
// Where plugins may lie and what lies there. Only files named <plugin-id>.trellis.toml count; a
// library without one is never looked at.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/trace.hpp"

namespace trellis::detail {

// In order: the first place that has a fitting version wins.
enum class PlaceKind { search_option, dev, project, environment, store, install };
std::string_view place_name(PlaceKind kind);  // "TRELLIS_PLUGIN_PATH", ...

struct Place {
  PlaceKind kind = PlaceKind::search_option;
  std::filesystem::path folder;
  bool shipped = false;  // its plugins may use the reserved namespaces

  // Loaded without being named.
  bool is_trusted() const { return shipped || kind == PlaceKind::dev; }
};

struct FoundManifest {
  std::string id;
  std::filesystem::path file;
  const Place* place = nullptr;  // of the Places that found it
};

class Places {
 public:
  // `search`, the dev folders, ./.trellis/plugins, TRELLIS_PLUGIN_PATH, $XDG_DATA_HOME/trellis/store,
  // <libdir>/trellis/plugins. Where there is no install place (a build tree), the folders of
  // TRELLIS_PLUGIN_PATH stand in for it.
  Places(const std::vector<std::filesystem::path>& search, const Trace& trace);
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  const std::vector<Place>& all() const { return places_; }
  // Manifests in order of place, then bytewise by path; folders at most two deep, in the store four
  // (id, version, hash).
  const std::vector<FoundManifest>& manifests() const { return manifests_; }
  // Folders looked in, for error texts.
  std::string text() const;

 private:
  std::vector<Place> places_;
  std::vector<FoundManifest> manifests_;
};

// <libdir>/trellis/plugins, relative to the file this code is in.
std::filesystem::path install_place();

// Empty, or what switches the plugin off: "TRELLIS_PLUGINS_DISABLE=acme-*" (globs separated by
// commas, ~all~), or the variable its manifest names.
std::string disabled_by(std::string_view id, const std::string& manifest_variable = {});

}  // namespace trellis::detail
