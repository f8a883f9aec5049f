// SPDX-License-Identifier: Apache-2.0
//
// The static check of one library: how it was linked. check_plugin() adds what manifest and note
// say.
#pragma once

#include <filesystem>
#include <string>
#include <trellis/plugin.hpp>
#include <vector>

#include "plugin/elf.hpp"

namespace trellis::detail {

// Oldest system that a plugin should still run on without a warning: that of Debian 12.
inline constexpr std::string_view kBaselineGlibc = "2.36", kBaselineGlibcxx = "3.4.30";

class Findings {
 public:
  void error(std::string_view name, const std::string& fact) { add(Severity::error, name, fact); }
  void warning(std::string_view name, const std::string& fact) {
    add(Severity::warning, name, fact);
  }
  // What is found from here on is about this file.
  void about(const std::filesystem::path& file) { file_ = file.filename().string(); }
  std::vector<CheckFinding> take();  // errors first

 private:
  void add(Severity severity, std::string_view name, const std::string& fact);

  std::string file_;
  std::vector<CheckFinding> findings_;
};

// Everything but `undefined`, from the file alone.
void check_linkage(const ElfFile& file, const ElfLinkage& linkage, Findings& findings);

// Symbols that no needed library has. Looks for the needed libraries where the dynamic linker would;
// one that is not found is a warning, and then nothing is said about symbols.
void check_undefined(const ElfFile& file, const ElfLinkage& linkage,
                     const std::filesystem::path& path, Findings& findings);

}  // namespace trellis::detail
