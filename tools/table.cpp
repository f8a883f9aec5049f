// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#include <algorithm>

namespace trellis::tools {
namespace {

// Columns a text takes: one a code point, which is right for all but wide and combining letters.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::string format_table(const std::vector<std::vector<std::string>>& rows,
                         const std::string& indent) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    if (row.size() > widths.size()) widths.resize(row.size());
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line = indent;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - width_of(row[i]) + 2, ' ');
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

std::string join(const std::vector<std::string>& words, const std::string& empty) {
  if (words.empty()) return empty;
  std::string out = words.front();
  for (size_t i = 1; i < words.size(); ++i) out += ", " + words[i];
  return out;
}

}  // namespace trellis::tools
