// SPDX-License-Identifier: Apache-2.0
//
// trellis-schema PLUGIN.so: everything a plugin declares, as JSON on standard output. Depends on
// the SDK alone: it calls the entry with a host that offers nothing, and neither init nor any other
// callback.
//
// Exit codes: 0 written, 1 the plugin cannot be opened or refuses, 2 usage.

#include <dlfcn.h>
#include <trellis/abi/abi.h>

#include <cfloat>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

// JSON with two spaces of indentation; objects and arrays whose `inline` flag is set stay on one
// line.
class Json {
 public:
  void open(char bracket, bool one_line = false) {
    value();
    out_ += bracket;
    levels_.push_back(
        {bracket == '{' ? '}' : ']', one_line || (!levels_.empty() && levels_.back().one_line)});
  }
  void close() {
    const Level level = levels_.back();
    levels_.pop_back();
    if (!level.first && !level.one_line) newline();
    out_ += level.bracket;
    if (levels_.empty()) out_ += '\n';
  }
  void key(std::string_view name) {
    separate();
    quote(name);
    out_ += ": ";
    after_key_ = true;
  }
  void text(std::string_view s) {
    value();
    quote(s);
  }
  void text(const trl_str& s) { text(std::string_view(s.p ? s.p : "", s.p ? s.n : 0)); }
  void number(int64_t v) {
    value();
    out_ += std::to_string(v);
  }
  void number(double v) {
    value();
    char buffer[40];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
    out_.append(buffer, end);
  }
  void boolean(bool v) {
    value();
    out_ += v ? "true" : "false";
  }
  void null() {
    value();
    out_ += "null";
  }
  const std::string& str() const { return out_; }

 private:
  struct Level {
    char bracket;
    bool one_line;
    bool first = true;
  };
  void newline() { out_ += '\n' + std::string(2 * levels_.size(), ' '); }
  void separate() {
    Level& level = levels_.back();
    if (!level.first) out_ += level.one_line ? ", " : ",";
    if (!level.one_line) newline();
    level.first = false;
  }
  void value() {
    if (!after_key_ && !levels_.empty()) separate();
    after_key_ = false;
  }
  void quote(std::string_view s) {
    out_ += '"';
    for (const char c : s) {
      if (c == '"' || c == '\\') {
        out_ += '\\';
        out_ += c;
      } else if (c == '\n') {
        out_ += "\\n";
      } else if (static_cast<unsigned char>(c) < 0x20) {
        char buffer[8];
        std::snprintf(buffer, sizeof buffer, "\\u%04x", static_cast<unsigned>(c));
        out_ += buffer;
      } else {
        out_ += c;
      }
    }
    out_ += '"';
  }

  std::string out_;
  std::vector<Level> levels_;
  bool after_key_ = false;
};

// A descriptor as this program knows it: what an older plugin does not have reads as zero.
template <class T>
T full(const T* from) {
  T to{};
  std::memcpy(&to, from, from->struct_size < sizeof(T) ? from->struct_size : sizeof(T));
  return to;
}

const char* dtype_name(uint16_t dtype) {
  constexpr const char* kNames[] = {"", "f32", "f64", "i32", "i64", "u8", "bool"};
  return dtype < std::size(kNames) ? kNames[dtype] : "other";
}

void field(Json& j, std::string_view key, const trl_str& s) {
  j.key(key);
  j.text(s);
}
void field(Json& j, std::string_view key, std::string_view s) {
  j.key(key);
  j.text(s);
}
void field(Json& j, std::string_view key, int64_t v) {
  j.key(key);
  j.number(v);
}
void flag(Json& j, std::string_view key, bool v) {
  j.key(key);
  j.boolean(v);
}

void names(Json& j, std::string_view key, const trl_str* list, uint32_t n) {
  j.key(key);
  j.open('[', true);
  for (uint32_t i = 0; i < n; ++i) j.text(list[i]);
  j.close();
}

void attr_value(Json& j, const trl_attr_spec& spec, const trl_attr& a) {
  switch (spec.type) {
    case TRL_ATTR_I64:
      return j.number(a.v.i);
    case TRL_ATTR_F64:
      return j.number(a.v.f);
    case TRL_ATTR_BOOL:
      return j.boolean(a.v.i != 0);
    case TRL_ATTR_CHOICE:
      if (a.v.i >= 0 && a.v.i < int64_t{spec.n_choices}) return j.text(spec.choices[a.v.i]);
      return j.null();
    case TRL_ATTR_STR:
      return j.text(a.v.s);
    default:
      j.open('[', true);
      for (uint32_t i = 0; i < a.count; ++i)
        if (spec.type == TRL_ATTR_I64S)
          j.number(a.v.is[i]);
        else
          j.number(a.v.fs[i]);
      j.close();
  }
}

void attributes(Json& j, const trl_attr_spec* const* specs, uint32_t n) {
  constexpr const char* kTypes[] = {"?", "i64", "f64", "bool", "choice", "i64s", "f64s", "str"};
  j.key("attrs");
  j.open('[');
  for (uint32_t i = 0; i < n; ++i) {
    const trl_attr_spec spec = full(specs[i]);
    j.open('{');
    field(j, "key", spec.key);
    field(j, "type", kTypes[spec.type < std::size(kTypes) ? spec.type : 0]);
    field(j, "doc", spec.doc);
    if (spec.flags & TRL_ATTR_PER_BATCH) flag(j, "per_batch", true);
    if (spec.flags & TRL_ATTR_VALUE) flag(j, "value", true);
    if (spec.flags & TRL_ATTR_REQUIRED) {
      flag(j, "required", true);
    } else {
      j.key("default");
      attr_value(j, spec, spec.dflt);
    }
    if (spec.lo <= spec.hi) {
      j.key("lo");
      if (spec.lo <= -DBL_MAX)
        j.null();
      else
        j.number(spec.lo);
      j.key("hi");
      if (spec.hi >= DBL_MAX)
        j.null();
      else
        j.number(spec.hi);
    }
    if (spec.n_choices) names(j, "choices", spec.choices, spec.n_choices);
    if (spec.type == TRL_ATTR_I64S || spec.type == TRL_ATTR_F64S) {
      field(j, "min_each", spec.min_each);
      j.key("max_each");
      if (spec.max_each == ~0u)
        j.null();
      else
        j.number(int64_t{spec.max_each});
    }
    if (spec.bound_input >= 0) {
      j.key("bound");
      j.open('{', true);
      field(j, "input", spec.bound_input);
      if (spec.bound_axis >= 0)
        field(j, "axis", spec.bound_axis);
      else
        field(j, "axis_attr", spec.bound_axis_attr);
      flag(j, "closed", spec.flags & TRL_ATTR_BOUND_CLOSED);
      j.close();
    }
    j.close();
  }
  j.close();
}

void inputs(Json& j, const trl_op_desc& op) {
  constexpr const char* kMerge[] = {"concat", "shared", "never"};
  constexpr const char* kDomain[] = {"any",         "positive",  "unit",
                                     "probability", "above_one", "nonzero"};
  j.key("inputs");
  j.open('[');
  for (uint32_t i = 0; i < op.n_in; ++i) {
    const trl_in_spec in = full(op.in[i]);
    j.open('{', true);
    field(j, "name", in.name);
    field(j, "doc", in.doc);
    field(j, "dtype", dtype_name(in.dtype));
    field(j, "merge", in.merge < std::size(kMerge) ? kMerge[in.merge] : "?");
    field(j, "domain", in.domain < std::size(kDomain) ? kDomain[in.domain] : "?");
    flag(j, "optional", in.flags & TRL_IN_OPTIONAL);
    flag(j, "variadic", in.flags & TRL_IN_VARIADIC);
    flag(j, "keep", in.flags & TRL_IN_KEEP);
    flag(j, "gradient", !(in.flags & TRL_IN_NO_GRAD));
    j.close();
  }
  j.close();
}

void outputs(Json& j, const trl_op_desc& op) {
  j.key("outputs");
  j.open('[');
  for (uint32_t i = 0; i < op.n_out; ++i) {
    const trl_out_spec out = full(op.out[i]);
    j.open('{', true);
    field(j, "name", out.name);
    field(j, "doc", out.doc);
    field(j, "dtype", dtype_name(out.dtype));
    flag(j, "hidden", out.flags & TRL_OUT_HIDDEN);
    flag(j, "keep", out.flags & TRL_OUT_KEEP);
    flag(j, "gradient", !(out.flags & TRL_OUT_NO_GRAD));
    j.close();
  }
  j.close();
}

bool equal(const trl_str& a, const trl_str& b) {
  return a.n == b.n && std::memcmp(a.p, b.p, a.n) == 0;
}

// What all kinds but linalg providers have in common.
template <class D>
void head(Json& j, const D& d) {
  field(j, "id", d.id);
  field(j, "version", d.version);
  field(j, "summary", d.summary);
  field(j, "doc", d.doc);
  field(j, "source", d.source);
  names(j, "aliases", d.aliases, d.n_aliases);
}

void operators(Json& j, const trl_plugin& plugin) {
  j.key("ops");
  j.open('[');
  for (uint32_t i = 0; i < plugin.n_ops; ++i) {
    const trl_op_desc op = full(plugin.ops[i]);
    j.open('{');
    head(j, op);
    field(j, "since_version", op.since_version);
    field(j, "formula", op.formula);
    field(j, "example", op.example);
    field(j, "role", op.role);
    field(j, "unchecked", op.unchecked);
    flag(j, "elementwise", op.flags & TRL_OP_ELEMENTWISE);
    flag(j, "stochastic", op.flags & TRL_OP_STOCHASTIC);
    flag(j, "deterministic", !(op.flags & TRL_OP_NONDETERMINISTIC));
    flag(j, "strided", op.flags & TRL_OP_STRIDED);
    flag(j, "mode", op.flags & TRL_OP_MODE);
    flag(j, "composite", op.expand != nullptr);
    inputs(j, op);
    outputs(j, op);
    attributes(j, op.attrs, op.n_attrs);
    j.close();
  }
  j.close();
  // Kernels stand apart: a plugin may serve another plugin's operator.
  j.key("kernels");
  j.open('[');
  for (uint32_t i = 0; i < plugin.n_kernels; ++i) {
    const trl_kernel_desc k = full(plugin.kernels[i]);
    j.open('{', true);
    field(j, "op", k.op_id);
    field(j, "device", k.device);
    field(j, "dtype", dtype_name(k.dtype));
    field(j, "rank", k.rank);
    flag(j, "gradient", k.backward != nullptr);
    j.close();
  }
  j.close();
}

void range(Json& j, std::string_view key, uint16_t lo, uint16_t hi) {
  j.key(key);
  j.open('[', true);
  j.number(int64_t{lo});
  if (hi == TRL_VARIADIC)
    j.null();
  else
    j.number(int64_t{hi});
  j.close();
}

void builders(Json& j, const trl_plugin& plugin) {
  j.key("builders");
  j.open('[');
  for (uint32_t i = 0; i < plugin.n_builders; ++i) {
    const trl_builder_desc b = full(plugin.builders[i]);
    j.open('{');
    head(j, b);
    field(j, "state_version", b.state_version);
    field(j, "formula", b.formula);
    range(j, "predecessors", b.min_pred, b.max_pred);
    range(j, "inputs", b.min_in, b.max_in);
    range(j, "contexts", b.min_context, b.max_context);
    const auto size_attr = [&](std::string_view key, int16_t index) {
      j.key(key);
      if (index >= 0 && index < b.n_attrs)
        j.text(full(b.attrs[index]).key);
      else
        j.null();
    };
    size_attr("input_attr", b.input_attr);
    size_attr("hidden_attr", b.hidden_attr);
    flag(j, "sequence", b.sequence != nullptr);
    attributes(j, b.attrs, b.n_attrs);
    j.close();
  }
  j.close();
}

void other_kinds(Json& j, const trl_plugin& plugin) {
  j.key("softmaxes");
  j.open('[');
  for (uint32_t i = 0; i < plugin.n_softmaxes; ++i) {
    const trl_softmax_desc s = full(plugin.softmaxes[i]);
    j.open('{');
    head(j, s);
    flag(j, "sample", s.sample != nullptr);
    attributes(j, s.attrs, s.n_attrs);
    j.close();
  }
  j.close();

  j.key("initializers");
  j.open('[');
  for (uint32_t i = 0; i < plugin.n_initializers; ++i) {
    const trl_initializer_desc d = full(plugin.initializers[i]);
    j.open('{');
    head(j, d);
    field(j, "formula", d.formula);
    flag(j, "default", d.flags & TRL_INIT_DEFAULT);
    attributes(j, d.attrs, d.n_attrs);
    j.close();
  }
  j.close();

  j.key("trainers");
  j.open('[');
  for (uint32_t i = 0; i < plugin.n_trainers; ++i) {
    const trl_trainer_desc t = full(plugin.trainers[i]);
    j.open('{');
    head(j, t);
    field(j, "state_version", t.state_version);
    field(j, "formula", t.formula);
    j.key("slots");
    j.open('[');
    for (uint32_t k = 0; k < t.n_slots; ++k) {
      const trl_slot_spec slot = full(t.slots[k]);
      j.open('{', true);
      field(j, "name", slot.name);
      field(j, "doc", slot.doc);
      j.key("init");
      j.number(slot.init);
      j.close();
    }
    j.close();
    j.key("dtypes");
    j.open('[', true);
    for (uint32_t k = 0; k < plugin.n_updates; ++k) {
      const trl_update_desc u = full(plugin.updates[k]);
      if (equal(u.trainer_id, t.id)) j.text(dtype_name(u.dtype));
    }
    j.close();
    attributes(j, t.attrs, t.n_attrs);
    j.close();
  }
  j.close();

  constexpr const char* kClasses[] = {"gemv",   "gemv_t", "outer", "tiny",
                                      "skinny", "small",  "large"};
  j.key("linalg");
  j.open('[');
  for (uint32_t i = 0; i < plugin.n_linalgs; ++i) {
    const trl_linalg_desc l = full(plugin.linalgs[i]);
    j.open('{', true);
    field(j, "id", l.id);
    field(j, "version", int64_t{1});
    field(j, "summary", l.summary);
    field(j, "device", l.device);
    field(j, "dtype", dtype_name(l.dtype));
    field(j, "rank", l.rank);
    j.key("classes");
    j.open('[', true);
    for (uint32_t c = 0; c < std::size(kClasses); ++c)
      if (l.classes >> c & 1) j.text(kClasses[c]);
    j.close();
    j.close();
  }
  j.close();
}

trl_status host_fail(trl_call*, trl_status status, trl_str text) {
  std::fprintf(stderr, "trellis-schema: %.*s\n", static_cast<int>(text.n), text.p);
  return status;
}
void host_log(trl_call*, int32_t, trl_str) {}
const void* host_get_interface(trl_call*, trl_str, uint32_t*) { return nullptr; }

constexpr trl_host kHost{sizeof(trl_host),  TRL_ABI_MAJOR, TRL_ABI_MINOR, 0,
                         TRL_STR("schema"), host_fail,     host_log,      host_get_interface};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: trellis-schema PLUGIN.so\n");
    return 2;
  }
  std::string path = argv[1];
  if (path.find('/') == path.npos) path = "./" + path;  // a file, never the system's search path
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    std::fprintf(stderr, "trellis-schema: %s\n", dlerror());
    return 1;
  }
  const auto entry = reinterpret_cast<trl_entry_fn>(dlsym(library, TRL_ENTRY_SYMBOL));
  if (!entry) {
    std::fprintf(stderr, "trellis-schema: %s: no symbol " TRL_ENTRY_SYMBOL "\n", argv[1]);
    return 1;
  }
  trl_call call{&kHost, nullptr};
  trl_plugin plugin{};
  plugin.struct_size = sizeof plugin;
  if (const trl_status status = entry(&call, &plugin); status != TRL_OK) {
    std::fprintf(stderr, "trellis-schema: %s: the entry refused (status %d)\n", argv[1],
                 static_cast<int>(status));
    return 1;
  }

  Json j;
  j.open('{');
  field(j, "schema", int64_t{1});
  field(j, "plugin", plugin.id);
  field(j, "version", plugin.version);
  field(j, "abi", std::to_string(plugin.abi_major) + "." + std::to_string(plugin.abi_minor));
  field(j, "min_host_minor", plugin.min_host_minor);
  operators(j, plugin);
  builders(j, plugin);
  other_kinds(j, plugin);
  j.close();
  if (std::fwrite(j.str().data(), 1, j.str().size(), stdout) != j.str().size() ||
      std::fflush(stdout) != 0) {
    std::perror("trellis-schema");
    return 1;
  }
  return 0;
}
