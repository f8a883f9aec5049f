// SPDX-License-Identifier: Apache-2.0
#include "plugin/loader.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <trellis/error.hpp>
#include <utility>

#include "plugin/library.hpp"
#include "runtime/call.hpp"

namespace trellis::detail {
namespace {

constexpr uint32_t kMaxTable = 4096;

// The dynamic linker, the opened libraries and every init: one at a time in a process.
std::mutex& load_mutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

// Runs a callback of a plugin. An exception breaks the contract, but here it costs a message and
// not the process.
template <class F>
trl_status contain(Call& call, F&& callback) {
  const auto left = [&call](const std::string& what) {
    call.text = "an exception left the plugin: " + what;
    return call.status = TRL_E_INTERNAL;
  };
  try {
    return callback();
  } catch (const std::exception& e) {
    return left(e.what());
  } catch (...) {
    return left("of a type this host does not know");
  }
}

std::string text_of(const trl_str& s) {
  return s.p ? std::string(s.p, std::min<size_t>(s.n, 256)) : std::string();
}

template <class T>
void check_list(const std::string& prefix, const char* what, const T* const* list, uint32_t n) {
  const std::string text = prefix + ": its table of " + what;
  if (n > kMaxTable)
    fail(ErrorKind::plugin, text + " has " + std::to_string(n) + " entries (at most " +
                                std::to_string(kMaxTable) + ")");
  if (n > 0 && !list)
    fail(ErrorKind::plugin, text + " has " + std::to_string(n) + " entries and no address");
  for (uint32_t i = 0; i < n; ++i)
    if (!list[i]) fail(ErrorKind::plugin, text + " has no entry " + std::to_string(i));
}

void check_lists(const std::string& prefix, const trl_plugin& t) {
  check_list(prefix, "operators", t.ops, t.n_ops);
  check_list(prefix, "kernels", t.kernels, t.n_kernels);
  check_list(prefix, "builders", t.builders, t.n_builders);
  check_list(prefix, "softmax builders", t.softmaxes, t.n_softmaxes);
  check_list(prefix, "initializers", t.initializers, t.n_initializers);
  check_list(prefix, "trainers", t.trainers, t.n_trainers);
  check_list(prefix, "updates", t.updates, t.n_updates);
  check_list(prefix, "linalg providers", t.linalgs, t.n_linalgs);
}

// Ids of the manifest, "acme.square@1", against those of the library's (checked) table.
template <class Desc>
void check_provided(const std::string& prefix, const char* what, std::vector<std::string> promised,
                    const Desc* const* table, uint32_t n) {
  for (std::string& id : promised) id.erase(std::min(id.find('@'), id.size()));
  std::vector<std::string> present;
  for (uint32_t i = 0; i < n; ++i) present.push_back(text_of(table[i]->id));
  for (const std::string& id : promised)
    if (std::find(present.begin(), present.end(), id) == present.end())
      fail(ErrorKind::plugin, prefix + ": its manifest promises the " + what + " '" + id +
                                  "', the library has none of that id");
  for (const std::string& id : present)
    if (std::find(promised.begin(), promised.end(), id) == promised.end())
      fail(ErrorKind::plugin, prefix + ": the library has the " + what + " '" + id +
                                  "', its manifest does not list it");
}

bool requires_any(const Manifest& m, const std::vector<std::string>& ids) {
  return std::any_of(m.required.begin(), m.required.end(), [&](const Requirement& r) {
    return std::find(ids.begin(), ids.end(), r.id) != ids.end();
  });
}

}  // namespace

PluginLoader::PluginLoader(RuntimeCore& core) : core_(core) {}

PluginLoader::~PluginLoader() { finish(); }

void PluginLoader::load(const RuntimeOptions& options) {
  if (options.no_plugins) return;
  const Trace trace = Trace::from_environment();
  const Places places(options.search, trace);
  PluginSet set = choose_plugins(options, places, trace);
  is_strict_ = set.named;
  overrides_ = std::move(set.overrides);
  allow_core_override_ = set.allow_core_override;
  for (const std::string& warning : set.warnings) core_.log(3, warning);
  for (const std::string& text : set.left_out) core_.log(4, text);
  if (allow_core_override_)
    core_.log(2, "[plugin] plugins of this experiment may replace what shipped ones provide");

  const std::lock_guard lock(load_mutex());
  for (const Override& o : overrides_) core_.registry->set_override(o.target, o.id);
  register_all(set, trace);
  initialise_all(trace);
  warn_unread_options();
}

void PluginLoader::failed(const Error& e) {
  if (is_strict_) throw e;
  core_.log(4, e.what());
}

void PluginLoader::register_all(const PluginSet& set, const Trace& trace) {
  std::vector<std::string> gone;
  for (const ChosenPlugin& chosen : set.plugins) {
    auto p = std::make_unique<LoadedPlugin>();
    p->chosen = chosen;
    const Manifest& m = p->chosen.manifest;
    for (const std::string& warning : m.warnings) core_.log(3, warning);
    try {
      if (requires_any(m, gone))
        fail(ErrorKind::plugin, refusal(m.file) + ": requires a plugin that could not be loaded");
      open(*p, trace);
      add_to_registry(*p);
      plugins_.push_back(std::move(p));
    } catch (const Error& e) {
      gone.push_back(m.id);
      failed(e);
    }
  }
}

void PluginLoader::open(LoadedPlugin& p, const Trace& trace) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const VerifiedLibrary v = verify(p.chosen.manifest, trace);
  p.library = v.path.native();
  p.cpu = v.entry->cpu;
  p.elf = v.elf;
  read_table(p, v, open_library(v));
  if (trace.on(TraceTopic::load)) {
    const std::chrono::duration<double, std::micro> took = Clock::now() - start;
    trace.line(TraceTopic::load, p.chosen.manifest.id + ": " + quoted(v.path) + " opened in " +
                                     std::to_string(static_cast<long>(took.count())) + " us, " +
                                     std::to_string(p.table.n_ops) + " operators, " +
                                     std::to_string(p.table.n_builders) + " builders");
  }
}

void PluginLoader::read_table(LoadedPlugin& p, const VerifiedLibrary& v, trl_entry_fn entry) {
  const std::string prefix = refusal(v.path);
  const PluginNote& note = *v.elf.note;
  // What a plugin writes beyond the room it was told of lands in the guard and not in this frame.
  struct {
    trl_plugin table;
    unsigned char guard[256];
  } room;
  std::memset(&room, 0, sizeof room);
  std::memset(room.guard, 0xa5, sizeof room.guard);
  room.table.struct_size = sizeof room.table;

  Call call(core_);
  call.begin(Phase::entry, nullptr);
  call.plugin_id = p.chosen.manifest.id;
  const trl_status status = contain(call, [&] { return entry(&call, &room.table); });
  if (status != TRL_OK)
    fail(status == TRL_E_ABI ? ErrorKind::abi : ErrorKind::plugin,
         prefix + ": its entry function fails: " + call.take_text(status));
  if (!std::all_of(std::begin(room.guard), std::end(room.guard),
                   [](unsigned char c) { return c == 0xa5; }))
    fail(ErrorKind::plugin,
         prefix + ": its entry function writes past the host's table (needs TRL_FILL)");

  const trl_plugin& t = room.table;
  if (t.struct_size < TRL_SIZE_THRU(trl_plugin, version) || t.struct_size > sizeof t)
    fail(ErrorKind::plugin, prefix + ": its table has " + std::to_string(t.struct_size) +
                                " bytes (needs " +
                                std::to_string(TRL_SIZE_THRU(trl_plugin, version)) + " to " +
                                std::to_string(sizeof t) + ")");
  if (t.abi_major != note.abi_major || t.min_host_minor != note.min_host_minor)
    fail(ErrorKind::abi, prefix + ": its table needs host ABI " + std::to_string(t.abi_major) +
                             "." + std::to_string(t.min_host_minor) + ", its note says " +
                             std::to_string(note.abi_major) + "." +
                             std::to_string(note.min_host_minor));
  const auto must_equal = [&](const char* what, const trl_str& in_table,
                              const std::string& in_note) {
    if (text_of(in_table) != in_note)
      fail(ErrorKind::plugin, prefix + ": the " + what + " in its table is '" + text_of(in_table) +
                                  "', in its note '" + in_note + "'");
  };
  must_equal("id", t.id, note.id);
  must_equal("version", t.version, note.version);
  check_lists(prefix, t);
  p.table = t;
}

void PluginLoader::add_to_registry(LoadedPlugin& p) {
  const Manifest& m = p.chosen.manifest;
  const std::string prefix = refusal(p.library);
  PluginRecord record;
  record.id = m.id;
  record.version = m.version.to_string();
  record.cpu_level = p.cpu;
  record.path = p.library;
  record.manifest = m.file.native();
  record.namespaces = m.namespaces;
  record.shipped = p.chosen.shipped;
  record.allow_core_override = allow_core_override_;
  Registry& r = *core_.registry;
  p.record = &r.add(std::move(record), p.table);
  p.record->self = p.self;
  if (!m.provides.given) return;
  const trl_plugin& t = p.table;
  try {
    check_provided(prefix, "operator", m.provides.ops, t.ops, t.n_ops);
    check_provided(prefix, "builder", m.provides.builders, t.builders, t.n_builders);
    check_provided(prefix, "softmax builder", m.provides.softmaxes, t.softmaxes, t.n_softmaxes);
    check_provided(prefix, "initializer", m.provides.initializers, t.initializers,
                   t.n_initializers);
    check_provided(prefix, "trainer", m.provides.trainers, t.trainers, t.n_trainers);
    check_provided(prefix, "linalg provider", m.provides.linalg, t.linalgs, t.n_linalgs);
  } catch (const Error&) {
    r.remove_last(*p.record);
    throw;
  }
}

void PluginLoader::initialise(LoadedPlugin& p) {
  if (p.table.init) {
    Call call(core_);
    call.begin(Phase::init, nullptr);
    call.plugin_id = p.record->id;
    void* self = nullptr;
    const trl_status status = contain(call, [&] { return p.table.init(&call, &self); });
    if (status != TRL_OK)
      fail(ErrorKind::plugin, refusal(p.library) + ": its init fails: " + call.take_text(status));
    p.self = self;
    p.record->self = self;
  }
  p.initialised = true;
}

void PluginLoader::initialise_all(const Trace& trace) {
  std::vector<std::string> gone;
  for (size_t i = 0; i < plugins_.size(); ++i) {
    LoadedPlugin& p = *plugins_[i];
    const std::string id = p.chosen.manifest.id;
    try {
      if (requires_any(p.chosen.manifest, gone))
        fail(ErrorKind::plugin,
             refusal(p.library) + ": requires a plugin that could not be loaded");
      initialise(p);
      trace.line(TraceTopic::load, id + ": initialised");
    } catch (const Error& e) {
      handles_.drop_owner(id);
      gone.push_back(id);
      failed(e);
    }
  }
  if (!gone.empty()) leave_out(std::move(gone));
}

void PluginLoader::leave_out(std::vector<std::string> ids) {
  const auto is_out = [&ids](const LoadedPlugin& p) {
    return std::find(ids.begin(), ids.end(), p.chosen.manifest.id) != ids.end();
  };
  while (!ids.empty()) {
    for (const auto& p : plugins_)
      if (!is_out(*p) && requires_any(p->chosen.manifest, ids)) {
        failed(Error(ErrorKind::plugin,
                     refusal(p->library) + ": requires a plugin that could not be loaded"));
        ids.push_back(p->chosen.manifest.id);
      }
    for (auto p = plugins_.rbegin(); p != plugins_.rend(); ++p)
      if (is_out(**p)) finish(**p);
    for (const std::string& id : ids) handles_.drop_owner(id);
    plugins_.erase(
        std::remove_if(plugins_.begin(), plugins_.end(), [&](const auto& p) { return is_out(*p); }),
        plugins_.end());
    ids.clear();

    core_.registry = std::make_unique<Registry>();
    for (const Override& o : overrides_) core_.registry->set_override(o.target, o.id);
    for (const auto& p : plugins_) {
      try {
        add_to_registry(*p);
      } catch (const Error& e) {
        failed(e);
        ids.push_back(p->chosen.manifest.id);
      }
    }
    for (const std::string& owner : handles_.rebind(*core_.registry)) {
      if (std::find(ids.begin(), ids.end(), owner) != ids.end()) continue;
      failed(Error(ErrorKind::plugin,
                   "[plugin] cannot use '" + owner +
                       "': it needs operators of a plugin that could not be loaded"));
      ids.push_back(owner);
    }
  }
}

void PluginLoader::finish(LoadedPlugin& p) noexcept {
  if (!std::exchange(p.initialised, false) || !p.table.fini) return;
  try {
    Call call(core_);
    call.begin(Phase::fini, p.self);
    call.plugin_id = p.chosen.manifest.id;
    const trl_status status = contain(call, [&] {
      p.table.fini(&call);
      return TRL_OK;
    });
    if (status != TRL_OK)
      core_.log(4,
                "[plugin] " + p.chosen.manifest.id + ": its fini fails: " + call.take_text(status));
  } catch (const std::exception&) {  // out of memory for a message
  }
}

void PluginLoader::finish() noexcept {
  for (auto p = plugins_.rbegin(); p != plugins_.rend(); ++p) finish(**p);
}

const std::string* PluginLoader::option(std::string_view plugin_id, std::string_view key) {
  for (const auto& p : plugins_) {
    if (p->chosen.manifest.id != plugin_id) continue;
    const auto at = p->chosen.options.find(std::string(key));
    if (at == p->chosen.options.end()) return nullptr;
    p->options_read.insert(at->first);
    return &at->second;
  }
  return nullptr;
}

const void* PluginLoader::plugin_interface(trl_str id_rev, uint32_t* size) {
  for (const auto& p : plugins_) {
    if (!p->initialised || !p->table.get_interface) continue;
    Call call(core_);
    call.begin(Phase::init, p->self);
    call.plugin_id = p->chosen.manifest.id;
    const void* found = nullptr;
    const trl_status status = contain(call, [&] {
      found = p->table.get_interface(&call, id_rev, size);
      return TRL_OK;
    });
    if (status == TRL_OK && found) return found;
  }
  return nullptr;
}

void PluginLoader::warn_unread_options() {
  for (const auto& p : plugins_)
    for (const auto& [key, value] : p->chosen.options)
      if (!p->options_read.contains(key))
        core_.log(3, "[plugin] " + p->chosen.manifest.id + ": option '" + key +
                         "' was not asked for (the plugin may not know it)");
}

}  // namespace trellis::detail
