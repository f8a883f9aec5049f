// SPDX-License-Identifier: Apache-2.0
//
// Everything that can be known of a plugin without running it: the choice of its library, checks of
// the file, its note.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "plugin/file.hpp"
#include "plugin/manifest.hpp"
#include "plugin/note.hpp"
#include "plugin/trace.hpp"

namespace trellis::detail {

struct VerifiedLibrary {
  const ManifestLibrary* entry = nullptr;  // of the manifest
  std::filesystem::path path;              // absolute
  OpenFile file;                           // of the very bytes that were checked
  struct stat status {};
  ElfInfo elf;
};

// "[plugin] cannot load '/p/acme-act.so'": how every refusal begins.
std::string refusal(const std::filesystem::path& path);

// For this target, the CPU device and the highest level the machine runs; Error(plugin) listing
// what there is.
const ManifestLibrary& choose_library(const Manifest& manifest, int cpu_level);

// The fact that makes a host of version major.minor refuse, with both sides and the way out; empty:
// they fit.
std::string abi_mismatch(uint32_t major, uint32_t min_host_minor);

// The steps of verify() one by one; each throws Error(plugin, abi or trust) starting with
// refusal(v.path).
void check_file(const VerifiedLibrary& v);                     // regular, nobody else may write it
void check_note(const Manifest& m, const VerifiedLibrary& v);  // it agrees with host and manifest
void check_runtimes(const Manifest& m, const VerifiedLibrary& v);  // C and C++ library of the host

// Steps 1 to 4 of loading; throws Error(plugin) starting with refusal().
VerifiedLibrary verify(const Manifest& manifest, const Trace& trace);

}  // namespace trellis::detail
