// SPDX-License-Identifier: Apache-2.0
//
// What is loaded, what could be loaded, and what a plugin says of itself. Nothing here runs code of
// a plugin.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <trellis/api.hpp>
#include <trellis/runtime.hpp>
#include <vector>

namespace trellis {

struct PluginInfo {
  std::string id, version, license, summary;
  std::vector<std::string> authors, namespaces;
  std::vector<std::string> required;  // "acme-base ^1.2"
  // From the library's note: host ABI it needs at least ("0.1"), and what it was built against.
  std::string abi, built_with;
  std::string target, device, cpu;  // of the library chosen on this machine
  std::filesystem::path manifest, library;
  std::vector<std::string>
      libraries;  // all of the manifest: "acme-act.v3.so (x86_64-linux-gnu cpu x86-64-v3)"
  // "acme.square@1" by kind, from the manifest; of a loaded plugin from its tables.
  std::vector<std::string> ops, builders, softmaxes, initializers, trainers, linalg;
  std::vector<std::string> needed;  // shared libraries it links
  std::string glibc, glibcxx;       // highest versions needed, "2.34" and "3.4.30"
  // loaded; shipped (install place), dev (a dev folder), unsigned (elsewhere), shadowed (an earlier
  // place has it), disabled, broken
  std::string state;
  std::string reason;                 // why shadowed, disabled or broken; else where it was found
  std::vector<std::string> warnings;  // of the manifest
};

// The plugins of a runtime, in order of loading.
TRELLIS_API std::vector<PluginInfo> loaded_plugins(const Runtime& runtime);

// Everything the search places of `options` hold, in search order; shadowed, disabled and broken
// ones too.
TRELLIS_API std::vector<PluginInfo> available_plugins(const RuntimeOptions& options = {});

// One plugin by id, manifest or library. A library without manifest is described by its note.
// Throws Error(plugin) when there is no such plugin or file; a plugin that would be refused comes
// back as broken.
TRELLIS_API PluginInfo inspect_plugin(const std::string& id_or_file,
                                      const RuntimeOptions& options = {});

// What the static check of a plugin found.
enum class Severity { error, warning };

struct CheckFinding {
  Severity severity = Severity::error;
  std::string name;  // of the check: manifest, levels, file, trust, note, abi, runtime, exports,
      // unique, flags, relocations, memory, run-path, needed, undefined, constructors
  std::string fact;  // "[check] acme-act.so: fact: given (needed)"
};

struct PluginCheck {
  std::string id, version;                       // as far as they are known
  std::filesystem::path manifest;                // empty: there is none
  std::vector<std::filesystem::path> libraries;  // that were read
  std::vector<CheckFinding> findings;            // errors first

  size_t errors() const {
    size_t n = 0;
    for (const CheckFinding& f : findings) n += f.severity == Severity::error;
    return n;
  }
};

// Reads manifest and all libraries of a plugin, given as for inspect_plugin(), and tells what would
// be refused or is no good practice: note, exports, linker flags, needed libraries and symbols,
// static constructors, files of CPU levels. Never throws for what it reads; throws Error(plugin)
// when there is no such plugin or file.
TRELLIS_API PluginCheck check_plugin(const std::string& id_or_file,
                                     const RuntimeOptions& options = {});

// Folders of work in progress, which the user of this process trusts. Their plugins are found first
// and, unless an experiment's file or options name the plugins, loaded with the shipped ones; every
// runtime that loads one says so in a warning. Error(trust): others may write the list.
TRELLIS_API std::vector<std::filesystem::path> dev_folders();
// False: it was one already. Throws Error(argument) when it is no folder or holds no manifest,
// Error(io) when the list cannot be written.
TRELLIS_API bool add_dev_folder(const std::filesystem::path& folder);
TRELLIS_API bool remove_dev_folder(const std::filesystem::path& folder);  // false: it was none

}  // namespace trellis
