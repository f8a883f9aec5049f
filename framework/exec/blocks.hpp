// SPDX-License-Identifier: Apache-2.0
//
// Memory of values that end before their graph does: blocks of an arena, given back and given out
// again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tensor/arena.hpp"

namespace trellis::detail {

class Blocks {
 public:
  explicit Blocks(Arena& arena) : arena_(arena) {}

  // Uninitialised, aligned to 64. The smallest gap that is large enough, else new memory.
  char* take(uint64_t bytes) {
    bytes = rounded(bytes);
    size_t best = gaps_.size();
    for (size_t i = 0; i < gaps_.size(); ++i)
      if (gaps_[i].bytes >= bytes && (best == gaps_.size() || gaps_[i].bytes < gaps_[best].bytes))
        best = i;
    if (best == gaps_.size()) return static_cast<char*>(arena_.allocate(bytes));
    Gap& gap = gaps_[best];
    char* const at = gap.at;
    gap.at += bytes;
    gap.bytes -= bytes;
    if (gap.bytes == 0) gaps_.erase(gaps_.begin() + static_cast<std::ptrdiff_t>(best));
    return at;
  }
  void give(char* at, uint64_t bytes) {
    bytes = rounded(bytes);
    const auto next = std::lower_bound(gaps_.begin(), gaps_.end(), at,
                                       [](const Gap& g, const char* p) { return g.at < p; });
    const bool joins_next = next != gaps_.end() && at + bytes == next->at;
    const bool joins_last = next != gaps_.begin() && (next - 1)->at + (next - 1)->bytes == at;
    if (joins_last && joins_next) {
      (next - 1)->bytes += bytes + next->bytes;
      gaps_.erase(next);
    } else if (joins_last) {
      (next - 1)->bytes += bytes;
    } else if (joins_next) {
      next->at = at;
      next->bytes += bytes;
    } else {
      gaps_.insert(next, {at, bytes});
    }
  }
  // What was given back is not given out again: the arena goes back, or values may return.
  void forget() { gaps_.clear(); }

 private:
  struct Gap {
    char* at;
    uint64_t bytes;
  };
  static uint64_t rounded(uint64_t bytes) { return bytes == 0 ? 64 : (bytes + 63) & ~uint64_t(63); }

  Arena& arena_;
  std::vector<Gap> gaps_;  // by address; neighbours are one
};

}  // namespace trellis::detail
