// SPDX-License-Identifier: Apache-2.0
//
// <plugin-id>.trellis.toml: what a plugin says of itself before anything of it runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/semver.hpp"

namespace trellis::detail {

inline constexpr std::string_view kManifestSuffix = ".trellis.toml";

// One [[library]]: the same plugin for one target, device and CPU level.
struct ManifestLibrary {
  std::string target, device, cpu;
  std::string path;  // relative to the manifest's folder, never leaving it
};

struct Requirement {
  std::string id;
  VersionRange range;
};

// [provides]: "acme.square@1". Empty lists where the manifest has none.
struct Provides {
  bool given = false;
  std::vector<std::string> ops, builders, softmaxes, initializers, trainers, linalg;
};

struct Manifest {
  std::filesystem::path file;  // absolute
  std::string id, license, summary;
  Version version;
  std::vector<std::string> authors, namespaces, replaces;
  uint32_t abi_major = 0, min_host_minor = 0, built_with_minor = 0;
  std::string abi_extra;
  std::vector<Requirement> required;
  std::string glibc;
  std::vector<ManifestLibrary> libraries;
  Provides provides;
  std::string disable_variable;
  std::vector<std::string> warnings;  // unknown keys

  std::filesystem::path folder() const { return file.parent_path(); }
};

// Lower case letters, digits and single inner dashes, at most 63 bytes.
bool is_plugin_id(std::string_view id);

// The id a manifest's file name stands for; empty: not the name of a manifest.
std::string manifest_id(const std::filesystem::path& file);

// "/p/acme-act.trellis.toml" for "/p/acme-act.v3.so", whether it is there or not.
std::filesystem::path manifest_beside(const std::filesystem::path& library);

// Throws Error(plugin) naming file, line and key.
Manifest read_manifest(const std::filesystem::path& file);

}  // namespace trellis::detail
