// SPDX-License-Identifier: Apache-2.0
//
// Text that users bring: vocabularies and tagged corpora, plain or gzip.

#include <string_view>
#include <trellis/io.hpp>

#include "fuzz.hpp"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::read([&] {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto vocabulary = trellis::Vocabulary::from_text(text);
    if (vocabulary.to_text() != text) std::abort();  // what is accepted is written back as it was
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
