// SPDX-License-Identifier: Apache-2.0
//
// Counter-based random numbers (Philox-4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011). A stream is addressed, never advanced by somebody else,
// so results depend on neither order nor threads.
#pragma once

#include <cstdint>
#include <trellis/api.hpp>

struct trl_stream;

namespace trellis {

// A sequential generator for host-side work (shuffling, sampling, tensor_tools). Cheap to copy.
class TRELLIS_API RandomEngine {
 public:
  explicit RandomEngine(uint64_t seed, uint64_t stream = 0);
  uint32_t next_u32();
  uint64_t next_u64();
  double uniform();            // [0, 1), 53 bits
  double normal();             // mean 0, deviation 1
  uint64_t below(uint64_t n);  // [0, n), unbiased; throws Error(argument) for n == 0
  // Position, so that a run can be resumed: pass both to restore().
  uint64_t position() const { return counter_; }
  void restore(uint64_t position);

  // For std::shuffle and friends.
  using result_type = uint32_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return 0xFFFFFFFFu; }
  result_type operator()() { return next_u32(); }

 private:
  void refill();
  uint64_t key_, stream_, counter_ = 0;  // counter_ counts 32-bit numbers handed out
  uint32_t block_[4] = {};
};

// One Philox-4x32-10 block: 128 bits of counter, 64 of key.
TRELLIS_API void philox4x32_10(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
// A 64-bit mix of two numbers, for deriving keys.
TRELLIS_API uint64_t mix64(uint64_t a, uint64_t b);

}  // namespace trellis
