// SPDX-License-Identifier: Apache-2.0
//
// Random numbers from a trl_stream: Philox-4x32-10. Word i of a stream is word i % 4 of the block
// with counter i / 4, so the numbers depend on nothing but the stream and their place; backward
// makes them again.
#pragma once

#include <trellis/abi/tensor.h>

#include <cmath>
#include <cstdint>

namespace trellis::sdk {
inline namespace [[gnu::visibility("hidden")]] v0 {

class Random {
 public:
  explicit Random(const trl_stream& stream) : s_(stream) {}

  // The next n words of 32 random bits. Every call starts at a multiple of 4 words.
  void words(std::uint32_t* out, std::uint64_t n) {
    while (n >= 4 * kBlocks) {
      blocks(out);
      out += 4 * kBlocks;
      n -= 4 * kBlocks;
      counter_ += kBlocks;
    }
    if (n != 0) {
      std::uint32_t rest[4 * kBlocks];
      blocks(rest);
      for (std::uint64_t i = 0; i < n; ++i) out[i] = rest[i];
      counter_ += (n + 3) / 4;
    }
  }

  // Calls f(first, words, n) for runs of the next `total` words.
  template <class F>
  void each_run(std::uint64_t total, F&& f) {
    std::uint32_t run[kRun];
    for (std::uint64_t i = 0; i < total; i += kRun) {
      const std::uint64_t n = total - i < kRun ? total - i : kRun;
      words(run, n);
      f(i, static_cast<const std::uint32_t*>(run), n);
    }
  }

  // n numbers from [lo, hi).
  template <class T>
  void uniform(T* out, std::uint64_t n, T lo = 0, T hi = 1) {
    each_run(n, [&](std::uint64_t first, const std::uint32_t* w, std::uint64_t m) {
      for (std::uint64_t i = 0; i < m; ++i) {
        const T v = lo + (hi - lo) * unit<T>(w[i]);
        out[first + i] = v < hi ? v : lo;  // rounding must not reach the open end
      }
    });
  }

  // n numbers from the normal distribution (Box-Muller; two words make two numbers).
  template <class T>
  void normal(T* out, std::uint64_t n, T mean = 0, T deviation = 1) {
    each_run((n + 1) / 2 * 2, [&](std::uint64_t first, const std::uint32_t* w, std::uint64_t m) {
      for (std::uint64_t i = 0; i < m; i += 2) {
        const double radius = std::sqrt(-2.0 * std::log((w[i] + 0.5) * 0x1p-32));
        const double angle = 6.283185307179586476925 * (w[i + 1] * 0x1p-32);
        out[first + i] = static_cast<T>(mean + deviation * radius * std::cos(angle));
        if (first + i + 1 < n)
          out[first + i + 1] = static_cast<T>(mean + deviation * radius * std::sin(angle));
      }
    });
  }

  // A number from [0, 1), the same for f32 and f64 within rounding.
  template <class T>
  static T unit(std::uint32_t word) {
    if constexpr (sizeof(T) == 4)
      return static_cast<T>(static_cast<std::int32_t>(word >> 8)) * T(0x1p-24);
    else
      return static_cast<T>(word) * T(0x1p-32);
  }

  // Draws below this have probability p (0 <= p <= 1); compare 64-bit, so that p = 1 takes every
  // word.
  static std::uint64_t threshold(double p) { return static_cast<std::uint64_t>(p * 0x1p32); }

 private:
  static constexpr std::uint64_t kBlocks = 8, kRun = 128;

  void blocks(std::uint32_t* out) const {
    std::uint32_t c0[kBlocks], c1[kBlocks], c2[kBlocks], c3[kBlocks];
    for (std::uint64_t i = 0; i < kBlocks; ++i) {
      c0[i] = static_cast<std::uint32_t>(counter_ + i);
      c1[i] = static_cast<std::uint32_t>((counter_ + i) >> 32);
      c2[i] = s_.counter_hi[0];
      c3[i] = s_.counter_hi[1];
    }
    std::uint32_t k0 = s_.key[0], k1 = s_.key[1];
    for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
      for (std::uint64_t i = 0; i < kBlocks; ++i) {
        const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0[i];
        const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c2[i];
        c0[i] = static_cast<std::uint32_t>(p1 >> 32) ^ c1[i] ^ k0;
        c1[i] = static_cast<std::uint32_t>(p1);
        c2[i] = static_cast<std::uint32_t>(p0 >> 32) ^ c3[i] ^ k1;
        c3[i] = static_cast<std::uint32_t>(p0);
      }
    }
    for (std::uint64_t i = 0; i < kBlocks; ++i) {
      out[4 * i] = c0[i];
      out[4 * i + 1] = c1[i];
      out[4 * i + 2] = c2[i];
      out[4 * i + 3] = c3[i];
    }
  }

  trl_stream s_;
  std::uint64_t counter_ = 0;
};

}  // namespace gnu::visibility("hidden")]]v0
}  // namespace trellis::sdk
