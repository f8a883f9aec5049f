// SPDX-License-Identifier: Apache-2.0
//
// Files: text read line by line, tagged corpora, vocabularies, weights. What is read is never
// trusted: sizes are bounded before memory is asked for, text is UTF-8 or refused, and an error
// names file, line and what was needed. All functions throw Error(io) when a file cannot be read or
// written or does not hold what it should.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <trellis/api.hpp>
#include <trellis/error.hpp>
#include <trellis/model.hpp>
#include <unordered_map>
#include <vector>

namespace trellis {

// Bounds for one text file, after decompression.
struct TextLimits {
  size_t line = size_t{1} << 20;       // bytes of one line
  uint64_t total = uint64_t{4} << 30;  // bytes of the file
};

// Lines of a text file, plain or gzip (known by its first bytes, whatever its name). Memory: one
// line and a buffer.
class TRELLIS_API LineReader {
 public:
  // `who` starts the error texts: the function as the user typed it.
  explicit LineReader(const std::filesystem::path& path, std::string_view who = "read_lines",
                      const TextLimits& limits = {});
  ~LineReader();
  LineReader(LineReader&&) noexcept;
  LineReader& operator=(LineReader&&) noexcept;

  // The next line without its end ("\n" or "\r\n"; a byte order mark at the start is skipped).
  // False at the end.
  bool next(std::string& line);
  uint64_t line_number() const;  // of the line that next() returned last; 1 is the first
  // Throws Error(io) "[who] <file>:<line>: <fact>".
  [[noreturn]] void fail(std::string_view fact) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A sentence with one tag a word; both vectors are equally long and not empty.
struct TaggedSentence {
  std::vector<std::string> words, tags;
};

enum class CorpusFormat {
  guess,     // by the first line that is not blank
  conllu,    // CoNLL-U: form and UPOS of every syntactic word; multiword tokens, empty nodes and
             // comments are skipped
  word_tag,  // a sentence a line, "word|tag word|tag"; the tag follows the last '|'
};
TRELLIS_API std::string_view corpus_format_name(CorpusFormat f);
// "guess", "conllu" or "word-tag"; throws Error(argument).
TRELLIS_API CorpusFormat corpus_format_from(std::string_view name);

// Plain or gzip. Throws Error(io) also when there is no sentence.
TRELLIS_API std::vector<TaggedSentence> read_tagged(const std::filesystem::path& path,
                                                    CorpusFormat format = CorpusFormat::guess,
                                                    const TextLimits& limits = {});
// The words of a line, split at blanks and tabs.
TRELLIS_API std::vector<std::string> split_words(std::string_view line);

// Words numbered 0, 1, .. in the order they were added, with counts.
class TRELLIS_API Vocabulary {
 public:
  // The word's id; adds it when it is new, and adds `count` to its count. Frozen: an unknown word
  // gives the unknown word's id, or throws Error(range) when there is none, and nothing is counted.
  // Throws Error(argument) for an empty word or one with a line end, a NUL or bytes that are not
  // UTF-8.
  uint32_t add(std::string_view word, uint64_t count = 1);
  // Adds `word` and lets it stand for all unknown ones from now on. Once; a second time throws
  // Error(state).
  uint32_t set_unk(std::string_view word = "<unk>");
  void freeze() { frozen_ = true; }

  bool frozen() const { return frozen_; }
  std::optional<uint32_t> unk() const { return unk_; }
  std::optional<uint32_t> find(std::string_view word) const;
  uint32_t id(std::string_view word) const;    // unknown: unk(), else throws Error(range)
  const std::string& word(uint32_t id) const;  // throws Error(range)
  uint64_t count(uint32_t id) const;           // throws Error(range)
  uint32_t size() const { return static_cast<uint32_t>(words_.size()); }
  std::vector<uint32_t> ids(const std::vector<std::string>& words) const;

  // A frozen copy with the words seen at least `min_count` times, in the same order, numbered anew;
  // the unknown word stays and receives the counts of those left out.
  Vocabulary thresholded(uint64_t min_count) const;

  // Text: a head line "trellis-vocabulary 1 <unk id or -> <size>", then a line "<count>\t<word>"
  // for each word. A vocabulary that was read is frozen.
  std::string to_text() const;
  static Vocabulary from_text(std::string_view text);  // throws Error(io) naming the line
  // Written to a temporary name, synced, renamed.
  void save(const std::filesystem::path& path) const;
  static Vocabulary load(const std::filesystem::path& path);

 private:
  std::vector<std::string> words_;
  std::vector<uint64_t> counts_;
  std::unordered_map<std::string, uint32_t> index_;
  std::optional<uint32_t> unk_;
  bool frozen_ = false;
};

// Text kept with weights: vocabularies, options, versions. Keys and values are UTF-8.
using Metadata = std::map<std::string, std::string>;

// Weights are kept as safetensors: a header of names, types and shapes, then raw numbers; nothing
// in it runs. A tensor is named by its path below `model` ("encoder/w"). Numbers lie as in memory,
// so the shape that row-major readers see is ours reversed: a {2,3} matrix appears as [3,2], a
// table with 100 rows of {8} as [100,8].

// Parameters and tables of this subtree. The file appears whole or not at all (temporary name,
// fsync, rename).
TRELLIS_API void save_weights(const Model& model, const std::filesystem::path& path,
                              const Metadata& metadata = {});
// Matches by name. Everything is checked before the first number of the model changes: a missing or
// surplus tensor, another shape or element type throws Error(io) naming it.
TRELLIS_API void load_weights(const Model& model, const std::filesystem::path& path);
// The text only; reads the header.
TRELLIS_API Metadata read_metadata(const std::filesystem::path& path);

}  // namespace trellis
