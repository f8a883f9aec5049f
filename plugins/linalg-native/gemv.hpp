// SPDX-License-Identifier: Apache-2.0
//
// Products with one vector, and with very few columns of A: the large matrix passes once, several
// columns of it at a time, in the order in which they lie.
#pragma once

#include <algorithm>

#include "tile.hpp"

namespace trellis::linalg {

inline constexpr long kRowsAtOnce = 16384;  // of y: stay in the second-level cache while A passes
inline constexpr int kColumnsAtOnce = 8;    // of A: a row of y is read and written once for all
// y += the product of kCols columns of A with `by`; kFirst: y = it + beta y.
template <class T, int kCols, bool kFirst>
void add_columns(long m, const T* a, long lda, const T* x, T alpha, T* y, T beta) {
  using V = Vector<T>;
  constexpr long kW = kWidth<T>;
  V by[kCols];
#pragma GCC unroll 16
  for (int j = 0; j < kCols; ++j) by[j] = spread(alpha * x[j]);
  const auto step = [&](V sum, const auto& read) __attribute__((always_inline)) {
#pragma GCC unroll 16
    for (int j = 0; j < kCols; ++j) sum = fma<T>(read(a + j * lda), by[j], sum);
    return sum;
  };
  const V scale = spread(beta);
  const auto whole = [](const T* p) { return load(p); };
  for (; m >= kW; m -= kW, a += kW, y += kW) {
    V sum = {};
    if (!kFirst)
      sum = load(y);
    else if (beta != T(0))
      sum = scale * load(y);
    store(y, step(sum, whole));
  }
  if (m > 0) {
    V sum = {};
    if (!kFirst)
      sum = load_part(y, m);
    else if (beta != T(0))
      sum = scale * load_part(y, m);
    store_part(y, step(sum, [m](const T* p) { return load_part(p, m); }), int(m));
  }
}

template <class T, bool kFirst, int kCols>
long add_group(long m, long left, const T* a, long lda, const T* x, T alpha, T* y, T beta) {
  if constexpr (kCols > 1)
    if (left < kCols) return add_group<T, kFirst, kCols / 2>(m, left, a, lda, x, alpha, y, beta);
  add_columns<T, kCols, kFirst>(m, a, lda, x, alpha, y, beta);
  return kCols;
}

// y = alpha A x + beta y; A is m x k.
template <class T>
void gemv(long m, long k, const T* a, long lda, const T* x, T* y, T alpha, T beta) {
  for (long i = 0; i < m; i += kRowsAtOnce) {
    const long rows = std::min(kRowsAtOnce, m - i);
    long p = add_group<T, true, kColumnsAtOnce>(rows, k, a + i, lda, x, alpha, y + i, beta);
    while (p < k)
      p += add_group<T, false, kColumnsAtOnce>(rows, k - p, a + i + p * lda, lda, x + p, alpha,
                                               y + i, beta);
  }
}

// y = alpha A^T x + beta y; A is k x m.
template <class T>
void gemv_turned(long m, long k, const T* a, long lda, const T* x, T* y, T alpha, T beta) {
  long i = 0;
  for (; i + 8 <= m; i += 8) dots<T, 2, 1>(k, a + i * lda, lda, 8, x, k, y + i, m, alpha, beta);
  for (; i < m; i += 4)
    dots<T, 1, 1>(k, a + i * lda, lda, int(std::min(4L, m - i)), x, k, y + i, m, alpha, beta);
}

// C = alpha A op(B) + beta C for kDeep columns of A and kCols of C.
template <class T, int kDeep, int kCols>
void update_columns(long m, const T* a, long lda, const T* b, long b_k, long b_col, T* c, long ldc,
                    T alpha, T beta) {
  using V = Vector<T>;
  constexpr long kW = kWidth<T>;
  V by[kCols][kDeep];
#pragma GCC unroll 16
  for (int j = 0; j < kCols; ++j)
#pragma GCC unroll 16
    for (int p = 0; p < kDeep; ++p) by[j][p] = spread(alpha * b[j * b_col + p * b_k]);
  const V scale = spread(beta);
  const auto step = [&](const auto& read, const auto& write) __attribute__((always_inline)) {
    V x[kDeep];
#pragma GCC unroll 16
    for (int p = 0; p < kDeep; ++p) x[p] = read(a + p * lda);
#pragma GCC unroll 16
    for (int j = 0; j < kCols; ++j) {
      V sum = x[0] * by[j][0];
      if (beta != T(0)) sum = fma<T>(scale, read(c + j * ldc), sum);
#pragma GCC unroll 16
      for (int p = 1; p < kDeep; ++p) sum = fma<T>(x[p], by[j][p], sum);
      write(c + j * ldc, sum);
    }
    a += kW;
    c += kW;
  };
  for (; m >= kW; m -= kW) step([](const T* p) { return load(p); }, [](T* p, V v) { store(p, v); });
  if (m > 0)
    step([m](const T* p) { return load_part(p, m); }, [m](T* p, V v) { store_part(p, v, m); });
}

// C = alpha A op(B) + beta C for kDeep columns of A: reading and writing C is what costs.
template <class T, int kDeep>
void update(long m, long n, const T* a, long lda, const T* b, long b_k, long b_col, T* c, long ldc,
            T alpha, T beta) {
  long j = 0;
  for (; j + 2 <= n; j += 2)
    update_columns<T, kDeep, 2>(m, a, lda, b + j * b_col, b_k, b_col, c + j * ldc, ldc, alpha,
                                beta);
  if (j < n)
    update_columns<T, kDeep, 1>(m, a, lda, b + j * b_col, b_k, b_col, c + j * ldc, ldc, alpha,
                                beta);
}

}  // namespace trellis::linalg
