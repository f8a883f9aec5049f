// SPDX-License-Identifier: Apache-2.0
#include "plugin/verify.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <trellis/abi/plugin.h>
#include <unistd.h>

#include <new>
#include <trellis/error.hpp>
#include <utility>

#include "plugin/cpu.hpp"

namespace trellis::detail {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path, const std::string& fact,
                         ErrorKind kind = ErrorKind::plugin) {
  fail(kind, refusal(path) + ": " + fact);
}

std::string abi_text(uint32_t major, uint32_t minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

std::string or_none(const std::string& text) { return text.empty() ? "none" : "'" + text + "'"; }

std::string describe(const ManifestLibrary& l) {
  return l.target + " " + l.device + (l.cpu.empty() ? "" : " " + l.cpu);
}

// Highest GLIBCXX version of the C++ library in this process; empty where it cannot be read.
const std::string& host_glibcxx() {
  static const std::string version = [] {
    Dl_info info;
    if (!::dladdr(reinterpret_cast<void*>(&std::set_new_handler), &info)) return std::string();
    const OpenFile file(::open(info.dli_fname, O_RDONLY | O_CLOEXEC));
    try {
      return read_elf(file.fd(), info.dli_fname).glibcxx_defined;
    } catch (const Error&) {
      return std::string();
    }
  }();
  return version;
}

}  // namespace

void check_file(const VerifiedLibrary& v) {
  const fs::path& path = v.path;
  const struct stat& status = v.status;
  if (!S_ISREG(status.st_mode)) refuse(path, "not a regular file");
  if (status.st_mode & S_IWOTH)
    refuse(path, "everybody may write to it (needs mode 0755 or less, chmod o-w)",
           ErrorKind::trust);
  if (status.st_uid != 0 && status.st_uid != ::geteuid())
    refuse(path,
           "owned by user " + std::to_string(status.st_uid) + " (needs root or user " +
               std::to_string(::geteuid()) + ")",
           ErrorKind::trust);
}

void check_note(const Manifest& m, const VerifiedLibrary& v) {
  if (!v.elf.note)
    refuse(v.path, "has no plugin note (needs TRL_PLUGIN or TRL_PLUGIN_NOTE of the SDK)");
  const PluginNote& n = *v.elf.note;
  if (const std::string fact = abi_mismatch(n.abi_major, n.min_host_minor); !fact.empty())
    refuse(v.path, fact, ErrorKind::abi);
  if (m.abi_major != n.abi_major || m.min_host_minor != n.min_host_minor)
    refuse(v.path, "its note needs host ABI " + abi_text(n.abi_major, n.min_host_minor) +
                       ", its manifest says " + abi_text(m.abi_major, m.min_host_minor));
  const auto must_equal = [&](const char* what, const std::string& note, const std::string& other,
                              const char* whose) {
    if (note != other)
      refuse(v.path, std::string(what) + " in its note is " + or_none(note) + ", in its manifest " +
                         or_none(other) + whose);
  };
  must_equal("the id", n.id, m.id, "");
  must_equal("the version", n.version, m.version.to_string(), "");
  must_equal("the target", n.target, v.entry->target, "");
  must_equal("the cpu level", n.cpu, v.entry->cpu, "");
  must_equal("the abi extra", n.abi_extra, m.abi_extra, "");
  if (n.abi_extra != TRL_ABI_EXTRA)
    refuse(v.path,
           "built for the ABI variant " + or_none(n.abi_extra) + ", this host is " +
               or_none(TRL_ABI_EXTRA) + " (needs equal ones)",
           ErrorKind::abi);
}

void check_runtimes(const Manifest& m, const VerifiedLibrary& v) {
  const std::string glibc = ::gnu_get_libc_version();
  for (const std::string& needed : {v.elf.glibc, m.glibc})
    if (!needed.empty() && version_less(glibc, needed))
      refuse(v.path,
             "needs the C library GLIBC_" + needed + ", this system has " + glibc +
                 " (build the plugin on an older system)",
             ErrorKind::abi);
  const std::string& glibcxx = host_glibcxx();
  if (!glibcxx.empty() && !v.elf.glibcxx.empty() && version_less(glibcxx, v.elf.glibcxx))
    refuse(v.path,
           "needs the C++ library GLIBCXX_" + v.elf.glibcxx + ", this process has " + glibcxx +
               " (build the plugin with an older compiler)",
           ErrorKind::abi);
}

std::string refusal(const fs::path& path) { return "[plugin] cannot load " + quoted(path); }

const ManifestLibrary& choose_library(const Manifest& m, int cpu_level) {
  const ManifestLibrary* best = nullptr;
  std::string offered;
  for (const ManifestLibrary& l : m.libraries) {
    offered += (offered.empty() ? "" : ", ") + describe(l);
    const int level = cpu_level_from(l.cpu);
    if (l.target != machine_target() || l.device != "cpu" || level < 0 || level > cpu_level)
      continue;
    if (!best || level > cpu_level_from(best->cpu)) best = &l;
  }
  if (!best)
    refuse(m.file, "no library for " + std::string(machine_target()) + " cpu " +
                       cpu_level_name(cpu_level) + " (has " + offered + ")");
  return *best;
}

std::string abi_mismatch(uint32_t major, uint32_t min_host_minor) {
  const std::string host = abi_text(TRL_ABI_MAJOR, TRL_ABI_MINOR);
  const std::string both =
      "needs host ABI " + abi_text(major, min_host_minor) + ", this host has " + host;
  if (major != TRL_ABI_MAJOR) return both + " (rebuild the plugin with this host's SDK)";
  if (min_host_minor > TRL_ABI_MINOR)
    return both + " (upgrade trellis, or rebuild the plugin with TRL_TARGET_MINOR=" +
           std::to_string(TRL_ABI_MINOR) + ")";
  // While the major is 0 every minor may break the one before.
  if (TRL_ABI_MAJOR == 0 && min_host_minor != TRL_ABI_MINOR)
    return both + " (rebuild the plugin with this host's SDK: drafts fit exactly or not at all)";
  return {};
}

VerifiedLibrary verify(const Manifest& m, const Trace& trace) {
  if (const std::string fact = abi_mismatch(m.abi_major, m.min_host_minor); !fact.empty())
    refuse(m.file, fact, ErrorKind::abi);
  VerifiedLibrary v;
  v.entry = &choose_library(m, usable_cpu_level());
  v.path = (m.folder() / v.entry->path).lexically_normal();
  trace.line(TraceTopic::verify, m.id + ": " + describe(*v.entry) + ", the highest of " +
                                     std::to_string(m.libraries.size()) +
                                     " that runs here: " + quoted(v.path));
  v.file = open_file(v.path, v.status, refusal(v.path));
  check_file(v);
  v.elf = read_elf(v.file.fd(), refusal(v.path));
  check_note(m, v);
  check_runtimes(m, v);
  trace.line(TraceTopic::verify, m.id + ": file, note and versions agree with the manifest");
  return v;
}

}  // namespace trellis::detail
