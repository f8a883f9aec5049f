// SPDX-License-Identifier: Apache-2.0
#include "plugin/search.hpp"

#include <fnmatch.h>
#include <stdlib.h>

// Boost.DLL 1.74 does not compile alone with std::filesystem: vector and string come first.
#include <algorithm>
#include <boost/dll/runtime_symbol_info.hpp>
#include <string>
#include <system_error>
#include <trellis/error.hpp>
#include <trellis/plugin.hpp>
#include <vector>

#include "plugin/file.hpp"
#include "plugin/manifest.hpp"

namespace trellis::detail {
namespace {

namespace fs = std::filesystem;

constexpr int kDepth = 2, kStoreDepth = 4;

std::string environment(const char* name) {
  const char* const value = ::secure_getenv(name);
  return value ? value : "";
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t at = text.find(separator);
    if (at != 0) parts.emplace_back(text.substr(0, at));
    text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
  }
  return parts;
}

fs::path store_place() {
  if (const std::string data = environment("XDG_DATA_HOME"); data.starts_with('/'))
    return fs::path(data) / "trellis/store";
  if (const std::string home = environment("HOME"); home.starts_with('/'))
    return fs::path(home) / ".local/share/trellis/store";
  return {};
}

void collect(const fs::path& folder, int depth, std::vector<fs::path>& files) {
  std::error_code error;
  std::vector<fs::path> names;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path());
  for (const fs::path& path : names) {
    if (!manifest_id(path).empty())
      files.push_back(path);
    else if (depth > 1 && fs::is_directory(path, error))
      collect(path, depth - 1, files);
  }
}

}  // namespace

std::string_view place_name(PlaceKind kind) {
  switch (kind) {
    case PlaceKind::search_option:
      return "search option";
    case PlaceKind::dev:
      return "dev folder";
    case PlaceKind::project:
      return "./.trellis/plugins";
    case PlaceKind::environment:
      return "TRELLIS_PLUGIN_PATH";
    case PlaceKind::store:
      return "store";
    case PlaceKind::install:
      return "install place";
  }
  return "";
}

fs::path install_place() {
  boost::dll::fs::error_code error;
  const fs::path self = boost::dll::this_line_location(error);
  if (error) return {};
  std::error_code ignored;
  return fs::canonical(self, ignored).parent_path() / "trellis/plugins";
}

Places::Places(const std::vector<fs::path>& search, const Trace& trace) {
  const fs::path install = install_place();
  std::error_code error;
  const bool has_install = fs::is_directory(install, error);
  for (const fs::path& folder : search)
    places_.push_back({PlaceKind::search_option, fs::absolute(folder), false});
  try {
    for (const fs::path& folder : dev_folders()) places_.push_back({PlaceKind::dev, folder, false});
  } catch (const Error& e) {  // a list that cannot be trusted adds nothing, and stops nobody
    trace.line(TraceTopic::search, e.what());
  }
  places_.push_back({PlaceKind::project, fs::absolute(".trellis/plugins"), false});
  for (const std::string& folder : split(environment("TRELLIS_PLUGIN_PATH"), ':'))
    places_.push_back({PlaceKind::environment, fs::absolute(folder), !has_install});
  if (const fs::path store = store_place(); !store.empty())
    places_.push_back({PlaceKind::store, store, false});
  if (has_install) places_.push_back({PlaceKind::install, install, true});

  for (const Place& place : places_) {
    std::vector<fs::path> files;
    collect(place.folder, place.kind == PlaceKind::store ? kStoreDepth : kDepth, files);
    std::sort(files.begin(), files.end(),
              [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
    trace.line(TraceTopic::search, std::string(place_name(place.kind)) + " " +
                                       quoted(place.folder) + ": " + std::to_string(files.size()) +
                                       " manifests");
    for (const fs::path& file : files) {
      trace.line(TraceTopic::search, "  " + quoted(file));
      manifests_.push_back({manifest_id(file), file, &place});
    }
  }
}

std::string Places::text() const {
  std::string text;
  for (const Place& place : places_) {
    if (!text.empty()) text += ", ";
    text += quoted(place.folder);
  }
  return text;
}

std::string disabled_by(std::string_view id, const std::string& manifest_variable) {
  for (const std::string& glob : split(environment("TRELLIS_PLUGINS_DISABLE"), ','))
    if (glob == "~all~" || ::fnmatch(glob.c_str(), std::string(id).c_str(), 0) == 0)
      return "TRELLIS_PLUGINS_DISABLE=" + glob;
  if (!manifest_variable.empty())
    if (const std::string value = environment(manifest_variable.c_str()); !value.empty())
      return manifest_variable + "=" + value;
  return {};
}

}  // namespace trellis::detail
