// SPDX-License-Identifier: Apache-2.0
//
// Hash tables over the interned things of a graph. Private to graph/.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "graph/graph_impl.hpp"

namespace trellis::detail {

// 64-bit multiply and fold (the "mum" construction).
__extension__ typedef unsigned __int128 uint128;
inline uint64_t mum(uint64_t a, uint64_t b) {
  const auto m = static_cast<uint128>(a) * b;
  return static_cast<uint64_t>(m) ^ static_cast<uint64_t>(m >> 64);
}
constexpr uint64_t kMum = 0x9E3779B97F4A7C15ull;

// Indices by hash, open addressing. Index 0 means empty; equality is the caller's.
class IndexTable {
 public:
  void clear() {
    entries_.assign(64, {});
    size_ = 0;
  }
  template <class Equal>
  uint32_t find(uint64_t hash, Equal equal) const {
    const size_t mask = entries_.size() - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
      const Entry& e = entries_[i];
      if (e.index == 0) return 0;
      if (e.hash == hash && equal(e.index)) return e.index;
    }
  }
  void insert(uint64_t hash, uint32_t index) {
    if ((size_ + 1) * 2 > entries_.size()) grow();
    put(hash, index);
    ++size_;
  }

 private:
  struct Entry {
    uint64_t hash = 0;
    uint32_t index = 0;
  };
  void put(uint64_t hash, uint32_t index) {
    const size_t mask = entries_.size() - 1;
    size_t i = hash & mask;
    while (entries_[i].index) i = (i + 1) & mask;
    entries_[i] = {hash, index};
  }
  void grow() {
    std::vector<Entry> old = std::move(entries_);
    entries_.assign(old.size() * 2, {});
    for (const Entry& e : old)
      if (e.index) put(e.hash, e.index);
  }
  std::vector<Entry> entries_ = std::vector<Entry>(64);
  size_t size_ = 0;
};

struct GraphImpl::Tables {
  IndexTable patterns, classes, shapes, attrs, leaves;
  std::unordered_map<std::string, uint32_t> keys;
  uint32_t last_class = 0;  // the class interned last: leaves repeat

  void clear() {
    patterns.clear();
    classes.clear();
    shapes.clear();
    attrs.clear();
    leaves.clear();
    keys.clear();
    last_class = 0;
  }
};

}  // namespace trellis::detail
