// SPDX-License-Identifier: Apache-2.0
//
// Matrix products by own register tiles over Eigen's packets, matrix-vector products by Eigen.
// Needs no other library and no memory but the stack.
//
// Ranks are this library's part of the dispatch table, one set per CPU level (the host takes the
// highest rank of a class). Measured on one core (docs/benchmarks.md): at v4 the tiles are ahead of
// OpenBLAS or near it in most shapes, at v3 near it; where they are behind, opening another library
// was not thought worth it. At v2 they serve vectors and tiny matrices and leave the rest to a
// library that knows the processor.
#include <trellis/sdk/linalg.hpp>

#include "products.hpp"

namespace trellis::ops {
namespace {

#if defined(__AVX2__)
constexpr int kBlockRank = 60;
#else
constexpr int kBlockRank = 40;
#endif

struct Products {
  template <class T>
  static void gemm(const Product<T>& p) {
    linalg::Gemm<T> x{};
    x.m = static_cast<long>(p.m());
    x.n = static_cast<long>(p.n());
    x.k = static_cast<long>(p.k());
    x.lda = static_cast<long>(p.lda());
    x.trans_a = p.trans_a();
    x.b_k = p.trans_b() ? static_cast<long>(p.ldb()) : 1;
    x.b_col = p.trans_b() ? 1 : static_cast<long>(p.ldb());
    x.ldc = static_cast<long>(p.ldc());
    x.alpha = p.alpha();
    x.beta = p.beta();
    for (std::uint64_t i = 0; i < p.batch(); ++i) {
      x.a = p.a(i);
      x.b = p.b(i);
      x.c = p.c(i);
      linalg::gemm(x);
    }
  }

  template <class T>
  static void gemv(const Product<T>& p) {
    const long m = static_cast<long>(p.m()), k = static_cast<long>(p.k()),
               lda = static_cast<long>(p.lda());
    for (std::uint64_t i = 0; i < p.batch(); ++i)
      linalg::gemv(p.trans_a(), m, k, p.a(i), lda, p.b(i), p.c(i), p.alpha(), p.beta());
  }
};

struct Vectors : Products {
  static constexpr LinalgSpec spec{
      .name = "eigen_vectors",
      .summary = "products with a vector, and tiny ones",
      .rank = 60,
      .classes = TRL_MM_GEMV | TRL_MM_GEMV_T | TRL_MM_OUTER | TRL_MM_TINY};
};

struct Blocks : Products {
  static constexpr LinalgSpec spec{.name = "eigen_blocks",
                                   .summary = "products of matrices",
                                   .rank = kBlockRank,
                                   .classes = TRL_MM_SKINNY | TRL_MM_SMALL | TRL_MM_LARGE};
};

}  // namespace

TRL_OPS(products, Vectors, Blocks)
}  // namespace trellis::ops

TRL_PLUGIN("linalg-eigen", PLUGIN_VERSION, "core", products)
