// SPDX-License-Identifier: Apache-2.0
//
// What a plugin finds and must leave as it is: everything here belongs to the program.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace trellis::validate {

struct ProcessState {
  std::string locale, folder;
  std::vector<std::string> environment;
  std::vector<std::pair<int, std::string>> files;  // descriptor, what it is
  std::vector<int> threads;
  std::vector<std::pair<int, uintptr_t>> handlers;  // of signals
  std::vector<int> blocked;                         // signals
  unsigned rounding = 0, sse = 0;                   // x87 control word, MXCSR without its flags
  unsigned mask = 0;                                // of new files

  static ProcessState now();
};

// "" or the first thing that differs: "a thread was started (2, needed 1)".
std::string difference(const ProcessState& before, const ProcessState& after);

size_t open_files();
size_t running_threads();
uint64_t resident_bytes();
// Bytes in use on the heap; 0 where a sanitizer has its own.
uint64_t heap_bytes();

}  // namespace trellis::validate
