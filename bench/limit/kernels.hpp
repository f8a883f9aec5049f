// SPDX-License-Identifier: Apache-2.0
//
// Vector mathematics, one register-tiled matrix product, and Adam as an epilogue of that product,
// for AVX-512 and for AVX2 with FMA. Matrices are row-major; columns are padded to 16.
#pragma once

#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

namespace limit {

// ---------------------------------------------------------------- a vector of W floats

#ifdef __AVX512F__
constexpr int W = 16;
using V = __m512;
using Mask = __mmask16;
inline V set(float x) { return _mm512_set1_ps(x); }
inline V zero() { return _mm512_setzero_ps(); }
inline V ld(const float* p) { return _mm512_loadu_ps(p); }
inline V ld(const float* p, Mask m) { return _mm512_maskz_loadu_ps(m, p); }
inline void st(float* p, V x) { _mm512_storeu_ps(p, x); }
inline void st(float* p, Mask m, V x) { _mm512_mask_storeu_ps(p, m, x); }
inline V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
inline V fnma(V a, V b, V c) { return _mm512_fnmadd_ps(a, b, c); }
inline V max(V a, V b) { return _mm512_max_ps(a, b); }
inline V min(V a, V b) { return _mm512_min_ps(a, b); }
inline Mask tail(int left) { return left >= W ? 0xffff : Mask((1u << left) - 1); }
inline float sum(V x) { return _mm512_reduce_add_ps(x); }
inline float highest(V x) { return _mm512_reduce_max_ps(x); }
inline V keep(Mask m, V x, V other) { return _mm512_mask_mov_ps(other, m, x); }
inline V round(V x) { return _mm512_roundscale_ps(x, 0); }
inline V scale2(V x, V n) { return _mm512_scalef_ps(x, n); }  // x 2^n
inline V estimate(V x) { return _mm512_rcp14_ps(x); }
inline V estimate_root(V x) { return _mm512_rsqrt14_ps(x); }
#else
constexpr int W = 8;
using V = __m256;
using Mask = __m256i;
inline V set(float x) { return _mm256_set1_ps(x); }
inline V zero() { return _mm256_setzero_ps(); }
inline V ld(const float* p) { return _mm256_loadu_ps(p); }
inline V ld(const float* p, Mask m) { return _mm256_maskload_ps(p, m); }
inline void st(float* p, V x) { _mm256_storeu_ps(p, x); }
inline void st(float* p, Mask m, V x) { _mm256_maskstore_ps(p, m, x); }
inline V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
inline V fnma(V a, V b, V c) { return _mm256_fnmadd_ps(a, b, c); }
inline V max(V a, V b) { return _mm256_max_ps(a, b); }
inline V min(V a, V b) { return _mm256_min_ps(a, b); }
inline Mask tail(int left) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(left), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline float sum(V x) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
inline float highest(V x) {
  __m128 s = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}
inline V keep(Mask m, V x, V other) { return _mm256_blendv_ps(other, x, _mm256_castsi256_ps(m)); }
inline V round(V x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
inline V scale2(V x, V n) {  // x 2^n, both finite and normal
  return _mm256_castsi256_ps(
      _mm256_add_epi32(_mm256_castps_si256(x), _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23)));
}
inline V estimate(V x) { return _mm256_rcp_ps(x); }
inline V estimate_root(V x) { return _mm256_rsqrt_ps(x); }
#endif

constexpr int pad(int n, int to = 16) { return (n + to - 1) / to * to; }
// Rows a multiple of 1 kB apart fall into few cache sets: one more line between them.
constexpr long stride(long cols) { return cols % 256 ? cols : cols + 16; }

// ---------------------------------------------------------------- functions, relative error 2e-7

inline V reciprocal(V x) {  // one Newton step on the estimate
  const V r = estimate(x);
  return r * fnma(x, r, set(2.f));
}
// Cody and Waite's reduction and a polynomial of degree 5.
inline V exp(V x) {
  x = max(min(x, set(88.f)), set(-87.f));
  const V n = round(x * set(1.44269504f));
  const V r = fnma(n, set(-2.12194440e-4f), fnma(n, set(0.693359375f), x));
  V p = set(1.9875691500e-4f);
  p = fma(p, r, set(1.3981999507e-3f));
  p = fma(p, r, set(8.3334519073e-3f));
  p = fma(p, r, set(4.1665795894e-2f));
  p = fma(p, r, set(1.6666665459e-1f));
  p = fma(p, r, set(5.0000001201e-1f));
  return scale2(fma(p, r * r, r) + set(1.f), n);
}
inline V sigmoid(V x) { return reciprocal(set(1.f) + exp(zero() - x)); }
// A rational approximation of degrees 13 and 6.
inline V tanh(V x) {
  x = max(min(x, set(7.90531110763549805f)), set(-7.90531110763549805f));
  const V y = x * x;
  V p = set(-2.76076847742355e-16f);
  p = fma(p, y, set(2.00018790482477e-13f));
  p = fma(p, y, set(-8.60467152213735e-11f));
  p = fma(p, y, set(5.12229709037114e-08f));
  p = fma(p, y, set(1.48572235717979e-05f));
  p = fma(p, y, set(6.37261928875436e-04f));
  p = fma(p, y, set(4.89352455891786e-03f));
  V q = set(1.19825839466702e-06f);
  q = fma(q, y, set(1.18534705686654e-04f));
  q = fma(q, y, set(2.26843463243900e-03f));
  q = fma(q, y, set(4.89352518554385e-03f));
  return x * p * reciprocal(q);
}
// s[0..n) becomes the softmax, padding becomes zero; returns the sum of exponentials above `top`.
inline float softmax_row(float* s, int n, float& top) {
  V high = set(-1e30f), all = zero();
  for (int j = 0; j < n; j += W) high = max(high, keep(tail(n - j), ld(s + j), set(-1e30f)));
  top = highest(high);
  for (int j = 0; j < pad(n); j += W) {
    const V e = keep(tail(n - j), exp(ld(s + j) - set(top)), zero());
    st(s + j, e);
    all += e;
  }
  const float z = sum(all);
  for (int j = 0; j < n; j += W) st(s + j, ld(s + j) * set(1 / z));
  return z;
}

// ---------------------------------------------------------------- memory

// One arena on huge pages, never returned.
inline float* take(size_t floats) {
  static char *at = nullptr, *end = nullptr;
  // 64 spare: rows never start at equal offsets of 4 kB
  const size_t bytes = (floats * sizeof(float) + 127) / 64 * 64 + 64;
  if (!at) {
    const size_t all = size_t(1) << 30;
    at = static_cast<char*>(mmap(nullptr, all, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    end = at + all;
    at = reinterpret_cast<char*>((uintptr_t(at) + (1 << 21) - 1) >> 21 << 21);
    madvise(at, size_t(end - at), MADV_HUGEPAGE);
  }
  if (at + bytes > end) std::fputs("arena exhausted\n", stderr), std::abort();
  return reinterpret_cast<float*>(std::exchange(at, at + bytes));
}
struct Buffer {  // grows by replacement, contents not kept
  float* p = nullptr;
  size_t room = 0;
  float* need(size_t n) {
    if (n > room) room = n + n / 2 + 1024, p = take(room);
    return p;
  }
  operator float*() const { return p; }
};

// ---------------------------------------------------------------- Adam

struct Adam {
  float lr = 1e-3f, rate = 0;
  long t = 0;
  bool check = false;  // keep gradients, change nothing
  // An update may be cut into parts that fit the cache; gradients then gather in Param::g.
  int part = 0, parts = 1;
  bool last() const { return part + 1 == parts; }
  void next() {
    if (part) return;
    ++t;
    rate = float(lr * std::sqrt(1 - std::pow(0.999, double(t))) / (1 - std::pow(0.9, double(t))));
  }
};
inline Adam adam;
// m / (sqrt(v) + eps) without a division or a square root; mv holds W of m, then W of v.
inline void adam_vector(V g, float* w, float* mv, V rate) {
  const V m = fma(ld(mv), set(0.9f), g * set(0.1f));
  const V v = fma(ld(mv + W), set(0.999f), g * g * set(0.001f));
  st(mv, m), st(mv + W, v);
  const V s = v + set(1e-30f), e = estimate_root(s);
  const V root = s * e * fnma(s * e, e * set(0.5f), set(1.5f));
  st(w, fnma(rate * m, reciprocal(root + set(1e-8f)), ld(w)));
}
struct Param {
  int rows = 0, cols = 0;  // cols is padded to whole vectors; padding stays zero
  long ld = 0;             // distance of rows: see stride()
  float *w = nullptr, *mv = nullptr, *g = nullptr;
  void make(int r, int c, float scale, std::mt19937& rng, int used = 0) {
    rows = r, cols = pad(c), ld = stride(cols);
    w = take(size_t(r) * size_t(ld)), mv = take(2 * size_t(r) * size_t(cols) + 64);
    std::uniform_real_distribution<float> u(-scale, scale);
    for (int i = 0; i < r; ++i)
      for (int j = 0; j < (used ? used : c); ++j) w[i * ld + j] = scale ? u(rng) : 0;
  }
  float* grad() { return g ? g : g = take(size_t(rows) * size_t(ld)); }
};
// One row (bias, table row). Moments are laid out like the weights here.
inline void adam_row(Param& p, long row, const float* g) {
  const V rate = set(adam.rate);
  for (int j = 0; j < p.cols; j += W)
    adam_vector(ld(g + j), p.w + row * p.ld + j, p.mv + 2 * (row * p.cols + j), rate);
}
inline void keep_row(Param& p, long row, const float* g, bool fresh) {
  float* to = p.grad() + row * p.ld;
  for (int j = 0; j < p.cols; j += W) st(to + j, fresh ? ld(g + j) : ld(to + j) + ld(g + j));
}
inline void learn_bias(Param& p, const float* g) {
  if (adam.check || adam.parts > 1) keep_row(p, 0, g, adam.part == 0), g = p.g;
  if (!adam.check && adam.last()) adam_row(p, 0, g);
}

// ---------------------------------------------------------------- product

// C[M,N] = init + A[M,K] B[K,N]. A is read by broadcasts, so any strides (transposed too) cost the
// same; B and C are row-major, N a multiple of 16. Nothing is packed.
enum Init { kZero, kLoad };
enum Fate { kStore, kAdam };
struct Out {
  float* c;
  long ldc;
  Init init = kZero;
  const float* bias = nullptr;  // row vector that starts every row instead of zero
  Fate fate = kStore;
  // kAdam: weights (stride ldw) and moments in the order of the tiles
  float *w = nullptr, *mv = nullptr;
  long ldw = 0;
};
template <int MR, int NV>
void tile(long K, const float* A, long rs, long cs, const float* B, long ldb, Out& o, long m,
          long n) {
  // at least 8 sums in flight, or the latency of fma shows
  constexpr int KU = MR * NV >= 8 ? 1 : MR * NV >= 4 ? 2 : 4;
  V acc[MR][NV], more[KU][MR][NV];
  float* C = o.c + m * o.ldc + n;
#pragma GCC unroll 32
  for (int i = 0; i < MR; ++i)
#pragma GCC unroll 32
    for (int j = 0; j < NV; ++j)
      acc[i][j] = o.init == kLoad ? ld(C + i * o.ldc + W * j)
                  : o.bias        ? ld(o.bias + n + W * j)
                                  : zero();
  if (o.fate == kAdam)  // fetch what the epilogue touches while the product runs
    for (int q = 0; q < 2 * MR * NV * W; q += 16)
      _mm_prefetch(reinterpret_cast<const char*>(o.mv + q), _MM_HINT_T0);
  const float* a[4] = {A + m * rs, A + (m + 3) * rs, A + (m + 6) * rs, A + (m + 9) * rs};
  B += n;
  const auto step = [&](V(&sums)[MR][NV]) __attribute__((always_inline)) {
    V b[NV];
#pragma GCC unroll 32
    for (int j = 0; j < NV; ++j) b[j] = ld(B + W * j);
#pragma GCC unroll 32
    for (int i = 0; i < MR; ++i) {
      const V x = set(a[i / 3][i % 3 * rs]);
#pragma GCC unroll 32
      for (int j = 0; j < NV; ++j) sums[i][j] = fma(x, b[j], sums[i][j]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) a[i] += cs;
    B += ldb;
  };
  long k = 0;
  if constexpr (KU > 1) {
#pragma GCC unroll 4
    for (int q = 1; q < KU; ++q)
#pragma GCC unroll 32
      for (int i = 0; i < MR; ++i)
#pragma GCC unroll 32
        for (int j = 0; j < NV; ++j) more[q][i][j] = zero();
    for (; k + KU <= K; k += KU) {
      step(acc);
#pragma GCC unroll 4
      for (int q = 1; q < KU; ++q) step(more[q]);
    }
#pragma GCC unroll 4
    for (int q = 1; q < KU; ++q)
#pragma GCC unroll 32
      for (int i = 0; i < MR; ++i)
#pragma GCC unroll 32
        for (int j = 0; j < NV; ++j) acc[i][j] += more[q][i][j];
  }
  for (; k < K; ++k) step(acc);
  if (o.fate == kAdam) {
    const V rate = set(adam.rate);
    float *w = o.w + m * o.ldw + n, *mv = o.mv;
#pragma GCC unroll 32
    for (int i = 0; i < MR; ++i)
#pragma GCC unroll 32
      for (int j = 0; j < NV; ++j, mv += 2 * W)
        adam_vector(acc[i][j], w + i * o.ldw + W * j, mv, rate);
    o.mv = mv;
    return;
  }
#pragma GCC unroll 32
  for (int i = 0; i < MR; ++i)
#pragma GCC unroll 32
    for (int j = 0; j < NV; ++j) st(C + i * o.ldc + W * j, acc[i][j]);
}
using Tile = void (*)(long, const float*, long, long, const float*, long, Out&, long, long);
template <int NV, int... R>
constexpr auto tiles(std::integer_sequence<int, R...>) {
  return std::array<Tile, sizeof...(R)>{tile<R + 1, NV>...};
}
template <int NV, int MR>
constexpr auto kTiles = tiles<NV>(std::make_integer_sequence<int, MR>{});
#ifdef __AVX512F__
constexpr long kRows = 12;  // 32 registers
inline Tile pick(int mr, int nv) {
  const auto at = size_t(mr - 1);
  switch (nv) {
    case 1:
      return kTiles<1, 12>[at];
    case 2:
      return kTiles<2, 12>[at];
    case 4:
      return kTiles<4, 6>[at];
    case 8:
      return kTiles<8, 3>[at];
    case 13:
      return kTiles<13, 2>[at];
    default:
      return kTiles<16, 1>[at];
  }
}
inline int widest(int mr, long left) {  // vectors of a tile: 8 to 28 accumulators
  if (mr == 1 && left >= 16) return 16;
  if (mr <= 2 && left >= 13) return 13;
  if (mr <= 3 && left >= 8) return 8;
  if (mr <= 6 && left >= 4) return 4;
  return left >= 2 ? 2 : 1;
}
#else
constexpr long kRows = 6;  // 16 registers
inline Tile pick(int mr, int nv) {
  const auto at = size_t(mr - 1);
  switch (nv) {
    case 2:
      return kTiles<2, 6>[at];
    case 4:
      return kTiles<4, 2>[at];
    default:
      return kTiles<8, 1>[at];
  }
}
inline int widest(int mr, long left) {
  if (mr == 1 && left >= 8) return 8;
  return mr <= 2 && left >= 4 ? 4 : 2;
}
#endif
inline void product(long M, long N, long K, const float* A, long rs, long cs, const float* B,
                    long ldb, Out o) {
  if (M <= 0) return;
  const long parts = (M + kRows - 1) / kRows, base = M / parts, more = M % parts;
  for (long n = 0; n < N;) {
    const int nv = widest(int(base + (more > 0)), (N - n) / W);
    const Tile big = more ? pick(int(base + 1), nv) : nullptr, small = pick(int(base), nv);
    long m = 0;
    for (long q = 0; q < parts; ++q) {
      const bool b = q < more;
      (b ? big : small)(K, A, rs, cs, B, ldb, o, m, n);
      m += base + b;
    }
    n += W * nv;
  }
}
inline void gemm(long M, long N, long K, const float* A, long lda, const float* B, long ldb,
                 float* C, long ldc, Init init = kZero, const float* bias = nullptr) {
  product(M, N, K, A, lda, 1, B, ldb, {C, ldc, init, bias});
}
// Weight gradient A^T B over K positions and the update of the rows [row, row+M) of p, in one go.
inline void learn(Param& p, long row, long M, long K, const float* A, long rs, long cs,
                  const float* B, long ldb) {
  constexpr long kBlock = 352;  // positions whose panel of B stays in the first-level cache
  const long N = p.cols, ldw = p.ld;
  const bool cut = adam.check || adam.parts > 1;
  if (cut && (adam.check || !adam.last())) {
    product(M, N, K, A, rs, cs, B, ldb, {p.grad() + row * ldw, ldw, adam.part ? kLoad : kZero});
    return;
  }
  static Buffer panel;
  float* mv = p.mv + 2 * row * N;
  for (long n = 0; n < N; n += 32) {
    const long wide = std::min(N - n, 32L);
    float* c = cut ? p.g + row * ldw + n : panel.need(size_t(M) * 32);
    const long ldc = cut ? ldw : 32;
    long k = 0;
    for (; K - k > kBlock; k += kBlock)
      product(M, wide, kBlock, A + k * cs, rs, cs, B + k * ldb + n, ldb,
              {c, ldc, k || cut ? kLoad : kZero});
    product(M, wide, K - k, A + k * cs, rs, cs, B + k * ldb + n, ldb,
            {c, ldc, k || cut ? kLoad : kZero, nullptr, kAdam, p.w + row * ldw + n, mv, ldw});
    mv += 2 * M * wide;
  }
}

// ---------------------------------------------------------------- transposes

#ifdef __AVX512F__
inline V low(V x, V y) { return _mm512_unpacklo_ps(x, y); }
inline V high(V x, V y) { return _mm512_unpackhi_ps(x, y); }
inline V low2(V x, V y) {
  return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)));
}
inline V high2(V x, V y) {
  return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)));
}
#else
inline V low(V x, V y) { return _mm256_unpacklo_ps(x, y); }
inline V high(V x, V y) { return _mm256_unpackhi_ps(x, y); }
inline V low2(V x, V y) {
  return _mm256_castpd_ps(_mm256_unpacklo_pd(_mm256_castps_pd(x), _mm256_castps_pd(y)));
}
inline V high2(V x, V y) {
  return _mm256_castpd_ps(_mm256_unpackhi_pd(_mm256_castps_pd(x), _mm256_castps_pd(y)));
}
#endif
// A block of W x W, of which `rows` rows are there and `cols` columns are wanted.
inline void transpose_block(const float* s, long lds, float* d, long ldd, int rows, int cols) {
  V r[W], t[W];
  for (int i = 0; i < W; ++i) r[i] = i < rows ? ld(s + i * lds) : zero();
#pragma GCC unroll 16
  for (int i = 0; i < W; i += 2) t[i] = low(r[i], r[i + 1]), t[i + 1] = high(r[i], r[i + 1]);
#pragma GCC unroll 4
  for (int i = 0; i < W; i += 4) {
    r[i] = low2(t[i], t[i + 2]), r[i + 1] = high2(t[i], t[i + 2]);
    r[i + 2] = low2(t[i + 1], t[i + 3]), r[i + 3] = high2(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {  // r[4q+i]: rows 4q..4q+3, columns i, i+4, ...
#ifdef __AVX512F__
    const V a = _mm512_shuffle_f32x4(r[i], r[4 + i], 0x88);
    const V b = _mm512_shuffle_f32x4(r[i], r[4 + i], 0xdd);
    const V c = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0x88);
    const V e = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0xdd);
    t[i] = _mm512_shuffle_f32x4(a, c, 0x88), t[i + 8] = _mm512_shuffle_f32x4(a, c, 0xdd);
    t[i + 4] = _mm512_shuffle_f32x4(b, e, 0x88), t[i + 12] = _mm512_shuffle_f32x4(b, e, 0xdd);
#else
    t[i] = _mm256_permute2f128_ps(r[i], r[4 + i], 0x20);
    t[i + 4] = _mm256_permute2f128_ps(r[i], r[4 + i], 0x31);
#endif
  }
  for (int i = 0; i < std::min(cols, W); ++i) st(d + i * ldd, t[i]);
}
// T[c,r] = W[r,c]; rows of T are padded to 16.
inline void transpose(const float* s, long rows, long cols, long lds, float* d, long ldd) {
  for (long c = 0; c < cols; c += W)
    for (long r = 0; r < pad(int(rows)); r += W)
      transpose_block(s + r * lds + c, lds, d + c * ldd + r, ldd, int(rows - r), int(cols - c));
}

// ---------------------------------------------------------------- product with the transpose

// X[M,I] = D[M,N] W^T, W[I,N], by dot products: needs no transposed copy of W, so it is the choice
// while M is small. W sums are finished together.
inline V finish(const V* a) {
#ifdef __AVX512F__
  V b[8], c[4];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) b[i] = low(a[2 * i], a[2 * i + 1]) + high(a[2 * i], a[2 * i + 1]);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) c[i] = low2(b[2 * i], b[2 * i + 1]) + high2(b[2 * i], b[2 * i + 1]);
  const V d = _mm512_shuffle_f32x4(c[0], c[1], 0x88) + _mm512_shuffle_f32x4(c[0], c[1], 0xdd);
  const V e = _mm512_shuffle_f32x4(c[2], c[3], 0x88) + _mm512_shuffle_f32x4(c[2], c[3], 0xdd);
  return _mm512_shuffle_f32x4(d, e, 0x88) + _mm512_shuffle_f32x4(d, e, 0xdd);
#else
  V b[4], c[2];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) b[i] = low(a[2 * i], a[2 * i + 1]) + high(a[2 * i], a[2 * i + 1]);
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) c[i] = low2(b[2 * i], b[2 * i + 1]) + high2(b[2 * i], b[2 * i + 1]);
  return _mm256_permute2f128_ps(c[0], c[1], 0x20) + _mm256_permute2f128_ps(c[0], c[1], 0x31);
#endif
}
template <int MR>
void dots(long I, long N, const float* D, long ldd, const float* weights, long ldw, float* X,
          long ldx, bool add) {
  constexpr int KR = W / MR, G = KR < 8 ? KR : 8;  // rows of the weights in one sweep
  for (long k = 0; k < I; k += KR) {  // rows past the end are read, their sums land in the padding
    V acc[W];
#pragma GCC unroll 16
    for (int q = 0; q < W; ++q) acc[q] = zero();
#pragma GCC unroll 2
    for (int g = 0; g < KR; g += G) {
      const float* w[3] = {weights + (k + g) * ldw, weights + (k + g + 3) * ldw,
                           weights + (k + g + 6) * ldw};
      for (long n = 0; n < N; n += W) {
        V d[MR];
#pragma GCC unroll 4
        for (int i = 0; i < MR; ++i) d[i] = ld(D + i * ldd + n);
#pragma GCC unroll 8
        for (int j = 0; j < G; ++j) {
          const V x = ld(w[j / 3] + j % 3 * ldw + n);
#pragma GCC unroll 4
          for (int i = 0; i < MR; ++i) acc[i * KR + g + j] = fma(d[i], x, acc[i * KR + g + j]);
        }
      }
    }
    const V s = finish(acc);
    alignas(64) float t[W];
    if (MR == 1) {
      st(X + k, add ? s + ld(X + k) : s);
      continue;
    }
    st(t, s);
    for (int i = 0; i < MR; ++i)
      for (int j = 0; j < KR; ++j)
        X[i * ldx + k + j] = add ? X[i * ldx + k + j] + t[i * KR + j] : t[i * KR + j];
  }
}
inline void gemm_nt(long M, long I, long N, const float* D, long ldd, const float* weights,
                    long ldw, float* X, long ldx, Init init = kZero) {
  const bool add = init == kLoad;
  for (; M >= 4; M -= 4, D += 4 * ldd, X += 4 * ldx)
    dots<4>(I, N, D, ldd, weights, ldw, X, ldx, add);
  if (M >= 2) {
    dots<2>(I, N, D, ldd, weights, ldw, X, ldx, add);
    M -= 2, D += 2 * ldd, X += 2 * ldx;
  }
  if (M) dots<1>(I, N, D, ldd, weights, ldw, X, ldx, add);
}
constexpr long kDots = 8;  // rows up to which dot products are used

// X[U,I] = D[U,N] W^T, W[I,N]: turns the smaller of the two sides, D or W.
inline void back_product(long U, long I, long N, const float* D, long ldd, const float* weights,
                         long ldw, float* X, long ldx, Buffer& turned_w, Buffer& turned_d) {
  if (U <= kDots) return gemm_nt(U, I, N, D, ldd, weights, ldw, X, ldx);
  const long Up = pad(int(U)), Ip = pad(int(I));
  if (U > 48) {
    const long lt = stride(Ip);
    transpose(weights, I, N, ldw, turned_w.need(size_t(pad(int(N))) * size_t(lt)), lt);
    return gemm(U, Ip, N, D, ldd, turned_w, lt, X, ldx);
  }
  float *d = turned_d.need(size_t(N + Ip) * size_t(Up)), *x = d + N * Up;
  transpose(D, U, N, ldd, d, Up);
  product(I, Up, N, weights, ldw, 1, d, Up, {x, Up});
  if (Ip > I) std::memset(x + I * Up, 0, size_t(Ip - I) * size_t(Up) * 4);
  for (long r = 0; r < Ip; r += W)
    for (long c = 0; c < U; c += W)
      transpose_block(x + r * Up + c, Up, X + c * ldx + r, ldx, W, int(U - c));
}
inline void column_sums(long rows, long cols, const float* x, long ldx, float* sums) {
  for (long c = 0; c < cols; c += W) {
    V s = zero(), t = s;
    long r = 0;
    for (; r + 1 < rows; r += 2) s = s + ld(x + r * ldx + c), t = t + ld(x + (r + 1) * ldx + c);
    if (r < rows) s = s + ld(x + r * ldx + c);
    st(sums + c, s + t);
  }
}

}  // namespace limit
