// SPDX-License-Identifier: Apache-2.0
//
// Everything plugins provide, by kind and id, with who provided it. Descriptors are copied into
// full structs of this host's version when they are registered (a plugin's smaller struct leaves
// the rest zero), so nobody else looks at struct_size. A plugin is registered whole or not at all.
#pragma once

#include <trellis/abi/abi.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <trellis/attrs.hpp>
#include <trellis/tensor.hpp>
#include <unordered_map>
#include <vector>

namespace trellis {

namespace detail {
class BoundAttrs;
}

// What the C++ operators and the kernel's combinators ask for. The only words of the kernel about
// operators.
enum class Role : uint8_t {
  add,  // x + y, broadcasting
  sub,  // x - y
  mul,  // element-wise
  div,  // element-wise
  neg,
  matmul,       // matrix product
  scale_shift,  // scale * x + shift; VALUE attributes "scale", "shift"
  sum,          // over axes; attribute "axes" (none: all)
  sum_batches,
  concat,   // variadic; attribute "axis"
  slice,    // attributes "start", "end", "axis"
  reshape,  // attribute "shape" (I64S)
  dropout,  // attribute "p"
  kCount
};
std::string_view role_name(Role r);
std::optional<Role> role_from(std::string_view name);

struct AttrSpec {
  std::string key, doc;
  uint32_t type = 0, flags = 0;
  trl_attr dflt{};        // points into the plugin's constant tables
  double lo = 1, hi = 0;  // lo > hi: no range
  std::vector<std::string> choices;
  int bound_input = -1, bound_axis = -1, bound_axis_attr = -1;
  uint32_t min_each = 0, max_each = ~0u;
  bool per_batch() const { return flags & (TRL_ATTR_PER_BATCH | TRL_ATTR_VALUE); }
  bool required() const { return flags & TRL_ATTR_REQUIRED; }
};

struct PluginRecord {
  std::string id, version, cpu_level;
  std::string path,
      manifest;  // library and manifest as loaded; "kernel" for the kernel's own leaves
  std::vector<std::string> namespaces;
  bool shipped = false;  // from the install place: may use the reserved namespaces
  bool allow_core_override = false;
  uint32_t index = 0;    // order of registration
  void* self = nullptr;  // what init returned
  trl_plugin table{};    // normalised
};

struct KernelEntry {
  trl_kernel_desc desc{};
  const PluginRecord* plugin = nullptr;
  explicit operator bool() const { return plugin != nullptr; }
};

struct UpdateEntry {
  trl_update_desc desc{};
  const PluginRecord* plugin = nullptr;
};

struct OpEntry {
  uint32_t handle = 0;   // index + 1
  std::string id, name;  // "core.tanh", "tanh"
  trl_op_desc desc{};
  std::vector<trl_in_spec> in;
  std::vector<trl_out_spec> out;
  std::vector<AttrSpec> attrs;
  std::vector<std::string> aliases;
  const PluginRecord* plugin = nullptr;
  KernelEntry f32, f64;  // the best CPU kernel of each; empty: none
  std::vector<KernelEntry> all_kernels;
  uint16_t n_visible = 0;  // outputs
  bool variadic = false, mergeable = true, stochastic = false, elementwise = false;
  bool has_per_batch = false;  // any PER_BATCH or VALUE attribute
  bool bare = false;           // no attributes, no random numbers
  const KernelEntry& kernel(DType t) const { return t == DType::f64 ? f64 : f32; }
};

struct BuilderEntry {
  std::string id, name;
  trl_builder_desc desc{};
  std::vector<AttrSpec> attrs;
  std::vector<std::string> aliases;
  const PluginRecord* plugin = nullptr;
};
struct SoftmaxEntry {
  std::string id, name;
  trl_softmax_desc desc{};
  std::vector<AttrSpec> attrs;
  std::vector<std::string> aliases;
  const PluginRecord* plugin = nullptr;
};
struct InitializerEntry {
  std::string id, name;
  trl_initializer_desc desc{};
  std::vector<AttrSpec> attrs;
  std::vector<std::string> aliases;
  const PluginRecord* plugin = nullptr;
};
struct TrainerEntry {
  std::string id, name;
  trl_trainer_desc desc{};
  std::vector<AttrSpec> attrs;
  std::vector<trl_slot_spec> slots;
  std::vector<std::string> aliases;
  trl_update_desc f32{}, f64{};  // the best CPU update of each; update == NULL: none
  std::vector<UpdateEntry> all_updates;
  const PluginRecord* plugin = nullptr;
  int lr_attr = -1;  // index of "lr", -1: none
};
struct LinalgEntry {
  std::string id;
  trl_linalg_desc desc{};
  const PluginRecord* plugin = nullptr;
};

class TRELLIS_API Registry {
 public:
  Registry();
  ~Registry();

  // Checks every descriptor of `table` (already cross-checked with note and manifest), then
  // registers all of them or throws Error(plugin) and registers none. init has not run yet; the
  // loader sets self afterwards. Returned record is stable.
  PluginRecord& add(PluginRecord record, const trl_plugin& table);
  void remove_last(const PluginRecord& record);  // undoes the newest add (its init failed)
  // Settles a conflict: "core.add" (an id of any kind), "role:add" or "role:initializer" (the
  // default one) is served by plugin `plugin_id`. Before add().
  void set_override(std::string target, std::string plugin_id);

  // By full id, alias, or bare name (core's, else the only provider's; several: Error(argument)
  // listing them). Null: unknown. The throwing forms name near misses: [registry] no operator
  // 'tahn' (did you mean 'tanh'? loaded: ..).
  const OpEntry* find_op(std::string_view name) const;
  const OpEntry& op(std::string_view name) const;
  const OpEntry& op(uint32_t handle) const { return *ops_[handle - 1]; }
  // Error(plugin) naming role and what to load; two providers without override: Error(plugin).
  const OpEntry& role(Role r) const;
  const BuilderEntry& builder(std::string_view name) const;
  const SoftmaxEntry& softmax(std::string_view name) const;
  const InitializerEntry& initializer(std::string_view name) const;
  const InitializerEntry& default_initializer() const;
  const TrainerEntry& trainer(std::string_view name) const;

  std::span<const std::unique_ptr<PluginRecord>> plugins() const { return plugins_; }
  std::span<const std::unique_ptr<OpEntry>> ops() const { return ops_; }
  std::span<const std::unique_ptr<BuilderEntry>> builders() const { return builders_; }
  std::span<const std::unique_ptr<SoftmaxEntry>> softmaxes() const { return softmaxes_; }
  std::span<const std::unique_ptr<InitializerEntry>> initializers() const { return initializers_; }
  std::span<const std::unique_ptr<TrainerEntry>> trainers() const { return trainers_; }
  std::span<const std::unique_ptr<LinalgEntry>> linalgs() const { return linalgs_; }
  const PluginRecord* plugin(std::string_view id) const;

  // Process-wide number of a name, for typed functions: resolve once per process, then
  // handles[number] per runtime.
  static uint32_t name_id(std::string_view full_op_id);
  static std::string name_of(uint32_t name_id);  // throws Error(internal) for a number not given
  const OpEntry& op_by_name_id(
      uint32_t id) const;  // one load when it was resolved before; thread-safe

 private:
  const OpEntry& op_by_new_name_id(uint32_t id) const;
  struct Names;  // look-up tables, made anew by every change of the vectors below
  struct Undo;   // what the newest add changed
  void index();
  static void choose_kernels(OpEntry& op);
  static void choose_updates(TrainerEntry& trainer);
  std::string loaded() const;
  template <class Index>
  const auto& find(const Index& index, std::string_view kind, std::string_view name) const;

  std::vector<std::unique_ptr<PluginRecord>> plugins_;
  std::vector<std::unique_ptr<OpEntry>> ops_;
  std::vector<std::unique_ptr<BuilderEntry>> builders_;
  std::vector<std::unique_ptr<SoftmaxEntry>> softmaxes_;
  std::vector<std::unique_ptr<InitializerEntry>> initializers_;
  std::vector<std::unique_ptr<TrainerEntry>> trainers_;
  std::vector<std::unique_ptr<LinalgEntry>> linalgs_;
  std::unique_ptr<Names> names_;
  std::unique_ptr<Undo> undo_;
  std::map<std::string, std::string, std::less<>> overrides_;
};

namespace detail {

// Attribute values checked against specs (type, range, choices, required, unknown keys with
// suggestion) in the specs' order, defaults filled in. `who` starts error texts. Owns the memory
// its trl_attr point to.
class BoundAttrs {
 public:
  BoundAttrs() = default;
  BoundAttrs(std::string_view who, std::span<const AttrSpec> specs, const Attrs& given);
  BoundAttrs(BoundAttrs&&) noexcept = default;
  BoundAttrs& operator=(BoundAttrs&&) noexcept = default;

  std::span<const trl_attr> all() const { return attrs_; }
  // PER_BATCH and VALUE attributes: number of batch elements the values were given for; 1 may be
  // repeated, 0: no such attribute or all defaults.
  uint32_t batch() const { return batch_; }
  // Replaces one value (a schedule, an override); same checks. Not for PER_BATCH and VALUE
  // attributes.
  void set(std::string_view who, std::span<const AttrSpec> specs, std::string_view key,
           const AttrValue& v);

 private:
  std::vector<trl_attr> attrs_;
  std::vector<std::unique_ptr<char[]>> memory_;
  uint32_t batch_ = 0;
};

// Checks one ordered trl_attr array (from the C interface or a typed call) against specs; throws
// Error(argument).
void check_attrs(std::string_view who, std::span<const AttrSpec> specs,
                 std::span<const trl_attr> attrs);

// The nearest of `names` within edit distance 2, or empty.
std::string nearest(std::string_view name, std::span<const std::string> names);

}  // namespace detail
}  // namespace trellis
