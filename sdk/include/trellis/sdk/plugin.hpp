// SPDX-License-Identifier: Apache-2.0
//
// The plugin itself: its tables, its entry and what it keeps per runtime.
//
//   TRL_OPS(tanh, Tanh)                              in the file that defines them: a named group
//   of things provided TRL_PLUGIN("acme-act", "1.4.0", "acme", tanh)    once, in any file: id,
//   version, namespace, the groups
//
// A group may hold operators, builders, softmax builders, trainers, initializers and linalg
// providers; the type of the `spec` member tells which. Nothing is registered by static
// initialisers: the entry makes the tables when first called and they live as long as the process.
#pragma once

#include <trellis/abi/plugin.h>

#include <array>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <trellis/sdk/attrs.hpp>
#include <trellis/sdk/error.hpp>
#include <vector>

namespace trellis::sdk {
inline namespace [[gnu::visibility("hidden")]] v0 {

// A text that can be a template argument.
template <std::size_t N>
struct Name {
  char text[N]{};
  constexpr Name(const char (&literal)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = literal[i];
  }
  constexpr std::string_view view() const { return {text, N - 1}; }
};

// An operator that another thing is built from, with the keys of the attributes it will be given,
// in order:
//   using Dropout = Use<"core.dropout", "p">;
// Resolved at init; applied by type, so that no text is left at run time.
template <Name kId, Name... kKeys>
struct Use {
  static constexpr std::string_view id = kId.view();
  static constexpr std::size_t n_keys = sizeof...(kKeys);
  static inline constexpr std::array<std::string_view, n_keys> keys{kKeys.view()...};
};
// All operators a builder, softmax builder or composite uses: `using uses = Uses<Affine, Dropout>;`
template <class... U>
struct Uses {};

namespace detail {

// What a plugin keeps for one runtime; trl_call::self points to it.
struct Self {
  const trl_exec_api* exec = nullptr;
  const trl_linalg_api* linalg = nullptr;
  const trl_graph_api* graph = nullptr;
  std::vector<trl_op_handle> ops;  // by use_index
};

inline const Self& self_of(const trl_call* call) { return *static_cast<const Self*>(call->self); }
template <class Api>
const Api& need(const Api* api, std::string_view id) {
  if (api == nullptr) [[unlikely]]
    fail(TRL_E_UNSUPPORTED, "the host does not offer ", id);
  return *api;
}

// The place of an operator among those the plugin resolves: the same in every runtime, set while
// the tables are made.
template <class U>
inline std::uint32_t use_index = ~0u;

template <class L, class U>
inline constexpr bool kHasUse = false;
template <class... L, class U>
inline constexpr bool kHasUse<Uses<L...>, U> = (std::is_same_v<L, U> || ...);

}  // namespace detail

// The tables of a plugin while they are made. Authors do not call it.
class Catalog {
 public:
  explicit Catalog(std::string_view name_space) : namespace_(name_space) {}
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  template <class... Things>
  void add(const char* file) {
    (describe<Things>(*this, Things::spec, relative(file)), ...);
  }

  // The full id of a name: "square" in namespace acme is "acme.square".
  trl_str id(std::string_view name) {
    if (name.empty() || name.find('.') != name.npos) return detail::str(name);
    ids_.push_back(namespace_ + "." + std::string(name));
    return detail::str(ids_.back());
  }
  // Moves a value to where it stays for ever.
  template <class T>
  T* keep(T value) {
    return new T(std::move(value));
  }
  template <class T>
  const T* keep(const std::vector<T>& values) {
    if (values.empty()) return nullptr;
    T* to = new T[values.size()];
    for (std::size_t i = 0; i < values.size(); ++i) to[i] = values[i];
    return to;
  }
  template <class L>
  void aliases(const L& from, const trl_str*& to, std::uint16_t& n) {
    std::vector<trl_str> all;
    for (const std::string_view alias : from) all.push_back(detail::str(alias));
    to = keep(all);
    n = static_cast<std::uint16_t>(all.size());
  }
  template <class X>
  void attrs(const trl_attr_spec* const*& to, std::uint16_t& n) {
    std::vector<const trl_attr_spec*> all;
    if constexpr (detail::HasAttrs<X>) {
      const typename X::Attrs dflt{};
      std::apply([&](const auto&... f) { (all.push_back(attr<X>(f, dflt.*f.member)), ...); },
                 X::attrs);
    }
    to = keep(all);
    n = static_cast<std::uint16_t>(all.size());
  }
  template <class... U>
  void use(Uses<U...>) {
    (use_one<U>(), ...);
  }
  template <class X>
  void uses() {
    if constexpr (requires { typename X::uses; }) use(typename X::uses{});
  }

  struct UseSpec {
    trl_str id;
    std::vector<trl_str> keys;
  };
  std::vector<const trl_op_desc*> ops;
  std::vector<const trl_kernel_desc*> kernels;
  std::vector<const trl_builder_desc*> builders;
  std::vector<const trl_softmax_desc*> softmaxes;
  std::vector<const trl_initializer_desc*> initializers;
  std::vector<const trl_trainer_desc*> trainers;
  std::vector<const trl_update_desc*> updates;
  std::vector<const trl_linalg_desc*> linalgs;
  std::vector<UseSpec> resolved;

 private:
  // Where a file is named relative to the build folder, only the part inside the source tree says
  // something.
  static std::string_view relative(std::string_view file) {
    while (file.substr(0, 3) == "../") file.remove_prefix(3);
    return file;
  }
  template <class U>
  void use_one() {
    if (detail::use_index<U> != ~0u) return;
    UseSpec spec{id(U::id), {}};
    for (const std::string_view key : U::keys) spec.keys.push_back(detail::str(key));
    detail::use_index<U> = static_cast<std::uint32_t>(resolved.size());
    resolved.push_back(std::move(spec));
  }
  template <class X, class F>
  const trl_attr_spec* attr(const F& f, const typename F::Member& dflt) {
    using M = typename F::Member;
    trl_attr_spec to{};
    to.struct_size = sizeof to;
    to.type = detail::attr_type<M>();
    to.flags = f.flags;
    if constexpr (std::is_same_v<M, Ids>) to.flags |= TRL_ATTR_PER_BATCH;
    if constexpr (std::is_same_v<M, Scalars>) {
      to.flags |= TRL_ATTR_VALUE;
      to.dflt = detail::attr_of(Floats(keep(dflt.fallback()), 1));
    } else {
      to.dflt = detail::attr_of(dflt);
    }
    to.key = detail::str(f.key);
    to.doc = detail::str(f.doc);
    to.lo = f.lo;
    to.hi = f.hi;
    std::vector<trl_str> names;
    for (const std::string_view name : f.choices) names.push_back(detail::str(name));
    to.choices = keep(names);
    to.n_choices = static_cast<std::uint32_t>(names.size());
    to.bound_input = f.bound_input;
    to.bound_axis = f.bound_axis;
    to.bound_axis_attr = static_cast<std::int16_t>(detail::attr_index<X>(f.bound_axis_key));
    to.min_each = f.min_each;
    to.max_each = f.max_each;
    return keep(to);
  }

  std::string namespace_;
  std::deque<std::string> ids_;  // descriptors point into them
};

namespace detail {

inline Catalog* the_catalog = nullptr;  // the plugin's own; made by the first call of the entry

struct PluginInfo {
  std::string_view id, version, name_space;
};
using Group = void(Catalog&);

template <class Api>
void resolve_interface(trl_call* call, std::string_view id, const Api*& to) {
  std::uint32_t size = 0;
  to = static_cast<const Api*>(call->host->get_interface(call, str(id), &size));
}

inline trl_status plugin_init(trl_call* call, void** ret_self) {
  return guard(call, "plugin", [&] {
    auto self = std::make_unique<Self>();
    resolve_interface(call, "trl.exec/1", self->exec);
    resolve_interface(call, "trl.linalg/1", self->linalg);
    resolve_interface(call, "trl.graph/1", self->graph);
    if (!the_catalog->resolved.empty()) {
      const trl_registry_api* registry = nullptr;
      resolve_interface(call, "trl.registry/1", registry);
      need(registry, "trl.registry/1");
      for (const Catalog::UseSpec& use : the_catalog->resolved) {
        trl_op_handle handle = 0;
        const trl_status status = registry->resolve(
            call, use.id, use.keys.data(), static_cast<std::uint32_t>(use.keys.size()), &handle);
        if (status != TRL_OK) throw Error(status, {});
        self->ops.push_back(handle);
      }
    }
    *ret_self = self.release();
  });
}
inline void plugin_fini(trl_call* call) { delete static_cast<Self*>(call->self); }

template <class T>
const T* const* table(const std::vector<const T*>& v, std::uint32_t& n) {
  n = static_cast<std::uint32_t>(v.size());
  return v.data();
}

inline trl_status plugin_entry(trl_call* call, trl_plugin* out, const PluginInfo& info,
                               std::initializer_list<Group*> groups) {
  return guard(call, "plugin", [&] {
    const trl_host& host = *call->host;
    if (host.abi_major != TRL_ABI_MAJOR || host.abi_minor + 1 < TRL_TARGET_MINOR + 1)
      fail(TRL_E_ABI, info.id, " needs host ABI ", TRL_ABI_MAJOR, ".", TRL_TARGET_MINOR,
           ": this host has ", host.abi_major, ".", host.abi_minor,
           " (upgrade trellis, or rebuild the plugin with TRL_TARGET_MINOR=", host.abi_minor, ")");
    static const bool made = [&] {
      the_catalog = new Catalog(info.name_space);  // lives as long as the process, like the library
      for (Group* group : groups) group(*the_catalog);
      return true;
    }();
    static_cast<void>(made);
    const Catalog& c = *the_catalog;
    trl_plugin plugin{};
    plugin.struct_size = sizeof plugin;
    plugin.abi_major = TRL_ABI_MAJOR;
    plugin.abi_minor = TRL_ABI_MINOR;
    plugin.min_host_minor = TRL_TARGET_MINOR;
    plugin.id = str(info.id);
    plugin.version = str(info.version);
    plugin.ops = table(c.ops, plugin.n_ops);
    plugin.kernels = table(c.kernels, plugin.n_kernels);
    plugin.builders = table(c.builders, plugin.n_builders);
    plugin.softmaxes = table(c.softmaxes, plugin.n_softmaxes);
    plugin.initializers = table(c.initializers, plugin.n_initializers);
    plugin.trainers = table(c.trainers, plugin.n_trainers);
    plugin.updates = table(c.updates, plugin.n_updates);
    plugin.linalgs = table(c.linalgs, plugin.n_linalgs);
    plugin.init = &plugin_init;
    plugin.fini = &plugin_fini;
    TRL_FILL(out, &plugin);
  });
}

}  // namespace detail
}  // namespace gnu::visibility("hidden")]]v0
}  // namespace trellis::sdk

// Calls m(x) for each argument.
#define TRL_DETAIL_PARENS ()
#define TRL_DETAIL_EXPAND(...) \
  TRL_DETAIL_EXPAND3(TRL_DETAIL_EXPAND3(TRL_DETAIL_EXPAND3(TRL_DETAIL_EXPAND3(__VA_ARGS__))))
#define TRL_DETAIL_EXPAND3(...) \
  TRL_DETAIL_EXPAND2(TRL_DETAIL_EXPAND2(TRL_DETAIL_EXPAND2(TRL_DETAIL_EXPAND2(__VA_ARGS__))))
#define TRL_DETAIL_EXPAND2(...) \
  TRL_DETAIL_EXPAND1(TRL_DETAIL_EXPAND1(TRL_DETAIL_EXPAND1(TRL_DETAIL_EXPAND1(__VA_ARGS__))))
#define TRL_DETAIL_EXPAND1(...) __VA_ARGS__
#define TRL_DETAIL_EACH(m, ...) __VA_OPT__(TRL_DETAIL_EXPAND(TRL_DETAIL_EACH_ONE(m, __VA_ARGS__)))
#define TRL_DETAIL_EACH_ONE(m, x, ...) \
  m(x) __VA_OPT__(TRL_DETAIL_EACH_AGAIN TRL_DETAIL_PARENS(m, __VA_ARGS__))
#define TRL_DETAIL_EACH_AGAIN() TRL_DETAIL_EACH_ONE
#define TRL_DETAIL_DECLARE(x) \
  extern "C" __attribute__((visibility("hidden"))) void trl_ops_##x(::trellis::sdk::Catalog&);
#define TRL_DETAIL_LIST(x) &trl_ops_##x,

// A named group of the things a file provides. May stand in any namespace; the name is unique in
// the plugin.
#define TRL_OPS(group, ...)                                              \
  extern "C" __attribute__((visibility("hidden"))) void trl_ops_##group( \
      ::trellis::sdk::Catalog& trl_catalog) {                            \
    trl_catalog.add<__VA_ARGS__>(__FILE__);                              \
  }

// The plugin: id, version, namespace of bare names, groups. Once per library, outside any
// namespace.
#define TRL_PLUGIN(plugin_id, plugin_version, plugin_namespace, ...)                              \
  TRL_PLUGIN_NOTE(plugin_id, plugin_version);                                                     \
  TRL_DETAIL_EACH(TRL_DETAIL_DECLARE, __VA_ARGS__)                                                \
  extern "C" TRL_EXPORT trl_status trl_plugin_entry_v1(trl_call* call, trl_plugin* out) {         \
    return ::trellis::sdk::detail::plugin_entry(call, out,                                        \
                                                {plugin_id, plugin_version, plugin_namespace},    \
                                                {TRL_DETAIL_EACH(TRL_DETAIL_LIST, __VA_ARGS__)}); \
  }
