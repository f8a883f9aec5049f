// SPDX-License-Identifier: Apache-2.0
#include "plugin/elf.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <trellis/error.hpp>
#include <utility>

namespace trellis::detail {
namespace {

constexpr size_t kMaxHeaders = 64;
constexpr size_t kMaxDynamicBytes = 64 * 1024;
constexpr size_t kMaxNameBytes = 4096;
constexpr size_t kMaxSymbols = size_t{1} << 20;
constexpr size_t kMaxStringBytes = size_t{64} << 20;
constexpr size_t kMaxConstructors = 4096;
constexpr size_t kMaxRelocations = size_t{1} << 22;
#if defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
constexpr uint32_t kRelative = R_AARCH64_RELATIVE;
#else
constexpr uint16_t kMachine = EM_X86_64;
constexpr uint32_t kRelative = R_X86_64_RELATIVE;
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

}  // namespace

ElfFile::ElfFile(int fd, std::string prefix) : fd_(fd), prefix_(std::move(prefix)) {
  read_headers();
  for (const Elf64_Phdr& h : headers_)
    if (h.p_type == PT_DYNAMIC) read_dynamic(h);
}

void ElfFile::refuse(const std::string& fact) const {
  fail(ErrorKind::plugin, prefix_ + ": " + fact);
}

void ElfFile::damaged(const char* what) const {
  refuse(std::string("damaged or truncated library: ") + what + " lies outside the file");
}

size_t ElfFile::read_some(uint64_t offset, void* to, size_t n) const {
  size_t done = 0;
  while (done < n) {
    if (offset + done < offset || offset + done > INT64_MAX) break;
    const ssize_t got =
        ::pread(fd_, static_cast<char*>(to) + done, n - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

void ElfFile::read_all(uint64_t offset, void* to, size_t n, const char* what) const {
  if (read_some(offset, to, n) != n) damaged(what);
}

void ElfFile::read_headers() {
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

uint64_t ElfFile::offset_of(uint64_t address) const {
  for (const Elf64_Phdr& h : headers_)
    if (h.p_type == PT_LOAD && address >= h.p_vaddr && address - h.p_vaddr < h.p_filesz)
      return h.p_offset + (address - h.p_vaddr);
  damaged("an address of the dynamic section");
}

std::string ElfFile::name_at(uint64_t index) const {
  char text[kMaxNameBytes];
  if (index >= names_size_) damaged("a name");
  const size_t n =
      read_some(names_ + index, text, std::min<uint64_t>(sizeof text, names_size_ - index));
  const size_t length = strnlen(text, n);
  if (length == n) damaged("a name");
  return {text, length};
}

void ElfFile::read_dynamic(const Elf64_Phdr& h) {
  if (h.p_filesz > kMaxDynamicBytes) refuse("damaged library: its dynamic section is too long");
  dynamic_.resize(h.p_filesz / sizeof(Elf64_Dyn));
  read_all(h.p_offset, dynamic_.data(), dynamic_.size() * sizeof(Elf64_Dyn), "the dynamic section");
  const auto end = std::find_if(dynamic_.begin(), dynamic_.end(),
                                [](const Elf64_Dyn& d) { return d.d_tag == DT_NULL; });
  dynamic_.erase(end, dynamic_.end());
  const Elf64_Dyn* names = find(DT_STRTAB);
  const Elf64_Dyn* size = find(DT_STRSZ);
  if (!names || !size) return;
  names_ = offset_of(names->d_un.d_ptr);
  names_size_ = size->d_un.d_val;
}

const Elf64_Dyn* ElfFile::find(int64_t tag) const {
  const auto at = std::find_if(dynamic_.begin(), dynamic_.end(),
                               [tag](const Elf64_Dyn& d) { return d.d_tag == tag; });
  return at == dynamic_.end() ? nullptr : &*at;
}

std::vector<std::string> ElfFile::needed() const {
  std::vector<std::string> names;
  if (!has_names()) return names;
  for (const Elf64_Dyn& d : dynamic_)
    if (d.d_tag == DT_NEEDED) names.push_back(name_at(d.d_un.d_val));
  return names;
}

std::string ElfFile::run_path() const {
  if (!has_names()) return {};
  // The linker obeys DT_RUNPATH where both are there.
  for (const int64_t tag : {int64_t{DT_RUNPATH}, int64_t{DT_RPATH}})
    if (const Elf64_Dyn* d = find(tag)) return name_at(d->d_un.d_val);
  return {};
}

namespace {

class LinkageReader {
 public:
  explicit LinkageReader(const ElfFile& file) : file_(file) {}

  ElfLinkage read() {
    read_flags();
    read_symbols();
    read_constructors();
    return std::move(linkage_);
  }

 private:
  uint64_t value_of(int64_t tag) const {
    const Elf64_Dyn* d = file_.find(tag);
    return d ? d->d_un.d_val : 0;
  }

  void read_flags() {
    const uint64_t flags = value_of(DT_FLAGS), flags_1 = value_of(DT_FLAGS_1);
    linkage_.has_nodelete = flags_1 & DF_1_NODELETE;
    linkage_.has_now = (flags & DF_BIND_NOW) || (flags_1 & DF_1_NOW) || file_.find(DT_BIND_NOW);
    linkage_.has_text_relocations = (flags & DF_TEXTREL) || file_.find(DT_TEXTREL);
    linkage_.has_executable_stack = true;  // what no PT_GNU_STACK means
    for (const Elf64_Phdr& h : file_.headers()) {
      if (h.p_type == PT_GNU_RELRO) linkage_.has_relro = true;
      if (h.p_type == PT_GNU_STACK) linkage_.has_executable_stack = h.p_flags & PF_X;
      if (h.p_type == PT_LOAD && (h.p_flags & PF_W) && (h.p_flags & PF_X))
        linkage_.has_writable_code = true;
    }
  }

  // The number of dynamic symbols, which only the hash tables tell.
  size_t count_symbols() const {
    if (const Elf64_Dyn* d = file_.find(DT_GNU_HASH)) return count_gnu(d->d_un.d_ptr);
    const Elf64_Dyn* d = file_.find(DT_HASH);
    if (!d) return 0;
    uint32_t head[2];  // buckets, symbols
    file_.read_all(file_.offset_of(d->d_un.d_ptr), head, sizeof head, "the hash table");
    return head[1];
  }
  size_t count_gnu(uint64_t address) const {
    uint32_t head[4];  // buckets, first symbol, words of the filter, shift
    const uint64_t at = file_.offset_of(address);
    file_.read_all(at, head, sizeof head, "the hash table");
    if (head[0] > kMaxSymbols || head[2] > kMaxSymbols) file_.refuse(kTooMany);
    const uint64_t buckets_at = at + sizeof head + uint64_t{head[2]} * sizeof(uint64_t);
    std::vector<uint32_t> buckets(head[0]);
    file_.read_all(buckets_at, buckets.data(), buckets.size() * sizeof(uint32_t), "the hash table");
    const uint32_t last = buckets.empty() ? 0 : *std::max_element(buckets.begin(), buckets.end());
    if (last < head[1]) return head[1];  // none is defined
    const uint64_t chains = buckets_at + buckets.size() * sizeof(uint32_t);
    for (uint64_t i = last; i < kMaxSymbols; ++i) {
      uint32_t hash;
      file_.read_all(chains + (i - head[1]) * sizeof hash, &hash, sizeof hash, "the hash table");
      if (hash & 1) return i + 1;
    }
    file_.refuse(kTooMany);
  }

  void read_symbols() {
    const Elf64_Dyn* table = file_.find(DT_SYMTAB);
    const Elf64_Dyn* names = file_.find(DT_STRTAB);
    if (!table || !names || !file_.has_names()) return;
    const size_t n = count_symbols();
    if (n > kMaxSymbols) file_.refuse(kTooMany);
    const uint64_t names_size = value_of(DT_STRSZ);
    if (names_size > kMaxStringBytes) file_.refuse(kTooMany);
    std::vector<Elf64_Sym> symbols(n);
    file_.read_all(file_.offset_of(table->d_un.d_ptr), symbols.data(), n * sizeof(Elf64_Sym),
                   "the symbol table");
    std::vector<char> text(names_size);
    file_.read_all(file_.offset_of(names->d_un.d_ptr), text.data(), text.size(), "a name");
    for (size_t i = 1; i < n; ++i) {
      const Elf64_Sym& s = symbols[i];
      const unsigned binding = ELF64_ST_BIND(s.st_info);
      if (binding == STB_LOCAL) continue;
      const auto name = text_at(text, s.st_name);
      if (!name) file_.damaged("a name");
      if (s.st_shndx == SHN_UNDEF) {
        if (binding != STB_WEAK) linkage_.undefined.push_back(*name);
        continue;
      }
      linkage_.exports.push_back(*name);
      if (binding == STB_GNU_UNIQUE) linkage_.unique.push_back(*name);
    }
  }

  static std::optional<std::string> text_at(const std::vector<char>& text, uint64_t index) {
    if (index >= text.size()) return {};
    const size_t length = strnlen(text.data() + index, text.size() - index);
    if (length == text.size() - index) return {};
    return std::string(text.data() + index, length);
  }

  void read_constructors() {
    const Elf64_Dyn* array = file_.find(DT_INIT_ARRAY);
    const uint64_t bytes = value_of(DT_INIT_ARRAYSZ);
    if (!array || bytes < sizeof(uint64_t)) return;
    const size_t n = bytes / sizeof(uint64_t);
    if (n > kMaxConstructors)
      file_.refuse("damaged library: " + std::to_string(n) + " constructors (at most " +
                   std::to_string(kMaxConstructors) + ")");
    const uint64_t start = array->d_un.d_ptr;
    std::vector<uint64_t> functions(n);
    file_.read_all(file_.offset_of(start), functions.data(), n * sizeof(uint64_t),
                   "the table of constructors");
    relocate(start, functions);
    const std::map<uint64_t, std::string> names = local_functions();
    // A stripped file does not say which one is the compiler's own; it is always the first.
    for (size_t i = names.empty() ? 1 : 0; i < n; ++i) {
      const auto known = names.find(functions[i]);
      if (known != names.end() && is_compilers_own(known->second)) continue;
      linkage_.constructors.push_back(known != names.end() ? known->second : hex(functions[i]));
    }
  }

  static bool is_compilers_own(std::string_view name) {
    return name == "frame_dummy" || name.ends_with(".module_ctor");  // of the sanitizers
  }
  static std::string hex(uint64_t address) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    do {
      text.insert(text.begin(), kDigits[address & 15]);
      address >>= 4;
    } while (address != 0);
    return "0x" + text;
  }

  // Addresses of functions stand in relocations; where there is none, in the table itself.
  void relocate(uint64_t start, std::vector<uint64_t>& functions) const {
    const Elf64_Dyn* table = file_.find(DT_RELA);
    if (!table) return;
    const size_t n = value_of(DT_RELASZ) / sizeof(Elf64_Rela);
    if (n == 0) return;
    if (n > kMaxRelocations) file_.refuse(kTooMany);
    constexpr size_t kChunk = 1024;
    std::vector<Elf64_Rela> some(std::min(n, kChunk));
    const uint64_t at = file_.offset_of(table->d_un.d_ptr);
    for (size_t done = 0; done < n; done += some.size()) {
      some.resize(std::min(n - done, kChunk));
      file_.read_all(at + done * sizeof(Elf64_Rela), some.data(), some.size() * sizeof(Elf64_Rela),
                     "the table of relocations");
      for (const Elf64_Rela& r : some) {
        const uint64_t index = (r.r_offset - start) / sizeof(uint64_t);
        if (r.r_offset >= start && index < functions.size() && ELF64_R_TYPE(r.r_info) == kRelative)
          functions[index] = static_cast<uint64_t>(r.r_addend);
      }
    }
  }

  // Of the full symbol table, which lies outside what is mapped: without it, or damaged, the file
  // counts as stripped.
  std::map<uint64_t, std::string> local_functions() const {
    Elf64_Ehdr e;
    if (file_.read_some(0, &e, sizeof e) != sizeof e || e.e_shentsize != sizeof(Elf64_Shdr))
      return {};
    std::vector<Elf64_Shdr> sections(e.e_shnum);
    const size_t bytes = sections.size() * sizeof(Elf64_Shdr);
    if (file_.read_some(e.e_shoff, sections.data(), bytes) != bytes) return {};
    std::map<uint64_t, std::string> names;
    for (const Elf64_Shdr& s : sections) {
      if (s.sh_type != SHT_SYMTAB || s.sh_link >= sections.size()) continue;
      const Elf64_Shdr& strings = sections[s.sh_link];
      const size_t n = s.sh_size / sizeof(Elf64_Sym);
      if (n > kMaxSymbols || strings.sh_size > kMaxStringBytes || !is_in_file(s) ||
          !is_in_file(strings))
        continue;
      std::vector<Elf64_Sym> symbols(n);
      std::vector<char> text(strings.sh_size);
      file_.read_some(s.sh_offset, symbols.data(), n * sizeof(Elf64_Sym));
      file_.read_some(strings.sh_offset, text.data(), text.size());
      for (const Elf64_Sym& symbol : symbols)
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF)
          if (auto name = text_at(text, symbol.st_name))
            names.try_emplace(symbol.st_value, std::move(*name));
    }
    return names;
  }
  bool is_in_file(const Elf64_Shdr& s) const {
    char last;
    return s.sh_size > 0 && s.sh_offset <= UINT64_MAX - s.sh_size &&
           file_.read_some(s.sh_offset + s.sh_size - 1, &last, 1) == 1;
  }

  static constexpr const char* kTooMany = "damaged library: a table is longer than any real one";

  const ElfFile& file_;
  ElfLinkage linkage_;
};

}  // namespace

ElfLinkage read_linkage(const ElfFile& file) { return LinkageReader(file).read(); }

}  // namespace trellis::detail
