// SPDX-License-Identifier: Apache-2.0
//
// Elements of tensors whose type is known at run time only.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <trellis/tensor.hpp>

namespace trellis::detail {

// A float of 16 bits: sign, exponent, mantissa without its leading 1; small numbers are subnormal,
// the largest exponent holds infinity and NaN (IEEE 754-2008, 3.4).
template <int kExponent, int kMantissa>
struct SmallFloat {
  static_assert(1 + kExponent + kMantissa == 16);
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr uint32_t kSpecial = (1u << kExponent) - 1;  // exponent of infinity and NaN
  static constexpr uint32_t kOne = 1u << kMantissa;

  uint16_t bits = 0;

  SmallFloat() = default;
  // Rounds to nearest, ties to even; beyond the largest number: infinity.
  explicit SmallFloat(double v) {
    const uint32_t sign = std::signbit(v) ? 0x8000u : 0u;
    uint32_t magnitude = kSpecial << kMantissa;
    if (std::isnan(v)) {
      magnitude |= kOne >> 1;
    } else if (std::isfinite(v)) {
      const double a = std::abs(v);
      const int exponent = a == 0 ? 1 - kBias : std::max(std::ilogb(a), 1 - kBias);
      if (exponent <= kBias)  // a carry of the mantissa runs into the exponent, as it should
        magnitude = (static_cast<uint32_t>(exponent + kBias) << kMantissa) +
                    static_cast<uint32_t>(std::nearbyint(std::ldexp(a, kMantissa - exponent))) -
                    kOne;
    }
    bits = static_cast<uint16_t>(sign | magnitude);
  }
  explicit SmallFloat(float v) : SmallFloat(static_cast<double>(v)) {}

  template <class T>
  requires std::is_arithmetic_v<T>
  explicit operator T() const { return static_cast<T>(value()); }

 private:
  double value() const {
    const uint32_t exponent = (bits >> kMantissa) & kSpecial, mantissa = bits & (kOne - 1);
    double a = 0;
    if (exponent == kSpecial)
      a = mantissa ? std::numeric_limits<double>::quiet_NaN()
                   : std::numeric_limits<double>::infinity();
    else if (exponent == 0)
      a = std::ldexp(mantissa, 1 - kBias - kMantissa);
    else
      a = std::ldexp(mantissa + kOne, static_cast<int>(exponent) - kBias - kMantissa);
    return bits & 0x8000u ? -a : a;
  }
};
using Half = SmallFloat<5, 10>;
using BFloat16 = SmallFloat<8, 7>;

// Calls f with a zero of the element type.
template <class F>
auto visit_dtype(DType t, F&& f) {
  switch (t) {
    case DType::f32:
      return f(float{});
    case DType::f64:
      return f(double{});
    case DType::i32:
      return f(int32_t{});
    case DType::i64:
      return f(int64_t{});
    case DType::f16:
      return f(Half{});
    case DType::bf16:
      return f(BFloat16{});
    case DType::u8:
    case DType::boolean:
      break;
  }
  return f(uint8_t{});
}

double load_element(const void* data, DType dtype, uint64_t i);
// Throws Error(range) when an integer type cannot hold the value.
void store_element(void* data, DType dtype, uint64_t i, double v);

}  // namespace trellis::detail
