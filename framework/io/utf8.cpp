// SPDX-License-Identifier: Apache-2.0
#include "io/utf8.hpp"

#include <fmt/format.h>

namespace trellis::detail {
namespace {

// Length of the well-formed sequence at the start of s, 0 when it is ill-formed (Unicode 15, table
// 3-7).
size_t sequence_length(std::string_view s) {
  const auto byte = [&](size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  const auto tail = [&](size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned a = byte(0), b = byte(1);
  if (a < 0x80) return 1;
  if (a >= 0xC2 && a <= 0xDF) return tail(1) ? 2 : 0;
  if (a >= 0xE0 && a <= 0xEF) {
    const bool ok = tail(1) && tail(2) && !(a == 0xE0 && b < 0xA0) && !(a == 0xED && b > 0x9F);
    return ok ? 3 : 0;
  }
  if (a >= 0xF0 && a <= 0xF4) {
    const bool ok =
        tail(1) && tail(2) && tail(3) && !(a == 0xF0 && b < 0x90) && !(a == 0xF4 && b > 0x8F);
    return ok ? 4 : 0;
  }
  return 0;
}

}  // namespace

size_t find_invalid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t n = sequence_length(text.substr(i));
    if (n == 0) return i;
    i += n;
  }
  return std::string_view::npos;
}

std::string printable(std::string_view text, size_t limit) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (i >= limit) return out + "...";
    const size_t n = sequence_length(text.substr(i));
    const auto c = static_cast<unsigned char>(text[i]);
    if (n == 0 || c < 0x20 || c == 0x7F) {
      out += fmt::format("\\x{:02x}", c);
      ++i;
    } else {
      out += text.substr(i, n);
      i += n;
    }
  }
  return out;
}

}  // namespace trellis::detail
