// SPDX-License-Identifier: Apache-2.0
//
// Reads the tables of a plugin, believing nothing: counts, pointers, sizes, texts and what the
// descriptors say of each other. What depends on other plugins is checked by the registry.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "registry/registry.hpp"

namespace trellis::detail {

using Overrides = std::map<std::string, std::string, std::less<>>;

// What one plugin provides, in structs of this host's version.
struct Provided {
  std::unique_ptr<PluginRecord> plugin;
  std::vector<std::unique_ptr<OpEntry>> ops;
  std::vector<std::unique_ptr<BuilderEntry>> builders;
  std::vector<std::unique_ptr<SoftmaxEntry>> softmaxes;
  std::vector<std::unique_ptr<InitializerEntry>> initializers;
  std::vector<std::unique_ptr<TrainerEntry>> trainers;
  std::vector<std::unique_ptr<LinalgEntry>> linalgs;
  std::vector<trl_kernel_desc> kernels;
  std::vector<trl_update_desc> updates;
};

// Throws Error(plugin) "[plugin] cannot register '<file>': <what>: <fact>".
Provided read_tables(PluginRecord record, const trl_plugin& table, const Overrides& overrides);
[[noreturn]] void refuse_plugin(const PluginRecord& plugin, const std::string& fact);
// The file of a plugin, its id where there is none.
const std::string& origin(const PluginRecord& plugin);

// A kernel against its operator, which may be another plugin's.
void check_kernel(const PluginRecord& plugin, const OpEntry& op, const trl_kernel_desc& kernel);
// Where two implementations of one thing compete: device, element type and rank as text.
std::string place(std::string_view device, uint16_t dtype, int16_t rank);

inline std::string_view view(const trl_str& s) { return {s.p, s.n}; }

}  // namespace trellis::detail
