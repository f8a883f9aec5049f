// SPDX-License-Identifier: Apache-2.0
#include "plugin/note.hpp"

#include <trellis/abi/plugin.h>

#include <algorithm>
#include <cstring>
#include <trellis/error.hpp>
#include <utility>

#include "plugin/elf.hpp"

namespace trellis::detail {
namespace {

constexpr size_t kMaxNoteBytes = 64 * 1024;
constexpr size_t kMaxVersions = 1024;

std::string padded_text(const char* p, size_t n) { return {p, strnlen(p, n)}; }

class Reader {
 public:
  Reader(int fd, const std::string& prefix) : file_(fd, prefix) {}

  ElfInfo read() {
    for (const Elf64_Phdr& h : file_.headers())
      if (h.p_type == PT_NOTE) read_notes(h);
    info_.needed = file_.needed();
    info_.run_path = file_.run_path();
    if (!file_.has_names()) return std::move(info_);
    if (const Elf64_Dyn* d = file_.find(DT_VERNEED))
      read_needed_versions(file_.offset_of(d->d_un.d_ptr));
    if (const Elf64_Dyn* d = file_.find(DT_VERDEF))
      read_defined_versions(file_.offset_of(d->d_un.d_ptr));
    return std::move(info_);
  }

 private:
  void read_notes(const Elf64_Phdr& h) {
    if (h.p_filesz > kMaxNoteBytes)
      file_.refuse("damaged library: a note of " + std::to_string(h.p_filesz) +
                   " bytes (at most 64 KiB)");
    std::vector<char> bytes(h.p_filesz);
    file_.read_all(h.p_offset, bytes.data(), bytes.size(), "a note");
    const size_t align = h.p_align == 8 ? 8 : 4;
    const auto aligned = [align](size_t n) { return (n + align - 1) & ~(align - 1); };
    size_t at = 0;
    while (at + sizeof(Elf64_Nhdr) <= bytes.size()) {
      Elf64_Nhdr n;
      std::memcpy(&n, bytes.data() + at, sizeof n);
      const size_t name = at + sizeof n;
      const size_t desc = name + aligned(n.n_namesz);
      if (n.n_namesz > bytes.size() || n.n_descsz > bytes.size() ||
          desc + n.n_descsz > bytes.size())
        file_.damaged("a note");
      if (n.n_namesz == 4 && std::memcmp(bytes.data() + name, "TRL", 4) == 0 && n.n_type == 1)
        take_note(bytes.data() + at, sizeof n + aligned(n.n_namesz) + n.n_descsz);
      at = desc + aligned(n.n_descsz);
    }
  }

  void take_note(const char* p, size_t size) {
    if (size < sizeof(trl_note))
      file_.refuse("its note has " + std::to_string(size) + " bytes (needs " +
                   std::to_string(sizeof(trl_note)) + ")");
    if (info_.note) file_.refuse("has two plugin notes (needs one)");
    trl_note n;
    std::memcpy(&n, p, sizeof n);
    info_.note = PluginNote{n.abi_major,
                            n.abi_minor,
                            n.min_host_minor,
                            padded_text(n.id, sizeof n.id),
                            padded_text(n.version, sizeof n.version),
                            padded_text(n.target, sizeof n.target),
                            padded_text(n.cpu, sizeof n.cpu),
                            padded_text(n.abi_extra, sizeof n.abi_extra)};
  }

  void read_needed_versions(uint64_t at) {
    size_t budget = kMaxVersions;
    for (Elf64_Verneed need{};; at += need.vn_next) {
      file_.read_all(at, &need, sizeof need, "a version record");
      uint64_t entry_at = at + need.vn_aux;
      for (uint16_t i = 0; i < need.vn_cnt && budget > 0; ++i, --budget) {
        Elf64_Vernaux entry;
        file_.read_all(entry_at, &entry, sizeof entry, "a version record");
        const std::string name = file_.name_at(entry.vna_name);
        keep_highest(name, "GLIBC_", info_.glibc);
        keep_highest(name, "GLIBCXX_", info_.glibcxx);
        if (entry.vna_next == 0) break;
        entry_at += entry.vna_next;
      }
      if (need.vn_next == 0 || budget-- == 0) return;
    }
  }

  void read_defined_versions(uint64_t at) {
    size_t budget = kMaxVersions;
    for (Elf64_Verdef def{};; at += def.vd_next) {
      file_.read_all(at, &def, sizeof def, "a version record");
      Elf64_Verdaux entry;
      file_.read_all(at + def.vd_aux, &entry, sizeof entry, "a version record");
      const std::string name = file_.name_at(entry.vda_name);
      keep_highest(name, "GLIBC_", info_.glibc_defined);
      keep_highest(name, "GLIBCXX_", info_.glibcxx_defined);
      if (def.vd_next == 0 || budget-- == 0) return;
    }
  }

  static void keep_highest(std::string_view name, std::string_view family, std::string& highest) {
    if (!name.starts_with(family)) return;
    name.remove_prefix(family.size());
    if (name.empty() || name[0] < '0' || name[0] > '9') return;  // GLIBC_PRIVATE
    if (highest.empty() || version_less(highest, name)) highest = name;
  }

  const ElfFile file_;
  ElfInfo info_;
};

}  // namespace

ElfInfo read_elf(int fd, const std::string& prefix) { return Reader(fd, prefix).read(); }

bool version_less(std::string_view a, std::string_view b) {
  const auto next = [](std::string_view& s) {
    uint64_t n = 0;
    size_t i = 0;
    for (; i < s.size() && s[i] >= '0' && s[i] <= '9'; ++i)
      n = n * 10 + static_cast<uint64_t>(s[i] - '0');
    s.remove_prefix(std::min(i + 1, s.size()));
    return n;
  };
  while (!a.empty() || !b.empty()) {
    const uint64_t x = next(a), y = next(b);
    if (x != y) return x < y;
  }
  return false;
}

}  // namespace trellis::detail
