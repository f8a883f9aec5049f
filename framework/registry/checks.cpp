// SPDX-License-Identifier: Apache-2.0
#include "registry/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "registry/names.hpp"

namespace trellis::detail {
namespace {

// Far above anything real, far below what would hurt.
constexpr uint32_t kMaxThings = 4096;
constexpr uint32_t kMaxKernels = 65536;
constexpr uint32_t kMaxParts = 64;  // inputs, outputs, attributes, aliases, choices, slots
constexpr uint32_t kMaxDefault = 1024;
constexpr size_t kMaxText = size_t{1} << 16;
constexpr uint32_t kMaxStruct = 1u << 16;

// How much of a descriptor must be there; what is missing behind it reads as zero.
template <class T>
constexpr size_t kLeast = 0;
template <>
constexpr size_t kLeast<trl_op_desc> = TRL_SIZE_THRU(trl_op_desc, infer);
template <>
constexpr size_t kLeast<trl_in_spec> = TRL_SIZE_THRU(trl_in_spec, merge);
template <>
constexpr size_t kLeast<trl_out_spec> = TRL_SIZE_THRU(trl_out_spec, dtype);
template <>
constexpr size_t kLeast<trl_attr_spec> = TRL_SIZE_THRU(trl_attr_spec, max_each);
template <>
constexpr size_t kLeast<trl_kernel_desc> = TRL_SIZE_THRU(trl_kernel_desc, backward);
template <>
constexpr size_t kLeast<trl_builder_desc> = TRL_SIZE_THRU(trl_builder_desc, step);
template <>
constexpr size_t kLeast<trl_softmax_desc> = TRL_SIZE_THRU(trl_softmax_desc, scores);
template <>
constexpr size_t kLeast<trl_initializer_desc> = TRL_SIZE_THRU(trl_initializer_desc, fill);
template <>
constexpr size_t kLeast<trl_trainer_desc> = TRL_SIZE_THRU(trl_trainer_desc, state_version);
template <>
constexpr size_t kLeast<trl_slot_spec> = TRL_SIZE_THRU(trl_slot_spec, init);
template <>
constexpr size_t kLeast<trl_update_desc> = TRL_SIZE_THRU(trl_update_desc, update);
template <>
constexpr size_t kLeast<trl_linalg_desc> = TRL_SIZE_THRU(trl_linalg_desc, gemm);
template <>
constexpr size_t kLeast<trl_plugin> = TRL_SIZE_THRU(trl_plugin, kernels);

bool is_known(uint16_t dtype) { return (dtype >= TRL_F32 && dtype <= TRL_BOOL) || dtype >= 256; }
bool is_real(uint16_t dtype) {
  return dtype == 0 || dtype == TRL_F32 || dtype == TRL_F64 || dtype >= 256;
}

// What each role asks of its operator: the inputs and the attributes the host gives.
struct RoleShape {
  uint32_t inputs;
  bool variadic;
  std::vector<std::pair<std::string_view, uint32_t>> attrs;
};
const RoleShape& role_shape(Role role) {
  static const RoleShape shapes[] = {
      {2, false, {}},                                                    // add
      {2, false, {}},                                                    // sub
      {2, false, {}},                                                    // mul
      {2, false, {}},                                                    // div
      {1, false, {}},                                                    // neg
      {2, false, {}},                                                    // matmul
      {1, false, {{"scale", TRL_ATTR_F64S}, {"shift", TRL_ATTR_F64S}}},  // scale_shift
      {1, false, {{"axes", TRL_ATTR_I64S}}},                             // sum
      {1, false, {}},                                                    // sum_batches
      {1, true, {{"axis", TRL_ATTR_I64}}},                               // concat
      {1,
       false,
       {{"start", TRL_ATTR_I64}, {"end", TRL_ATTR_I64}, {"axis", TRL_ATTR_I64}}},  // slice
      {1, false, {{"shape", TRL_ATTR_I64S}}},                                      // reshape
      {1, false, {{"p", TRL_ATTR_F64}}},                                           // dropout
  };
  static_assert(std::size(shapes) == static_cast<size_t>(Role::kCount));
  return shapes[static_cast<size_t>(role)];
}

class Reader {
 public:
  Reader(const PluginRecord& plugin, const Overrides& overrides)
      : plugin_(plugin), overrides_(overrides) {}

  void read(const trl_plugin& table, Provided& to);

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& fact) const {
    refuse_plugin(plugin_, fmt::format("{}: {}", what, fact));
  }

  template <class T>
  T take(const std::string& what, const T* from) const {
    if (from == nullptr) refuse(what, "no descriptor (the pointer is null)");
    const uint32_t size = from->struct_size;
    if (size < kLeast<T> || size > kMaxStruct)
      refuse(what, fmt::format("struct_size is {} (needed {} to {})", size, kLeast<T>, kMaxStruct));
    T to{};
    std::memcpy(&to, from, std::min<size_t>(size, sizeof(T)));
    to.struct_size = sizeof(T);
    return to;
  }
  // The elements of a table that exists and is not huge.
  template <class T>
  std::span<const T> list(const std::string& what, const char* of, const T* from, uint32_t n,
                          uint32_t most) const {
    if (n > most) refuse(what, fmt::format("{} {} (at most {})", n, of, most));
    if (n != 0 && from == nullptr) refuse(what, fmt::format("{} {} but no table", n, of));
    return {from, n};
  }
  std::string text(const std::string& what, const char* of, trl_str s) const {
    if (s.n > kMaxText)
      refuse(what, fmt::format("{} has {} bytes (at most {})", of, s.n, kMaxText));
    if (s.n == 0) return {};
    if (s.p == nullptr) refuse(what, fmt::format("{} has {} bytes but no text", of, s.n));
    if (!is_utf8(view(s))) refuse(what, fmt::format("{} is not UTF-8", of));
    return std::string(view(s));
  }
  template <class F>
  void need(const std::string& what, F* function, const char* name) const {
    if (function == nullptr) refuse(what, fmt::format("no {}", name));
  }

  std::string id(const std::string& what, const char* of, trl_str s) const;
  void check_namespace(const std::string& what, const std::string& id, bool alias) const;
  std::vector<std::string> aliases(const std::string& what, const trl_str* from, uint32_t n) const;
  std::vector<AttrSpec> attrs(const std::string& what, const trl_attr_spec* const* from, uint32_t n,
                              int n_in) const;
  AttrSpec attr(const std::string& what, const trl_attr_spec& s, uint32_t n_attrs, int n_in) const;
  void device(const std::string& what, trl_str s, uint16_t dtype) const;

  // What the descriptors of things with an id have in common; returns "operator 'acme.x'".
  template <class Desc, class Entry>
  std::string head(const char* kind, size_t i, const Desc* from, Entry& to) const {
    const std::string number = fmt::format("{} {}", kind, i);
    to.desc = take(number, from);
    to.plugin = &plugin_;
    to.id = id(number, "the id", to.desc.id);
    const std::string what = fmt::format("{} '{}'", kind, to.id);
    check_namespace(what, to.id, false);
    text(what, "summary", to.desc.summary);
    if constexpr (requires { to.aliases; }) {
      to.name = name_of(to.id);
      to.aliases = aliases(what, to.desc.aliases, to.desc.n_aliases);
      text(what, "source", to.desc.source);
      text(what, "doc", to.desc.doc);
      if constexpr (requires { to.desc.formula; }) text(what, "formula", to.desc.formula);
    }
    return what;
  }
  template <class Entry>
  void unique(const char* kind, const std::vector<std::unique_ptr<Entry>>& entries) const;

  std::unique_ptr<OpEntry> op(size_t i, const trl_op_desc* from) const;
  void op_role(const std::string& what, const OpEntry& op) const;
  void op_gradient(const std::string& what, const OpEntry& op,
                   std::span<const trl_kernel_desc> kernels) const;
  trl_kernel_desc kernel(size_t i, const trl_kernel_desc* from) const;
  std::unique_ptr<BuilderEntry> builder(size_t i, const trl_builder_desc* from) const;
  std::unique_ptr<SoftmaxEntry> softmax(size_t i, const trl_softmax_desc* from) const;
  std::unique_ptr<InitializerEntry> initializer(size_t i, const trl_initializer_desc* from) const;
  std::unique_ptr<TrainerEntry> trainer(size_t i, const trl_trainer_desc* from) const;
  trl_update_desc update(size_t i, const trl_update_desc* from) const;
  std::unique_ptr<LinalgEntry> linalg(size_t i, const trl_linalg_desc* from) const;

  const PluginRecord& plugin_;
  const Overrides& overrides_;
};

std::string Reader::id(const std::string& what, const char* of, trl_str s) const {
  std::string value = text(what, of, s);
  if (!is_id(value))
    refuse(what, fmt::format("{} is '{}' (needed namespace.name of [a-z0-9_.], at most 63 bytes)",
                             of, value.substr(0, 80)));
  return value;
}

void Reader::check_namespace(const std::string& what, const std::string& id, bool alias) const {
  if (is_reserved(id) && !plugin_.shipped) {
    const auto override = overrides_.find(id);
    if (override != overrides_.end() && override->second == plugin_.id &&
        plugin_.allow_core_override)
      return;
    refuse(what,
           fmt::format("'{}' lies in a reserved namespace (core and dynet belong to the plugins "
                       "shipped with trellis)",
                       id));
  }
  if (alias && lies_in(id, "dynet")) return;
  for (const std::string& name_space : plugin_.namespaces)
    if (lies_in(id, name_space)) return;
  refuse(what, fmt::format("'{}' lies in no namespace of the manifest (it declares: {})", id,
                           plugin_.namespaces.empty()
                               ? "none"
                               : fmt::format("{}", fmt::join(plugin_.namespaces, ", "))));
}

std::vector<std::string> Reader::aliases(const std::string& what, const trl_str* from,
                                         uint32_t n) const {
  std::vector<std::string> result;
  for (const trl_str& s : list(what, "aliases", from, n, kMaxParts)) {
    result.push_back(id(what, "an alias", s));
    check_namespace(what, result.back(), true);
  }
  return result;
}

std::vector<AttrSpec> Reader::attrs(const std::string& what, const trl_attr_spec* const* from,
                                    uint32_t n, int n_in) const {
  std::vector<AttrSpec> result;
  for (const trl_attr_spec* spec : list(what, "attributes", from, n, kMaxParts)) {
    const std::string number = fmt::format("{} attribute {}", what, result.size());
    const trl_attr_spec s = take(number, spec);
    const std::string key = text(number, "the key", s.key);
    if (!is_name(key))
      refuse(number, fmt::format("the key is '{}' (needed [a-z][a-z0-9_]*)", key.substr(0, 80)));
    for (const AttrSpec& other : result)
      if (other.key == key) refuse(what, fmt::format("two attributes '{}'", key));
    result.push_back(attr(fmt::format("{} attribute '{}'", what, key), s, n, n_in));
  }
  for (const AttrSpec& spec : result) {
    if (spec.bound_axis_attr >= 0 &&
        result[static_cast<size_t>(spec.bound_axis_attr)].type != TRL_ATTR_I64)
      refuse(fmt::format("{} attribute '{}'", what, spec.key),
             fmt::format("bound_axis_attr is {}, which is no integer attribute",
                         spec.bound_axis_attr));
  }
  return result;
}

AttrSpec Reader::attr(const std::string& what, const trl_attr_spec& s, uint32_t n_attrs,
                      int n_in) const {
  const bool is_op = n_in >= 0;
  AttrSpec to;
  to.key = view(s.key);
  to.doc = text(what, "doc", s.doc);
  if (to.doc.empty()) refuse(what, "no doc (say in a few words what it does)");
  to.type = s.type;
  to.flags = s.flags;
  to.dflt = s.dflt;
  to.lo = s.lo;
  to.hi = s.hi;
  if (s.type < TRL_ATTR_I64 || s.type > TRL_ATTR_STR)
    refuse(what, fmt::format("unknown type {}", s.type));
  if (is_op && s.type == TRL_ATTR_STR) refuse(what, "text in an operator (needed a choice)");
  if (std::isnan(s.lo) || std::isnan(s.hi)) refuse(what, "the range is not a number");

  const bool is_list = s.type == TRL_ATTR_I64S || s.type == TRL_ATTR_F64S;
  if ((s.flags & TRL_ATTR_PER_BATCH) && s.type != TRL_ATTR_I64S)
    refuse(what, fmt::format("per batch but of type {} (needed a list of integers)", s.type));
  if ((s.flags & TRL_ATTR_VALUE) && s.type != TRL_ATTR_F64S)
    refuse(what, fmt::format("a free value but of type {} (needed a list of numbers)", s.type));
  if (to.per_batch() && !is_op) refuse(what, "per batch (only operators have such attributes)");
  to.min_each = is_list ? s.min_each : 1;
  to.max_each = is_list ? s.max_each : 1;
  if (s.flags & TRL_ATTR_VALUE) to.min_each = to.max_each = 1;
  if (to.max_each == 0 || to.min_each > to.max_each)
    refuse(what, fmt::format("takes {} to {} values", to.min_each, to.max_each));

  if ((s.type == TRL_ATTR_CHOICE) != (s.n_choices != 0))
    refuse(what, fmt::format("type {} with {} choices", s.type, s.n_choices));
  for (const trl_str& choice : list(what, "choices", s.choices, s.n_choices, kMaxParts)) {
    to.choices.push_back(text(what, "a choice", choice));
    if (to.choices.back().empty()) refuse(what, "an empty choice");
    if (std::count(to.choices.begin(), to.choices.end(), to.choices.back()) > 1)
      refuse(what, fmt::format("two choices '{}'", to.choices.back()));
  }

  if ((s.flags & TRL_ATTR_PER_BATCH) && s.bound_input != -1) {
    if (s.bound_input < 0 || s.bound_input >= n_in)
      refuse(what,
             fmt::format("bound_input is {} (the operator has {} inputs)", s.bound_input, n_in));
    if (s.bound_axis >= TRL_MAX_RANK || s.bound_axis < -1)
      refuse(what,
             fmt::format("bound_axis is {} (needed -1 to {})", s.bound_axis, TRL_MAX_RANK - 1));
    if (s.bound_axis == -1 &&
        (s.bound_axis_attr < 0 || static_cast<uint32_t>(s.bound_axis_attr) >= n_attrs))
      refuse(what, fmt::format("bound_axis_attr is {} (the operator has {} attributes)",
                               s.bound_axis_attr, n_attrs));
    to.bound_input = s.bound_input;
    to.bound_axis = s.bound_axis;
    if (s.bound_axis == -1) to.bound_axis_attr = s.bound_axis_attr;
  }

  if (to.required()) {
    to.dflt = trl_attr{s.type, 0, {}, nullptr};
    return to;
  }
  if (s.dflt.type != s.type)
    refuse(what, fmt::format("the default is of type {} (needed {})", s.dflt.type, s.type));
  if (is_list && s.dflt.count > kMaxDefault)
    refuse(what, fmt::format("the default has {} values (at most {})", s.dflt.count, kMaxDefault));
  if (to.per_batch()) {
    if (s.dflt.count > 1)
      refuse(what, fmt::format("the default has {} values (needed 1 or none)", s.dflt.count));
    if (s.dflt.count < to.min_each)
      refuse(what, fmt::format("no default for {} value (needed one, or TRL_ATTR_REQUIRED)",
                               to.min_each));
  }
  if (s.type == TRL_ATTR_STR) text(what, "the default", s.dflt.v.s);
  to.dflt.offsets = nullptr;
  if (!is_list) to.dflt.count = 1;
  try {
    check_attrs("default", {&to, 1}, {&to.dflt, 1});
  } catch (const Error& e) {
    refuse(what, fmt::format("the default does not pass its own check: {}", e.what()));
  }
  return to;
}

void Reader::device(const std::string& what, trl_str s, uint16_t dtype) const {
  const std::string name = text(what, "the device", s);
  if (!is_name(name))
    refuse(what, fmt::format("the device is '{}' (needed a name such as cpu)", name.substr(0, 80)));
  if (!is_known(dtype)) refuse(what, fmt::format("unknown element type {}", dtype));
}

template <class Entry>
void Reader::unique(const char* kind, const std::vector<std::unique_ptr<Entry>>& entries) const {
  TextMap<int> seen;
  for (const auto& entry : entries) {
    if (!seen.emplace(entry->id, 0).second)
      refuse(fmt::format("{} '{}'", kind, entry->id), "is there twice");
    for (const std::string& alias : entry->aliases)
      if (!seen.emplace(alias, 0).second)
        refuse(fmt::format("{} '{}'", kind, entry->id),
               fmt::format("the alias '{}' is there twice", alias));
  }
}

std::unique_ptr<OpEntry> Reader::op(size_t i, const trl_op_desc* from) const {
  auto entry = std::make_unique<OpEntry>();
  OpEntry& to = *entry;
  const std::string what = head("operator", i, from, to);
  const trl_op_desc& d = to.desc;
  text(what, "example", d.example);
  text(what, "role", d.role);
  text(what, "unchecked", d.unchecked);
  if (d.since_version > d.version)
    refuse(what, fmt::format("since_version is {} (at most its version, {})", d.since_version,
                             d.version));

  bool optional = false;
  for (const trl_in_spec* spec : list(what, "inputs", d.in, d.n_in, kMaxParts)) {
    const size_t number = to.in.size();
    const std::string in_what = fmt::format("{} input {}", what, number);
    const trl_in_spec s = take(in_what, spec);
    const std::string name = text(in_what, "the name", s.name);
    if (!is_name(name))
      refuse(in_what, fmt::format("the name is '{}' (needed [a-z][a-z0-9_]*)", name.substr(0, 80)));
    text(in_what, "doc", s.doc);
    for (const trl_in_spec& other : to.in)
      if (view(other.name) == name) refuse(what, fmt::format("two inputs '{}'", name));
    if (s.dtype != 0 && !is_known(s.dtype))
      refuse(in_what, fmt::format("unknown element type {}", s.dtype));
    if (s.merge > TRL_IN_NEVER) refuse(in_what, fmt::format("unknown merge {}", s.merge));
    if (s.domain > TRL_DOMAIN_NONZERO) refuse(in_what, fmt::format("unknown domain {}", s.domain));
    if ((s.flags & TRL_IN_VARIADIC) && number + 1 != d.n_in)
      refuse(in_what, "variadic but not the last input");
    if (optional && !(s.flags & TRL_IN_OPTIONAL))
      refuse(in_what, "needed, but follows an optional input");
    if ((s.flags & TRL_IN_VARIADIC) && (s.flags & TRL_IN_OPTIONAL))
      refuse(in_what, "both optional and variadic (variadic means one or more)");
    optional = optional || (s.flags & TRL_IN_OPTIONAL);
    to.variadic = to.variadic || (s.flags & TRL_IN_VARIADIC);
    to.mergeable = to.mergeable && s.merge != TRL_IN_NEVER;
    to.in.push_back(s);
  }
  for (const trl_out_spec* spec : list(what, "outputs", d.out, d.n_out, kMaxParts)) {
    const std::string out_what = fmt::format("{} output {}", what, to.out.size());
    const trl_out_spec s = take(out_what, spec);
    const std::string name = text(out_what, "the name", s.name);
    if (!is_name(name))
      refuse(out_what,
             fmt::format("the name is '{}' (needed [a-z][a-z0-9_]*)", name.substr(0, 80)));
    text(out_what, "doc", s.doc);
    for (const trl_out_spec& other : to.out)
      if (view(other.name) == name) refuse(what, fmt::format("two outputs '{}'", name));
    if (s.dtype != 0 && !is_known(s.dtype))
      refuse(out_what, fmt::format("unknown element type {}", s.dtype));
    const bool hidden = s.flags & TRL_OUT_HIDDEN;
    if (!hidden && to.n_visible != to.out.size())
      refuse(out_what, "visible, but follows a hidden output");
    to.n_visible = static_cast<uint16_t>(to.n_visible + !hidden);
    to.out.push_back(s);
  }
  if (to.n_visible == 0) refuse(what, "no visible output");

  to.attrs = attrs(what, d.attrs, d.n_attrs, d.n_in);
  to.stochastic = d.flags & TRL_OP_STOCHASTIC;
  to.elementwise = d.flags & TRL_OP_ELEMENTWISE;
  to.has_per_batch = std::any_of(to.attrs.begin(), to.attrs.end(),
                                 [](const AttrSpec& a) { return a.per_batch(); });
  to.bare = to.attrs.empty() && !to.stochastic;
  if (d.infer == nullptr && d.expand == nullptr)
    refuse(what, "no infer and no expand (needed one of them)");
  op_role(what, to);
  return entry;
}

void Reader::op_role(const std::string& what, const OpEntry& op) const {
  const std::string_view name = view(op.desc.role);
  if (name.empty()) return;
  const std::optional<Role> role = role_from(name);
  if (!role) {
    std::vector<std::string> names;
    for (size_t r = 0; r < static_cast<size_t>(Role::kCount); ++r)
      names.emplace_back(role_name(static_cast<Role>(r)));
    refuse(what, fmt::format("unknown role '{}' (known: {})", name, fmt::join(names, ", ")));
  }
  const RoleShape& shape = role_shape(*role);
  const size_t least =
      static_cast<size_t>(std::count_if(op.in.begin(), op.in.end(), [](const trl_in_spec& s) {
        return !(s.flags & TRL_IN_OPTIONAL);
      }));
  if (shape.variadic && !op.variadic)
    refuse(what, fmt::format("role '{}' needs a variadic input", name));
  const bool fits = least <= shape.inputs && (op.in.size() >= shape.inputs || op.variadic);
  if (!fits)
    refuse(what, fmt::format("role '{}' is called with {} input{}: it has {}", name, shape.inputs,
                             shape.inputs == 1 ? "" : "s", op.in.size()));
  for (const auto& [key, type] : shape.attrs) {
    const auto at = std::find_if(op.attrs.begin(), op.attrs.end(),
                                 [&, k = key](const AttrSpec& a) { return a.key == k; });
    if (at == op.attrs.end())
      refuse(what, fmt::format("role '{}' needs an attribute '{}'", name, key));
    if (at->type != type)
      refuse(what, fmt::format("role '{}' needs attribute '{}' of type {}: it has type {}", name,
                               key, type, at->type));
  }
}

// Whether the declared gradient and what is kept for it fit the functions that are there.
void Reader::op_gradient(const std::string& what, const OpEntry& op,
                         std::span<const trl_kernel_desc> kernels) const {
  bool any = false, backward = op.desc.expand != nullptr || op.desc.expand_grad != nullptr;
  for (const trl_kernel_desc& kernel : kernels) {
    if (view(kernel.op_id) != op.id) continue;
    any = true;
    backward = backward || kernel.backward != nullptr;
  }
  if (!any && op.desc.expand == nullptr)
    refuse(what, "no kernel and no expand (needed one of them)");
  if (backward) return;
  for (const trl_in_spec& in : op.in)
    if (in.flags & TRL_IN_KEEP)
      refuse(what,
             fmt::format("input '{}' is kept for backward, but no kernel has one", view(in.name)));
  for (const trl_out_spec& out : op.out)
    if (out.flags & (TRL_OUT_KEEP | TRL_OUT_HIDDEN))
      refuse(what, fmt::format("output '{}' is kept for backward, but no kernel has one",
                               view(out.name)));
}

trl_kernel_desc Reader::kernel(size_t i, const trl_kernel_desc* from) const {
  const std::string number = fmt::format("kernel {}", i);
  const trl_kernel_desc d = take(number, from);
  const std::string what = fmt::format("kernel {} of '{}'", i, id(number, "op_id", d.op_id));
  device(what, d.device, d.dtype);
  need(what, d.forward, "forward");
  if ((d.create == nullptr) != (d.destroy == nullptr))
    refuse(what, "only one of create and destroy (needed both or neither)");
  return d;
}

std::unique_ptr<BuilderEntry> Reader::builder(size_t i, const trl_builder_desc* from) const {
  auto entry = std::make_unique<BuilderEntry>();
  const std::string what = head("builder", i, from, *entry);
  const trl_builder_desc& d = entry->desc;
  entry->attrs = attrs(what, d.attrs, d.n_attrs, -1);
  need(what, d.describe, "describe");
  need(what, d.param, "param");
  need(what, d.state, "state");
  need(what, d.step, "step");
  const auto range = [&](const char* of, uint16_t least, uint16_t most) {
    if (least > most) refuse(what, fmt::format("takes {} to {} {}", least, most, of));
  };
  range("predecessor states", d.min_pred, d.max_pred);
  range("inputs", d.min_in, d.max_in);
  range("contexts", d.min_context, d.max_context);
  const auto size_attr = [&](const char* field, int16_t at) {
    if (at == -1) return;
    if (at < 0 || at >= d.n_attrs || entry->attrs[static_cast<size_t>(at)].type != TRL_ATTR_I64)
      refuse(what, fmt::format("{} is {}, which is no integer attribute (-1: none)", field, at));
  };
  size_attr("input_attr", d.input_attr);
  size_attr("hidden_attr", d.hidden_attr);
  return entry;
}

std::unique_ptr<SoftmaxEntry> Reader::softmax(size_t i, const trl_softmax_desc* from) const {
  auto entry = std::make_unique<SoftmaxEntry>();
  const std::string what = head("softmax builder", i, from, *entry);
  const trl_softmax_desc& d = entry->desc;
  entry->attrs = attrs(what, d.attrs, d.n_attrs, -1);
  need(what, d.n_params, "n_params");
  need(what, d.param, "param");
  need(what, d.loss, "loss");
  need(what, d.scores, "scores");
  return entry;
}

std::unique_ptr<InitializerEntry> Reader::initializer(size_t i,
                                                      const trl_initializer_desc* from) const {
  auto entry = std::make_unique<InitializerEntry>();
  const std::string what = head("initializer", i, from, *entry);
  entry->attrs = attrs(what, entry->desc.attrs, entry->desc.n_attrs, -1);
  need(what, entry->desc.fill, "fill");
  return entry;
}

std::unique_ptr<TrainerEntry> Reader::trainer(size_t i, const trl_trainer_desc* from) const {
  auto entry = std::make_unique<TrainerEntry>();
  TrainerEntry& to = *entry;
  const std::string what = head("trainer", i, from, to);
  to.attrs = attrs(what, to.desc.attrs, to.desc.n_attrs, -1);
  for (size_t a = 0; a < to.attrs.size(); ++a) {
    if (to.attrs[a].key != "lr") continue;
    if (to.attrs[a].type != TRL_ATTR_F64)
      refuse(what, fmt::format("attribute 'lr' is of type {} (needed a number)", to.attrs[a].type));
    to.lr_attr = static_cast<int>(a);
  }
  for (const trl_slot_spec* spec : list(what, "slots", to.desc.slots, to.desc.n_slots, kMaxParts)) {
    const std::string slot_what = fmt::format("{} slot {}", what, to.slots.size());
    const trl_slot_spec s = take(slot_what, spec);
    const std::string name = text(slot_what, "the name", s.name);
    if (!is_name(name))
      refuse(slot_what,
             fmt::format("the name is '{}' (needed [a-z][a-z0-9_]*)", name.substr(0, 80)));
    text(slot_what, "doc", s.doc);
    for (const trl_slot_spec& other : to.slots)
      if (view(other.name) == name) refuse(what, fmt::format("two slots '{}'", name));
    to.slots.push_back(s);
  }
  return entry;
}

trl_update_desc Reader::update(size_t i, const trl_update_desc* from) const {
  const std::string number = fmt::format("update {}", i);
  const trl_update_desc d = take(number, from);
  const std::string what =
      fmt::format("update {} of '{}'", i, id(number, "trainer_id", d.trainer_id));
  device(what, d.device, d.dtype);
  need(what, d.update, "update");
  return d;
}

std::unique_ptr<LinalgEntry> Reader::linalg(size_t i, const trl_linalg_desc* from) const {
  auto entry = std::make_unique<LinalgEntry>();
  const std::string what = head("linalg provider", i, from, *entry);
  const trl_linalg_desc& d = entry->desc;
  device(what, d.device, d.dtype);
  need(what, d.gemm, "gemm");
  if (d.classes == 0) refuse(what, "serves no shape class");
  return entry;
}

void Reader::read(const trl_plugin& given, Provided& to) {
  const std::string what = "table";
  const trl_plugin table = take(what, &given);
  to.plugin->table = table;
  const auto all = [&](const char* of, auto* const* from, uint32_t n, uint32_t most, auto& into,
                       auto one) {
    for (const auto* desc : list(what, of, from, n, most))
      into.push_back((this->*one)(into.size(), desc));
  };
  all("operators", table.ops, table.n_ops, kMaxThings, to.ops, &Reader::op);
  all("kernels", table.kernels, table.n_kernels, kMaxKernels, to.kernels, &Reader::kernel);
  all("builders", table.builders, table.n_builders, kMaxThings, to.builders, &Reader::builder);
  all("softmax builders", table.softmaxes, table.n_softmaxes, kMaxThings, to.softmaxes,
      &Reader::softmax);
  all("initializers", table.initializers, table.n_initializers, kMaxThings, to.initializers,
      &Reader::initializer);
  all("trainers", table.trainers, table.n_trainers, kMaxThings, to.trainers, &Reader::trainer);
  all("updates", table.updates, table.n_updates, kMaxKernels, to.updates, &Reader::update);
  all("linalg providers", table.linalgs, table.n_linalgs, kMaxThings, to.linalgs, &Reader::linalg);

  unique("operator", to.ops);
  unique("builder", to.builders);
  unique("softmax builder", to.softmaxes);
  unique("initializer", to.initializers);
  unique("trainer", to.trainers);
  for (const auto& op : to.ops) op_gradient(fmt::format("operator '{}'", op->id), *op, to.kernels);
  for (const auto& trainer : to.trainers) {
    const bool any =
        std::any_of(to.updates.begin(), to.updates.end(),
                    [&](const trl_update_desc& u) { return view(u.trainer_id) == trainer->id; });
    if (!any) refuse(fmt::format("trainer '{}'", trainer->id), "no update");
  }
}

}  // namespace

const std::string& origin(const PluginRecord& plugin) {
  return plugin.path.empty() ? plugin.id : plugin.path;
}

void refuse_plugin(const PluginRecord& plugin, const std::string& fact) {
  fail(ErrorKind::plugin, fmt::format("[plugin] cannot register '{}': {}", origin(plugin), fact));
}

std::string place(std::string_view device, uint16_t dtype, int16_t rank) {
  std::string text = fmt::format("{} ", device);
  text += dtype >= TRL_F32 && dtype <= TRL_BOOL ? std::string(dtype_name(static_cast<DType>(dtype)))
                                                : fmt::format("type {}", dtype);
  if (rank != 0) text += fmt::format(" rank {}", rank);
  return text;
}

void check_kernel(const PluginRecord& plugin, const OpEntry& op, const trl_kernel_desc& kernel) {
  const std::string what = fmt::format("operator '{}': its kernel for {}", op.id,
                                       place(view(kernel.device), kernel.dtype, kernel.rank));
  if (op.desc.infer == nullptr) refuse_plugin(plugin, what + " needs infer, and there is none");
  const bool has_gradient =
      kernel.backward != nullptr || op.desc.expand != nullptr || op.desc.expand_grad != nullptr;
  if (has_gradient) return;
  const bool flows_out = std::any_of(
      op.out.begin(), op.out.begin() + op.n_visible,
      [](const trl_out_spec& out) { return !(out.flags & TRL_OUT_NO_GRAD) && is_real(out.dtype); });
  if (!flows_out) return;
  for (size_t i = 0; i < op.in.size(); ++i) {
    if ((op.in[i].flags & TRL_IN_NO_GRAD) || !is_real(op.in[i].dtype)) continue;
    refuse_plugin(
        plugin,
        fmt::format("{} declares a gradient for input {} '{}' but has no backward (write it, "
                    "or mark the input TRL_IN_NO_GRAD)",
                    what, i, view(op.in[i].name)));
  }
}

Provided read_tables(PluginRecord record, const trl_plugin& table, const Overrides& overrides) {
  Provided provided;
  provided.plugin = std::make_unique<PluginRecord>(std::move(record));
  Reader(*provided.plugin, overrides).read(table, provided);
  return provided;
}

}  // namespace trellis::detail
