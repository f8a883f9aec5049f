// SPDX-License-Identifier: Apache-2.0
#include "plugin/check.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <trellis/abi/plugin.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <trellis/error.hpp>
#include <unordered_set>
#include <utility>

#include "plugin/cpu.hpp"
#include "plugin/locate.hpp"
#include "plugin/manifest.hpp"
#include "plugin/verify.hpp"

namespace trellis::detail {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxNeeded = 256;
constexpr size_t kMaxShown = 8;
constexpr std::string_view kUsual[] = {
    "libc.so.6",  "libm.so.6",  "libstdc++.so.6",       "libgcc_s.so.1",        "libpthread.so.0",
    "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"};
// Their runtime is in the program, never in a module.
constexpr std::string_view kSanitizers[] = {"__asan_",      "__ubsan_", "__tsan_",
                                            "__sanitizer_", "__msan_",  "__lsan_"};

std::string printable(const std::string& text) {
  const std::string safe = quoted(fs::path(text));
  return safe.substr(1, safe.size() - 2);
}

// "3 symbols, a, b, c"; the ninth and later ones are only counted.
std::string counted(const std::vector<std::string>& names, const std::string& what) {
  std::string text = std::to_string(names.size()) + " " + what + (names.size() == 1 ? "" : "s");
  for (size_t i = 0; i < std::min(names.size(), kMaxShown); ++i) text += ", " + printable(names[i]);
  return text + (names.size() > kMaxShown ? ", ..." : "");
}

bool starts_with_any(std::string_view text, std::span<const std::string_view> starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [text](std::string_view s) { return text.starts_with(s); });
}

std::vector<std::string> parts_of(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    if (end > at) parts.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

void check_exports(const ElfLinkage& l, Findings& f) {
  if (l.exports == std::vector<std::string>{TRL_ENTRY_SYMBOL}) return;
  if (std::find(l.exports.begin(), l.exports.end(), TRL_ENTRY_SYMBOL) == l.exports.end()) {
    f.error("exports",
            "does not export its entry: given " +
                (l.exports.empty() ? std::string("none") : counted(l.exports, "symbol")) +
                " (needed " TRL_ENTRY_SYMBOL ": TRL_PLUGIN of the SDK, or the function)");
    return;
  }
  f.error("exports", "exports more than its entry: given " + counted(l.exports, "symbol") +
                         " (needed " TRL_ENTRY_SYMBOL
                         " alone: -fvisibility=hidden and the SDK's version script)");
}

void check_flags(const ElfLinkage& l, Findings& f) {
  if (!l.has_nodelete) f.error("flags", "may be unloaded: no NODELETE (needed -Wl,-z,nodelete)");
  if (!l.has_now) f.error("flags", "binds symbols late: no NOW (needed -Wl,-z,now)");
  if (!l.has_relro)
    f.error("flags", "its tables of addresses stay writable: no RELRO (needed -Wl,-z,relro)");
  if (l.has_text_relocations)
    f.error("relocations", "its code is changed when it is loaded: TEXTREL (needed -fPIC)");
  if (l.has_executable_stack)
    f.error("memory",
            "makes the stack executable: no PT_GNU_STACK without X (needed "
            "-Wl,-z,noexecstack)");
  if (l.has_writable_code)
    f.error("memory", "has a segment that is writable and executable (needed one or the other)");
}

void check_run_path(const std::string& run_path, Findings& f) {
  for (const std::string& folder : parts_of(run_path, ':')) {
    const bool is_beside = folder == "$ORIGIN" || folder.starts_with("$ORIGIN/");
    const std::string fact = "has a run path: given '" + printable(folder) + "' ";
    if (is_beside)
      f.warning("run-path", fact + "(needed none; libraries of its own belong beside it)");
    else
      f.error("run-path", fact + "(needed none: that folder is of the machine it was built on)");
  }
}

void check_needed(const std::vector<std::string>& needed, Findings& f) {
  for (const std::string& name : needed) {
    if (name.starts_with("libtrellis"))
      f.error("needed", "links " + printable(name) +
                            " (needed none of Trellis: everything comes through the call)");
    else if (std::find(std::begin(kUsual), std::end(kUsual), name) == std::end(kUsual))
      f.warning("needed", "links " + printable(name) +
                              " (needed on every machine that loads the plugin; usual are the C "
                              "and C++ libraries)");
  }
}

// Where the dynamic linker would look for libraries.
class LibrarySearch {
 public:
  LibrarySearch(const fs::path& plugin, const std::string& run_path) {
    add_all(run_path, plugin.parent_path().native());
    const char* const given = ::secure_getenv("LD_LIBRARY_PATH");
    add_all(given ? given : "", {});
    const std::string target(machine_target());
    for (const char* folder : {"/lib/", "/usr/lib/"}) folders_.push_back(folder + target);
    for (const char* folder : {"/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"})
      folders_.push_back(folder);
  }

  // Empty: nowhere.
  fs::path find(const std::string& name) const {
    if (fs::path loaded = in_process(name); !loaded.empty()) return loaded;
    std::error_code error;
    for (const fs::path& folder : folders_)
      if (fs::is_regular_file(folder / name, error)) return folder / name;
    return {};
  }

 private:
  void add_all(std::string_view list, const std::string& origin) {
    for (std::string folder : parts_of(list, ':')) {
      if (folder.starts_with("$ORIGIN")) folder.replace(0, 7, origin);
      folders_.push_back(folder);
    }
  }
  // Opens nothing: only asks for what is open.
  static fs::path in_process(const std::string& name) {
    void* const handle = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    if (!handle) return {};
    link_map* map = nullptr;
    fs::path path;
    if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map) path = map->l_name;
    ::dlclose(handle);
    return path.is_absolute() ? path : fs::path();
  }

  std::vector<fs::path> folders_;
};

// Symbols of all libraries that come with one, theirs included.
class NeededSymbols {
 public:
  NeededSymbols(const LibrarySearch& search, Findings& findings)
      : search_(search), findings_(findings) {}

  // False: one is not there or cannot be read.
  bool add(const std::vector<std::string>& names) {
    bool is_complete = true;
    std::vector<std::string> open = names;
    while (!open.empty() && seen_.size() < kMaxNeeded) {
      const std::string name = std::move(open.back());
      open.pop_back();
      if (seen_.insert(name).second && !add_one(name, open)) is_complete = false;
    }
    return is_complete && open.empty();
  }
  bool has(const std::string& symbol) const { return symbols_.contains(symbol); }

 private:
  bool add_one(const std::string& name, std::vector<std::string>& open) {
    const fs::path path = name.empty() ? fs::path() : search_.find(name);
    if (path.empty()) {
      findings_.warning("needed", "needs " + printable(name) +
                                      ", which is not on this machine (needed to load it here)");
      return false;
    }
    try {
      struct stat status;
      const OpenFile opened = open_file(path, status, path.native());
      const ElfFile file(opened.fd(), path.native());
      for (std::string& symbol : read_linkage(file).exports) symbols_.insert(std::move(symbol));
      for (std::string& needed : file.needed()) open.push_back(std::move(needed));
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  const LibrarySearch& search_;
  Findings& findings_;
  std::set<std::string> seen_;
  std::unordered_set<std::string> symbols_;
};

}  // namespace

void Findings::add(Severity severity, std::string_view name, const std::string& fact) {
  findings_.push_back({severity, std::string(name), "[check] " + printable(file_) + ": " + fact});
}

std::vector<CheckFinding> Findings::take() {
  std::stable_partition(findings_.begin(), findings_.end(),
                        [](const CheckFinding& f) { return f.severity == Severity::error; });
  return std::move(findings_);
}

void check_linkage(const ElfFile& file, const ElfLinkage& l, Findings& f) {
  check_exports(l, f);
  if (!l.unique.empty())
    f.error("unique", "has symbols that all libraries of a process share: given " +
                          counted(l.unique, "symbol") + " (needed none: -fno-gnu-unique)");
  check_flags(l, f);
  check_run_path(file.run_path(), f);
  check_needed(file.needed(), f);
  if (!l.constructors.empty())
    f.warning("constructors", "runs code when it is opened: given " +
                                  counted(l.constructors, "static constructor") +
                                  " (needed none: make things in init)");
}

void check_undefined(const ElfFile& file, const ElfLinkage& l, const fs::path& path, Findings& f) {
  std::vector<std::string> missing;
  const LibrarySearch search(path, file.run_path());
  NeededSymbols symbols(search, f);
  if (!symbols.add(file.needed())) return;
  bool is_sanitized = false;
  for (const std::string& symbol : l.undefined) {
    if (symbols.has(symbol)) continue;
    if (starts_with_any(symbol, kSanitizers))
      is_sanitized = true;
    else
      missing.push_back(symbol);
  }
  if (is_sanitized)
    f.warning("undefined", "was built with a sanitizer (needed without, to be shipped)");
  if (!missing.empty())
    f.error("undefined", "wants what no library that it links has: given " +
                             counted(missing, "symbol") +
                             " (needed the libraries on the link line: -Wl,-z,defs)");
}

namespace {

class Checker {
 public:
  PluginCheck check(const LocatedPlugin& plugin) {
    result_.manifest = plugin.manifest;
    if (plugin.manifest.empty()) {
      check_lone(plugin.library);
    } else {
      findings_.about(plugin.manifest);
      attempt("manifest", plugin.manifest, [&] { manifest_ = read_manifest(plugin.manifest); });
      result_.id = manifest_id(plugin.manifest);
      if (manifest_)
        check_all(plugin);
      else if (!plugin.library.empty())
        check_lone(plugin.library);
    }
    result_.findings = findings_.take();
    return std::move(result_);
  }

 private:
  // A library with no manifest to compare it with.
  void check_lone(const fs::path& path) {
    findings_.about(path);
    if (result_.manifest.empty())
      findings_.error("manifest", "has no manifest beside it: given none (needed '" +
                                      manifest_beside(path).filename().string() + "')");
    VerifiedLibrary v;
    v.path = fs::absolute(path);
    if (!read(v)) return;
    if (!v.elf.note) {
      no_note();
      return;
    }
    const PluginNote& note = *v.elf.note;
    result_.id = note.id;
    result_.version = note.version;
    if (const std::string fact = abi_mismatch(note.abi_major, note.min_host_minor); !fact.empty())
      findings_.error("abi", fact);
  }

  void check_all(const LocatedPlugin& plugin) {
    const Manifest& m = *manifest_;
    result_.id = m.id;
    result_.version = m.version.to_string();
    check_manifest(plugin.found && plugin.found->place->shipped);
    check_levels();
    if (!plugin.library.empty()) check_listed(plugin.library);
    for (const ManifestLibrary& library : m.libraries) check_library(library);
  }

  void check_manifest(bool is_shipped) {
    const Manifest& m = *manifest_;
    const std::string lead = "[plugin] " + quoted(m.file) + ": ";
    for (const std::string& warning : m.warnings)
      findings_.warning("manifest", warning.substr(warning.starts_with(lead) ? lead.size() : 0));
    const auto missing = [&](const std::string& key, const std::string& needed) {
      findings_.warning("manifest", "does not say 'plugin." + key + "' (needed " + needed + ")");
    };
    if (m.license.empty()) missing("license", "the SPDX name of its licence, for who passes it on");
    if (m.summary.empty()) missing("summary", "a line for who chooses a plugin");
    if (m.namespaces.empty())
      findings_.error("manifest", "declares no namespace (needed that of what it provides)");
    if (!m.provides.given)
      findings_.warning("manifest",
                        "has no [provides] (needed to list what is in it without running it)");
    if (!is_shipped)
      for (const std::string& name : m.namespaces)
        if (name == "core" || name == "dynet")
          findings_.error("manifest", "declares a namespace of the shipped plugins: given '" +
                                          name + "' (needed one of your own)");
    for (const auto* list : {&m.provides.ops, &m.provides.builders, &m.provides.softmaxes,
                             &m.provides.initializers, &m.provides.trainers, &m.provides.linalg})
      for (const std::string& id : *list) check_namespace(id);
    if (const std::string fact = abi_mismatch(m.abi_major, m.min_host_minor); !fact.empty())
      findings_.error("abi", fact);
  }

  void check_namespace(const std::string& id) {
    const auto& names = manifest_->namespaces;
    const bool is_inside = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return id.size() > name.size() && id.starts_with(name) && id[name.size()] == '.';
    });
    if (!is_inside)
      findings_.error("manifest",
                      "provides '" + printable(id) +
                          "' outside its namespaces (needed one of 'plugin.namespaces')");
  }

  // One library a level, and one that the oldest machines run.
  void check_levels() {
    std::set<std::string> seen;
    bool is_for_here = false, has_base = false;
    for (const ManifestLibrary& l : manifest_->libraries) {
      const std::string what = l.target + " " + l.device + " " + (l.cpu.empty() ? "-" : l.cpu);
      if (!seen.insert(what).second)
        findings_.error("levels", "lists two libraries for " + printable(what) + " (needed one)");
      const int level = cpu_level_from(l.cpu);
      if (level < 0)
        findings_.error("levels", "names an unknown CPU level: given '" + printable(l.cpu) +
                                      "' (needed x86-64-v2, x86-64-v3, x86-64-v4 or none)");
      if (l.target != machine_target() || l.device != "cpu") continue;
      is_for_here = true;
      has_base = has_base || (level >= 0 && level <= 2);
    }
    if (!is_for_here)
      findings_.error("levels", "has no library for this machine: needed one for " +
                                    std::string(machine_target()) + " cpu");
    else if (!has_base)
      findings_.warning("levels",
                        "has no library for older machines (needed one for x86-64-v2, or without a "
                        "level)");
  }

  void check_listed(const fs::path& library) {
    std::error_code error;
    const Manifest& m = *manifest_;
    if (std::none_of(m.libraries.begin(), m.libraries.end(), [&](const ManifestLibrary& l) {
          return fs::equivalent(m.folder() / l.path, library, error);
        }))
      findings_.error("manifest", "does not list '" + library.filename().string() +
                                      "' (needed a [[library]] for it)");
  }

  void check_library(const ManifestLibrary& library) {
    const Manifest& m = *manifest_;
    VerifiedLibrary v;
    v.entry = &library;
    v.path = (m.folder() / library.path).lexically_normal();
    findings_.about(v.path);
    const std::string name = v.path.filename().native();
    if (name.substr(0, name.find('.')) != m.id)
      findings_.error("file", "is not named after its plugin (needed '" + m.id + ".so' or '" +
                                  m.id + ".<level>.so')");
    if (library.target !=
        machine_target()) {  // of another machine: all to know is that it is there
      attempt("file", v.path, [&] { open_file(v.path, v.status, refusal(v.path)); });
      return;
    }
    if (!read(v)) return;
    if (!v.elf.note) {
      no_note();
      return;
    }
    attempt("note", v.path, [&] { check_note(m, v); });
    attempt("runtime", v.path, [&] { check_runtimes(m, v); });
  }

  void no_note() {
    findings_.error("note", "has no plugin note (needed TRL_PLUGIN or TRL_PLUGIN_NOTE of the SDK)");
  }

  // Everything that does not depend on the manifest. False: there is nothing to read.
  bool read(VerifiedLibrary& v) {
    bool is_read = false;
    attempt("file", v.path, [&] {
      v.file = open_file(v.path, v.status, refusal(v.path));
      is_read = true;
    });
    if (!is_read) return false;
    attempt("file", v.path, [&] { check_file(v); });
    if (!S_ISREG(v.status.st_mode)) return false;
    result_.libraries.push_back(v.path);
    is_read = false;
    attempt("file", v.path, [&] {
      v.elf = read_elf(v.file.fd(), refusal(v.path));
      is_read = true;
    });
    if (!is_read) return false;
    attempt("file", v.path, [&] {
      const ElfFile file(v.file.fd(), refusal(v.path));
      const ElfLinkage linkage = read_linkage(file);
      check_linkage(file, linkage, findings_);
      check_undefined(file, linkage, v.path, findings_);
    });
    const auto older = [&](const char* family, std::string_view baseline,
                           const std::string& given) {
      if (!given.empty() && version_less(baseline, given))
        findings_.warning("runtime", "needs a new system: given " + std::string(family) + given +
                                         " (needed at most " + std::string(baseline) +
                                         " to run on Debian 12)");
    };
    older("GLIBC_", kBaselineGlibc, v.elf.glibc);
    older("GLIBCXX_", kBaselineGlibcxx, v.elf.glibcxx);
    return true;
  }

  // An error of the loader's own steps becomes a finding.
  template <class Step>
  void attempt(std::string_view name, const fs::path& path, Step&& step) {
    try {
      step();
    } catch (const Error& e) {
      std::string fact = e.what();
      for (const std::string& lead : {refusal(path), "[plugin] cannot read " + quoted(path)})
        if (fact.starts_with(lead + ": ")) fact.erase(0, lead.size() + 2);
      if (e.kind() == ErrorKind::abi && name == "note") name = "abi";
      if (e.kind() == ErrorKind::trust) name = "trust";
      findings_.error(name, fact);
    }
  }

  std::optional<Manifest> manifest_;
  Findings findings_;
  PluginCheck result_;
};

}  // namespace
}  // namespace trellis::detail

namespace trellis {

PluginCheck check_plugin(const std::string& id_or_file, const RuntimeOptions& options) {
  using namespace detail;
  const Places places(options.search, Trace::from_environment());
  return Checker().check(locate_plugin(id_or_file, places, "check"));
}

}  // namespace trellis
