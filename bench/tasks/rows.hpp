// SPDX-License-Identifier: Apache-2.0
//
// What the programs of the micro-benchmark share: which groups of rows are asked for, timing, one
// JSON line a row. C++17, standard library only.
//
//   --group NAME   only these rows (default: all)
//   --seconds S    of a window (default 0.06)
#pragma once

#include <string>

#include "common.hpp"

namespace bench {

class Rows {
 public:
  explicit Rows(const Options& options)
      : group_(options.text("group", "")), window_(options.number("seconds", 0.06)) {}

  // Runs `rows` if their group is wanted.
  template <class F>
  void group(const std::string& name, F&& rows) {
    if (group_.empty() || group_ == name) rows();
  }
  void print(const std::string& name, const std::string& unit, double value) const {
    std::printf("{\"row\": \"%s\", \"unit\": \"%s\", \"value\": %.5g}\n", name.c_str(),
                unit.c_str(), value);
    std::fflush(stdout);
  }

  // Of this program alone; getrusage() counts the one that started it.
  static void print_peak() {
    std::ifstream in("/proc/self/status");
    for (std::string line; std::getline(in, line);)
      if (line.rfind("VmHWM:", 0) == 0)
        std::printf("{\"peak_rss_mib\": %.5g}\n", std::stod(line.substr(6)) / 1024);
  }

  // CPU seconds of one call: the least of kWindows windows, as other work on the machine only adds.
  template <class F>
  double least(F&& body) const {
    double once = 1e9;
    for (int k = 0; k < 3; ++k) once = std::min(once, timed(1, body));
    const int calls = std::max(1, static_cast<int>(window_ / std::max(once, 1e-8)));
    double best = once;
    if (calls > 1) best = timed(calls, body);
    for (int k = 1; k < kWindows; ++k) best = std::min(best, timed(calls, body));
    return best;
  }
  // The same for the part `timed_part` of what is done in turns with `before`, which is not timed.
  template <class Before, class Part>
  double least_part(Before&& before, Part&& timed_part) const {
    double best = 1e9, clock = 1e9;
    const auto nothing = [] {};
    for (int k = 0; k < 100; ++k) clock = std::min(clock, timed(1, nothing));
    const double start = cpu_seconds();
    for (int k = 0; k < 5 || cpu_seconds() - start < kWindows * window_; ++k) {
      before();
      best = std::min(best, timed(1, timed_part));
    }
    return best - clock;
  }
  // The least of each of several parts that are done one after another.
  template <class... Parts>
  std::array<double, sizeof...(Parts)> least_each(Parts&&... parts) const {
    std::array<double, sizeof...(Parts)> best;
    best.fill(1e9);
    const double start = cpu_seconds();
    for (int k = 0; k < 3 || cpu_seconds() - start < kWindows * window_; ++k) {
      size_t part = 0;
      ((best[part] = std::min(best[part], timed(1, parts)), ++part), ...);
    }
    return best;
  }
  // A row of a forward pass and one of the backward pass: what `both` takes beyond `forward`.
  template <class Forward, class Both>
  void pair(const std::string& name, const std::string& unit, double scale, Forward&& forward,
            Both&& both) const {
    const double f = least(forward), fb = least(both);
    print(name + ", forward", unit, scale * f);
    print(name + ", backward", unit, scale * (fb - f));
  }

 private:
  template <class F>
  static double timed(int calls, F&& body) {
    const double start = cpu_seconds();
    for (int k = 0; k < calls; ++k) body();
    return (cpu_seconds() - start) / calls;
  }
  static constexpr int kWindows = 5;
  std::string group_;
  double window_;
};

// Seconds on the clock of the wall, where waiting for the disk counts.
inline double wall_seconds() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Table of the sparse updates, and the numbers of the 20 rows that one touches: others each time,
// all over the table.
constexpr uint32_t kTableRows = 1'000'000, kTableWidth = 128;
class RowNumbers {
 public:
  template <class Id>
  void next(std::vector<Id>& ids, uint32_t table) {
    ids.clear();
    for (int k = 0; k < 20; ++k) ids.push_back(static_cast<Id>(rng_() % table));
  }
  // A row of every page, in parts, false at the end: new pages are not what is timed.
  template <class Id>
  bool pages(std::vector<Id>& ids, uint32_t part, uint32_t table = kTableRows) const {
    constexpr uint32_t kPart = 10'000, kPerPage = 4096 / (4 * kTableWidth);
    ids.clear();
    for (uint32_t k = 0; k < kPart && (part * kPart + k) * kPerPage < table; ++k)
      ids.push_back(static_cast<Id>((part * kPart + k) * kPerPage));
    return !ids.empty();
  }

 private:
  std::mt19937 rng_{7};
};

constexpr int kChain = 10'000;  // nodes
constexpr int kSteps = 20;      // of the sequences

struct LstmCase {
  int hidden, batch;
};
constexpr LstmCase kLstmCases[] = {{256, 1}, {256, 64}, {50, 1}};

inline std::string text(int n) { return std::to_string(n); }
inline std::string lstm_name(const LstmCase& c) {
  return "LSTM step 128->" + text(c.hidden) + " batch " + text(c.batch);
}

}  // namespace bench
