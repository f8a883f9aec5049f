// SPDX-License-Identifier: Apache-2.0
//
// Matrix products to try providers with: operands with padding, and what plain loops in double make
// of them.
#pragma once

#include <trellis/abi/host.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace trellis::validate {

struct Shape {
  uint64_t m, n, k;
  bool trans_a = false, trans_b = false;
  uint64_t pad_a = 0, pad_b = 0, pad_c = 0;  // added to the leading dimensions
  double alpha = 1, beta = 0;
  uint64_t batch = 1;
  bool share_a = false, share_b = false, sum = false;  // stride 0 of A, B, C

  std::string text() const {
    const auto number = [](double x) { return std::to_string(x); };
    return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) +
           (trans_a ? " ta" : "") + (trans_b ? " tb" : "") + " alpha " + number(alpha) + " beta " +
           number(beta) + " batch " + std::to_string(batch) + (share_a ? " shared a" : "") +
           (share_b ? " shared b" : "") + (sum ? " sum" : "");
  }
};

// What a product counts as when the host looks for a provider: one bit TRL_MM_*. n and k are at least
// 1. A vector that is strided (B transposed, n 1) is no class of its own.
inline uint32_t class_of(const Shape& s) {
  const double volume =
      static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  if (s.n == 1 && s.trans_b && s.k > 1) return TRL_MM_SKINNY;
  if (s.n == 1) return s.trans_a ? TRL_MM_GEMV_T : TRL_MM_GEMV;
  if (s.k == 1) return TRL_MM_OUTER;
  if (volume <= 16.0 * 16 * 16) return TRL_MM_TINY;
  if (s.n < 64) return TRL_MM_SKINNY;
  return volume <= 128.0 * 128 * 128 ? TRL_MM_SMALL : TRL_MM_LARGE;
}

// C starts as NaN where beta is 0; what lies between its columns must stay as it is.
template <class T>
class Operands {
 public:
  Operands(const Shape& s, trl_call* call, uint64_t seed = 1) : shape_(s) {
    const uint64_t cols_a = s.trans_a ? s.m : s.k, cols_b = s.trans_b ? s.k : s.n;
    args_.struct_size = sizeof args_;
    if (s.trans_a) args_.flags |= TRL_MM_TRANS_A;
    if (s.trans_b) args_.flags |= TRL_MM_TRANS_B;
    args_.call = call;
    args_.m = s.m;
    args_.n = s.n;
    args_.k = s.k;
    args_.lda = (s.trans_a ? s.k : s.m) + s.pad_a;
    args_.ldb = (s.trans_b ? s.n : s.k) + s.pad_b;
    args_.ldc = s.m + s.pad_c;
    args_.batch = s.batch;
    args_.stride_a = s.share_a ? 0 : args_.lda * cols_a;
    args_.stride_b = s.share_b ? 0 : args_.ldb * cols_b;
    args_.stride_c = s.sum ? 0 : args_.ldc * s.n;
    args_.alpha = s.alpha;
    args_.beta = s.beta;
    args_.dtype = sizeof(T) == 4 ? TRL_F32 : TRL_F64;
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> uniform(-1, 1);
    const auto fill = [&](std::vector<T>& v, uint64_t count) {
      v.resize(count);
      for (T& x : v) x = static_cast<T>(uniform(random));
    };
    fill(a_, args_.lda * cols_a * (s.share_a ? 1 : s.batch));
    fill(b_, args_.ldb * cols_b * (s.share_b ? 1 : s.batch));
    fill(c_, args_.ldc * s.n * (s.sum ? 1 : s.batch));
    if (s.beta == 0)
      for (uint64_t i = 0; i < c_.size(); ++i)
        if (i % args_.ldc < s.m) c_[i] = std::numeric_limits<T>::quiet_NaN();
    before_ = c_;
    args_.a = a_.data();
    args_.b = b_.data();
    args_.c = c_.data();
  }
  Operands(const Operands&) = delete;

  trl_mm_args& args() { return args_; }

  // Empty: C is right; else where it is not.
  std::string difference() const {
    std::vector<double> want(before_.begin(), before_.end());
    for (uint64_t e = 0; e < args_.batch; ++e)
      for (uint64_t j = 0; j < args_.n; ++j)
        for (uint64_t i = 0; i < args_.m; ++i) {
          double sum = 0;
          for (uint64_t p = 0; p < args_.k; ++p)
            sum += double(a_[e * args_.stride_a +
                             (shape_.trans_a ? p + i * args_.lda : i + p * args_.lda)]) *
                   double(b_[e * args_.stride_b +
                             (shape_.trans_b ? j + p * args_.ldb : p + j * args_.ldb)]);
          double& to = want[e * args_.stride_c + i + j * args_.ldc];
          to = args_.alpha * sum + (args_.beta == 0 ? 0 : args_.beta * to);
        }
    const double depth = static_cast<double>(args_.k * (shape_.sum ? args_.batch : 1) + 1);
    const double tolerance = depth * 2 * static_cast<double>(std::numeric_limits<T>::epsilon());
    for (uint64_t i = 0; i < want.size(); ++i)
      if (!(std::abs(static_cast<double>(c_[i]) - want[i]) <= tolerance))
        return shape_.text() + ": c[" + std::to_string(i) + "] is " + std::to_string(c_[i]) +
               ", should be " + std::to_string(want[i]);
    return {};
  }

 private:
  Shape shape_;
  trl_mm_args args_{};
  std::vector<T> a_, b_, c_, before_;
};

// Shapes that meet every edge of a blocked product: below, at and above vector and block sizes, all
// transposes, padding, scaling, batches.
inline std::vector<Shape> awkward_shapes() {
  std::vector<Shape> shapes;
  const uint64_t sizes[] = {1,  2,  3,  4,  5,  7,  8,  9,  13,  15,  16,  17, 23,
                            31, 33, 47, 48, 50, 63, 65, 66, 100, 129, 200, 300};
  std::mt19937_64 random(7);
  const auto pick = [&] { return sizes[random() % std::size(sizes)]; };
  for (int i = 0; i < 700; ++i) {
    Shape s{pick(), pick(), pick()};
    s.trans_a = random() % 2;
    s.trans_b = random() % 2;
    if (random() % 2) s.pad_a = random() % 5, s.pad_b = random() % 5, s.pad_c = random() % 5;
    if (random() % 2) s.alpha = 0.75;
    s.beta = random() % 3 == 0 ? 0 : random() % 2 ? 1 : -0.5;
    if (s.m * s.n * s.k < 20000 && random() % 2) {
      s.batch = 3;
      s.share_a = random() % 3 == 0;
      s.share_b = random() % 3 == 0;
    }
    shapes.push_back(s);
  }
  return shapes;
}

}  // namespace trellis::validate
