// SPDX-License-Identifier: Apache-2.0
//
// Growth curves: how the time of a fixed piece of work changes with the size of what it is done on.
// The same sizes for every program, one JSON line a point. C++17, standard library only.
//
//   --group NAME   chain, wide, tagger, batch, rows or classes (default: all)
//   --seconds S    of a window (default 0.06)
#pragma once

#include "rows.hpp"

namespace bench {

// Graphs of about so many nodes.
constexpr int kGraphSizes[] = {100, 300, 1'000, 3'000, 10'000, 30'000, 100'000, 300'000, 1'000'000};
constexpr int kLargestStepwise = 100'000;  // where a node takes 100 times as long

// Wide graphs: so many times w x, tanh and sum, each with an input of its own.
constexpr int kWidth = 16, kNodesInBranch = 4;

// Taggers: sentences of 20 words, vectors of 32, an LSTM of 16 from each end, a layer of 16 with
// tanh, scores of 17 tags.
constexpr int kSentences[] = {1, 3, 10, 30, 100, 300, 1'000, 4'000};
constexpr int kLargestSentences = 300;
constexpr int kLength = 20, kVector = 32, kHidden = 16, kLayer = 16, kTags = 17, kWords = 1'000;
inline int word_at(int sentence, int i) { return (sentence * 7919 + i * 104729) % kWords; }
inline int tag_at(int sentence, int i) { return (sentence + 3 * i) % kTags; }

// Batches of an LSTM step, 128 -> 256, in sequences of 20.
constexpr int kBatches[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
constexpr int kInput = 128, kStates = 256;

// Tables of 128 columns, 20 rows touched; classes of a softmax over a vector of 256.
constexpr int kTableSizes[] = {100, 300, 1'000, 3'000, 10'000, 30'000, 100'000, 300'000, 1'000'000};
constexpr int kTouched = 20;
constexpr int kClasses[] = {100, 300, 1'000, 3'000, 10'000, 30'000, 100'000};
constexpr int kClassBatch = 16, kClassInput = 256;

class Curve {
 public:
  Curve(const char* group, int x) : group_(group), x_(x) {}
  // Nanoseconds of one item, of `seconds` for all.
  void point(const std::string& part, double seconds, double items) const {
    std::printf("{\"group\": \"%s\", \"x\": %d, \"part\": \"%s\", \"value\": %.5g}\n", group_, x_,
                part.c_str(), 1e9 * seconds / items);
    std::fflush(stdout);
  }
  void nodes(uint64_t n) const {
    std::printf("{\"group\": \"%s\", \"x\": %d, \"nodes\": %llu}\n", group_, x_,
                static_cast<unsigned long long>(n));
  }

 private:
  const char* group_;
  int x_;
};

}  // namespace bench
