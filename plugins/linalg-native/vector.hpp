// SPDX-License-Identifier: Apache-2.0
//
// Vectors of the width that this library is compiled for: 16 bytes at x86-64-v2 and elsewhere, 32
// with AVX2, 64 with AVX-512. Arithmetic is the compiler's own on vector types; only what it cannot
// say is written for each width.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstdint>

namespace trellis::linalg {

#if defined(__AVX512F__)
inline constexpr int kBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kBytes = 32;
#else
inline constexpr int kBytes = 16;
#endif

template <class T>
struct VectorOf;
template <>
struct VectorOf<float> {
  typedef float type __attribute__((vector_size(kBytes), may_alias));
  typedef std::int32_t lanes __attribute__((vector_size(kBytes), may_alias));
};
template <>
struct VectorOf<double> {
  typedef double type __attribute__((vector_size(kBytes), may_alias));
  typedef std::int64_t lanes __attribute__((vector_size(kBytes), may_alias));
};
template <class T>
using Vector = typename VectorOf<T>::type;
template <class T>
using Lanes = typename VectorOf<T>::lanes;
template <class T>
inline constexpr int kWidth = kBytes / int(sizeof(T));

template <class T>
Vector<T> load(const T* from) {
  Vector<T> v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

template <class T>
void store(T* to, Vector<T> v) {
  __builtin_memcpy(to, &v, sizeof v);
}

template <class T>
Vector<T> spread(T x) {
  return x - Vector<T>{};  // exact, for -0 too
}

// a b + c
template <class T>
Vector<T> fma(Vector<T> a, Vector<T> b, Vector<T> c) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    return Vector<T>(_mm512_fmadd_ps(a, b, c));
  else
    return Vector<T>(_mm512_fmadd_pd(a, b, c));
#elif defined(__FMA__)
  if constexpr (sizeof(T) == 4)
    return Vector<T>(_mm256_fmadd_ps(a, b, c));
  else
    return Vector<T>(_mm256_fmadd_pd(a, b, c));
#else
  return a * b + c;
#endif
}

template <class T>
Lanes<T> lane_numbers() {
  Lanes<T> v{};
  for (int i = 0; i < kWidth<T>; ++i) v[i] = i;
  return v;
}

// The lanes from `lo` on of v, those below of `old`.
template <class T>
Vector<T> upper_lanes(Vector<T> v, Vector<T> old, int lo) {
  const Lanes<T> mask = lane_numbers<T>() >= lo;
  return Vector<T>((Lanes<T>(v) & mask) | (Lanes<T>(old) & ~mask));
}

// The first n lanes, n from 1 to kWidth; the others are 0 and their memory is not read.
template <class T>
Vector<T> load_part(const T* from, long n) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    return Vector<T>(_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), from));
  else
    return Vector<T>(_mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << n) - 1), from));
#elif defined(__AVX2__)
  const __m256i mask = (__m256i)(lane_numbers<T>() < Lanes<T>{} + int(n));
  if constexpr (sizeof(T) == 4)
    return Vector<T>(_mm256_maskload_ps(from, mask));
  else
    return Vector<T>(_mm256_maskload_pd(from, mask));
#else
  Vector<T> v{};
  for (long i = 0; i < n; ++i) v[i] = from[i];
  return v;
#endif
}

// The first n lanes of v; what lies behind them is not touched.
template <class T>
void store_part(T* to, Vector<T> v, long n) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << n) - 1), v);
  else
    _mm512_mask_storeu_pd(to, static_cast<__mmask8>((1u << n) - 1), v);
#elif defined(__AVX2__)
  const __m256i mask = (__m256i)(lane_numbers<T>() < Lanes<T>{} + int(n));
  if constexpr (sizeof(T) == 4)
    _mm256_maskstore_ps(to, mask, v);
  else
    _mm256_maskstore_pd(to, mask, v);
#else
  for (long i = 0; i < n; ++i) to[i] = v[i];
#endif
}

// to[i] = the sum of the lanes of v[i], for four vectors.
template <class T>
void sums_of_four(const Vector<T>* v, T* to) {
#if defined(__SSE3__)
  if constexpr (sizeof(T) == 4) {
    const auto quarter = [](Vector<T> x) {
#if defined(__AVX512F__)
      const __m256 h =
          _mm256_add_ps(_mm512_castps512_ps256(x),
                        _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1)));
      return _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
#elif defined(__AVX2__)
      return _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
#else
      return __m128(x);
#endif
    };
    _mm_storeu_ps(to, _mm_hadd_ps(_mm_hadd_ps(quarter(v[0]), quarter(v[1])),
                                  _mm_hadd_ps(quarter(v[2]), quarter(v[3]))));
  } else {
    const auto half = [](Vector<T> x) {
#if defined(__AVX512F__)
      const __m256d h = _mm256_add_pd(_mm512_castpd512_pd256(x), _mm512_extractf64x4_pd(x, 1));
      return _mm_add_pd(_mm256_castpd256_pd128(h), _mm256_extractf128_pd(h, 1));
#elif defined(__AVX2__)
      return _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
#else
      return __m128d(x);
#endif
    };
    _mm_storeu_pd(to, _mm_hadd_pd(half(v[0]), half(v[1])));
    _mm_storeu_pd(to + 2, _mm_hadd_pd(half(v[2]), half(v[3])));
  }
#else
  for (int i = 0; i < 4; ++i) {
    T sum = 0;
    for (int l = 0; l < kWidth<T>; ++l) sum += v[i][l];
    to[i] = sum;
  }
#endif
}

inline void prefetch(const void* at) { __builtin_prefetch(at, 0, 3); }
inline void prefetch_far(const void* at) { __builtin_prefetch(at, 0, 2); }  // to the second level
inline void prefetch_to_write(const void* at) { __builtin_prefetch(at, 1, 3); }

}  // namespace trellis::linalg
