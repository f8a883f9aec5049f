// SPDX-License-Identifier: Apache-2.0
//
// A program that trains for days keeps its memory: after a warm-up, thousands of graphs of random
// size leave the arenas, the heap and the resident set where they were. Bytes are compared, never
// seconds. Sanitizers bring their own heap: there only the arenas are, over fewer updates.
#include <doctest/doctest.h>
#include <malloc.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <memory>
#include <random>
#include <trellis/ops/core.hpp>
#include <trellis/trellis.hpp>
#include <vector>

#include "allocations.hpp"

using namespace trellis;

namespace {

constexpr bool kOwnHeap = !test::kCountsAllocations;  // a sanitizer's
constexpr int kUpdates = kOwnHeap ? 300 : 10'000;
constexpr uint32_t kWords = 200, kTags = 12, kLongest = 25, kSentences = 4;
// A leak of one byte an update exceeds the first, of a page in 40 updates the second.
constexpr size_t kHeapBytes = 8 << 10, kResidentBytes = 1 << 20;

const Runtime& runtime() {
  static const Runtime runtime;
  return runtime;
}

size_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

size_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  size_t total = 0, resident = 0;
  in >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

struct Tagger {
  Model model{runtime()};
  LookupParameter words = model.add_lookup("words", kWords, {24});
  BiRnn rnn{model, "lstm", {{"input", 24}, {"hidden", 12}}};
  Parameter w = model.add_parameter("w", {kTags, rnn.output_size()});
  Parameter b = model.add_parameter("b", {kTags});
  Trainer trainer{model, "adam"};
  std::mt19937 rng{3};

  uint32_t below(uint32_t n) { return rng() % n; }

  Expr loss(Graph& g, uint32_t length) {
    std::vector<Expr> xs, losses;
    for (uint32_t i = 0; i < length; ++i) xs.push_back(g.lookup(words, below(kWords)));
    const Expr weights = g.parameter(w), bias = g.parameter(b);
    for (const Expr& h : rnn.transduce(g, xs))
      losses.push_back(ops::cross_entropy(ops::affine(bias, weights, h), below(kTags)));
    return ops::sum_list(losses);
  }
  // One to four sentences of random length.
  Expr random_loss(Graph& g) {
    std::vector<Expr> losses;
    for (uint32_t k = below(kSentences) + 1; k != 0; --k)
      losses.push_back(loss(g, below(kLongest) + 1));
    return ops::sum_list(losses);
  }
  // All as long as can be: no random graph needs more.
  Expr longest_loss(Graph& g) {
    std::vector<Expr> losses;
    for (uint32_t k = 0; k < kSentences; ++k) losses.push_back(loss(g, kLongest));
    return ops::sum_list(losses);
  }
};

struct Memory {
  size_t heap = 0, resident = 0;
  std::array<uint64_t, 2> arenas{};
};

// `round(k)` makes one update and returns the bytes that its graphs have reserved. Warm-up: the
// largest graphs, then enough of all lengths for every shape to be known.
template <class Round>
void stays_flat(Round&& round) {
  const auto now = [](std::array<uint64_t, 2> arenas) {
    return Memory{heap_bytes(), resident_bytes(), arenas};
  };
  std::array<uint64_t, 2> arenas{};
  for (int k = 0; k < kUpdates / 10; ++k) arenas = round(k);
  const Memory before = now(arenas);
  for (int k = 0; k < kUpdates; ++k) arenas = round(k);
  const Memory after = now(arenas);
  CAPTURE(before.heap);
  CAPTURE(after.heap);
  CAPTURE(before.resident);
  CAPTURE(after.resident);
  CHECK(before.arenas[0] > 0);
  CHECK(after.arenas == before.arenas);
  if (kOwnHeap) return;
  CHECK(before.heap > 0);
  CHECK(after.heap <= before.heap + kHeapBytes);
  CHECK(after.resident <= before.resident + kResidentBytes);
}

GraphOptions inference() {
  GraphOptions options;
  options.mode = Mode::infer;
  return options;
}

}  // namespace

TEST_CASE("growth: none over updates of random length") {
  Tagger tagger;
  Graph graph(runtime());
  stays_flat([&](int k) {
    graph.clear();
    graph.backward(k < 3 ? tagger.longest_loss(graph) : tagger.random_loss(graph));
    tagger.trainer.update();
    graph.clear();
    return std::array{graph.stats().reserved_bytes, uint64_t{0}};
  });
}

TEST_CASE("growth: none with inference in between") {
  Tagger tagger;
  Graph graph(runtime()), dev(runtime(), inference());
  stays_flat([&](int k) {
    graph.clear();
    graph.backward(k < 3 ? tagger.longest_loss(graph) : tagger.random_loss(graph));
    tagger.trainer.update();
    dev.clear();
    CHECK((k < 3 ? tagger.longest_loss(dev) : tagger.random_loss(dev)).scalar() > 0);
    graph.clear();
    graph.set_mode(Mode::infer);  // the graph of training serves both, too
    graph.value(k < 3 ? tagger.longest_loss(graph) : tagger.random_loss(graph));
    graph.clear();
    graph.set_mode(Mode::train);
    dev.clear();
    return std::array{graph.stats().reserved_bytes, dev.stats().reserved_bytes};
  });
}

TEST_CASE("growth: none when every update has a graph of its own") {
  Tagger tagger;
  stays_flat([&](int) {
    Graph graph(runtime());
    graph.backward(tagger.loss(graph, 5));
    tagger.trainer.update();
    return std::array{graph.stats().reserved_bytes, uint64_t{0}};
  });
}

TEST_CASE("growth: a leak of a few bytes an update is seen") {
  if (kOwnHeap) return;
  const size_t before = heap_bytes();
  std::vector<std::unique_ptr<char>> kept(kUpdates);
  for (auto& p : kept) p = std::make_unique<char>();
  CHECK(heap_bytes() > before + kHeapBytes);
}
