// SPDX-License-Identifier: Apache-2.0
//
// What the micro-benchmarks share. Times are CPU times of one thread; every figure is for one item
// (a node, a call, a product), shown in the counter `each`; `best` is the same in the fastest
// iteration, which other work on the machine disturbs least; `allocs` counts heap allocations for one
// item.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>
#include <trellis/trellis.hpp>

namespace trellis::bench {

uint64_t allocations();  // of this thread so far

// One runtime with the shipped plugins of this build.
const Runtime& runtime();

inline double cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Times `work` alone: once per iteration, `items` things done in each.
template <class F>
void measure(benchmark::State& state, double items, F&& work) {
  work();
  uint64_t allocs = 0;
  double best = 1e9;
  for (auto _ : state) {
    const uint64_t before = allocations();
    const double start = cpu_seconds();
    work();
    const double seconds = cpu_seconds() - start;
    state.SetIterationTime(seconds);
    best = std::min(best, seconds);
    allocs += allocations() - before;
  }
  state.counters["each"] = benchmark::Counter(
      items, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.counters["best"] = best / items;
  state.counters["allocs"] =
      benchmark::Counter(static_cast<double>(allocs) / items, benchmark::Counter::kAvgIterations);
}

}  // namespace trellis::bench
