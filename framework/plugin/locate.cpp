// SPDX-License-Identifier: Apache-2.0
#include "plugin/locate.hpp"

#include <system_error>
#include <trellis/error.hpp>

#include "plugin/experiment.hpp"
#include "plugin/file.hpp"
#include "plugin/manifest.hpp"

namespace trellis::detail {

namespace fs = std::filesystem;

std::string where(const FoundManifest* found) {
  if (!found) return "given by path";
  return "found in " + std::string(place_name(found->place->kind)) + " " +
         quoted(found->place->folder);
}

LocatedPlugin locate_plugin(const std::string& id_or_file, const Places& places,
                            std::string_view verb) {
  const std::string lead = "[plugin] cannot " + std::string(verb) + " ";
  const PluginWish wish = parse_wish(id_or_file);
  LocatedPlugin plugin;
  std::error_code error;
  if (!wish.path.empty()) {
    if (!fs::exists(wish.path, error))
      fail(ErrorKind::plugin, lead + quoted(wish.path) + ": no such file");
    plugin.manifest = wish.path;
    if (manifest_id(wish.path).empty()) {
      plugin.library = wish.path;
      plugin.manifest = manifest_beside(wish.path);
      if (!fs::exists(plugin.manifest, error)) plugin.manifest.clear();
    }
    if (plugin.manifest.empty()) return plugin;
  }
  for (const FoundManifest& found : places.manifests()) {
    const bool is_it = wish.path.empty() ? found.id == wish.id
                                         : fs::equivalent(found.file, plugin.manifest, error);
    if (!is_it) continue;
    plugin.manifest = found.file;
    plugin.found = &found;
    return plugin;
  }
  if (wish.path.empty())
    fail(ErrorKind::plugin, lead + "'" + wish.id + "': not found in " + places.text());
  return plugin;
}

}  // namespace trellis::detail
