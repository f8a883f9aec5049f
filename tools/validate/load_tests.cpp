// SPDX-License-Identifier: Apache-2.0
//
// Levels 1 and 2: the plugin's tables as it hands them out, and how it is loaded.

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "validate/bench_host.hpp"
#include "validate/examples.hpp"
#include "validate/process_state.hpp"
#include "validate/tests.hpp"

namespace trellis::validate {
namespace {

std::string number(const trl_attr& a) {
  switch (a.type) {
    case TRL_ATTR_F64:
      return fmt::format("{}", a.v.f);
    case TRL_ATTR_STR:
      return std::string(view_of(a.v.s));
    case TRL_ATTR_I64S:
      return a.v.is ? fmt::format("{}", fmt::join(a.v.is, a.v.is + a.count, ",")) : "";
    case TRL_ATTR_F64S:
      return a.v.fs ? fmt::format("{}", fmt::join(a.v.fs, a.v.fs + a.count, ",")) : "";
    default:
      return fmt::format("{}", a.v.i);
  }
}

void describe_attrs(std::string& to, const trl_attr_spec* const* attrs, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) {
    const trl_attr_spec& a = *attrs[i];
    to += fmt::format(
        "  attribute {} type {} flags {} default {} range {} to {} bound {} {} {} each "
        "{} to {}: {}",
        view_of(a.key), a.type, a.flags, number(a.dflt), a.lo, a.hi, a.bound_input, a.bound_axis,
        a.bound_axis_attr, a.min_each, a.max_each, view_of(a.doc));
    for (uint32_t k = 0; k < a.n_choices; ++k) to += fmt::format(" {}", view_of(a.choices[k]));
    to += "\n";
  }
}

// Everything that the tables say, a line a fact.
std::string describe(const trl_plugin& t) {
  std::string to = fmt::format("plugin {} {} ABI {}.{} needs {}\n", view_of(t.id),
                               view_of(t.version), t.abi_major, t.abi_minor, t.min_host_minor);
  for (uint32_t i = 0; i < t.n_ops; ++i) {
    const trl_op_desc& d = *t.ops[i];
    to += fmt::format(
        "operator {} flags {} version {} since {} role '{}' expand {} {}: {} / {} / {} / {}\n",
        view_of(d.id), d.flags, d.version, d.since_version, view_of(d.role), d.expand != nullptr,
        d.expand_grad != nullptr, view_of(d.summary), view_of(d.doc), view_of(d.formula),
        view_of(d.example));
    for (uint16_t k = 0; k < d.n_in; ++k)
      to += fmt::format("  input {} flags {} dtype {} merge {} domain {}\n", view_of(d.in[k]->name),
                        d.in[k]->flags, d.in[k]->dtype, d.in[k]->merge, d.in[k]->domain);
    for (uint16_t k = 0; k < d.n_out; ++k)
      to += fmt::format("  output {} flags {} dtype {}\n", view_of(d.out[k]->name), d.out[k]->flags,
                        d.out[k]->dtype);
    describe_attrs(to, d.attrs, d.n_attrs);
  }
  for (uint32_t i = 0; i < t.n_kernels; ++i) {
    const trl_kernel_desc& k = *t.kernels[i];
    to += fmt::format("kernel of {} on {} for {} rank {} flags {} backward {} create {}\n",
                      view_of(k.op_id), view_of(k.device), k.dtype, k.rank, k.flags,
                      k.backward != nullptr, k.create != nullptr);
  }
  const auto things = [&to](const char* what, const auto* const* table, uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) {
      to += fmt::format("{} {} version {}: {}\n", what, view_of(table[i]->id), table[i]->version,
                        view_of(table[i]->summary));
      describe_attrs(to, table[i]->attrs, table[i]->n_attrs);
    }
  };
  things("builder", t.builders, t.n_builders);
  things("softmax builder", t.softmaxes, t.n_softmaxes);
  things("initializer", t.initializers, t.n_initializers);
  things("trainer", t.trainers, t.n_trainers);
  for (uint32_t i = 0; i < t.n_updates; ++i)
    to += fmt::format("update of {} on {} for {} rank {}\n", view_of(t.updates[i]->trainer_id),
                      view_of(t.updates[i]->device), t.updates[i]->dtype, t.updates[i]->rank);
  // Not the rank: how good a provider is among others may well depend on the level.
  for (uint32_t i = 0; i < t.n_linalgs; ++i)
    to += fmt::format("linalg provider {} on {} for {} classes {}\n", view_of(t.linalgs[i]->id),
                      view_of(t.linalgs[i]->device), t.linalgs[i]->dtype, t.linalgs[i]->classes);
  return to;
}

bool lies_in(std::string_view id, const std::vector<std::string>& namespaces) {
  return std::any_of(namespaces.begin(), namespaces.end(), [&](const std::string& n) {
    return id.size() > n.size() && id.starts_with(n) && id[n.size()] == '.';
  });
}

void check_attr_specs(Context& ctx, const std::string& what, const trl_attr_spec* const* attrs,
                      uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) {
    const trl_attr_spec& a = *attrs[i];
    const std::string who = fmt::format("{}, attribute '{}'", what, view_of(a.key));
    if (a.doc.n == 0) ctx.fail(who + ": no doc (needed: what it does, its unit)");
    if ((a.flags & TRL_ATTR_REQUIRED) || !(a.lo <= a.hi)) continue;
    std::vector<double> values;
    if (a.type == TRL_ATTR_I64) values = {static_cast<double>(a.dflt.v.i)};
    if (a.type == TRL_ATTR_F64) values = {a.dflt.v.f};
    if (a.type == TRL_ATTR_I64S && a.dflt.v.is)
      values.assign(a.dflt.v.is, a.dflt.v.is + a.dflt.count);
    if (a.type == TRL_ATTR_F64S && a.dflt.v.fs)
      values.assign(a.dflt.v.fs, a.dflt.v.fs + a.dflt.count);
    for (const double v : values)
      if (!(v >= a.lo && v <= a.hi))
        ctx.fail(fmt::format("{}: its default is {} (needed {} to {})", who, v, a.lo, a.hi));
  }
}

void tables(Context& ctx, const Subject&) {
  const trl_plugin& t = ctx.bench().tables();
  const PluginInfo& info = ctx.info();
  if (view_of(t.id) != info.id || view_of(t.version) != info.version)
    ctx.fail(fmt::format("its tables say {} {} (needed {} {}, as the note does)", view_of(t.id),
                         view_of(t.version), info.id, info.version));
  const auto check = [&](const char* kind, const auto& d) {
    const std::string what = fmt::format("{} {}", kind, view_of(d.id));
    if (!info.namespaces.empty() && !lies_in(view_of(d.id), info.namespaces))
      ctx.fail(fmt::format("{} lies in no namespace of the plugin (needed {})", what,
                           fmt::join(info.namespaces, " or ")));
    if (d.summary.n == 0) ctx.fail(what + ": no summary (needed: one line for lists)");
    return what;
  };
  for (uint32_t i = 0; i < t.n_ops; ++i) {
    const trl_op_desc& d = *t.ops[i];
    const std::string what = check("operator", d);
    check_attr_specs(ctx, what, d.attrs, d.n_attrs);
    if (d.example.n == 0)
      ctx.fail(what + ": no example (needed: a call that every generic check can run)");
    try {
      parse_examples(view_of(d.example));
    } catch (const Error& e) {
      ctx.fail(fmt::format("{}: {}", what, e.what()));
    }
    if (d.n_out == 0) ctx.fail(what + ": no output");
  }
  const auto things = [&](const char* kind, const auto* const* table, uint32_t n) {
    for (uint32_t i = 0; i < n; ++i)
      check_attr_specs(ctx, check(kind, *table[i]), table[i]->attrs, table[i]->n_attrs);
  };
  things("builder", t.builders, t.n_builders);
  things("softmax builder", t.softmaxes, t.n_softmaxes);
  things("initializer", t.initializers, t.n_initializers);
  things("trainer", t.trainers, t.n_trainers);
  for (uint32_t i = 0; i < t.n_linalgs; ++i) check("linalg provider", *t.linalgs[i]);
  ctx.runtime();  // the loader's own checks of everything
}

bool runs_here(std::string_view cpu) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (cpu.ends_with("v4"))
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (cpu.ends_with("v3")) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
  return cpu.empty() || cpu.ends_with("v1") || cpu.ends_with("v2");
}

// What a library's tables say, asked in a process of its own: one level is opened per process.
std::string describe_library(Context& ctx, const std::filesystem::path& library) {
  int ends[2];
  if (::pipe(ends) != 0) ctx.fail("cannot make a pipe");
  const pid_t pid = ::fork();
  if (pid == 0) {
    std::string text;
    try {
      PluginInfo info = ctx.info();
      info.library = library;
      const BenchHost bench(info, [&]() -> const Runtime& { return ctx.runtime(); });
      text = "+" + describe(bench.tables());
    } catch (const Failure& f) {
      text = "-" + f.text;
    }
    for (size_t at = 0; at < text.size();) {
      const ssize_t n = ::write(ends[1], text.data() + at, text.size() - at);
      if (n <= 0) break;
      at += static_cast<size_t>(n);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  char bytes[4096];
  for (ssize_t n; (n = ::read(ends[0], bytes, sizeof bytes)) > 0;)
    text.append(bytes, static_cast<size_t>(n));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (text.empty() || text[0] != '+')
    ctx.fail(fmt::format("{}: {}", library.filename().string(),
                         text.empty() ? "crashes when it is opened" : text.substr(1)));
  return text.substr(1);
}

std::string first_difference(const std::string& a, const std::string& b) {
  for (size_t at = 0; at < std::max(a.size(), b.size());) {
    const size_t ae = std::min(a.find('\n', at), a.size()),
                 be = std::min(b.find('\n', at), b.size());
    const std::string al = at < a.size() ? a.substr(at, ae - at) : "nothing";
    const std::string bl = at < b.size() ? b.substr(at, be - at) : "nothing";
    if (al != bl) return fmt::format("'{}' and '{}'", al, bl);
    at = ae + 1;
  }
  return {};
}

void levels(Context& ctx, const Subject&) {
  const PluginInfo& info = ctx.info();
  if (info.libraries.size() < 2) ctx.skip("one library for all CPU levels");
  std::string first, first_name, left;
  size_t compared = 0;
  for (const std::string& entry : info.libraries) {
    // "acme-act.v3.so (x86_64-linux-gnu cpu x86-64-v3)"
    const size_t open = entry.find(" (");
    const std::string name = entry.substr(0, open);
    const std::string about = entry.substr(open + 2, entry.size() - open - 3);
    const size_t space = about.rfind(' ');
    const std::string cpu =
        space == about.npos || about.find("x86-64-v") == about.npos ? "" : about.substr(space + 1);
    if (about.find(info.target) == about.npos || about.find(" cpu") == about.npos ||
        !runs_here(cpu)) {
      left += (left.empty() ? "" : ", ") + name;
      continue;
    }
    const std::string text = describe_library(ctx, info.manifest.parent_path() / name);
    ++compared;
    if (first.empty()) {
      first = text;
      first_name = name;
    } else if (const std::string d = first_difference(first, text); !d.empty()) {
      ctx.fail(fmt::format("the tables of {} and {} differ: {}", first_name, name, d));
    }
  }
  if (!left.empty()) ctx.note("not run on this machine: " + left);
  if (compared < 2) ctx.skip("fewer than two libraries run on this machine");
}

// The entry with room for `size` bytes of the table; the bytes behind must stay.
trl_plugin call_entry(Context& ctx, uint32_t size, const char* what) {
  struct {
    trl_plugin table;
    unsigned char guard[256];
  } room;
  std::memset(&room, 0, sizeof room);
  auto* bytes = reinterpret_cast<unsigned char*>(&room);
  std::memset(bytes + std::min<size_t>(size, sizeof room), 0xA5, sizeof room - size);
  room.table.struct_size = size;
  BenchCall call(ctx.bench());
  call.must(fmt::format("the entry function, {},", what),
            [&] { return ctx.bench().entry()(&call, &room.table); });
  for (size_t i = size; i < sizeof room; ++i)
    if (bytes[i] != 0xA5)
      ctx.fail(fmt::format("the entry function, {}, writes {} bytes past it (needed TRL_FILL)",
                           what, i - size + 1));
  if (room.table.struct_size > size)
    ctx.fail(fmt::format("the entry function, {}, sets struct_size to {} (needed at most {})", what,
                         room.table.struct_size, size));
  return room.table;
}

void entry(Context& ctx, const Subject&) {
  const trl_plugin first = ctx.bench().tables();
  const trl_plugin again = call_entry(ctx, sizeof(trl_plugin), "called a second time");
  if (std::memcmp(&first, &again, sizeof first) != 0)
    ctx.fail("the entry function gives another table the second time");
  for (const size_t size : {TRL_SIZE_THRU(trl_plugin, version), TRL_SIZE_THRU(trl_plugin, kernels),
                            TRL_SIZE_THRU(trl_plugin, init)})
    call_entry(ctx, static_cast<uint32_t>(size), "given the shorter table of an older host");
  const trl_plugin longer =
      call_entry(ctx, sizeof(trl_plugin) + 64, "given the longer table of a newer host");
  if (longer.n_ops != first.n_ops)
    ctx.fail("the entry function gives other tables to a newer host");
  if (first.min_host_minor == 0) return;
  BenchCall call(ctx.bench());
  call.host = BenchHost::host_table(first.min_host_minor - 1);
  trl_plugin table{};
  table.struct_size = sizeof table;
  const trl_status st =
      call.run("the entry function", [&] { return ctx.bench().entry()(&call, &table); });
  if (st != TRL_E_ABI)
    ctx.fail(
        fmt::format("a host of ABI {}.{}, older than it needs, gets status {} (needed {}, "
                    "TRL_E_ABI)",
                    TRL_ABI_MAJOR, first.min_host_minor - 1, st, TRL_E_ABI));
  if (call.text.empty()) ctx.fail("a host that is too old is refused without a text");
}

void init(Context& ctx, const Subject&) {
  const trl_plugin& t = ctx.bench().tables();
  if (!t.init && !t.fini) ctx.skip("it has neither init nor fini");
  const auto start = [&](const char* what) {
    void* self = nullptr;
    if (!t.init) return self;
    BenchCall call(ctx.bench());
    call.must(what, [&] { return t.init(&call, &self); });
    return self;
  };
  const auto end = [&](void* self, const char* what) {
    if (!t.fini) return;
    BenchCall call(ctx.bench());
    call.trl_call::self = self;
    call.run(what, [&] {
      t.fini(&call);
      return trl_status{TRL_OK};
    });
  };
  for (const char* what : {"init", "init after fini"}) {
    ctx.at(what);
    end(start(what), "fini");
  }
  ctx.at("init of two runtimes at a time");
  void* const one = start("init");
  void* const two = start("init of a second runtime");
  end(one, "fini of the first of two runtimes");
  end(two, "fini of the second of two runtimes");
  if (t.init) {
    ctx.at("init on a host that offers no interface");
    BenchCall call(ctx.bench());
    call.host = BenchHost::host_table(TRL_ABI_MINOR, false);
    void* self = nullptr;
    const trl_status st =
        call.run("init on a host that offers nothing", [&] { return t.init(&call, &self); });
    if (st != TRL_OK && call.text.empty())
      ctx.fail(
          fmt::format("init on a host that offers nothing fails with status {} and no text", st));
    if (st == TRL_OK) end(self, "fini");
  }
  ctx.at("two real runtimes");
  try {
    const Runtime first(ctx.runtime_options()), second(ctx.runtime_options());
  } catch (const Error& e) {
    ctx.fail(fmt::format("two runtimes at a time: {}", e.what()));
  }
}

void process(Context& ctx, const Subject&) {
  const ProcessState before = ProcessState::now();
  const auto check = [&](const char* what) {
    if (const auto d = difference(before, ProcessState::now()); !d.empty())
      ctx.fail(fmt::format("{}: {}", what, d));
  };
  {
    BenchHost bench(ctx.info(), [&]() -> const Runtime& { return ctx.runtime(); });
    check("opening it");
    bench.self();
    check("init");
  }
  check("fini");
}

constexpr Test kTests[] = {
    {"static.tables", 1, Kind::plugin,
     "descriptors say what they must: summaries, docs, examples, defaults in range, namespaces",
     tables},
    {"static.levels", 1, Kind::plugin, "the libraries of all CPU levels describe the same tables",
     levels},
    {"load.entry", 2, Kind::plugin,
     "the entry may be called again, by older and newer hosts, and refuses those that are too old",
     entry},
    {"load.init", 2, Kind::plugin,
     "init and fini work twice, for two runtimes, and on a host that offers nothing", init},
    {"load.process", 2, Kind::plugin,
     "loading leaves threads, signals, locale, floating-point mode, environment, folder and files",
     process},
};

}  // namespace

std::span<const Test> load_tests() { return kTests; }

}  // namespace trellis::validate
