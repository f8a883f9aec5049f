// SPDX-License-Identifier: Apache-2.0
#include "validate/distribution.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

namespace trellis::validate {
namespace {

using Names = std::map<std::string, double, std::less<>>;

// sum = product {(+|-) product};  product = power {[*|/] power};  power = [-] atom [^ power]
class Parser {
 public:
  Parser(std::string_view text, const Names& names) : text_(text), names_(names) {}

  std::optional<double> all() {
    const double v = sum();
    if (peek() != '\0') good_ = false;
    return good_ && std::isfinite(v) ? std::optional(v) : std::nullopt;
  }

 private:
  double sum() {
    double v = product();
    while (good_) {
      if (take('+'))
        v += product();
      else if (take('-'))
        v -= product();
      else
        break;
    }
    return v;
  }
  double product() {
    double v = power();
    while (good_) {  // what is wrong is not consumed
      if (take('*'))
        v *= power();
      else if (take('/'))
        v /= power();
      else if (begins_atom(peek()))
        v *= power();
      else
        break;
    }
    return v;
  }
  double power() {
    if (take('-')) return -power();
    const double v = atom();
    return take('^') ? std::pow(v, power()) : v;
  }
  double atom() {
    if (!good_) return 0;
    if (take('(')) {
      if (++depth_ > 32) return wrong();
      const double v = sum();
      --depth_;
      return take(')') ? v : wrong();
    }
    const char c = peek();
    if (std::isdigit(static_cast<unsigned char>(c))) {
      double v = 0;
      const auto r = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
      if (r.ec != std::errc()) return wrong();
      at_ = static_cast<size_t>(r.ptr - text_.data());
      return v;
    }
    std::string name;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      name += text_[at_++];
    if (name == "sqrt") {
      const double v = atom();
      return v >= 0 ? std::sqrt(v) : wrong();
    }
    const auto known = names_.find(name);
    return known != names_.end() ? known->second : wrong();
  }

  static bool begins_atom(char c) {
    return c == '(' || c == '_' || std::isalnum(static_cast<unsigned char>(c));
  }
  char peek() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  double wrong() {
    good_ = false;
    return 0;
  }

  std::string_view text_;
  const Names& names_;
  size_t at_ = 0;
  int depth_ = 0;
  bool good_ = true;
};

std::string trimmed(std::string_view s) {
  const auto space = [](char c) { return std::isspace(static_cast<unsigned char>(c)); };
  while (!s.empty() && space(s.front())) s.remove_prefix(1);
  while (!s.empty() && space(s.back())) s.remove_suffix(1);
  return std::string(s);
}

}  // namespace

std::optional<double> evaluate(std::string_view expression, const Names& names) {
  constexpr size_t kLongest = 1000;  // signs and roots nest as deep as they are many
  if (expression.size() > kLongest) return std::nullopt;
  return Parser(expression, names).all();
}

double Distribution::Numbers::mean() const { return uniform ? (a + b) / 2 : a; }
double Distribution::Numbers::deviation() const {
  return uniform ? (b - a) / std::sqrt(12.0) : std::sqrt(b);
}

std::optional<Distribution> Distribution::parse(const std::string& formula) {
  Distribution d;
  size_t at = formula.find('~');
  if (at == formula.npos) return std::nullopt;
  do ++at;
  while (at < formula.size() && formula[at] == ' ');
  if (at + 1 >= formula.size() || (formula[at] != 'N' && formula[at] != 'U') ||
      (formula[at + 1] != '(' && formula[at + 1] != '['))
    return std::nullopt;
  d.uniform_ = formula[at] == 'U';
  const size_t open = at + 1;
  size_t comma = formula.npos, close = open + 1;
  for (int depth = 0; close < formula.size(); ++close) {
    const char c = formula[close];
    if (depth == 0 && (c == ')' || c == ']' || c == '[')) break;
    depth += c == '(';
    depth -= c == ')';
    if (depth == 0 && c == ',' && comma == formula.npos) comma = close;
  }
  if (comma == formula.npos || close >= formula.size()) return std::nullopt;
  d.first_ = trimmed(std::string_view(formula).substr(open + 1, comma - open - 1));
  d.second_ = trimmed(std::string_view(formula).substr(comma + 1, close - comma - 1));
  d.text_ = formula.substr(at, close + 1 - at);
  // "name = expression", up to a comma or semicolon; a name that is defined twice depends on the
  // shape in a way that is told in words.
  std::string_view rest = std::string_view(formula).substr(close + 1);
  std::map<std::string, int> seen;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find_first_of(";,"), rest.size());
    const std::string_view part = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const size_t equals = part.find('=');
    if (equals == part.npos) continue;
    std::string name = trimmed(part.substr(0, equals));
    name = name.substr(name.find_last_of(" :") == name.npos ? 0 : name.find_last_of(" :") + 1);
    d.definitions_[name] = trimmed(part.substr(equals + 1));
    if (++seen[name] > 1) d.definitions_[name] = "?";
  }
  return d;
}

std::optional<Distribution::Numbers> Distribution::at(Names names) const {
  // A definition may stand on another one; each round settles at least one.
  for (size_t round = 0; round <= definitions_.size(); ++round)
    for (const auto& [name, expression] : definitions_)
      if (const auto v = evaluate(expression, names)) names[name] = *v;
  const auto a = evaluate(first_, names), b = evaluate(second_, names);
  if (!a || !b || (uniform_ ? *b < *a : *b < 0)) return std::nullopt;
  return Numbers{uniform_, *a, *b};
}

}  // namespace trellis::validate
