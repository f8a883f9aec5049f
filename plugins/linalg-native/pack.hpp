// SPDX-License-Identifier: Apache-2.0
//
// Panels of A and B copied to where a tile reads them one number after another.
#pragma once

#include "vector.hpp"

namespace trellis::linalg {

// to[p * width + i] = a[i * lda + p] for kWidth rows i and `depth` columns p: columns of A become
// rows of a panel. Rows from `live` on become zeros.
template <class T>
void turn(const T* a, long lda, long depth, long live, long width, T* to) {
  constexpr long kW = kWidth<T>;
  long first = 0;
#if defined(__AVX2__)
  // By squares of 32 bytes, also with AVX-512: halves of 16 bytes are read into place, then turned
  // within each.
  constexpr long kSide = 32 / long(sizeof(T));
  for (; first + kSide <= live; first += kSide) {
    const T* from = a + first * lda;
    T* at = to + first;
    long p = 0;
    if constexpr (sizeof(T) == 4) {
      for (; p + 4 <= depth; p += 4) {
        const auto both = [&](long i) {
          return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from + i * lda + p)),
                                      _mm_loadu_ps(from + (i + 4) * lda + p), 1);
        };
        const __m256 r0 = both(0), r1 = both(1), r2 = both(2), r3 = both(3);
        const __m256 lo0 = _mm256_unpacklo_ps(r0, r1), hi0 = _mm256_unpackhi_ps(r0, r1);
        const __m256 lo2 = _mm256_unpacklo_ps(r2, r3), hi2 = _mm256_unpackhi_ps(r2, r3);
        _mm256_storeu_ps(at + p * width, _mm256_shuffle_ps(lo0, lo2, 0x44));
        _mm256_storeu_ps(at + (p + 1) * width, _mm256_shuffle_ps(lo0, lo2, 0xee));
        _mm256_storeu_ps(at + (p + 2) * width, _mm256_shuffle_ps(hi0, hi2, 0x44));
        _mm256_storeu_ps(at + (p + 3) * width, _mm256_shuffle_ps(hi0, hi2, 0xee));
      }
    } else {
      for (; p + 2 <= depth; p += 2) {
        const auto both = [&](long i) {
          return _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(from + i * lda + p)),
                                      _mm_loadu_pd(from + (i + 2) * lda + p), 1);
        };
        const __m256d r0 = both(0), r1 = both(1);
        _mm256_storeu_pd(at + p * width, _mm256_unpacklo_pd(r0, r1));
        _mm256_storeu_pd(at + (p + 1) * width, _mm256_unpackhi_pd(r0, r1));
      }
    }
    for (; p < depth; ++p)
      for (long i = 0; i < kSide; ++i) at[p * width + i] = from[i * lda + p];
  }
#endif
  for (long i = first; i < kW; ++i)
    for (long p = 0; p < depth; ++p) to[p * width + i] = i < live ? a[i * lda + p] : T(0);
}

// A panel of `vectors` vectors, the last of them at `last` (see TileArgs), `depth` columns deep.
template <class T>
void turn_panel(const T* a, long lda, long depth, int vectors, long last, long live, T* to) {
  constexpr long kW = kWidth<T>;
  for (int i = 0; i < vectors; ++i)
    turn(a + (i < vectors - 1 ? i * kW : last) * lda, lda, depth, live, vectors * kW, to + i * kW);
}

// to[p * wide + j] = b[j * ldb + p]: `wide` columns of B become rows of `wide` numbers.
template <class T>
void turn_columns(const T* b, long ldb, long depth, long wide, T* to) {
  long p = 0;
#if defined(__SSE2__)
  if constexpr (sizeof(T) == 4) {
    if (wide % 4 == 0)
      for (; p + 4 <= depth; p += 4)
        for (long j = 0; j < wide; j += 4) {
          __m128 r0 = _mm_loadu_ps(b + j * ldb + p), r1 = _mm_loadu_ps(b + (j + 1) * ldb + p),
                 r2 = _mm_loadu_ps(b + (j + 2) * ldb + p), r3 = _mm_loadu_ps(b + (j + 3) * ldb + p);
          _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
          _mm_storeu_ps(to + p * wide + j, r0);
          _mm_storeu_ps(to + (p + 1) * wide + j, r1);
          _mm_storeu_ps(to + (p + 2) * wide + j, r2);
          _mm_storeu_ps(to + (p + 3) * wide + j, r3);
        }
  } else {
    if (wide % 2 == 0)
      for (; p + 2 <= depth; p += 2)
        for (long j = 0; j < wide; j += 2) {
          const __m128d r0 = _mm_loadu_pd(b + j * ldb + p),
                        r1 = _mm_loadu_pd(b + (j + 1) * ldb + p);
          _mm_storeu_pd(to + p * wide + j, _mm_unpacklo_pd(r0, r1));
          _mm_storeu_pd(to + (p + 1) * wide + j, _mm_unpackhi_pd(r0, r1));
        }
  }
#endif
  for (; p < depth; ++p)
    for (long j = 0; j < wide; ++j) to[p * wide + j] = b[j * ldb + p];
}

// to[p * wide + j] = b[p * ldb + j]: the same of a transposed B.
template <class T>
void copy_rows(const T* b, long ldb, long depth, long wide, T* to) {
  if (wide == 4)
    for (; depth > 0; --depth, b += ldb, to += 4) __builtin_memcpy(to, b, 4 * sizeof(T));
  else
    for (; depth > 0; --depth, b += ldb, to += wide)
      for (long j = 0; j < wide; ++j) to[j] = b[j];
}

}  // namespace trellis::linalg
