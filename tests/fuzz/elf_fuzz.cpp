// SPDX-License-Identifier: Apache-2.0
//
// Shared objects that others made: what the loader reads of them, and what the static check reads.

#include "fuzz.hpp"
#include "plugin/check.hpp"
#include "plugin/note.hpp"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fuzz::MemoryFile file(data, size);
  fuzz::read([&] {
    const trellis::detail::ElfFile elf(file.fd(), "[fuzz]");
    trellis::detail::Findings findings;
    trellis::detail::check_linkage(elf, trellis::detail::read_linkage(elf), findings);
    findings.take();
  });
  return fuzz::read([&] { trellis::detail::read_elf(file.fd(), "[fuzz]"); });
}
