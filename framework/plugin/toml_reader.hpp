// SPDX-License-Identifier: Apache-2.0
//
// Typed reading of small TOML files whose errors name file, line and key. Private to the two files
// that read TOML: toml++ is long to compile.
#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <trellis/error.hpp>
#include <utility>
#include <vector>

#include "plugin/file.hpp"

namespace trellis::detail {

inline constexpr size_t kMaxTomlBytes = 64 * 1024;

// Parses the file; throws Error(plugin): unreadable, longer than 64 KiB, or not TOML (with the
// line).
inline toml::table parse_toml(const std::filesystem::path& file) {
  const std::string text = read_small_file(file, kMaxTomlBytes);
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& e) {
    fail(ErrorKind::plugin, "[plugin] cannot read " + quoted(file) + ": line " +
                                std::to_string(e.source().begin.line) + ": " +
                                std::string(e.description()));
  }
}

// One table; remembers which keys were asked for.
class TomlTable {
 public:
  TomlTable(const std::filesystem::path& file, const toml::table& table, std::string prefix = {})
      : file_(&file), table_(&table), prefix_(std::move(prefix)) {}

  bool has(std::string_view key) const { return table_->contains(key); }
  uint32_t line() const { return table_->source().begin.line; }
  const toml::table& raw() const { return *table_; }

  std::string text(std::string_view key) { return *typed<std::string>(key, "a string", true); }
  std::string text(std::string_view key, std::string dflt) {
    return typed<std::string>(key, "a string", false).value_or(std::move(dflt));
  }
  bool boolean(std::string_view key, bool dflt) {
    return typed<bool>(key, "true or false", false).value_or(dflt);
  }
  uint32_t number(std::string_view key, std::optional<uint32_t> dflt = {}) {
    const auto v = typed<int64_t>(key, "an integer", !dflt);
    if (!v) return *dflt;
    if (*v < 0 || *v > 0xffff) reject(key, "is " + std::to_string(*v), "0 to 65535");
    return static_cast<uint32_t>(*v);
  }
  std::vector<std::string> texts(std::string_view key) {
    std::vector<std::string> out;
    const toml::node* node = take(key);
    if (!node) return out;
    const toml::array* array = node->as_array();
    if (!array) reject(key, is_a(*node), "an array of strings");
    for (const toml::node& element : *array) {
      const auto* s = element.as_string();
      if (!s) reject(key, "holds " + std::string(name_of(element)), "strings only");
      out.push_back(s->get());
    }
    return out;
  }
  std::optional<TomlTable> table(std::string_view key) {
    const toml::node* node = take(key);
    if (!node) return {};
    if (!node->is_table()) reject(key, is_a(*node), "a table");
    return TomlTable(*file_, *node->as_table(), prefix_ + std::string(key) + ".");
  }
  std::vector<TomlTable> tables(std::string_view key) {
    std::vector<TomlTable> out;
    const toml::node* node = take(key);
    if (!node) return out;
    const toml::array* array = node->as_array();
    if (!array) reject(key, is_a(*node), "an array of tables");
    for (const toml::node& element : *array) {
      if (!element.is_table()) reject(key, "holds " + std::string(name_of(element)), "tables only");
      out.emplace_back(*file_, *element.as_table(), prefix_ + std::string(key) + ".");
    }
    return out;
  }

  // Throws Error(plugin): [plugin] cannot read '/p/a.trellis.toml': line 3, key 'plugin.id' <fact>
  // (needs <needed>)
  [[noreturn]] void reject(std::string_view key, const std::string& fact,
                           std::string_view needed) const {
    const toml::node* node = table_->get(key);
    const auto line = node ? node->source().begin.line : table_->source().begin.line;
    fail(ErrorKind::plugin, "[plugin] cannot read " + quoted(*file_) + ": line " +
                                std::to_string(line ? line : 1) + ", key '" + prefix_ +
                                std::string(key) + "' " + fact + " (needs " + std::string(needed) +
                                ")");
  }

  // One warning for each key nobody asked for.
  void warn_unknown(std::vector<std::string>& warnings) const {
    for (const auto& [key, node] : *table_)
      if (std::find(used_.begin(), used_.end(), key.str()) == used_.end())
        warnings.push_back("[plugin] " + quoted(*file_) + ": line " +
                           std::to_string(key.source().begin.line) + ": unknown key '" + prefix_ +
                           std::string(key.str()) + "'");
  }

 private:
  static std::string_view name_of(const toml::node& node) {
    switch (node.type()) {
      case toml::node_type::table:
        return "a table";
      case toml::node_type::array:
        return "an array";
      case toml::node_type::string:
        return "a string";
      case toml::node_type::integer:
        return "an integer";
      case toml::node_type::floating_point:
        return "a float";
      case toml::node_type::boolean:
        return "a boolean";
      default:
        return "a date or time";
    }
  }
  static std::string is_a(const toml::node& node) { return "is " + std::string(name_of(node)); }

  const toml::node* take(std::string_view key) {
    used_.emplace_back(key);
    return table_->get(key);
  }
  template <class T>
  std::optional<T> typed(std::string_view key, std::string_view needed, bool required) {
    const toml::node* node = take(key);
    if (!node) {
      if (required) reject(key, "is missing", needed);
      return {};
    }
    const auto* value = node->as<T>();
    if (!value) reject(key, is_a(*node), needed);
    return value->get();
  }

  const std::filesystem::path* file_;
  const toml::table* table_;
  std::string prefix_;
  std::vector<std::string> used_;
};

}  // namespace trellis::detail
