// SPDX-License-Identifier: Apache-2.0
//
// Matrix products by Eigen, whose headers are compiled in: what is left when linalg-native is not
// loaded and OpenBLAS not installed, and a second opinion on both.
//
// Ranks (docs/benchmarks.md): behind linalg-native throughout. At v3 and v4 ahead of OpenBLAS for
// vectors, thin and small matrices, behind it for large ones; at v2 ahead for vectors only.
#include <Eigen/Core>
#include <trellis/sdk/linalg.hpp>

namespace trellis::ops {
namespace {

#if defined(__AVX2__)
constexpr int kBlockRank = 60;
#else
constexpr int kBlockRank = 40;
#endif

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
template <class T>
using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;
using Stride = Eigen::OuterStride<>;

long size(std::uint64_t n) { return static_cast<long>(n); }

// to = alpha a b + beta to
template <class T>
void multiply(auto to, const auto& a, const auto& b, T alpha, T beta) {
  if (beta == T(0)) {
    to.noalias() = alpha * a * b;
    return;
  }
  if (beta != T(1)) to *= beta;
  to.noalias() += alpha * a * b;
}

struct Products {
  template <class T>
  static void gemm(const Product<T>& p) {
    using Read = Eigen::Map<const Matrix<T>, 0, Stride>;
    const long m = size(p.m()), n = size(p.n()), k = size(p.k());
    for (std::uint64_t i = 0; i < p.batch(); ++i) {
      const Read a(p.a(i), p.trans_a() ? k : m, p.trans_a() ? m : k, Stride(size(p.lda())));
      const Read b(p.b(i), p.trans_b() ? n : k, p.trans_b() ? k : n, Stride(size(p.ldb())));
      const Eigen::Map<Matrix<T>, 0, Stride> c(p.c(i), m, n, Stride(size(p.ldc())));
      if (p.trans_a() && p.trans_b())
        multiply(c, a.transpose(), b.transpose(), p.alpha(), p.beta());
      else if (p.trans_a())
        multiply(c, a.transpose(), b, p.alpha(), p.beta());
      else if (p.trans_b())
        multiply(c, a, b.transpose(), p.alpha(), p.beta());
      else
        multiply(c, a, b, p.alpha(), p.beta());
    }
  }

  template <class T>
  static void gemv(const Product<T>& p) {
    const long m = size(p.m()), k = size(p.k());
    for (std::uint64_t i = 0; i < p.batch(); ++i) {
      const Eigen::Map<const Matrix<T>, 0, Stride> a(p.a(i), p.trans_a() ? k : m,
                                                     p.trans_a() ? m : k, Stride(size(p.lda())));
      const Eigen::Map<const Vector<T>> x(p.b(i), k);
      const Eigen::Map<Vector<T>> y(p.c(i), m);
      p.trans_a() ? multiply(y, a.transpose(), x, p.alpha(), p.beta())
                  : multiply(y, a, x, p.alpha(), p.beta());
    }
  }
};

struct Vectors : Products {
  static constexpr LinalgSpec spec{
      .name = "eigen_vectors",
      .summary = "Eigen: products with a vector, and tiny ones",
      .rank = 60,
      .classes = TRL_MM_GEMV | TRL_MM_GEMV_T | TRL_MM_OUTER | TRL_MM_TINY};
};

struct Blocks : Products {
  static constexpr LinalgSpec spec{.name = "eigen_blocks",
                                   .summary = "Eigen: products of thin and small matrices",
                                   .rank = kBlockRank,
                                   .classes = TRL_MM_SKINNY | TRL_MM_SMALL};
};

struct Large : Products {
  static constexpr LinalgSpec spec{.name = "eigen_large",
                                   .summary = "Eigen: products of large matrices",
                                   .rank = 40,
                                   .classes = TRL_MM_LARGE};
};

}  // namespace

TRL_OPS(products, Vectors, Blocks, Large)
}  // namespace trellis::ops

TRL_PLUGIN("linalg-eigen", PLUGIN_VERSION, "core", products)
