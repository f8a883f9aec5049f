// SPDX-License-Identifier: Apache-2.0
#include "plugin/semver.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace trellis::detail {
namespace {

constexpr std::string_view kDigits = "0123456789";

bool is_identifier(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [](unsigned char c) {
    return c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

bool is_number(std::string_view s) {
  return !s.empty() && s.find_first_not_of(kDigits) == std::string_view::npos;
}

// Cuts the text before the first `separator` off `rest`.
std::string_view cut(std::string_view& rest, char separator) {
  const size_t at = rest.find(separator);
  const std::string_view head = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + 1);
  return head;
}

bool are_identifiers(std::string_view dotted) {
  if (dotted.empty() || dotted.back() == '.') return false;
  while (!dotted.empty())
    if (!is_identifier(cut(dotted, '.'))) return false;
  return true;
}

std::optional<uint32_t> parse_number(std::string_view s) {
  uint32_t n = 0;
  if (!is_number(s) || (s.size() > 1 && s[0] == '0')) return {};
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), n);
  if (error != std::errc() || end != s.data() + s.size()) return {};
  if (n == std::numeric_limits<uint32_t>::max()) return {};  // ranges add one
  return n;
}

struct Parsed {
  Version version;
  int numbers = 0;
};

// One to three numbers; a pre-release or build part only after three.
std::optional<Parsed> parse_partial(std::string_view text) {
  Parsed p;
  const size_t plus = text.find('+');
  if (plus != std::string_view::npos) {
    if (!are_identifiers(text.substr(plus + 1))) return {};
    text = text.substr(0, plus);
  }
  const size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    p.version.pre = text.substr(dash + 1);
    if (!are_identifiers(p.version.pre)) return {};
    text = text.substr(0, dash);
  }
  if (text.empty() || text.back() == '.') return {};
  uint32_t* const parts[] = {&p.version.major, &p.version.minor, &p.version.patch};
  while (!text.empty()) {
    const auto n = parse_number(cut(text, '.'));
    if (!n || p.numbers == 3) return {};
    *parts[p.numbers++] = *n;
  }
  const bool is_partial = p.numbers < 3;
  if (is_partial && (plus != std::string_view::npos || dash != std::string_view::npos)) return {};
  return p;
}

std::strong_ordering compare_identifiers(std::string_view a, std::string_view b) {
  const bool a_number = is_number(a), b_number = is_number(b);
  if (a_number != b_number)
    return a_number ? std::strong_ordering::less : std::strong_ordering::greater;
  if (a_number) {
    a.remove_prefix(std::min(a.find_first_not_of('0'), a.size() - 1));
    b.remove_prefix(std::min(b.find_first_not_of('0'), b.size() - 1));
    if (a.size() != b.size()) return a.size() <=> b.size();
  }
  return a.compare(b) <=> 0;
}

}  // namespace

std::optional<Version> Version::parse(std::string_view text) {
  auto p = parse_partial(text);
  if (!p || p->numbers != 3) return {};
  return std::move(p->version);
}

std::string Version::to_string() const {
  std::string s = std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
  if (!pre.empty()) s += "-" + pre;
  return s;
}

std::strong_ordering operator<=>(const Version& a, const Version& b) {
  if (const auto c = a.major <=> b.major; c != 0) return c;
  if (const auto c = a.minor <=> b.minor; c != 0) return c;
  if (const auto c = a.patch <=> b.patch; c != 0) return c;
  if (a.pre.empty() || b.pre.empty()) return a.pre.empty() <=> b.pre.empty();
  std::string_view x = a.pre, y = b.pre;
  while (!x.empty() && !y.empty())
    if (const auto c = compare_identifiers(cut(x, '.'), cut(y, '.')); c != 0) return c;
  return !x.empty() <=> !y.empty();
}

std::optional<VersionRange> VersionRange::parse(std::string_view text) {
  VersionRange r;
  r.text_ = text;
  if (text == "*") return r;
  char op = '=';
  if (text.substr(0, 2) == ">=") {
    op = '>';
    text.remove_prefix(2);
  } else if (!text.empty() && (text[0] == '^' || text[0] == '~' || text[0] == '=')) {
    op = text[0];
    text.remove_prefix(1);
  }
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const auto p = parse_partial(text);
  if (!p || (op == '=' && p->numbers != 3)) return {};
  r.any_ = false;
  r.low_ = p->version;
  const Version& v = p->version;
  if (op == '=') {
    r.exact_ = true;
  } else if (op == '~') {
    r.below_ =
        p->numbers == 1 ? Version{v.major + 1, 0, 0, {}} : Version{v.major, v.minor + 1, 0, {}};
  } else if (op == '^') {
    if (v.major > 0 || p->numbers == 1)
      r.below_ = Version{v.major + 1, 0, 0, {}};
    else if (v.minor > 0 || p->numbers == 2)
      r.below_ = Version{0, v.minor + 1, 0, {}};
    else
      r.below_ = Version{0, 0, v.patch + 1, {}};
  }
  return r;
}

bool VersionRange::contains(const Version& v) const {
  if (exact_) return v == low_;
  if (!v.pre.empty()) {
    const bool is_named = !low_.pre.empty() && v.major == low_.major && v.minor == low_.minor &&
                          v.patch == low_.patch;
    if (!is_named) return false;
  }
  if (any_) return true;
  return v >= low_ && (!below_ || v < *below_);
}

}  // namespace trellis::detail
