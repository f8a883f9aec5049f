// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>
#include <trellis/error.hpp>
#include <trellis/random.hpp>

namespace trellis {
namespace {

__extension__ using Wide = unsigned __int128;

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
constexpr uint64_t scramble(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace

void philox4x32_10(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c0;
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

uint64_t mix64(uint64_t a, uint64_t b) { return scramble(scramble(a) ^ b); }

RandomEngine::RandomEngine(uint64_t seed, uint64_t stream) : key_(seed), stream_(stream) {}

void RandomEngine::refill() {
  const uint64_t block = counter_ / 4;
  const uint32_t counter[4] = {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                               static_cast<uint32_t>(stream_),
                               static_cast<uint32_t>(stream_ >> 32)};
  const uint32_t key[2] = {static_cast<uint32_t>(key_), static_cast<uint32_t>(key_ >> 32)};
  philox4x32_10(counter, key, block_);
}

uint32_t RandomEngine::next_u32() {
  const uint64_t at = counter_ % 4;
  if (at == 0) refill();
  ++counter_;
  return block_[at];
}

uint64_t RandomEngine::next_u64() {
  const uint64_t low = next_u32();
  return low | uint64_t{next_u32()} << 32;
}

double RandomEngine::uniform() { return static_cast<double>(next_u64() >> 11) * 0x1p-53; }

// Box-Muller. The second number of the pair is not kept: the position is the whole state.
double RandomEngine::normal() {
  const double radius = std::sqrt(-2.0 * std::log1p(-uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

// Lemire, "Fast random integer generation in an interval" (2019): a multiplication, rejecting the
// uneven rest.
uint64_t RandomEngine::below(uint64_t n) {
  if (n == 0)
    fail(ErrorKind::argument, "[RandomEngine::below] empty range: n is 0 (needed at least 1)");
  Wide product = Wide{next_u64()} * n;
  if (static_cast<uint64_t>(product) < n) {
    const uint64_t uneven = (0 - n) % n;
    while (static_cast<uint64_t>(product) < uneven) product = Wide{next_u64()} * n;
  }
  return static_cast<uint64_t>(product >> 64);
}

void RandomEngine::restore(uint64_t position) {
  counter_ = position;
  if (position % 4 != 0) refill();
}

}  // namespace trellis
