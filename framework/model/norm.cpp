// SPDX-License-Identifier: Apache-2.0

#include "model/norm.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trellis::detail {
namespace {

// Eight independent sums, so that the compiler may use vector registers without reordering.
template <class T>
double sum_of_squares(const T* x, uint64_t n, double scale) {
  double sums[8] = {};
  uint64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int k = 0; k < 8; ++k) {
      const double v = static_cast<double>(x[i + k]) * scale;
      sums[k] += v * v;
    }
  for (; i < n; ++i) {
    const double v = static_cast<double>(x[i]) * scale;
    sums[i % 8] += v * v;
  }
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// The same for floats, in floats where their squares neither overflow nor vanish: twice as many at
// a time. The sums of a block are short, so its relative error stays below 1e-6.
double sum_of_float_squares(const float* x, uint64_t n) {
  constexpr uint64_t kBlock = 512, kLanes = 16;
  constexpr float kSmall = 1e-30f, kLarge = 1e37f;
  double total = 0;
  while (n > 0) {
    const uint64_t m = std::min(n, kBlock);
    float lanes[kLanes] = {};
    if (m == kBlock)
      for (uint64_t i = 0; i < kBlock; i += kLanes)
        for (uint64_t k = 0; k < kLanes; ++k) lanes[k] += x[i + k] * x[i + k];
    float sum = 0;
    for (const float lane : lanes) sum += lane;
    total += sum > kSmall && sum < kLarge ? static_cast<double>(sum) : sum_of_squares(x, m, 1);
    x += m;
    n -= m;
  }
  return total;
}

// Outside this range squares of doubles have overflowed or lost bits.
constexpr double kLow = 1e-280, kHigh = 1e300;

}  // namespace

bool NormSum::add(const void* data, uint64_t n, DType dtype) {
  double scale = 1, sum;
  if (dtype == DType::f32) {
    sum = sum_of_float_squares(static_cast<const float*>(data), n);  // fits a double in any case
    if (!std::isfinite(sum)) return false;
  } else {
    const auto* x = static_cast<const double*>(data);
    sum = sum_of_squares(x, n, 1);
    if (!(sum >= kLow && sum <= kHigh)) {
      double largest = 0;
      for (uint64_t i = 0; i < n; ++i) {
        if (!std::isfinite(x[i])) return false;
        largest = std::max(largest, std::abs(x[i]));
      }
      if (largest == 0) return true;
      // A power of two near the largest element, kept where its inverse is finite.
      scale = std::ldexp(1.0, std::clamp(std::ilogb(largest), -1000, 1000));
      sum = sum_of_squares(x, n, 1 / scale);
    }
  }
  if (sum == 0) return true;
  if (sum_ == 0) {
    scale_ = scale;
    sum_ = sum;
  } else if (scale == scale_) {
    sum_ += sum;
  } else {
    const double common = std::max(scale, scale_);
    const double old_ratio = scale_ / common, new_ratio = scale / common;
    sum_ = sum_ * old_ratio * old_ratio + sum * new_ratio * new_ratio;
    scale_ = common;
  }
  return true;
}

double NormSum::value() const { return scale_ * std::sqrt(sum_); }

bool NormSum::exceeds(double threshold) const { return std::sqrt(sum_) > threshold / scale_; }

double NormSum::factor(double threshold) const { return threshold / scale_ / std::sqrt(sum_); }

}  // namespace trellis::detail
