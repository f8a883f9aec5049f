// SPDX-License-Identifier: Apache-2.0
//
// Text that users bring: vocabularies and tagged corpora, plain or gzip.

#include <string>
#include <string_view>
#include <trellis/io.hpp>

#include "fuzz.hpp"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::read([&] {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const std::string once = trellis::Vocabulary::from_text(text).to_text();
    if (trellis::Vocabulary::from_text(once).to_text() != once) std::abort();
  });
  const fuzz::MemoryFile file(data, size);
  const trellis::TextLimits limits{.line = 4096, .total = uint64_t{1} << 22};
  return fuzz::read([&] {
    for (const auto& sentence :
         trellis::read_tagged(file.path(), trellis::CorpusFormat::guess, limits)) {
      if (sentence.words.empty() || sentence.words.size() != sentence.tags.size()) std::abort();
    }
  });
}
