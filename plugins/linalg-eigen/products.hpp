// SPDX-License-Identifier: Apache-2.0
//
// gemm and gemv on column-major matrices. No call allocates: panels of A are packed on the stack.
#pragma once

#include <algorithm>

#include "tile.hpp"

namespace trellis::linalg {

// C = alpha op(A) op(B) + beta C; op(A)[i,p] = a[i * a_row + p * a_k], op(B)[p,j] = b[p * b_k + j *
// b_col].
template <class T>
struct Gemm {
  long m, n, k;
  const T* a;
  long lda;
  bool trans_a;
  const T* b;
  long b_k, b_col;
  T* c;
  long ldc;
  T alpha, beta;
};

inline constexpr long kDepth =
    192;  // of a packed panel: kMaxRows vectors by 192 stay in the first-level cache
inline constexpr long kColumns =
    1024;  // of B that a panel meets before the next one: stay in the second level

inline constexpr long kFewColumns =
    16;  // up to here a transposed A is summed along k instead of turned

// A block of `rows` rows and `depth` columns, padded with zeros to whole vectors.
template <class T>
void pack(const T* a, long lda, bool trans, long rows, long depth, long width, T* to) {
  using P = Packet<T>;
  constexpr long kW = kWidth<T>;
  if (!trans) {
    for (long p = 0; p < depth; ++p, a += lda, to += width) {
      long i = 0;
      for (; i + kW <= rows; i += kW) packet::pstore(to + i, packet::ploadu<P>(a + i));
      if (i < rows) packet::pstore(to + i, load_part(a + i, rows - i));
    }
    return;
  }
  // Turned by squares of half a vector: Eigen's full AVX-512 one is several times slower.
  using H = typename packet::unpacket_traits<P>::half;
  constexpr long kH = packet::unpacket_traits<H>::size;
  for (long i = 0; i < width; i += kH) {
    const long live = std::clamp(rows - i, 0L, kH);
    long p = 0;
    for (; p + kH <= depth; p += kH) {
      packet::PacketBlock<H, int(kH)> block;
      for (long l = 0; l < kH; ++l)
        block.packet[l] =
            l < live ? packet::ploadu<H>(a + (i + l) * lda + p) : packet::pset1<H>(T(0));
      if (live > 0) packet::ptranspose(block);
      for (long l = 0; l < kH; ++l) packet::pstore(to + (p + l) * width + i, block.packet[l]);
    }
    for (; p < depth; ++p)
      for (long l = 0; l < kH; ++l) to[p * width + i + l] = l < live ? a[(i + l) * lda + p] : T(0);
  }
}

template <class T>
void columns(TileArgs<T>& t, long vectors, long n) {
  const auto& by_cols = kTiles<T>[vectors - 1];
  const long parts = (n + kMaxCols[vectors] - 1) / kMaxCols[vectors], base = n / parts,
             more = n % parts;
  const T* b = t.b;
  T* c = t.c;
  for (long q = 0; q < parts; ++q) {
    const long wide = base + (q < more);
    by_cols[wide - 1](t);
    t.b += wide * t.b_col;
    t.c += wide * t.ldc;
  }
  t.b = b;
  t.c = c;
}

template <class T, int kCols>
void few_columns(const Gemm<T>& x, long j) {
  const T* b = x.b + j * x.b_col;
  T* c = x.c + j * x.ldc;
  long i = 0;
  for (; i + 4 <= x.m; i += 4)
    dots<T, 4, kCols>(x.k, x.a + i * x.lda, x.lda, b, x.b_col, c + i, x.ldc, x.alpha, x.beta);
  for (; i < x.m; ++i)
    dots<T, 1, kCols>(x.k, x.a + i * x.lda, x.lda, b, x.b_col, c + i, x.ldc, x.alpha, x.beta);
}

template <class T>
void gemm(const Gemm<T>& x) {
  if (x.trans_a && x.n <= kFewColumns && x.b_k == 1) {
    long j = 0;
    for (; j + 4 <= x.n; j += 4) few_columns<T, 4>(x, j);
    switch (x.n - j) {
      case 1:
        return few_columns<T, 1>(x, j);
      case 2:
        return few_columns<T, 2>(x, j);
      case 3:
        return few_columns<T, 3>(x, j);
    }
    return;
  }
  constexpr long kW = kWidth<T>;
  alignas(64) T panel[kMaxRows * kW * kDepth];
  const long vectors = (x.m + kW - 1) / kW, panels = (vectors + kMaxRows - 1) / kMaxRows;
  const bool packed = x.trans_a || x.m < kW || x.n > 3 * kMaxCols[1];
  const long depth = packed ? kDepth : x.k;
  for (long j = 0; j < x.n; j += kColumns) {
    const long wide = std::min(kColumns, x.n - j);
    for (long p = 0; p < x.k; p += depth) {
      TileArgs<T> t;
      t.k = std::min(depth, x.k - p);
      t.b = x.b + p * x.b_k + j * x.b_col;
      t.b_k = x.b_k;
      t.b_col = x.b_col;
      t.ldc = x.ldc;
      t.alpha = x.alpha;
      t.beta = p == 0 ? x.beta : T(1);
      long i = 0;
      for (long q = 0; q < panels; ++q) {
        const long tall = vectors / panels + (q < vectors % panels);
        const long rows = std::min(tall * kW, x.m - i), rest = rows - (tall - 1) * kW;
        t.c = x.c + i + j * x.ldc;
        if (packed) {
          pack(x.trans_a ? x.a + i * x.lda + p : x.a + i + p * x.lda, x.lda, x.trans_a, rows, t.k,
               tall * kW, panel);
          t.a = panel;
          t.lda = tall * kW;
          t.last = (tall - 1) * kW;
          t.lo = 0;
          t.hi = int(rest);
        } else {
          // The last vector overlaps the one before it, into the block above when this one has a
          // single vector.
          const long back = rows < kW ? kW - rows : 0;
          t.a = x.a + i - back + p * x.lda;
          t.c -= back;
          t.lda = x.lda;
          t.last = rows + back - kW;
          t.lo = int(kW - rest);
          t.hi = int(kW);
        }
        columns(t, tall, wide);
        i += rows;
      }
    }
  }
}

// y = alpha op(A) x + beta y; op(A) is m x k.
template <class T>
void gemv(bool trans, long m, long k, const T* a, long lda, const T* x, T* y, T alpha, T beta) {
  using Matrix = Eigen::Map<const Eigen::Matrix<T, -1, -1>, 0, Eigen::OuterStride<>>;
  using Vector = Eigen::Matrix<T, -1, 1>;
  const Matrix matrix(a, trans ? k : m, trans ? m : k, Eigen::OuterStride<>(lda));
  const Eigen::Map<const Vector> from(x, k);
  Eigen::Map<Vector> to(y, m);
  if (beta == T(0))
    to.setZero();
  else if (beta != T(1))
    to *= beta;
  if (trans)
    to.noalias() += alpha * matrix.transpose() * from;
  else
    to.noalias() += alpha * matrix * from;
}

}  // namespace trellis::linalg
