// SPDX-License-Identifier: Apache-2.0
#include "registry/names.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "registry/registry.hpp"

namespace trellis {
namespace {

constexpr std::string_view kRoleNames[] = {
    "add", "sub",         "mul",    "div",   "neg",     "matmul", "scale_shift",
    "sum", "sum_batches", "concat", "slice", "reshape", "dropout"};
static_assert(std::size(kRoleNames) == static_cast<size_t>(Role::kCount));

bool is_lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

// Edits that turn a into b: insertions, deletions, replacements, and swaps of neighbours.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(now);
  }
  return last[b.size()];
}

}  // namespace

std::string_view role_name(Role r) { return kRoleNames[static_cast<size_t>(r)]; }

std::optional<Role> role_from(std::string_view name) {
  const auto* at = std::find(std::begin(kRoleNames), std::end(kRoleNames), name);
  if (at == std::end(kRoleNames)) return std::nullopt;
  return static_cast<Role>(at - std::begin(kRoleNames));
}

namespace detail {

bool is_id(std::string_view text) {
  if (text.empty() || text.size() > 63 || text.front() == '.' || text.back() == '.') return false;
  if (text.find('.') == text.npos || text.find("..") != text.npos) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return is_lower_or_digit(c) || c == '.'; });
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 63 && text[0] >= 'a' && text[0] <= 'z' &&
         std::all_of(text.begin(), text.end(), is_lower_or_digit);
}

bool is_utf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t extra = lead < 0x80       ? 0
                         : lead >> 5 == 6  ? 1
                         : lead >> 4 == 14 ? 2
                         : lead >> 3 == 30 ? 3
                                           : 4;
    if (extra == 4 || extra >= text.size() - i) return false;
    uint32_t point = extra == 0 ? lead : lead & (0x3Fu >> extra);
    for (size_t k = 1; k <= extra; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if (next >> 6 != 2) return false;
      point = point << 6 | (next & 0x3Fu);
    }
    constexpr uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};  // no longer form than needed
    if (point < kLeast[extra] || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000))
      return false;
    i += extra + 1;
  }
  return true;
}

bool is_reserved(std::string_view id) { return lies_in(id, "core") || lies_in(id, "dynet"); }

bool lies_in(std::string_view id, std::string_view name_space) {
  return id.size() > name_space.size() && id.substr(0, name_space.size()) == name_space &&
         id[name_space.size()] == '.';
}

void fail_ambiguous(std::string_view kind, std::string_view name,
                    std::span<const std::string> ids) {
  std::vector<std::string> sorted(ids.begin(), ids.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  fail(ErrorKind::argument, fmt::format("[registry] more than one {} '{}': {} (needed a full id)",
                                        kind, name, fmt::join(sorted, ", ")));
}

std::string nearest(std::string_view name, std::span<const std::string> names) {
  constexpr size_t kFarthest = 2;
  std::string best;
  size_t best_distance = kFarthest + 1;
  for (const std::string& candidate : names) {
    const size_t longer = std::max(name.size(), candidate.size());
    const size_t shorter = std::min(name.size(), candidate.size());
    if (shorter == 0 || longer - shorter > kFarthest) continue;
    const size_t d = distance(name, candidate);
    if (d >= shorter) continue;  // nothing in common
    if (d < best_distance || (d == best_distance && candidate < best)) {
      best_distance = d;
      best = candidate;
    }
  }
  return best;
}

}  // namespace detail
}  // namespace trellis
