// SPDX-License-Identifier: Apache-2.0
//
// Matrix products, from both sides.
//
// Using them: gemm(f, c, a, b, beta) computes c = a b + beta c through the host, which chooses the
// fastest provider:
//
//   gemm(f, Mat(y, m, n), Mat(w, m, k), Mat(x, k, n));                  y = w x
//   gemm(b, Mat(dx, k, n), Mat(w, m, k).t(), Mat(dy, m, n), beta);      dx = w' dy + beta dx
//
// Providing them: a struct with a LinalgSpec and
//   template <class T> static void gemm(const Product<T>& p);
//   template <class T> static void gemv(const Product<T>& p);    optional: n == 1
//   static void check(trl_call*);                                optional: throws when the library
//   computes nonsense
#pragma once

#include <trellis/abi/linalg.h>

#include <cstdint>
#include <string_view>
#include <trellis/sdk/plugin.hpp>
#include <trellis/sdk/tensor.hpp>
#include <type_traits>

namespace trellis::sdk {
inline namespace [[gnu::visibility("hidden")]] v0 {

// A column-major matrix in memory, or `count` of them `stride` elements apart (0: one serves all).
template <class T>
struct Mat {
  T* data;
  std::uint64_t rows, cols;  // as it lies
  std::uint64_t ld;          // distance of columns
  std::uint64_t stride = 0;
  bool transposed = false;

  Mat(T* p, std::uint64_t r, std::uint64_t c) : data(p), rows(r), cols(c), ld(r) {}
  Mat(T* p, std::uint64_t r, std::uint64_t c, std::uint64_t batch_stride)
      : data(p), rows(r), cols(c), ld(r), stride(batch_stride) {}
  Mat t() const {
    Mat to = *this;
    to.transposed = !transposed;
    return to;
  }
  std::uint64_t op_rows() const { return transposed ? cols : rows; }
  std::uint64_t op_cols() const { return transposed ? rows : cols; }
};

// c = alpha a b + beta c, `batch` times. beta 0: c is written, never read. `f` is the call: Forward
// or Backward. Throws what the provider refuses.
template <class Call, class T>
void gemm(const Call& f, const Mat<T>& c, const Mat<const T>& a, const Mat<const T>& b,
          double beta = 0, std::uint64_t batch = 1, double alpha = 1) {
  const trl_linalg_api& api = detail::need(detail::self_of(f.call()).linalg, "trl.linalg/1");
  trl_mm_args p{};
  p.struct_size = sizeof p;
  p.flags = detail::flag(a.transposed, TRL_MM_TRANS_A) | detail::flag(b.transposed, TRL_MM_TRANS_B);
  p.call = f.call();
  p.a = a.data;
  p.b = b.data;
  p.c = c.data;
  p.m = c.rows;
  p.n = c.cols;
  p.k = a.op_cols();
  p.lda = a.ld;
  p.ldb = b.ld;
  p.ldc = c.ld;
  p.stride_a = a.stride;
  p.stride_b = b.stride;
  p.stride_c = c.stride;
  p.batch = batch;
  p.alpha = alpha;
  p.beta = beta;
  p.dtype = detail::dtype_of<T>();
  p.device = TRL_CPU;
  // A transposed column is a row: its elements follow one another only where the leading dimension
  // is 1.
  const bool vector = p.n == 1 && (!b.transposed || b.ld == 1);
  const trl_status status = vector ? api.gemv(&p) : api.gemm(&p);
  if (status != TRL_OK) throw Error(status, {});
}
// The product asked of a provider: C = alpha op(A) op(B) + beta C, `batch` times.
template <class T>
struct Product {
  const trl_mm_args& args;

  std::uint64_t m() const { return args.m; }
  std::uint64_t n() const { return args.n; }
  std::uint64_t k() const { return args.k; }
  std::uint64_t batch() const { return args.batch; }
  std::uint64_t lda() const { return args.lda; }
  std::uint64_t ldb() const { return args.ldb; }
  std::uint64_t ldc() const { return args.ldc; }
  bool trans_a() const { return (args.flags & TRL_MM_TRANS_A) != 0; }
  bool trans_b() const { return (args.flags & TRL_MM_TRANS_B) != 0; }
  T alpha() const { return static_cast<T>(args.alpha); }
  T beta() const { return static_cast<T>(args.beta); }
  const T* a(std::uint64_t i = 0) const {
    return static_cast<const T*>(args.a) + i * args.stride_a;
  }
  const T* b(std::uint64_t i = 0) const {
    return static_cast<const T*>(args.b) + i * args.stride_b;
  }
  T* c(std::uint64_t i = 0) const { return static_cast<T*>(args.c) + i * args.stride_c; }
  trl_call* call() const { return args.call; }
};

struct LinalgSpec {
  std::string_view name{}, summary{};
  std::int16_t rank = 0;      // higher wins where the host's table names none
  std::uint32_t classes = 0;  // TRL_MM_*
};

namespace detail {

template <class P, class T>
trl_status gemm_of(const trl_mm_args* args) {
  return guard(args->call, P::spec.name, [args] { P::template gemm<T>(Product<T>{*args}); });
}
template <class P, class T>
trl_status gemv_of(const trl_mm_args* args) {
  return guard(args->call, P::spec.name, [args] { P::template gemv<T>(Product<T>{*args}); });
}
template <class P>
trl_status check_of(trl_call* call) {
  return guard(call, P::spec.name, [call] { P::check(call); });
}

template <class P, class T>
void add_linalg(Catalog& catalog) {
  trl_linalg_desc to{};
  to.struct_size = sizeof to;
  to.id = catalog.id(P::spec.name);
  to.summary = str(P::spec.summary);
  to.device = str("cpu");
  to.dtype = dtype_of<T>();
  to.rank = P::spec.rank;
  to.classes = P::spec.classes;
  if constexpr (requires(trl_call * call) { P::check(call); }) to.check = &check_of<P>;
  to.gemm = &gemm_of<P, T>;
  if constexpr (requires(const Product<T>& p) { P::template gemv<T>(p); }) to.gemv = &gemv_of<P, T>;
  catalog.linalgs.push_back(catalog.keep(to));
}

}  // namespace detail

template <class P>
void describe(Catalog& catalog, const LinalgSpec&, std::string_view) {
  detail::add_linalg<P, float>(catalog);
  detail::add_linalg<P, double>(catalog);
}

}  // namespace gnu::visibility("hidden")]]v0
}  // namespace trellis::sdk

namespace trellis::ops {
using namespace ::trellis::sdk;  // NOLINT
}
