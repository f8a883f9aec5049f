// SPDX-License-Identifier: Apache-2.0
//
// Stands in for libFuzzer: runs each file given and, from each, the same mutants every time.

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "fuzz.hpp"

namespace {

constexpr int kMutants = 5000;
constexpr size_t kLargest = size_t{1} << 20;

using Bytes = std::vector<uint8_t>;

// Changes a few bytes, mostly near the start, where sizes and offsets stand; at times cuts the end
// off.
Bytes mutant(const Bytes& seed, std::mt19937& random) {
  Bytes bytes = seed;
  const auto below = [&](size_t n) { return static_cast<size_t>(random()) % n; };
  const size_t changes = 1 + below(4);
  for (size_t i = 0; i < changes && !bytes.empty(); ++i) {
    const size_t head = std::min<size_t>(bytes.size(), 256);
    uint8_t& byte = bytes[below(2) == 0 ? below(head) : below(bytes.size())];
    const uint8_t values[] = {0x00, 0xff, 0x80, '"', '\n', static_cast<uint8_t>(random())};
    byte = values[below(std::size(values))];
  }
  if (below(4) == 0) bytes.resize(below(bytes.size() + 1));
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s <file>...\n", argv[0]);
    return 2;
  }
  std::mt19937 random(1);
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "cannot read %s\n", argv[i]);
      return 2;
    }
    Bytes seed(std::istreambuf_iterator<char>(file), {});
    seed.resize(std::min(seed.size(), kLargest));
    LLVMFuzzerTestOneInput(seed.data(), seed.size());
    for (int n = 0; n < kMutants; ++n) {
      const Bytes bytes = mutant(seed, random);
      LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    }
  }
  return 0;
}
