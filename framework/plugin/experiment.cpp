// SPDX-License-Identifier: Apache-2.0
#include "plugin/experiment.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "plugin/manifest.hpp"
#include "plugin/toml_reader.hpp"

namespace trellis::detail {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRanges = "a range such as ^1.2, ~1.2, >=1.2, =1.2.0";

VersionRange range_of(const TomlTable& t, std::string_view key, std::string_view text) {
  const auto range = VersionRange::parse(text);
  if (!range) t.reject(key, "is '" + std::string(text) + "'", kRanges);
  return *range;
}

std::string number_text(double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return error == std::errc() ? std::string(text, end) : std::string();
}

std::map<std::string, std::string> read_options(const TomlTable& t) {
  std::map<std::string, std::string> options;
  for (const auto& [key, node] : t.raw()) {
    std::string& value = options[std::string(key.str())];
    if (const auto* s = node.as_string())
      value = s->get();
    else if (const auto* i = node.as_integer())
      value = std::to_string(i->get());
    else if (const auto* b = node.as_boolean())
      value = b->get() ? "true" : "false";
    else if (const auto* f = node.as_floating_point())
      value = number_text(f->get());
    else
      t.reject(key.str(), "has no simple value", "a string, number or boolean");
  }
  return options;
}

PluginWish read_wish(TomlTable& plugins, const toml::table& raw, const std::string& id,
                     const fs::path& file, std::vector<std::string>& warnings) {
  if (!is_plugin_id(id))
    plugins.reject(id, "is no plugin's id", "lower case letters, digits, dashes");
  PluginWish wish;
  wish.id = id;
  const toml::node& node = *raw.get(id);
  wish.origin = quoted(file) + ", line " + std::to_string(node.source().begin.line);
  if (node.is_string()) {
    wish.range = range_of(plugins, id, plugins.text(id));
    return wish;
  }
  if (!node.is_table()) plugins.reject(id, "is neither", "a range or a table");
  TomlTable t = *plugins.table(id);
  wish.range = range_of(t, "version", t.text("version", "*"));
  if (t.has("path")) wish.path = file.parent_path() / t.text("path");
  if (const auto options = t.table("options")) wish.options = read_options(*options);
  t.warn_unknown(warnings);
  return wish;
}

}  // namespace

Experiment read_experiment(const fs::path& given) {
  const fs::path file = fs::absolute(given);
  const toml::table parsed = parse_toml(file);
  Experiment e;
  TomlTable root(file, parsed);
  e.allow_core_override = root.boolean("allow_core_override", false);
  auto plugins = root.table("plugins");
  if (!plugins) root.reject("plugins", "is missing", "a table of plugin ids and version ranges");
  for (const auto& entry : plugins->raw())
    e.plugins.push_back(
        read_wish(*plugins, plugins->raw(), std::string(entry.first.str()), file, e.warnings));
  std::sort(e.plugins.begin(), e.plugins.end(),
            [](const PluginWish& a, const PluginWish& b) { return a.id < b.id; });
  if (auto overrides = root.table("override"))
    for (const auto& entry : overrides->raw()) {
      Override o;
      o.target = entry.first.str();
      const std::string provider = overrides->text(o.target);
      const size_t at = provider.find('@');
      o.id = provider.substr(0, at);
      if (at != std::string::npos)
        o.range = range_of(*overrides, o.target, provider.substr(at + 1));
      o.origin = quoted(file) + ", line " + std::to_string(entry.second.source().begin.line);
      const bool is_named = std::any_of(e.plugins.begin(), e.plugins.end(),
                                        [&](const PluginWish& w) { return w.id == o.id; });
      if (!is_named)
        overrides->reject(o.target, "names '" + o.id + "'", "a plugin listed in [plugins]");
      e.overrides.push_back(std::move(o));
    }
  root.warn_unknown(e.warnings);
  return e;
}

PluginWish parse_wish(std::string_view text) {
  PluginWish wish;
  wish.origin = "'" + std::string(text) + "'";
  if (text.find('/') != std::string_view::npos || text.ends_with(".toml") ||
      text.ends_with(".so")) {
    wish.path = fs::absolute(text);
    return wish;
  }
  const size_t at = text.find('@');
  wish.id = text.substr(0, at);
  if (!is_plugin_id(wish.id))
    fail(ErrorKind::plugin, "[plugin] cannot load '" + std::string(text) +
                                "': no plugin id (needs id, id@range or the path of a manifest)");
  if (at != std::string_view::npos) {
    const auto range = VersionRange::parse(text.substr(at + 1));
    if (!range)
      fail(ErrorKind::plugin, "[plugin] cannot load '" + std::string(text) + "': '" +
                                  std::string(text.substr(at + 1)) +
                                  "' is no version range (needs " + std::string(kRanges) + ")");
    wish.range = *range;
  }
  return wish;
}

}  // namespace trellis::detail
