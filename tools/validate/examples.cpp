// SPDX-License-Identifier: Apache-2.0
#include "validate/examples.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace trellis::validate {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::vector<Example> all() {
    std::vector<Example> out;
    for (space(); at_ < text_.size(); space()) {
      const size_t from = at_;
      Example e = call();
      e.text = std::string(text_.substr(from, at_ - from));
      out.push_back(std::move(e));
      space();
      if (at_ < text_.size()) expect(';');
    }
    return out;
  }

 private:
  Example call() {
    Example e;
    word();
    expect('(');
    for (space(); !take(')'); space()) {
      if (peek() == '{') {
        e.inputs.push_back(shape());
      } else if (take('-')) {
        e.inputs.push_back(std::nullopt);
      } else {
        const std::string key = word();
        expect('=');
        e.attrs.push_back({key, value()});
      }
      space();
      if (peek() != ')') expect(',');
    }
    return e;
  }

  Dim shape() {
    const size_t end = text_.find('}', at_);
    if (end == std::string_view::npos) wrong("a closing }");
    size_t stop = end + 1;
    if (stop < text_.size() && text_[stop] == 'x') {
      ++stop;
      while (stop < text_.size() && std::isdigit(static_cast<unsigned char>(text_[stop]))) ++stop;
    }
    const Dim d = Dim::parse(text_.substr(at_, stop - at_));
    at_ = stop;
    return d;
  }

  AttrValue value() {
    if (take('[')) {
      std::vector<double> numbers;
      bool whole = true;
      for (space(); !take(']'); space()) {
        const auto [v, i] = number();
        numbers.push_back(v);
        whole &= i;
        space();
        if (peek() != ']') expect(',');
      }
      if (!whole) return numbers;
      return std::vector<int64_t>(numbers.begin(), numbers.end());
    }
    if (peek() == '-' || std::isdigit(static_cast<unsigned char>(peek()))) {
      const auto [v, i] = number();
      return i ? AttrValue(static_cast<int64_t>(v)) : AttrValue(v);
    }
    const std::string w = word();
    if (w == "true" || w == "false") return w == "true";
    return w;
  }

  std::pair<double, bool> number() {
    double v = 0;
    const char* from = text_.data() + at_;
    const auto r = std::from_chars(from, text_.data() + text_.size(), v);
    if (r.ec != std::errc()) wrong("a number");
    const std::string_view t(from, static_cast<size_t>(r.ptr - from));
    at_ += t.size();
    return {v, t.find_first_of(".eE") == std::string_view::npos};
  }

  std::string word() {
    const size_t from = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) ||
                                  text_[at_] == '_' || text_[at_] == '.'))
      ++at_;
    if (at_ == from) wrong("a name");
    return std::string(text_.substr(from, at_ - from));
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    space();
    if (!take(c)) wrong(std::string(1, c));
    space();
  }
  void space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  [[noreturn]] void wrong(const std::string& needed) const {
    fail(ErrorKind::argument, "[example] cannot read '" + std::string(text_) + "' at " +
                                  std::to_string(at_) + " (needs " + needed + ")");
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::vector<Example> parse_examples(std::string_view text) { return Parser(text).all(); }

}  // namespace trellis::validate
