// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <trellis/io.hpp>

#include "io/utf8.hpp"

namespace trellis {
namespace {

constexpr std::string_view kWho = "read_tagged";
constexpr std::string_view kBlanks = " \t";

bool blank(std::string_view line) {
  return line.find_first_not_of(kBlanks) == std::string_view::npos;
}

// A first line whose every token has a '|' inside is word|tag; everything else must be CoNLL-U.
CorpusFormat guess_format(std::string_view line) {
  for (const std::string& token : split_words(line)) {
    const size_t bar = token.rfind('|');
    if (bar == std::string::npos || bar == 0 || bar + 1 == token.size())
      return CorpusFormat::conllu;
  }
  return CorpusFormat::word_tag;
}

std::optional<uint32_t> parse_number(std::string_view s) {
  uint32_t n = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), n);
  if (error != std::errc() || end != s.data() + s.size()) return std::nullopt;
  return n;
}

// "3-4" (multiword token) with '-', "8.1" (empty node) with '.'.
bool is_pair(std::string_view id, char separator) {
  const size_t at = id.find(separator);
  return at != std::string_view::npos && parse_number(id.substr(0, at)) &&
         parse_number(id.substr(at + 1));
}

class TaggedReader {
 public:
  TaggedReader(const std::filesystem::path& path, CorpusFormat format, const TextLimits& limits)
      : lines_(path, kWho, limits), format_(format) {}

  std::vector<TaggedSentence> read() {
    for (std::string line; lines_.next(line);) {
      if (format_ == CorpusFormat::guess && !blank(line)) format_ = guess_format(line);
      if (format_ == CorpusFormat::conllu) {
        conllu_line(line);
      } else if (!blank(line)) {
        word_tag_line(line);
      }
    }
    end_sentence();
    return std::move(sentences_);
  }

 private:
  void conllu_line(std::string_view line) {
    if (blank(line)) return end_sentence();
    if (line.front() == '#') return;
    std::array<std::string_view, 10> columns;
    size_t n = 1 + static_cast<size_t>(std::count(line.begin(), line.end(), '\t'));
    if (n != columns.size()) {
      lines_.fail(fmt::format("the line has {} column{}: '{}' (needed 10, separated by tabs)", n,
                              n == 1 ? "" : "s", detail::printable(line)));
    }
    for (std::string_view& column : columns) {
      const size_t tab = std::min(line.find('\t'), line.size());
      column = line.substr(0, tab);
      line.remove_prefix(std::min(tab + 1, line.size()));
    }
    const std::string_view id = columns[0], form = columns[1], upos = columns[3];
    if (is_pair(id, '-') || is_pair(id, '.')) return;
    const uint64_t expected = current_.words.size() + 1;
    if (parse_number(id) != expected) {
      lines_.fail(
          fmt::format("the word's number is '{}' (needed {})", detail::printable(id), expected));
    }
    if (form.empty()) lines_.fail("the word's form is empty");
    if (upos.empty() || upos == "_") {
      lines_.fail(fmt::format("the word '{}' has no tag in column 4", detail::printable(form)));
    }
    current_.words.emplace_back(form);
    current_.tags.emplace_back(upos);
  }

  void word_tag_line(std::string_view line) {
    for (const std::string& token : split_words(line)) {
      const size_t bar = token.rfind('|');
      if (bar == std::string::npos || bar == 0 || bar + 1 == token.size()) {
        lines_.fail(fmt::format("the token is '{}' (needed word|tag)", detail::printable(token)));
      }
      current_.words.push_back(token.substr(0, bar));
      current_.tags.push_back(token.substr(bar + 1));
    }
    end_sentence();
  }

  void end_sentence() {
    if (current_.words.empty()) return;
    sentences_.push_back(std::move(current_));
    current_ = {};
  }

  LineReader lines_;
  CorpusFormat format_;
  TaggedSentence current_;
  std::vector<TaggedSentence> sentences_;
};

}  // namespace

std::string_view corpus_format_name(CorpusFormat f) {
  switch (f) {
    case CorpusFormat::conllu:
      return "conllu";
    case CorpusFormat::word_tag:
      return "word-tag";
    case CorpusFormat::guess:
      break;
  }
  return "guess";
}

CorpusFormat corpus_format_from(std::string_view name) {
  for (const CorpusFormat f : {CorpusFormat::guess, CorpusFormat::conllu, CorpusFormat::word_tag}) {
    if (corpus_format_name(f) == name) return f;
  }
  fail(ErrorKind::argument,
       fmt::format("[corpus_format_from] unknown format '{}' (needed guess, conllu or word-tag)",
                   detail::printable(name)));
}

std::vector<TaggedSentence> read_tagged(const std::filesystem::path& path, CorpusFormat format,
                                        const TextLimits& limits) {
  std::vector<TaggedSentence> sentences = TaggedReader(path, format, limits).read();
  if (sentences.empty()) {
    fail(ErrorKind::io, fmt::format("[{}] '{}' holds no sentence (needed CoNLL-U or word|tag)",
                                    kWho, path.string()));
  }
  return sentences;
}

std::vector<std::string> split_words(std::string_view line) {
  std::vector<std::string> words;
  for (;;) {
    const size_t begin = line.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const size_t end = std::min(line.find_first_of(kBlanks), line.size());
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

}  // namespace trellis
