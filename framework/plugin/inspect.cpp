// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <system_error>
#include <trellis/plugin.hpp>
#include <utility>

#include "plugin/cpu.hpp"
#include "plugin/loader.hpp"
#include "plugin/locate.hpp"
#include "plugin/manifest.hpp"
#include "plugin/search.hpp"
#include "plugin/verify.hpp"
#include "registry/registry.hpp"
#include "runtime/core.hpp"

namespace trellis {

using namespace detail;

namespace {

namespace fs = std::filesystem;

std::string abi_text(uint32_t major, uint32_t minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

void add_manifest(PluginInfo& info, const Manifest& m) {
  info.id = m.id;
  info.version = m.version.to_string();
  info.license = m.license;
  info.summary = m.summary;
  info.authors = m.authors;
  info.namespaces = m.namespaces;
  for (const Requirement& r : m.required)
    info.required.push_back(r.id + (r.range.text() == "*" ? "" : " " + r.range.text()));
  info.abi = abi_text(m.abi_major, m.min_host_minor);
  info.built_with = abi_text(m.abi_major, m.built_with_minor);
  info.manifest = m.file;
  for (const ManifestLibrary& l : m.libraries)
    info.libraries.push_back(l.path + " (" + l.target + " " + l.device +
                             (l.cpu.empty() ? "" : " " + l.cpu) + ")");
  info.ops = m.provides.ops;
  info.builders = m.provides.builders;
  info.softmaxes = m.provides.softmaxes;
  info.initializers = m.provides.initializers;
  info.trainers = m.provides.trainers;
  info.linalg = m.provides.linalg;
  info.warnings = m.warnings;
}

void add_elf(PluginInfo& info, const ElfInfo& elf) {
  info.needed = elf.needed;
  info.glibc = elf.glibc;
  info.glibcxx = elf.glibcxx;
  if (!elf.note) return;
  info.abi = abi_text(elf.note->abi_major, elf.note->min_host_minor);
  info.built_with = abi_text(elf.note->abi_major, elf.note->abi_minor);
}

void set_broken(PluginInfo& info, const char* why) {
  info.state = "broken";
  info.reason = why;
}

// Everything the manifest and the chosen library say; broken where loading would be refused.
PluginInfo examine(const fs::path& manifest, const FoundManifest* found) {
  PluginInfo info;
  info.manifest = fs::absolute(manifest);
  info.id = manifest_id(manifest);
  info.state = !found || !found->place->is_trusted() ? "unsigned"
               : found->place->shipped               ? "shipped"
                                                     : "dev";
  info.reason = where(found);
  try {
    const Manifest m = read_manifest(manifest);
    add_manifest(info, m);
    const ManifestLibrary& library = choose_library(m, usable_cpu_level());
    info.target = library.target;
    info.device = library.device;
    info.cpu = library.cpu;
    info.library = (m.folder() / library.path).lexically_normal();
    add_elf(info, verify(m, Trace::from_environment()).elf);
    if (const std::string off = disabled_by(m.id, m.disable_variable); !off.empty()) {
      info.state = "disabled";
      info.reason = off;
    }
  } catch (const Error& e) {
    set_broken(info, e.what());
  }
  return info;
}

PluginInfo examine_library(const fs::path& path) {
  struct stat status;
  const OpenFile file = open_file(path, status, refusal(path));
  PluginInfo info;
  info.library = fs::absolute(path);
  try {
    const ElfInfo elf = read_elf(file.fd(), refusal(path));
    add_elf(info, elf);
    if (elf.note) {
      info.id = elf.note->id;
      info.version = elf.note->version;
      info.target = elf.note->target;
      info.cpu = elf.note->cpu;
    }
    set_broken(info, elf.note ? "it has no manifest beside it" : "it has no plugin note");
  } catch (const Error& e) {
    set_broken(info, e.what());
  }
  return info;
}

template <class Entries, class Name>
std::vector<std::string> provided(const Entries& entries, const PluginRecord* record, Name name) {
  std::vector<std::string> names;
  for (const auto& entry : entries)
    if (entry->plugin == record) names.push_back(name(*entry));
  return names;
}

}  // namespace

std::vector<PluginInfo> loaded_plugins(const Runtime& runtime) {
  const Registry& r = runtime.registry();
  const auto with_version = [](const auto& entry) {
    return entry.id + "@" + std::to_string(entry.desc.version);
  };
  std::vector<PluginInfo> infos;
  for (const auto& p : runtime.core().loader->plugins()) {
    PluginInfo info;
    const Manifest& m = p->chosen.manifest;
    add_manifest(info, m);
    add_elf(info, p->elf);
    info.target = machine_target();
    info.device = "cpu";
    info.cpu = p->cpu;
    info.library = p->library;
    info.ops = provided(r.ops(), p->record, with_version);
    info.builders = provided(r.builders(), p->record, with_version);
    info.softmaxes = provided(r.softmaxes(), p->record, with_version);
    info.initializers = provided(r.initializers(), p->record, with_version);
    info.trainers = provided(r.trainers(), p->record, with_version);
    info.linalg = provided(r.linalgs(), p->record, [](const auto& entry) { return entry.id; });
    info.state = "loaded";
    info.reason = p->chosen.why;
    infos.push_back(std::move(info));
  }
  return infos;
}

std::vector<PluginInfo> available_plugins(const RuntimeOptions& options) {
  const Places places(options.search, Trace::from_environment());
  std::vector<PluginInfo> infos;
  std::vector<const FoundManifest*> first;
  for (const FoundManifest& found : places.manifests()) {
    PluginInfo info = examine(found.file, &found);
    const auto earlier = std::find_if(first.begin(), first.end(), [&](const FoundManifest* f) {
      return f->id == found.id && f->place != found.place;
    });
    if (earlier != first.end()) {
      info.state = "shadowed";
      info.reason = "by " + quoted((*earlier)->file);
    } else {
      first.push_back(&found);
    }
    infos.push_back(std::move(info));
  }
  return infos;
}

PluginInfo inspect_plugin(const std::string& id_or_file, const RuntimeOptions& options) {
  const Places places(options.search, Trace::from_environment());
  const LocatedPlugin plugin = locate_plugin(id_or_file, places, "inspect");
  if (plugin.manifest.empty()) return examine_library(plugin.library);
  return examine(plugin.manifest, plugin.found);
}

}  // namespace trellis
