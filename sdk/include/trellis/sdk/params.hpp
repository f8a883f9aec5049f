// SPDX-License-Identifier: Apache-2.0
//
// Parameters that builders and softmax builders declare. The host makes, initialises, saves and
// freezes them.
#pragma once

#include <trellis/abi/builder.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <trellis/sdk/plugin.hpp>
#include <trellis/sdk/tensor.hpp>
#include <tuple>
#include <vector>

namespace trellis::sdk {
inline namespace [[gnu::visibility("hidden")]] v0 {

// A size out of an integer attribute. Refuses what does not fit a dimension.
inline std::uint32_t size(std::int64_t n) {
  if (n < 1 || n > 0xFFFFFFFFll) fail(TRL_E_INVALID, "a size must be positive: given ", n);
  return static_cast<std::uint32_t>(n);
}

// One parameter: its name within the builder, its shape, how it starts (the default initializer
// unless said).
struct Param {
  std::string name;
  Dim dim;
  std::uint32_t rows = 0;  // not 0: a lookup table of rows of shape dim
  std::uint32_t flags = 0;
  std::string_view initializer{}, init_key{};  // string literals
  double init_value = 0;

  Param(std::string param_name, const Dim& param_dim)
      : name(std::move(param_name)), dim(param_dim) {}

  // Starts from another initializer (full id), with one of its number attributes set.
  Param& init(std::string_view id, std::string_view key = {}, double value = 0) {
    initializer = id;
    init_key = key;
    init_value = value;
    return *this;
  }
  Param& lookup(std::uint32_t n_rows) {
    rows = n_rows;
    flags |= TRL_PARAM_LOOKUP;
    return *this;
  }
  Param& constant() {  // not trained
    flags |= TRL_PARAM_CONSTANT;
    return *this;
  }
  Param& external() {  // may be bound to another parameter by name
    flags |= TRL_PARAM_EXTERNAL;
    return *this;
  }
};
using Params = std::vector<Param>;

namespace detail {

// The descriptor wants names, keys and values to stay; there are few different ones.
struct KeptInit {
  trl_str key;
  trl_attr value;
};
inline const KeptInit& kept_init(std::string_view key, double value) {
  static std::mutex mutex;
  static auto& kept = *new std::map<std::pair<std::string_view, double>, KeptInit>;
  const std::scoped_lock lock(mutex);
  const auto [at, fresh] = kept.try_emplace({key, value});
  if (fresh) at->second = {str(key), attr_of(value)};
  return at->second;
}
inline std::string_view kept_name(const std::string& name) {
  static std::mutex mutex;
  static auto& kept = *new std::map<std::string, char>;
  const std::scoped_lock lock(mutex);
  return kept.try_emplace(name).first->first;
}

template <class B>
trl_status param_of(trl_call* call, const trl_attr* attrs, std::uint32_t, std::uint32_t i,
                    trl_param_spec* to) {
  return guard(call, B::spec.name, [&] {
    const Param p = B::params(read_attrs<B>(attrs)).at(i);
    to->flags = p.flags;
    to->name = str(kept_name(p.name));
    to->initializer = str(p.initializer);
    to->n_init_attrs = 0;
    if (!p.init_key.empty()) {
      const KeptInit& kept = kept_init(p.init_key, p.init_value);
      to->init_keys = &kept.key;
      to->init_attrs = &kept.value;
      to->n_init_attrs = 1;
    }
    to->n_rows = p.rows;
    to->dim = p.dim;
  });
}

}  // namespace detail
}  // namespace gnu::visibility("hidden")]]v0
}  // namespace trellis::sdk
