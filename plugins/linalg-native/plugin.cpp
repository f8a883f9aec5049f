// SPDX-License-Identifier: Apache-2.0
//
// Matrix products by own register tiles, one template for every vector width. Needs no other library
// and no memory but the stack.
//
// Ranks are this library's part of the dispatch table, one set per CPU level (the host takes the
// highest rank of a class). Measured on one core (docs/benchmarks.md): at v3 ahead of OpenBLAS and
// Eigen in most shapes of every class; v4 is the same code with wider vectors and ranked by analogy.
// At v2, on a processor with AVX2, OpenBLAS is two to three times as fast in whole matrices, which
// are left to it; for vectors and tiny products opening it is not thought worth what it gains.
#include <trellis/sdk/linalg.hpp>

#include "gemm.hpp"

namespace trellis::ops {
namespace {

#if defined(__AVX2__)
constexpr int kBlockRank = 70;
#else
constexpr int kBlockRank = 45;
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
    x.ldb = static_cast<long>(p.ldb());
    x.trans_b = p.trans_b();
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
    const auto run = p.trans_a() ? linalg::gemv_turned<T> : linalg::gemv<T>;
    for (std::uint64_t i = 0; i < p.batch(); ++i)
      run(static_cast<long>(p.m()), static_cast<long>(p.k()), p.a(i), static_cast<long>(p.lda()),
          p.b(i), p.c(i), p.alpha(), p.beta());
  }
};

struct Vectors : Products {
  static constexpr LinalgSpec spec{
      .name = "native_vectors",
      .summary = "products with a vector, of two vectors, and tiny ones",
      .rank = 70,
      .classes = TRL_MM_GEMV | TRL_MM_GEMV_T | TRL_MM_OUTER | TRL_MM_TINY};
};

struct Blocks : Products {
  static constexpr LinalgSpec spec{.name = "native_blocks",
                                   .summary = "products of matrices",
                                   .rank = kBlockRank,
                                   .classes = TRL_MM_SKINNY | TRL_MM_SMALL | TRL_MM_LARGE};
};

}  // namespace

TRL_OPS(products, Vectors, Blocks)
}  // namespace trellis::ops

TRL_PLUGIN("linalg-native", PLUGIN_VERSION, "core", products)
