// SPDX-License-Identifier: Apache-2.0
//
// The inner loops: a block of C is held in registers while k runs, A is read by vectors along m, B
// by single values with any strides. Written with Eigen's packets, so the width is that of the CPU
// level this library is compiled for.
#pragma once

#include <Eigen/Core>
#include <array>
#include <utility>

namespace trellis::linalg {

namespace packet = Eigen::internal;

template <class T>
using Packet = typename packet::packet_traits<T>::type;
template <class T>
inline constexpr int kWidth = packet::unpacket_traits<Packet<T>>::size;

// The first n lanes; the others are 0 and their memory is not read.
template <class T>
Packet<T> load_part(const T* from, long n) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), from);
  else
    return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << n) - 1), from);
#else
  alignas(32) T lanes[kWidth<T>] = {};
  for (long i = 0; i < n; ++i) lanes[i] = from[i];
  return packet::pload<Packet<T>>(lanes);
#endif
}

// to = v + beta to in the lanes [lo, hi). beta 0: `to` is not read.
template <class T>
void update_part(T* to, const Packet<T>& v, T beta, int lo, int hi) {
#if defined(__AVX512F__)
  const unsigned lanes = (1u << hi) - (1u << lo);
  if constexpr (sizeof(T) == 4) {
    const __mmask16 mask = static_cast<__mmask16>(lanes);
    const __m512 old = beta != T(0) ? _mm512_maskz_loadu_ps(mask, to) : _mm512_setzero_ps();
    _mm512_mask_storeu_ps(to, mask, _mm512_fmadd_ps(_mm512_set1_ps(beta), old, v));
  } else {
    const __mmask8 mask = static_cast<__mmask8>(lanes);
    const __m512d old = beta != T(0) ? _mm512_maskz_loadu_pd(mask, to) : _mm512_setzero_pd();
    _mm512_mask_storeu_pd(to, mask, _mm512_fmadd_pd(_mm512_set1_pd(beta), old, v));
  }
#else
  alignas(32) T lanes[kWidth<T>];
  packet::pstore(lanes, v);
  for (int i = lo; i < hi; ++i) to[i] = beta != T(0) ? beta * to[i] + lanes[i] : lanes[i];
#endif
}

// Blocks of C that fit the registers: up to kMaxRows vectors by kMaxCols[vectors] columns.
#if defined(__AVX512F__)
inline constexpr int kMaxRows = 4;
inline constexpr int kMaxCols[] = {0, 12, 12, 8, 6};
#elif defined(__AVX2__)
inline constexpr int kMaxRows = 3;
inline constexpr int kMaxCols[] = {0, 8, 6, 4};
#else
inline constexpr int kMaxRows = 2;
inline constexpr int kMaxCols[] = {0, 6, 4};
#endif

// C = alpha A B + beta C for one block. The last vector of a column of A lies at `last` and only
// its lanes [lo, hi) are stored; the others lie one after another.
template <class T>
struct TileArgs {
  long k;
  const T* a;
  long lda;
  const T* b;
  long b_k, b_col;  // steps in B
  T* c;
  long ldc;
  T alpha, beta;
  long last;
  int lo, hi;
};

template <class T, int kRows, int kCols>
void tile(const TileArgs<T>& t) {
  using P = Packet<T>;
  constexpr int kW = kWidth<T>;
  P acc[kCols][kRows];
#pragma GCC unroll 16
  for (int j = 0; j < kCols; ++j)
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) acc[j][i] = packet::pset1<P>(T(0));

  // Three columns of B share a pointer: base, base + step, base + 2 step are one addressing mode
  // each.
  constexpr int kBases = (kCols + 2) / 3;
  const T* base[kBases];
  for (int q = 0; q < kBases; ++q) base[q] = t.b + 3 * q * t.b_col;
  const T* a = t.a;
  const T* a_last = t.a + t.last;
  for (long k = 0; k < t.k; ++k) {
    P x[kRows];
#pragma GCC unroll 16
    for (int i = 0; i < kRows - 1; ++i) x[i] = packet::ploadu<P>(a + i * kW);
    x[kRows - 1] = packet::ploadu<P>(a_last);
#pragma GCC unroll 16
    for (int j = 0; j < kCols; ++j) {
      const P y = packet::pset1<P>(base[j / 3][j % 3 * t.b_col]);
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) acc[j][i] = packet::pmadd(x[i], y, acc[j][i]);
    }
    a += t.lda;
    a_last += t.lda;
#pragma GCC unroll 16
    for (int q = 0; q < kBases; ++q) base[q] += t.b_k;
  }

  const P alpha = packet::pset1<P>(t.alpha), beta = packet::pset1<P>(t.beta);
  const bool whole = t.lo == 0 && t.hi == kW;
#pragma GCC unroll 16
  for (int j = 0; j < kCols; ++j) {
    T* c = t.c + j * t.ldc;
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      P v = packet::pmul(alpha, acc[j][i]);
      if (i < kRows - 1 || whole) {
        T* to = i < kRows - 1 ? c + i * kW : c + t.last;
        if (t.beta != T(0)) v = packet::pmadd(beta, packet::ploadu<P>(to), v);
        packet::pstoreu(to, v);
      } else {
        update_part(c + t.last, v, t.beta, t.lo, t.hi);
      }
    }
  }
}

// C = alpha A^T B + beta C for kRows columns of A and kCols of B: sums along k, for results so few
// that turning A does not pay.
template <class T, int kRows, int kCols>
void dots(long k, const T* a, long lda, const T* b, long ldb, T* c, long ldc, T alpha, T beta) {
  using P = Packet<T>;
  constexpr long kW = kWidth<T>;
  P acc[kCols][kRows];
#pragma GCC unroll 16
  for (int j = 0; j < kCols; ++j)
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) acc[j][i] = packet::pset1<P>(T(0));
  const auto step = [&](const auto& load) {
    P y[kCols];
#pragma GCC unroll 16
    for (int j = 0; j < kCols; ++j) y[j] = load(b + j * ldb);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const P x = load(a + i * lda);
#pragma GCC unroll 16
      for (int j = 0; j < kCols; ++j) acc[j][i] = packet::pmadd(x, y[j], acc[j][i]);
    }
  };
  for (; k >= kW; k -= kW, a += kW, b += kW) step([](const T* p) { return packet::ploadu<P>(p); });
  if (k > 0) step([k](const T* p) { return load_part(p, k); });
  for (int j = 0; j < kCols; ++j)
    for (int i = 0; i < kRows; ++i) {
      const T sum = alpha * packet::predux(acc[j][i]);
      T& to = c[j * ldc + i];
      to = beta != T(0) ? beta * to + sum : sum;
    }
}

template <class T>
using Tile = void (*)(const TileArgs<T>&);

template <class T, int kRows, int... kCol>
constexpr auto tiles_of(std::integer_sequence<int, kCol...>) {
  return std::array<Tile<T>, 13>{tile<T, kRows, kCol + 1>...};
}
template <class T, int... kRow>
constexpr auto all_tiles(std::integer_sequence<int, kRow...>) {
  return std::array<std::array<Tile<T>, 13>, kMaxRows>{
      tiles_of<T, kRow + 1>(std::make_integer_sequence<int, kMaxCols[kRow + 1]>{})...};
}
// kTiles<T>[vectors - 1][columns - 1]
template <class T>
inline constexpr auto kTiles = all_tiles<T>(std::make_integer_sequence<int, kMaxRows>{});

}  // namespace trellis::linalg
