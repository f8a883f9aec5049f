// SPDX-License-Identifier: Apache-2.0
//
// Which tile, in which order, for a product of column-major matrices. No call allocates: panels lie
// on the stack.
#pragma once

#include <algorithm>

#include "gemv.hpp"
#include "pack.hpp"
#include "tile.hpp"

namespace trellis::linalg {

// C = alpha op(A) op(B) + beta C
template <class T>
struct Gemm {
  long m, n, k;
  const T* a;
  long lda;
  bool trans_a;
  const T* b;
  long ldb;
  bool trans_b;
  T* c;
  long ldc;
  T alpha, beta;
};

// Of a panel of A: it stays in the first-level cache.
inline constexpr long kDepth = kBytes == 64 ? 192 : 256;
// Of B meet a panel of A: they stay near, and A is read once for all of them.
template <class T>
inline constexpr long kColumns = 1536 / long(sizeof(T));
// Up to this depth a panel of A is small and its tiles are short.
inline constexpr long kShallow = 64;
// Bytes of A that stay near without being copied, and that have to be fetched from far.
inline constexpr long kNear = 128 * 1024, kFar = 512 * 1024;
// From here on the columns of B are worth copying, which makes reading them independent of ldb.
inline constexpr long kManyColumns = 64;
inline constexpr long kManyRows = 256, kManyRowsTransposed = 128;
// Up to here a transposed A is summed along k instead of turned.
inline constexpr long kDotColumns = 16;

// n in equal parts of at most `most`.
struct Split {
  long parts, base, more;
  Split(long n, long most) : parts((n + most - 1) / most), base(n / parts), more(n % parts) {}
  long size(long q) const { return base + (q < more); }
};

// A matrix of m rows as panels of some vectors.
template <class T>
struct Panels {
  static constexpr long kW = kWidth<T>;
  long m;
  Split split;
  Panels(long rows, int most) : m(rows), split((rows + kW - 1) / kW, most) {}

  // Sets what depends on panel q, whose first row is `row`; returns its rows.
  long place(long q, long row, TileArgs<T>& t) const {
    const long vectors = split.size(q), rows = std::min(vectors * kW, m - row);
    t.last = m < kW ? 0 : rows - kW;
    t.lo = m < kW ? 0 : int(vectors * kW - rows);
    t.live = int(std::min(m, kW));
    return rows;
  }
};

// Columns of A do not fall into the same few sets of the first-level cache.
template <class T>
bool scattered(const Gemm<T>& x) {
  return x.lda * long(sizeof(T)) % 1024 != 0;
}
// How far ahead A is asked for.
template <class T>
long ahead(const Gemm<T>& x) {
  return (scattered(x) && x.m * x.k * long(sizeof(T)) > kFar ? 16 : 4) * x.lda;
}

// So few columns that one tile takes them all: A passes once, as it lies.
template <class T, bool kRowwise>
void gemm_narrow(const Gemm<T>& x, int vectors) {
  TileArgs<T> t;
  t.k = x.k;
  t.a_k = x.lda;
  t.ahead = ahead(x);
  t.b = x.b;
  t.b_k = kRowwise ? x.ldb : 1;
  t.b_col = kRowwise ? 1 : x.ldb;
  t.ldc = x.ldc;
  t.alpha = x.alpha;
  t.beta = x.beta;
  const Panels<T> panels(x.m, vectors);
  long row = 0;
  for (long q = 0; q < panels.split.parts; ++q) {
    t.a = x.a + row;
    t.c = x.c + row;
    row += panels.place(q, row, t);
    t.a_last = t.last;
    kTiles<T, kRowwise, kMatrix>[panels.split.size(q) - 1][x.n - 1](t);
  }
}

// The panel of A whose place is `t`, copied to `to` with its rows turned or filled up.
template <class T>
void pack_panel(const Gemm<T>& x, long row, long p, int vectors, const TileArgs<T>& t, T* to) {
  if (x.trans_a) return turn_panel(x.a + row * x.lda + p, x.lda, t.k, vectors, t.last, t.live, to);
  const T* a = x.a + row + p * x.lda;  // fewer rows than a vector has lanes
  for (long k = t.k; k > 0; --k, a += x.lda, to += kWidth<T>) store(to, load_part(a, t.live));
}

// Columns of B that meet a panel of A, `step` from one to the next.
template <class T>
struct Columns {
  const T* b;
  long step;
  Split tiles;
  bool packed, far_a;
};

// Every tile reads A as it lies.
template <class T, bool kRowwise>
void sweep_near(TileArgs<T>& t, int vectors, const Columns<T>& columns) {
  t.b = columns.b;
  for (long q = 0; q < columns.tiles.parts; ++q) {
    const long wide = columns.tiles.size(q);
    kTiles<T, kRowwise, kMatrix>[vectors - 1][wide - 1](t);
    t.b += wide * columns.step;
    t.c += wide * t.ldc;
  }
}

// One panel of A against the columns. `ready`: it lies in t.panel; else the first tile copies it
// there, and the others ask for the panel below, `ahead`, while they run.
template <class T, bool kRowwise>
void sweep(TileArgs<T>& t, int vectors, const Columns<T>& columns, bool ready, const T* ahead) {
  t.b = columns.b;
  const long lda = t.a_k, share = t.k / columns.tiles.parts + 1;
  long left = ready || !columns.far_a ? 0 : t.k;
  for (long q = 0; q < columns.tiles.parts; ++q) {
    const long wide = columns.tiles.size(q);
    if (kRowwise && columns.packed) t.b_k = wide;
    if (ready) {
      t.a = t.panel;
      t.a_k = vectors * kWidth<T>;
      t.a_last = t.a_k - kWidth<T>;
      for (long p = std::min(share, left); p > 0; --p, --left, ahead += lda)
#pragma GCC unroll 4
        for (int i = 0; i < kTall * kWidth<T>; i += 64 / int(sizeof(T))) prefetch_far(ahead + i);
      kTiles<T, kRowwise, kPanel>[vectors - 1][wide - 1](t);
    } else {
      kTiles<T, kRowwise, kMatrixToPanel>[vectors - 1][wide - 1](t);
      ready = true;
    }
    t.b += wide * columns.step;
    t.c += wide * t.ldc;
  }
}

// The general way: a panel of A in the first-level cache meets all columns of a block of B.
template <class T, bool kPackB>
void gemm_by_panels(const Gemm<T>& x) {
  constexpr long kW = kWidth<T>;
  alignas(64) T panel[kTall * kW * kDepth];
  alignas(64) T packed_b[kPackB ? kColumns<T> * kDepth : 1];
  const bool pack_a = x.trans_a || x.m < kW, rowwise = x.trans_b || kPackB;
  const Panels<T> panels(x.m, kTall);
  const Split blocks(x.n, kColumns<T>), depths(x.k, kDepth);
  const long bytes = x.m * x.k * long(sizeof(T));
  const bool far_a =
      bytes > kFar && x.n >= 32;  // else the first tile has to wait for memory anyway
  const bool near_a = !kPackB && !pack_a && scattered(x) &&
                      (x.k <= kShallow || (x.k <= kDepth && x.n <= kManyColumns && bytes <= kNear));
  TileArgs<T> t;
  t.panel = panel;
  t.ahead = ahead(x);
  t.ldc = x.ldc;
  t.alpha = x.alpha;
  t.b_k = x.trans_b ? x.ldb : 1;
  t.b_col = rowwise ? 1 : x.ldb;
  long j = 0;
  for (long block = 0; block < blocks.parts; j += blocks.size(block++)) {
    const long wide = blocks.size(block);
    const auto tiles = [&](int vectors) { return Split(wide, kMaxCols[kPackB ? kTall : vectors]); };
    long p = 0;
    for (long d = 0; d < depths.parts; p += depths.size(d++)) {
      t.k = depths.size(d);
      t.beta = d == 0 ? x.beta : T(1);
      const T* b = x.trans_b ? x.b + j + p * x.ldb : x.b + p + j * x.ldb;
      if constexpr (kPackB) {
        const Split parts = tiles(kTall);
        T* to = packed_b;
        for (long q = 0; q < parts.parts; to += parts.size(q++) * t.k) {
          const long n = parts.size(q);
          x.trans_b ? copy_rows(b, x.ldb, t.k, n, to) : turn_columns(b, x.ldb, t.k, n, to);
          b += n * (x.trans_b ? 1 : x.ldb);
        }
        b = packed_b;
      }
      // Panels differ by one vector at most, the first ones are the taller.
      Columns<T> columns{b, kPackB ? t.k : t.b_col, tiles(int(panels.split.size(0))), kPackB,
                         far_a};
      long row = 0;
      for (long q = 0; q < panels.split.parts; ++q) {
        const int vectors = int(panels.split.size(q));
        if (q == panels.split.more) columns.tiles = tiles(vectors);
        const long rows = panels.place(q, row, t);
        t.c = x.c + row + j * x.ldc;
        t.a = x.a + row + p * x.lda;
        t.a_k = x.lda;
        t.a_last = t.last;
        if (pack_a) pack_panel(x, row, p, vectors, t, panel);
        if (near_a)
          rowwise ? sweep_near<T, true>(t, vectors, columns)
                  : sweep_near<T, false>(t, vectors, columns);
        else
          rowwise ? sweep<T, true>(t, vectors, columns, pack_a, t.a + rows)
                  : sweep<T, false>(t, vectors, columns, pack_a, t.a + rows);
        row += rows;
      }
    }
  }
}

template <class T, int kCols>
void dot_columns(const Gemm<T>& x, long i, long j) {
  dots<T, 1, kCols>(x.k, x.a + i * x.lda, x.lda, int(std::min(4L, x.m - i)), x.b + j * x.ldb, x.ldb,
                    x.c + i + j * x.ldc, x.ldc, x.alpha, x.beta);
}

// A transposed A with few columns: sums along k, nothing turned.
template <class T>
void gemm_dots(const Gemm<T>& x) {
  const Split columns(x.n, kMaxDots);
  for (long i = 0; i < x.m; i += 4) {
    long j = 0;
    for (long q = 0; q < columns.parts; j += columns.size(q++)) switch (columns.size(q)) {
        case 1:
          dot_columns<T, 1>(x, i, j);
          break;
        case 2:
          dot_columns<T, 2>(x, i, j);
          break;
        case 3:
          if constexpr (kMaxDots >= 3) dot_columns<T, 3>(x, i, j);
          break;
        case 4:
          if constexpr (kMaxDots >= 4) dot_columns<T, 4>(x, i, j);
          break;
        case 5:
          if constexpr (kMaxDots >= 5) dot_columns<T, 5>(x, i, j);
          break;
        case 6:
          if constexpr (kMaxDots >= 6) dot_columns<T, 6>(x, i, j);
          break;
      }
  }
}

template <class T, int kDeep>
void gemm_update(const Gemm<T>& x) {
  update<T, kDeep>(x.m, x.n, x.a, x.lda, x.b, x.trans_b ? x.ldb : 1, x.trans_b ? 1 : x.ldb, x.c,
                   x.ldc, x.alpha, x.beta);
}

// How many vectors the tile of n columns has that reads each number of A once; 0: there is none.
inline int narrow(long n) {
  for (int v = kTallest; v > kTall; --v)
    if (n <= kMaxCols[v]) return v;
  for (int v = kTall; v > 1; --v)
    if (n <= kMaxCols[v]) return v;
  return 0;
}

template <class T>
void gemm(const Gemm<T>& x) {
  if (x.n == 1 && !x.trans_b)
    return x.trans_a ? gemv_turned(x.m, x.k, x.a, x.lda, x.b, x.c, x.alpha, x.beta)
                     : gemv(x.m, x.k, x.a, x.lda, x.b, x.c, x.alpha, x.beta);
  if (x.trans_a && !x.trans_b && x.n <= kDotColumns) return gemm_dots(x);
  if (!x.trans_a) {
    switch (x.k) {
      case 1:
        return gemm_update<T, 1>(x);
      case 2:
        return gemm_update<T, 2>(x);
      case 3:
        return gemm_update<T, 3>(x);
      case 4:
        return gemm_update<T, 4>(x);
    }
    if (const int vectors = narrow(x.n); vectors > 0 && x.m >= kWidth<T>)
      return x.trans_b ? gemm_narrow<T, true>(x, vectors) : gemm_narrow<T, false>(x, vectors);
  }
  if (x.k > kShallow && x.n >= kManyColumns && x.m >= (x.trans_b ? kManyRowsTransposed : kManyRows))
    gemm_by_panels<T, true>(x);
  else
    gemm_by_panels<T, false>(x);
}

}  // namespace trellis::linalg
