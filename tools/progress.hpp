// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace trellis::tools {

// A bar on the terminal, redrawn at most ten times a second; nothing where standard error is no
// terminal, or when it is told to be quiet.
class Progress {
 public:
  Progress(std::string title, uint64_t total, bool quiet);
  ~Progress();  // wipes the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(uint64_t done, const std::string& note);

 private:
  std::string title_;
  uint64_t total_ = 0;
  bool shown_ = false;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace trellis::tools
