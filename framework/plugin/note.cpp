// SPDX-License-Identifier: Apache-2.0
#include "plugin/note.hpp"

#include <elf.h>
#include <trellis/abi/plugin.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <trellis/error.hpp>
#include <utility>

namespace trellis::detail {
namespace {

constexpr size_t kMaxHeaders = 64;
constexpr size_t kMaxNoteBytes = 64 * 1024;
constexpr size_t kMaxDynamicBytes = 64 * 1024;
constexpr size_t kMaxNameBytes = 4096;
constexpr size_t kMaxVersions = 1024;
#if defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#else
constexpr uint16_t kMachine = EM_X86_64;
#endif

std::string machine_name(uint16_t machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_AARCH64:
      return "aarch64";
    case EM_386:
      return "i386";
    case EM_ARM:
      return "arm";
    case EM_RISCV:
      return "riscv";
    default:
      return "machine " + std::to_string(machine);
  }
}

std::string padded_text(const char* p, size_t n) { return {p, strnlen(p, n)}; }

class Reader {
 public:
  Reader(int fd, const std::string& prefix) : fd_(fd), prefix_(prefix) {}

  ElfInfo read() {
    read_headers();
    for (const Elf64_Phdr& h : headers_)
      if (h.p_type == PT_NOTE) read_notes(h);
    for (const Elf64_Phdr& h : headers_)
      if (h.p_type == PT_DYNAMIC) read_dynamic(h);
    return std::move(info_);
  }

 private:
  [[noreturn]] void refuse(const std::string& fact) const {
    fail(ErrorKind::plugin, prefix_ + ": " + fact);
  }
  [[noreturn]] void damaged(const char* what) const {
    refuse(std::string("damaged or truncated library: ") + what + " lies outside the file");
  }

  // Bytes read, less than `n` only at the end of the file.
  size_t read_some(uint64_t offset, void* to, size_t n) const {
    size_t done = 0;
    while (done < n) {
      if (offset + done > INT64_MAX) break;
      const ssize_t got =
          ::pread(fd_, static_cast<char*>(to) + done, n - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      done += static_cast<size_t>(got);
    }
    return done;
  }
  void read_all(uint64_t offset, void* to, size_t n, const char* what) const {
    if (read_some(offset, to, n) != n) damaged(what);
  }

  void read_headers() {
    Elf64_Ehdr e;
    unsigned char* const ident = e.e_ident;
    const size_t n = read_some(0, &e, sizeof e);
    if (n < SELFMAG || std::memcmp(ident, ELFMAG, SELFMAG) != 0)
      refuse("not a shared library: no ELF magic");
    if (n < EI_NIDENT) damaged("the ELF header");
    if (ident[EI_CLASS] != ELFCLASS64) refuse("a 32-bit library (needs 64-bit)");
    if (ident[EI_DATA] != ELFDATA2LSB) refuse("a big-endian library (needs little-endian)");
    if (n < sizeof e) damaged("the ELF header");
    if (e.e_machine != kMachine)
      refuse("a library for " + machine_name(e.e_machine) + " (needs " + machine_name(kMachine) +
             ")");
    if (e.e_type != ET_DYN) refuse("not a shared library: ELF type " + std::to_string(e.e_type));
    if (e.e_phentsize != sizeof(Elf64_Phdr) || e.e_phnum == 0 || e.e_phnum > kMaxHeaders)
      refuse("damaged library: " + std::to_string(e.e_phnum) + " program headers (at most " +
             std::to_string(kMaxHeaders) + ")");
    headers_.resize(e.e_phnum);
    read_all(e.e_phoff, headers_.data(), headers_.size() * sizeof(Elf64_Phdr), "a program header");
    // The file must hold what it says will be mapped: mapping beyond its end is a SIGBUS later.
    for (const Elf64_Phdr& h : headers_) {
      char last;
      if (h.p_type == PT_LOAD && h.p_filesz > 0 &&
          (h.p_offset > UINT64_MAX - h.p_filesz ||
           read_some(h.p_offset + h.p_filesz - 1, &last, 1) != 1))
        damaged("a segment");
    }
  }

  void read_notes(const Elf64_Phdr& h) {
    if (h.p_filesz > kMaxNoteBytes)
      refuse("damaged library: a note of " + std::to_string(h.p_filesz) +
             " bytes (at most 64 KiB)");
    std::vector<char> bytes(h.p_filesz);
    read_all(h.p_offset, bytes.data(), bytes.size(), "a note");
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
        damaged("a note");
      if (n.n_namesz == 4 && std::memcmp(bytes.data() + name, "TRL", 4) == 0 && n.n_type == 1)
        take_note(bytes.data() + at, sizeof n + aligned(n.n_namesz) + n.n_descsz);
      at = desc + aligned(n.n_descsz);
    }
  }

  void take_note(const char* p, size_t size) {
    if (size < sizeof(trl_note))
      refuse("its note has " + std::to_string(size) + " bytes (needs " +
             std::to_string(sizeof(trl_note)) + ")");
    if (info_.note) refuse("has two plugin notes (needs one)");
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

  // Where a virtual address lies in the file; nothing outside the mapped segments can be read.
  uint64_t offset_of(uint64_t address) const {
    for (const Elf64_Phdr& h : headers_)
      if (h.p_type == PT_LOAD && address >= h.p_vaddr && address - h.p_vaddr < h.p_filesz)
        return h.p_offset + (address - h.p_vaddr);
    damaged("an address of the dynamic section");
  }

  std::string name_at(uint64_t index) const {
    char text[kMaxNameBytes];
    if (index >= names_size_) damaged("a name");
    const size_t n =
        read_some(names_ + index, text, std::min<uint64_t>(sizeof text, names_size_ - index));
    const size_t length = strnlen(text, n);
    if (length == n) damaged("a name");
    return {text, length};
  }

  void read_dynamic(const Elf64_Phdr& h) {
    if (h.p_filesz > kMaxDynamicBytes) refuse("damaged library: its dynamic section is too long");
    std::vector<Elf64_Dyn> entries(h.p_filesz / sizeof(Elf64_Dyn));
    read_all(h.p_offset, entries.data(), entries.size() * sizeof(Elf64_Dyn), "the dynamic section");
    const auto end = std::find_if(entries.begin(), entries.end(),
                                  [](const Elf64_Dyn& d) { return d.d_tag == DT_NULL; });
    entries.erase(end, entries.end());
    const auto find = [&](int64_t tag) -> const Elf64_Dyn* {
      const auto at = std::find_if(entries.begin(), entries.end(),
                                   [tag](const Elf64_Dyn& d) { return d.d_tag == tag; });
      return at == entries.end() ? nullptr : &*at;
    };
    const Elf64_Dyn* names = find(DT_STRTAB);
    const Elf64_Dyn* names_size = find(DT_STRSZ);
    if (!names || !names_size) return;
    names_ = offset_of(names->d_un.d_ptr);
    names_size_ = names_size->d_un.d_val;
    for (const Elf64_Dyn& d : entries) {
      if (d.d_tag == DT_NEEDED) info_.needed.push_back(name_at(d.d_un.d_val));
      if (d.d_tag == DT_RUNPATH || d.d_tag == DT_RPATH) info_.run_path = name_at(d.d_un.d_val);
    }
    if (const Elf64_Dyn* d = find(DT_VERNEED)) read_needed_versions(offset_of(d->d_un.d_ptr));
    if (const Elf64_Dyn* d = find(DT_VERDEF)) read_defined_versions(offset_of(d->d_un.d_ptr));
  }

  void read_needed_versions(uint64_t at) {
    size_t budget = kMaxVersions;
    for (Elf64_Verneed need{};; at += need.vn_next) {
      read_all(at, &need, sizeof need, "a version record");
      uint64_t entry_at = at + need.vn_aux;
      for (uint16_t i = 0; i < need.vn_cnt && budget > 0; ++i, --budget) {
        Elf64_Vernaux entry;
        read_all(entry_at, &entry, sizeof entry, "a version record");
        const std::string name = name_at(entry.vna_name);
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
      read_all(at, &def, sizeof def, "a version record");
      Elf64_Verdaux entry;
      read_all(at + def.vd_aux, &entry, sizeof entry, "a version record");
      const std::string name = name_at(entry.vda_name);
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

  int fd_;
  const std::string& prefix_;
  std::vector<Elf64_Phdr> headers_;
  uint64_t names_ = 0, names_size_ = 0;
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
