// SPDX-License-Identifier: Apache-2.0

#include "fuzz.hpp"
#include "plugin/note.hpp"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fuzz::MemoryFile file(data, size);
  return fuzz::read([&] { trellis::detail::read_elf(file.fd(), "[fuzz]"); });
}
