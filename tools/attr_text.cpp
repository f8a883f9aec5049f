// SPDX-License-Identifier: Apache-2.0
#include "attr_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "table.hpp"

namespace trellis::tools {
namespace {

template <class T>
bool parse_number(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

// "1,2,3".
template <class T>
std::optional<AttrValue> parse_list(std::string_view text) {
  std::vector<T> values;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    if (!parse_number(text.substr(0, comma), values.emplace_back())) return std::nullopt;
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return AttrValue(std::move(values));
}

std::optional<AttrValue> parse_value(const std::string& type, std::string_view text) {
  int64_t i = 0;
  double f = 0;
  if (type == "i64" && parse_number(text, i)) return AttrValue(i);
  if (type == "f64" && parse_number(text, f)) return AttrValue(f);
  if (type == "bool" && (text == "true" || text == "1")) return AttrValue(true);
  if (type == "bool" && (text == "false" || text == "0")) return AttrValue(false);
  if (type == "choice" || type == "str") return AttrValue(text);
  if (type == "i64s") return parse_list<int64_t>(text);
  if (type == "f64s") return parse_list<double>(text);
  return std::nullopt;
}

const AttrInfo* find_key(const AttrTarget& target, std::string_view key) {
  const auto at = std::find_if(target.info.attrs.begin(), target.info.attrs.end(),
                               [&](const AttrInfo& a) { return a.key == key; });
  return at == target.info.attrs.end() ? nullptr : &*at;
}

// "core.adam has lr, beta1; core.lstm has input, hidden".
std::string keys_of(const std::vector<AttrTarget*>& targets) {
  std::string out;
  for (const AttrTarget* target : targets) {
    std::vector<std::string> keys;
    for (const AttrInfo& a : target->info.attrs) keys.push_back(a.key);
    out += fmt::format("{}{} has {}", out.empty() ? "" : "; ", target->info.id, join(keys));
  }
  return out;
}

}  // namespace

void assign_attrs(std::string_view who, const std::vector<std::string>& texts,
                  std::vector<AttrTarget*> targets) {
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      fail(ErrorKind::argument,
           fmt::format("[{}] --attr '{}' has no value (needed key=value)", who, text));
    }
    const std::string key = text.substr(0, equals);
    AttrTarget* found = nullptr;
    const AttrInfo* attr = nullptr;
    for (AttrTarget* target : targets) {
      const bool prefixed = key.starts_with(target->prefix + ".");
      const AttrInfo* a = find_key(*target, prefixed ? key.substr(target->prefix.size() + 1) : key);
      if (a == nullptr) continue;
      if (found != nullptr) {
        fail(ErrorKind::argument,
             fmt::format("[{}] --attr '{}' fits {} and {} (write {}.{} or {}.{})", who, key,
                         found->info.id, target->info.id, found->prefix, key, target->prefix, key));
      }
      found = target;
      attr = a;
    }
    if (attr == nullptr) {
      fail(ErrorKind::argument,
           fmt::format("[{}] no attribute '{}' ({})", who, key, keys_of(targets)));
    }
    auto value = parse_value(attr->type, std::string_view(text).substr(equals + 1));
    if (!value) {
      fail(ErrorKind::argument, fmt::format("[{}] attribute '{}' is '{}' (needed {})", who, key,
                                            text.substr(equals + 1), attr->type));
    }
    std::erase_if(found->attrs, [&](const Attr& a) { return a.key == attr->key; });
    found->attrs.push_back({attr->key, std::move(*value)});
  }
}

Json attrs_to_json(const Attrs& attrs) {
  Json object = Json::object();
  for (const Attr& a : attrs) object[a.key] = to_json(a.value);
  return object;
}

Attrs attrs_from_json(const Json& object) {
  if (!object.is_object()) throw std::runtime_error("attributes are no object");
  Attrs attrs;
  for (const auto& [key, v] : object.items()) {
    const bool list = v.is_array() &&
                      std::all_of(v.begin(), v.end(), [](const Json& x) { return x.is_number(); });
    const bool whole = list && std::all_of(v.begin(), v.end(),
                                           [](const Json& x) { return x.is_number_integer(); });
    if (v.is_boolean()) {
      attrs.push_back({key, v.get<bool>()});
    } else if (v.is_number_integer()) {
      attrs.push_back({key, v.get<int64_t>()});
    } else if (v.is_number()) {
      attrs.push_back({key, v.get<double>()});
    } else if (v.is_string()) {
      attrs.push_back({key, v.get<std::string>()});
    } else if (whole) {
      attrs.push_back({key, v.get<std::vector<int64_t>>()});
    } else if (list) {
      attrs.push_back({key, v.get<std::vector<double>>()});
    } else {
      throw std::runtime_error(fmt::format("attribute '{}' has a value of no known type", key));
    }
  }
  return attrs;
}

}  // namespace trellis::tools
