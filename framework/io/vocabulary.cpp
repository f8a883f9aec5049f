// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <trellis/io.hpp>
#include <utility>

#include "io/atomic_file.hpp"
#include "io/utf8.hpp"

namespace trellis {
namespace {

constexpr std::string_view kHead = "trellis-vocabulary 1 ";

template <class T>
bool parse_whole(std::string_view s, T& out) {
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), out);
  return error == std::errc() && end == s.data() + s.size();
}

void check_word(std::string_view word) {
  using namespace std::string_view_literals;
  if (word.empty()) fail(ErrorKind::argument, "[vocabulary] a word is empty");
  if (word.find_first_of("\n\r\0"sv) != std::string_view::npos ||
      detail::find_invalid_utf8(word) != word.npos) {
    fail(ErrorKind::argument, fmt::format("[vocabulary] a word is not one line of UTF-8: '{}'",
                                          detail::printable(word)));
  }
}

// Builds a vocabulary from lines, wherever they come from; `refuse` throws with the place of the
// current line.
template <class NextLine, class Refuse>
Vocabulary parse(NextLine&& next, Refuse&& refuse) {
  std::string line;
  if (!next(line) || !line.starts_with(kHead))
    refuse("this is no vocabulary (needed 'trellis-vocabulary 1 ..')");
  const std::vector<std::string> head = split_words(std::string_view(line).substr(kHead.size()));
  uint32_t size = 0, unk = 0;
  const bool has_unk = !head.empty() && head[0] != "-";
  if (head.size() != 2 || !parse_whole(head[1], size) ||
      (has_unk && (!parse_whole(head[0], unk) || unk >= size))) {
    refuse("wrong head line (needed: id of the unknown word or -, then the number of words)");
  }
  Vocabulary v;
  for (uint32_t i = 0; i < size; ++i) {
    if (!next(line)) refuse(fmt::format("{} words follow (needed {})", i, size));
    const size_t tab = line.find('\t');
    uint64_t count = 0;
    if (tab == std::string::npos || !parse_whole(std::string_view(line).substr(0, tab), count)) {
      refuse(fmt::format("the line is '{}' (needed count, tab, word)", detail::printable(line)));
    }
    const std::string word = line.substr(tab + 1);
    if (word.empty() || v.find(word)) {
      refuse(fmt::format("the word '{}' is {}", detail::printable(word),
                         word.empty() ? "empty" : "there twice"));
    }
    if (has_unk && i == unk) v.set_unk(word);
    v.add(word, count);
  }
  if (next(line)) refuse(fmt::format("more than {} words follow", size));
  v.freeze();
  return v;
}

}  // namespace

uint32_t Vocabulary::add(std::string_view word, uint64_t count) {
  if (const auto known = find(word)) {
    if (!frozen_) counts_[*known] += count;
    return *known;
  }
  if (frozen_) return id(word);
  check_word(word);
  if (words_.size() == std::numeric_limits<uint32_t>::max())
    fail(ErrorKind::range, "[vocabulary] too many words: 2^32 - 1");
  const uint32_t id = size();
  index_.emplace(word, id);
  words_.emplace_back(word);
  counts_.push_back(count);
  return id;
}

uint32_t Vocabulary::set_unk(std::string_view word) {
  if (unk_) {
    fail(ErrorKind::state,
         fmt::format("[vocabulary] the unknown word is set already: '{}'", words_[*unk_]));
  }
  const bool was_frozen = std::exchange(frozen_, false);
  unk_ = add(word, 0);
  frozen_ = was_frozen;
  return *unk_;
}

std::optional<uint32_t> Vocabulary::find(std::string_view word) const {
  const auto at = index_.find(std::string(word));
  if (at == index_.end()) return std::nullopt;
  return at->second;
}

uint32_t Vocabulary::id(std::string_view word) const {
  const auto known = find(word);
  if (known) return *known;
  if (unk_) return *unk_;
  fail(ErrorKind::range,
       fmt::format("[vocabulary] no word '{}' among {} (and no unknown word is set)",
                   detail::printable(word), size()));
}

const std::string& Vocabulary::word(uint32_t id) const {
  if (id >= size())
    fail(ErrorKind::range, fmt::format("[vocabulary] no word {} (there are {})", id, size()));
  return words_[id];
}

uint64_t Vocabulary::count(uint32_t id) const {
  word(id);
  return counts_[id];
}

std::vector<uint32_t> Vocabulary::ids(const std::vector<std::string>& words) const {
  std::vector<uint32_t> out;
  out.reserve(words.size());
  for (const std::string& w : words) out.push_back(id(w));
  return out;
}

Vocabulary Vocabulary::thresholded(uint64_t min_count) const {
  Vocabulary v;
  uint64_t dropped = 0;
  for (uint32_t i = 0; i < size(); ++i) {
    if (unk_ == i) {
      v.set_unk(words_[i]);
      v.add(words_[i], counts_[i]);
    } else if (counts_[i] >= min_count) {
      v.add(words_[i], counts_[i]);
    } else {
      dropped += counts_[i];
    }
  }
  if (v.unk_) v.counts_[*v.unk_] += dropped;
  v.freeze();
  return v;
}

std::string Vocabulary::to_text() const {
  std::string text = fmt::format("{}{} {}\n", kHead, unk_ ? std::to_string(*unk_) : "-", size());
  for (uint32_t i = 0; i < size(); ++i) text += fmt::format("{}\t{}\n", counts_[i], words_[i]);
  return text;
}

Vocabulary Vocabulary::from_text(std::string_view text) {
  uint64_t number = 0;
  const auto refuse = [&](const std::string& fact) {
    fail(ErrorKind::io, fmt::format("[vocabulary] line {}: {}", number, fact));
  };
  const auto next = [&](std::string& line) {
    ++number;
    if (text.empty()) return false;
    const size_t end = std::min(text.find('\n'), text.size());
    line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (detail::find_invalid_utf8(line) != std::string::npos) refuse("the line is not UTF-8");
    return true;
  };
  return parse(next, refuse);
}

void Vocabulary::save(const std::filesystem::path& path) const {
  const std::string text = to_text();
  detail::AtomicFile file(path, "vocabulary");
  file.write(text.data(), text.size());
  file.commit();
}

Vocabulary Vocabulary::load(const std::filesystem::path& path) {
  LineReader reader(path, "vocabulary");
  return parse([&](std::string& line) { return reader.next(line); },
               [&](const std::string& fact) { reader.fail(fact); });
}

}  // namespace trellis
