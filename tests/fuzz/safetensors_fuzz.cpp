// SPDX-License-Identifier: Apache-2.0

#include <vector>

#include "fuzz.hpp"
#include "io/safetensors.hpp"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fuzz::MemoryFile file(data, size);
  return fuzz::read([&] {
    const trellis::detail::SafetensorsFile opened(file.path(), "fuzz");
    for (const auto& [name, entry] : opened.header().tensors) {
      std::vector<uint8_t> bytes(entry.end - entry.begin);
      opened.read_data(entry.begin, bytes.size(), bytes.data());
    }
  });
}
