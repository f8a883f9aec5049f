// SPDX-License-Identifier: Apache-2.0
//
// Initializers and trainers written down as bare tables, so that model and trainer are tested
// without any plugin.
#pragma once

#include <trellis/abi/abi.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <trellis/runtime.hpp>

#include "registry/registry.hpp"
#include "runtime/core.hpp"

namespace fake {

// What the last fill and the last update were given.
inline trl_fill_args last_fill{};
inline trl_update_args last_update{};
inline std::vector<uint64_t> steps_begun;
inline int updates_before_failure = 0;

inline trl_str str(const char* s) { return {s, std::strlen(s)}; }

inline void set(const trl_tensor& t, uint64_t i, double v) {
  if (t.dtype == TRL_F32)
    static_cast<float*>(t.data)[i] = static_cast<float>(v);
  else
    static_cast<double*>(t.data)[i] = v;
}
inline double get(const trl_tensor& t, uint64_t i) {
  return t.dtype == TRL_F32 ? static_cast<double>(static_cast<const float*>(t.data)[i])
                            : static_cast<const double*>(t.data)[i];
}
inline uint64_t elements(const trl_tensor& t) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < t.dim.rank; ++i) n *= t.dim.d[i];
  return n;
}

// start, start + 1, ..
inline trl_status fill_count(const trl_fill_args* a) {
  last_fill = *a;
  for (uint64_t i = 0, n = elements(*a->value); i < n; ++i)
    set(*a->value, i, a->attrs[0].v.f + static_cast<double>(i));
  return TRL_OK;
}
inline trl_status fill_nothing(const trl_fill_args*) { return TRL_OK; }
inline trl_status fill_fails(const trl_fill_args* a) {
  return a->call->host->fail(a->call, TRL_E_SHAPE, str("only squares: {3,4} (a square matrix)"));
}
inline trl_status fill_fails_silently(const trl_fill_args*) { return TRL_E_INTERNAL; }

// w -= lr g; slot "sum" collects g, slot "two" starts as 2 and is left alone.
inline trl_status update(const trl_update_args* a) {
  last_update = *a;
  const uint64_t total = elements(*a->value);
  const uint64_t row = a->rows ? total / a->value->dim.d[a->value->dim.rank - 1] : total;
  const uint64_t n_rows = a->rows ? a->n_rows : 1;
  for (uint64_t r = 0; r < n_rows; ++r)
    for (uint64_t k = 0; k < row; ++k) {
      const uint64_t to = (a->rows ? a->rows[r] * row : 0) + k;
      const double g = get(*a->grad, r * row + k) * a->grad_scale;
      set(*a->value, to, get(*a->value, to) - a->lr * g);
      if (a->n_slots > 0) set(a->slots[0], to, get(a->slots[0], to) + g);
    }
  return TRL_OK;
}
inline trl_status update_fails(const trl_update_args* a) {
  if (updates_before_failure-- > 0) return update(a);
  return a->call->host->fail(a->call, TRL_E_UNSUPPORTED, str("no such luck"));
}
inline trl_status begin_step(trl_call*, const trl_attr*, uint32_t, uint64_t step) {
  steps_begun.push_back(step);
  return TRL_OK;
}
inline trl_status begin_step_fails(trl_call* call, const trl_attr*, uint32_t, uint64_t) {
  return call->host->fail(call, TRL_E_INVALID, str("not today"));
}

inline trl_attr_spec number(const char* key, double dflt, double lo, double hi) {
  trl_attr_spec s{};
  s.struct_size = sizeof s;
  s.type = s.dflt.type = TRL_ATTR_F64;
  s.key = str(key);
  s.doc = str("a number");
  s.dflt.count = 1;
  s.dflt.v.f = dflt;
  s.lo = lo;
  s.hi = hi;
  s.bound_input = s.bound_axis = s.bound_axis_attr = -1;
  return s;
}

inline trl_initializer_desc initializer(const char* id, trl_status (*fill)(const trl_fill_args*)) {
  trl_initializer_desc d{};
  d.struct_size = sizeof d;
  d.id = str(id);
  d.summary = d.doc = d.formula = str("for tests");
  d.source = str("tests/framework/model/fake_plugin.hpp");
  d.version = 1;
  d.fill = fill;
  return d;
}

inline trl_trainer_desc trainer(const char* id) {
  trl_trainer_desc d{};
  d.struct_size = sizeof d;
  d.id = str(id);
  d.summary = d.doc = d.formula = str("for tests");
  d.source = str("tests/framework/model/fake_plugin.hpp");
  d.version = d.state_version = 1;
  return d;
}

inline trl_update_desc kernel(const char* id, uint16_t dtype,
                              trl_status (*update)(const trl_update_args*)) {
  trl_update_desc d{};
  d.struct_size = sizeof d;
  d.trainer_id = str(id);
  d.device = str("cpu");
  d.dtype = dtype;
  d.update = update;
  return d;
}

// Registers everything above: initializers test.count (the default), test.nothing, test.fails,
// test.silent; trainers test.slots, test.plain (f32 only, no learning rate but a text), test.fails,
// test.late, test.bare.
inline void add_to(const trellis::Runtime& runtime) {
  static const trl_attr_spec start = number("start", 0, 1, 0), lr = number("lr", 0.1, 0, 1e300);
  static trl_attr_spec note = number("note", 0, 1, 0);
  note.type = note.dflt.type = TRL_ATTR_STR;
  note.dflt.v.s = str("none");
  static const trl_attr_spec* const note_table[] = {&note};
  static const trl_attr_spec* const start_table[] = {&start};
  static const trl_attr_spec* const lr_table[] = {&lr};

  static trl_initializer_desc count = initializer("test.count", fill_count);
  count.flags = TRL_INIT_DEFAULT;
  count.attrs = start_table;
  count.n_attrs = 1;
  static const trl_initializer_desc nothing = initializer("test.nothing", fill_nothing);
  static const trl_initializer_desc fails = initializer("test.fails", fill_fails);
  static const trl_initializer_desc silent = initializer("test.silent", fill_fails_silently);
  static const trl_initializer_desc* const initializers[] = {&count, &nothing, &fails, &silent};

  static trl_slot_spec sum{}, two{};
  sum.struct_size = two.struct_size = sizeof sum;
  sum.name = str("sum");
  two.name = str("two");
  sum.doc = two.doc = str("for tests");
  two.init = 2;
  static const trl_slot_spec* const slots[] = {&sum, &two};
  static trl_trainer_desc with_slots = trainer("test.slots"), plain = trainer("test.plain"),
                          failing = trainer("test.fails"), late = trainer("test.late"),
                          bare = trainer("test.bare");
  with_slots.attrs = failing.attrs = late.attrs = lr_table;
  plain.attrs = note_table;
  with_slots.n_attrs = failing.n_attrs = late.n_attrs = plain.n_attrs = 1;
  with_slots.slots = slots;
  with_slots.n_slots = 2;
  with_slots.begin_step = begin_step;
  late.begin_step = begin_step_fails;
  static const trl_trainer_desc* const trainers[] = {&with_slots, &plain, &failing, &late, &bare};
  static const trl_update_desc updates[] = {
      kernel("test.slots", TRL_F32, update), kernel("test.slots", TRL_F64, update),
      kernel("test.plain", TRL_F32, update), kernel("test.fails", TRL_F32, update_fails),
      kernel("test.late", TRL_F32, update),  kernel("test.bare", TRL_F32, update)};
  static const trl_update_desc* const update_table[] = {&updates[0], &updates[1], &updates[2],
                                                        &updates[3], &updates[4], &updates[5]};

  trl_plugin table{};
  table.struct_size = sizeof table;
  table.abi_major = TRL_ABI_MAJOR;
  table.abi_minor = table.min_host_minor = TRL_ABI_MINOR;
  table.id = str("test-plugin");
  table.version = str("1.2.3");
  table.initializers = initializers;
  table.n_initializers = 4;
  table.trainers = trainers;
  table.n_trainers = 5;
  table.updates = update_table;
  table.n_updates = 6;
  trellis::PluginRecord record;
  record.id = "test-plugin";
  record.version = "1.2.3";
  record.namespaces = {"test"};
  runtime.core().registry->add(std::move(record), table);
}

// A runtime with nothing but the tables above.
struct Runtime : trellis::Runtime {
  explicit Runtime(uint64_t seed = 1) : trellis::Runtime(options(seed)) { add_to(*this); }
  static trellis::RuntimeOptions options(uint64_t seed) {
    trellis::RuntimeOptions o;
    o.no_plugins = true;
    o.seed = seed;
    return o;
  }
};

// The text and kind of the Error that f throws; empty: it threw none.
template <class F>
std::string error_text(trellis::ErrorKind kind, F&& f) {
  try {
    f();
  } catch (const trellis::Error& e) {
    return e.kind() == kind
               ? e.what()
               : "wrong kind " + std::to_string(static_cast<int>(e.kind())) + ": " + e.what();
  }
  return {};
}

}  // namespace fake
