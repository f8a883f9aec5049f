// SPDX-License-Identifier: Apache-2.0
//
// Loads the plugins of one runtime, in the order that keeps strangers' code from running early:
//   manifest, file, note; dlopen; entry; check and register every table; init of each; fini when
//   the runtime ends.
// All plugins are registered before the first init, so a plugin can resolve operators of any other.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <trellis/runtime.hpp>
#include <vector>

#include "plugin/handles.hpp"
#include "plugin/plugin_set.hpp"
#include "plugin/verify.hpp"
#include "registry/registry.hpp"
#include "runtime/core.hpp"

namespace trellis::detail {

struct LoadedPlugin {
  ChosenPlugin chosen;
  std::string library, cpu;
  ElfInfo elf;
  trl_plugin table{};
  PluginRecord* record = nullptr;  // in the registry
  void* self = nullptr;
  bool initialised = false;
  std::set<std::string> options_read;
};

class PluginLoader {
 public:
  explicit PluginLoader(RuntimeCore& core);
  ~PluginLoader();

  // Once, with an empty registry. Plugins that somebody named: throws Error(plugin) at the first
  // one that cannot be loaded. All shipped ones: logs each failure as an error and goes on without
  // it and those that need it.
  void load(const RuntimeOptions& options);
  // fini of every plugin, newest first. The registry must still be there.
  void finish() noexcept;

  const std::vector<std::unique_ptr<LoadedPlugin>>& plugins() const { return plugins_; }
  OpHandles& handles() { return handles_; }
  const OpHandles& handles() const { return handles_; }
  // Of "trl.options/1"; null: not set. Remembers that it was asked for.
  const std::string* option(std::string_view plugin_id, std::string_view key);
  // Asks initialised plugins for an interface of their own, in order of loading.
  const void* plugin_interface(trl_str id_rev, uint32_t* size);

 private:
  void open(LoadedPlugin& p, const Trace& trace);
  void read_table(LoadedPlugin& p, const VerifiedLibrary& v, trl_entry_fn entry);
  void add_to_registry(LoadedPlugin& p);
  void initialise(LoadedPlugin& p);
  void finish(LoadedPlugin& p) noexcept;
  void register_all(const PluginSet& set, const Trace& trace);
  void initialise_all(const Trace& trace);
  void leave_out(std::vector<std::string> ids);
  void rebuild_registry();
  void failed(const Error& e);  // throws or logs
  void warn_unread_options();

  RuntimeCore& core_;
  std::vector<std::unique_ptr<LoadedPlugin>> plugins_;
  OpHandles handles_;
  std::vector<Override> overrides_;
  bool allow_core_override_ = false;
  bool is_strict_ = true;
};

}  // namespace trellis::detail
