// SPDX-License-Identifier: Apache-2.0
//
// A bounded reader of shared objects. It follows program headers and the dynamic section, as the
// dynamic linker does, so it works on stripped files, and it believes no size in the file.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trellis::detail {

class ElfFile {
 public:
  // Reads headers and dynamic section of an open file. Throws Error(plugin) "<prefix>: fact": not a
  // shared library of this machine, or damaged. The descriptor must outlive the object.
  ElfFile(int fd, std::string prefix);

  const std::vector<Elf64_Phdr>& headers() const { return headers_; }
  const std::vector<Elf64_Dyn>& dynamic() const { return dynamic_; }
  const Elf64_Dyn* find(int64_t tag) const;  // the first of a tag; null: none
  std::vector<std::string> needed() const;   // DT_NEEDED
  std::string run_path() const;              // DT_RUNPATH or DT_RPATH
  bool has_names() const { return names_size_ > 0; }
  std::string name_at(uint64_t index) const;  // of the dynamic string table

  // Where a virtual address lies in the file; nothing outside the mapped segments can be read.
  uint64_t offset_of(uint64_t address) const;
  // Bytes read, less than `n` only at the end of the file.
  size_t read_some(uint64_t offset, void* to, size_t n) const;
  void read_all(uint64_t offset, void* to, size_t n, const char* what) const;

  [[noreturn]] void refuse(const std::string& fact) const;
  [[noreturn]] void damaged(const char* what) const;

 private:
  void read_headers();
  void read_dynamic(const Elf64_Phdr& h);

  int fd_;
  std::string prefix_;
  std::vector<Elf64_Phdr> headers_;
  std::vector<Elf64_Dyn> dynamic_;
  uint64_t names_ = 0, names_size_ = 0;
};

// How a library was linked, and what it shows and wants: what the static check looks at.
struct ElfLinkage {
  std::vector<std::string> exports;    // dynamic symbols that it defines
  std::vector<std::string> unique;     // those with STB_GNU_UNIQUE
  std::vector<std::string> undefined;  // symbols that another library must have; weak ones are not
  // Functions that run when it is opened, but the compiler's own: names, or addresses when stripped.
  std::vector<std::string> constructors;
  bool has_nodelete = false, has_now = false, has_relro = false;
  bool has_text_relocations = false, has_executable_stack = false, has_writable_code = false;
};

// Throws as ElfFile does.
ElfLinkage read_linkage(const ElfFile& file);

}  // namespace trellis::detail
