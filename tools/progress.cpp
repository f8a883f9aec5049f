// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace trellis::tools {
namespace {

constexpr size_t kCells = 30;
constexpr auto kInterval = std::chrono::milliseconds(100);

}  // namespace

Progress::Progress(std::string title, uint64_t total, bool quiet)
    : title_(std::move(title)), total_(std::max<uint64_t>(total, 1)) {
  shown_ = !quiet && ::isatty(STDERR_FILENO) == 1;
}

Progress::~Progress() {
  if (shown_) fmt::print(stderr, "\r\033[K");
}

void Progress::advance(uint64_t done, const std::string& note) {
  const auto now = std::chrono::steady_clock::now();
  if (!shown_ || now - last_ < kInterval) return;
  last_ = now;
  const double part = std::min(1.0, static_cast<double>(done) / static_cast<double>(total_));
  const auto full = static_cast<size_t>(part * kCells);
  fmt::print(stderr, "\r{} [{}{}] {:3.0f} %  {}\033[K", title_, std::string(full, '#'),
             std::string(kCells - full, '.'), 100 * part, note);
  std::fflush(stderr);
}

}  // namespace trellis::tools
