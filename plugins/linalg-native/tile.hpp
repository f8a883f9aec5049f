// SPDX-License-Identifier: Apache-2.0
//
// The inner loops. A tile keeps a block of C in registers while k runs: A is read by vectors along
// m, B by single values. `dots` sums along k instead, for a transposed A that meets few columns.
#pragma once

#include <array>
#include <utility>

#include "vector.hpp"

namespace trellis::linalg {

// Blocks of C that fit the registers: kMaxCols[vectors] columns of `vectors` vectors.
// At least eight sums are in flight, or the latency of a multiplication shows. Tall tiles are
// for few columns: each number of A is read once. kTall is the height of panels, kMaxDots the width
// of a tile of dots, which has four rows.
#if defined(__AVX512F__)
inline constexpr int kMaxCols[] = {0, 14, 12, 8, 6, 4, 4};
inline constexpr int kTall = 3;
inline constexpr int kMaxDots = 6;
#elif defined(__AVX2__)
inline constexpr int kMaxCols[] = {0, 12, 6, 4, 3, 2, 2};
inline constexpr int kTall = 3;
inline constexpr int kMaxDots = 3;
#else
inline constexpr int kMaxCols[] = {0, 8, 4, 3, 2};
inline constexpr int kTall = 2;
inline constexpr int kMaxDots = 2;
#endif
inline constexpr int kTallest = int(sizeof kMaxCols / sizeof *kMaxCols) - 1;
inline constexpr int kWidest = kMaxCols[1];

// C = alpha A B + beta C for one block of C. The vectors of a column of A lie one after another, the
// last one at `last`: where m is no multiple of the width it overlaps the one before, and of its
// lanes only those from `lo` on are new. `live` below the width: m itself is smaller, the lanes
// behind `live` do not exist.
template <class T>
struct TileArgs {
  long k;
  const T* a;
  long a_k;    // distance of columns
  long ahead;  // distance of what is asked for before it is needed
  const T* b;
  long b_k, b_col;  // steps in B
  T* c;
  long ldc;
  T alpha, beta;
  T* panel;
  long last, a_last;  // in C and in A
  int lo, live;
};

// How a tile finds A: where it lies, asked for before it is needed; the same, and
// copied to `panel` on the way, which costs no time; or in a panel.
enum From { kMatrix, kMatrixToPanel, kPanel };

// kRowwise: b_col is 1.
template <class T, int kVectors, int kCols, bool kRowwise, From kFrom>
void tile(const TileArgs<T>& t) {
  using V = Vector<T>;
  constexpr int kW = kWidth<T>;
  V acc[kCols][kVectors];
#pragma GCC unroll 16
  for (int j = 0; j < kCols; ++j)
#pragma GCC unroll 16
    for (int i = 0; i < kVectors; ++i) acc[j][i] = V{};

  // Three columns of B share a pointer: base, base + step, base + 2 step are one addressing mode
  // each.
  constexpr int kBases = kRowwise ? 1 : (kCols + 2) / 3;
  const T* base[kBases];
#pragma GCC unroll 16
  for (int q = 0; q < kBases; ++q) base[q] = t.b + 3 * q * t.b_col;
  const T* a = t.a;
  const T* a_last = t.a + t.a_last;
  [[maybe_unused]] T* panel = t.panel;
  [[maybe_unused]] const long ahead = t.ahead;
  const long a_k = t.a_k, b_k = t.b_k, b_col = t.b_col;
#pragma GCC unroll 16
  for (int j = 0; j < kCols; ++j)
    for (int i = 0; i < kVectors; i += 64 / kBytes) prefetch_to_write(t.c + j * t.ldc + i * kW);
  for (long k = t.k; k > 0; --k) {
    V x[kVectors];
#pragma GCC unroll 16
    for (int i = 0; i < kVectors - 1; ++i) x[i] = load(a + i * kW);
    x[kVectors - 1] = load(a_last);
    if constexpr (kFrom == kMatrixToPanel) {
#pragma GCC unroll 16
      for (int i = 0; i < kVectors; ++i) store(panel + i * kW, x[i]);
      panel += kVectors * kW;
    }
    if constexpr (kFrom != kPanel) {
#pragma GCC unroll 16
      for (int i = 0; i < kVectors; i += 64 / kBytes) prefetch(a + ahead + i * kW);
    }
#pragma GCC unroll 16
    for (int j = 0; j < kCols; ++j) {
      const V y = spread(kRowwise ? base[0][j] : base[j / 3][j % 3 * b_col]);
#pragma GCC unroll 16
      for (int i = 0; i < kVectors; ++i) acc[j][i] = fma<T>(x[i], y, acc[j][i]);
    }
    a += a_k;
    a_last += a_k;
#pragma GCC unroll 16
    for (int q = 0; q < kBases; ++q) base[q] += b_k;
  }

  const V alpha = spread(t.alpha), beta = spread(t.beta);
#pragma GCC unroll 16
  for (int j = 0; j < kCols; ++j) {
    T* c = t.c + j * t.ldc;
#pragma GCC unroll 16
    for (int i = 0; i < kVectors - 1; ++i) {
      V v = alpha * acc[j][i];
      if (t.beta != T(0)) v = fma<T>(beta, load(c + i * kW), v);
      store(c + i * kW, v);
    }
    V v = alpha * acc[j][kVectors - 1];
    T* to = c + t.last;
    if (t.live < kW) {
      if (t.beta != T(0)) v = fma<T>(beta, load_part(to, t.live), v);
      store_part(to, v, t.live);
    } else if (t.lo == 0) {
      if (t.beta != T(0)) v = fma<T>(beta, load(to), v);
      store(to, v);
    } else {
      const V old = load(to);
      if (t.beta != T(0)) v = fma<T>(beta, old, v);
      store(to, upper_lanes<T>(v, old, t.lo));
    }
  }
}

template <class T>
using Tile = void (*)(const TileArgs<T>&);

template <class T, int kVectors, bool kRowwise, From kFrom, int... kCol>
constexpr auto tiles_of(std::integer_sequence<int, kCol...>) {
  return std::array<Tile<T>, kWidest>{tile<T, kVectors, kCol + 1, kRowwise, kFrom>...};
}
template <class T, bool kRowwise, From kFrom, int... kVector>
constexpr auto all_tiles(std::integer_sequence<int, kVector...>) {
  return std::array<std::array<Tile<T>, kWidest>, kTallest>{
      tiles_of<T, kVector + 1, kRowwise, kFrom>(
          std::make_integer_sequence<int, kMaxCols[kVector + 1]>{})...};
}
// kTiles<T, rowwise, from>[vectors - 1][columns - 1]
template <class T, bool kRowwise, From kFrom>
inline constexpr auto kTiles = all_tiles<T, kRowwise, kFrom>(
    std::make_integer_sequence<int, kFrom == kMatrix ? kTallest : kTall>{});

// C = alpha A^T B + beta C for 4 kFours columns of A and kCols of B. The sums of four columns of A
// are finished together; of the last four only `rows` exist, the others repeat the last of them.
template <class T, int kFours, int kCols>
void dots(long k, const T* a, long lda, int rows, const T* b, long ldb, T* c, long ldc, T alpha,
          T beta) {
  using V = Vector<T>;
  constexpr long kW = kWidth<T>;
  constexpr int kRows = 4 * kFours;
  V acc[kCols][kRows];
  const T* column[kRows];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) column[i] = a + (i < rows ? i : rows - 1) * lda;
#pragma GCC unroll 16
  for (int j = 0; j < kCols; ++j)
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) acc[j][i] = V{};
  const auto step = [&](const auto& read) __attribute__((always_inline)) {
    V y[kCols];
#pragma GCC unroll 16
    for (int j = 0; j < kCols; ++j) y[j] = read(b + j * ldb);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const V x = read(column[i]);
      column[i] += kW;
#pragma GCC unroll 16
      for (int j = 0; j < kCols; ++j) acc[j][i] = fma<T>(x, y[j], acc[j][i]);
    }
    b += kW;
  };
  for (; k >= kW; k -= kW) step([](const T* p) { return load(p); });
  if (k > 0) step([k](const T* p) { return load_part(p, k); });
  T sums[kRows];
  for (int j = 0; j < kCols; ++j) {
    for (int q = 0; q < kFours; ++q) sums_of_four<T>(acc[j] + 4 * q, sums + 4 * q);
    T* to = c + j * ldc;
    for (int i = 0; i < rows; ++i) to[i] = alpha * sums[i] + (beta != T(0) ? beta * to[i] : T(0));
  }
}

}  // namespace trellis::linalg
