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
  // loaded; shipped (install place), unsigned (elsewhere), shadowed (an earlier place has it),
  // disabled, broken
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

}  // namespace trellis
