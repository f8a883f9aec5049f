// SPDX-License-Identifier: Apache-2.0
//
// Ids and how they are found. An id is "namespace.name": [a-z0-9_.], at most 63 bytes, its name
// what follows the last dot.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace trellis::detail {

bool is_id(std::string_view text);    // "core.tanh", at most 63 bytes
bool is_name(std::string_view text);  // [a-z][a-z0-9_]*: inputs, attributes, slots
bool is_utf8(std::string_view text);
inline std::string_view name_of(std::string_view id) { return id.substr(id.rfind('.') + 1); }
// "core" and "dynet" belong to the plugins shipped with Trellis.
bool is_reserved(std::string_view id);
// True when id lies in the namespace: "acme.sub.x" lies in "acme" and in "acme.sub".
bool lies_in(std::string_view id, std::string_view name_space);

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
template <class V>
using TextMap = std::unordered_map<std::string, V, TextHash, std::equal_to<>>;

[[noreturn]] void fail_ambiguous(std::string_view kind, std::string_view name,
                                 std::span<const std::string> ids);

// Finds entries (anything with id and aliases) by full id, alias or bare name.
template <class Entry>
class Index {
 public:
  Index() = default;
  explicit Index(std::span<const std::unique_ptr<Entry>> entries) {
    for (const auto& entry : entries) {
      full_.emplace(entry->id, entry.get());
      bare_[std::string(name_of(entry->id))].push_back(entry.get());
    }
    for (const auto& entry : entries) {
      for (const std::string& alias : entry->aliases) {
        full_.emplace(alias, entry.get());
        bare_alias_[std::string(name_of(alias))].push_back(entry.get());
      }
    }
    // A bare name means the one in core where there is one.
    for (auto* names : {&bare_, &bare_alias_}) {
      for (auto& [name, found] : *names) {
        const auto core = full_.find("core." + name);
        if (core != full_.end()) found.assign(1, core->second);
      }
    }
  }

  const Entry* full(std::string_view id) const {
    const auto at = full_.find(id);
    return at == full_.end() ? nullptr : at->second;
  }
  // Null: unknown. `kind` is for the text of the error that an ambiguous name is.
  const Entry* find(std::string_view kind, std::string_view name) const {
    if (const Entry* entry = full(name)) return entry;
    for (const auto* names : {&bare_, &bare_alias_}) {
      const auto at = names->find(name);
      if (at == names->end()) continue;
      for (const Entry* entry : at->second) {
        if (entry == at->second.front()) continue;
        std::vector<std::string> ids;
        for (const Entry* candidate : at->second) ids.push_back(candidate->id);
        fail_ambiguous(kind, name, ids);
      }
      return at->second.front();
    }
    return nullptr;
  }
  // Every name that finds something, for suggestions.
  std::vector<std::string> all() const {
    std::vector<std::string> names;
    for (const auto* map : {&bare_, &bare_alias_})
      for (const auto& [name, found] : *map) names.push_back(name);
    for (const auto& [name, found] : full_) names.push_back(name);
    return names;
  }

 private:
  TextMap<const Entry*> full_;
  TextMap<std::vector<const Entry*>> bare_, bare_alias_;
};

}  // namespace trellis::detail
