/* SPDX-License-Identifier: Apache-2.0
 *
 * A libopenblas that forgets the last column of A where it has more than 64, as a broken kernel
 * may; with NO_GEMV one that is too old. */
#include <cblas.h>

void openblas_set_num_threads(int n) { (void)n; }

#define GEMM(NAME, T)                                                                              \
  void NAME(OPENBLAS_CONST enum CBLAS_ORDER order, OPENBLAS_CONST enum CBLAS_TRANSPOSE ta,         \
            OPENBLAS_CONST enum CBLAS_TRANSPOSE tb, OPENBLAS_CONST blasint m,                      \
            OPENBLAS_CONST blasint n, OPENBLAS_CONST blasint k, OPENBLAS_CONST T alpha,            \
            OPENBLAS_CONST T* a, OPENBLAS_CONST blasint lda, OPENBLAS_CONST T* b,                  \
            OPENBLAS_CONST blasint ldb, OPENBLAS_CONST T beta, T* c, OPENBLAS_CONST blasint ldc) { \
    (void)order;                                                                                   \
    for (blasint j = 0; j < n; ++j)                                                                \
      for (blasint i = 0; i < m; ++i) {                                                            \
        T sum = 0;                                                                                 \
        for (blasint p = 0; p < (k > 64 ? k - 1 : k); ++p)                                         \
          sum += (ta == CblasTrans ? a[p + i * lda] : a[i + p * lda]) *                            \
                 (tb == CblasTrans ? b[j + p * ldb] : b[p + j * ldb]);                             \
        c[i + j * ldc] = alpha * sum + beta * c[i + j * ldc];                                      \
      }                                                                                            \
  }
#define GEMV(NAME, T)                                                                         \
  void NAME(OPENBLAS_CONST enum CBLAS_ORDER order, OPENBLAS_CONST enum CBLAS_TRANSPOSE trans, \
            OPENBLAS_CONST blasint m, OPENBLAS_CONST blasint n, OPENBLAS_CONST T alpha,       \
            OPENBLAS_CONST T* a, OPENBLAS_CONST blasint lda, OPENBLAS_CONST T* x,             \
            OPENBLAS_CONST blasint incx, OPENBLAS_CONST T beta, T* y,                         \
            OPENBLAS_CONST blasint incy) {                                                    \
    (void)order, (void)trans, (void)m, (void)n, (void)alpha, (void)a, (void)lda, (void)x,     \
        (void)incx;                                                                           \
    (void)beta, (void)y, (void)incy;                                                          \
  }
GEMM(cblas_sgemm, float)
GEMM(cblas_dgemm, double)
#ifndef NO_GEMV
GEMV(cblas_sgemv, float)
GEMV(cblas_dgemv, double)
#endif
