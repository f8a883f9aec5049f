// SPDX-License-Identifier: Apache-2.0
//
// What a shared object says before it is opened: its trl_note, the libraries it needs and the
// versions of the C and C++ library it was linked with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trellis::detail {

struct PluginNote {
  uint32_t abi_major = 0, abi_minor = 0, min_host_minor = 0;
  std::string id, version, target, cpu, abi_extra;
};

struct ElfInfo {
  std::optional<PluginNote> note;
  std::vector<std::string> needed;             // DT_NEEDED
  std::string run_path;                        // DT_RUNPATH or DT_RPATH
  std::string glibc, glibcxx;                  // highest needed: "2.34", "3.4.30"; empty: none
  std::string glibc_defined, glibcxx_defined;  // highest defined by this file
};

// Throws Error(plugin) "<prefix>: fact": not a shared library of this machine, or damaged.
ElfInfo read_elf(int fd, const std::string& prefix);

// "2.9" < "2.34"
bool version_less(std::string_view a, std::string_view b);

}  // namespace trellis::detail
