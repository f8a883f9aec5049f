// SPDX-License-Identifier: Apache-2.0
//
// Matrix products by OpenBLAS, one thread each: the host's own threads share the work.
//
// OpenBLAS is opened by `check`, which the host calls when a product is about to come here for the
// first time. Linking it instead would cost every start 6-10 ms and its threads, also in programs
// that never send a product here. Later calls go through pointers that `check` set before it
// returned.
//
// Kernels of some builds miscompute on processors newer than they are: `check` compares odd shapes
// with plain loops. OPENBLAS_CORETYPE, which chooses the kernels, belongs to the user and is left
// as it is.
//
// Ranks: behind linalg-native at v3 and v4, ahead of it at v2 for whole matrices (OpenBLAS looks at
// the processor by itself). Products with one vector go to gemv.
#include <cblas.h>
#include <dlfcn.h>

#include <climits>
#include <cmath>
#include <trellis/sdk/linalg.hpp>
#include <vector>

namespace trellis::ops {
namespace {

struct Library {
  decltype(&cblas_sgemm) sgemm = nullptr;
  decltype(&cblas_dgemm) dgemm = nullptr;
  decltype(&cblas_sgemv) sgemv = nullptr;
  decltype(&cblas_dgemv) dgemv = nullptr;
};

constexpr const char* kLibrary = "libopenblas.so.0";

template <class F>
F symbol(void* handle, const char* name) {
  void* const at = dlsym(handle, name);
  if (at == nullptr) fail(TRL_E_UNSUPPORTED, kLibrary, " has no ", name);
  return reinterpret_cast<F>(at);
}

// Process-wide, as the library itself; opened once, thread-safe.
const Library& library() {
  static const Library opened = [] {
    void* const handle = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == nullptr) fail(TRL_E_UNSUPPORTED, "cannot be opened: ", dlerror());
    symbol<decltype(&openblas_set_num_threads)>(handle, "openblas_set_num_threads")(1);
    Library l;
    l.sgemm = symbol<decltype(l.sgemm)>(handle, "cblas_sgemm");
    l.dgemm = symbol<decltype(l.dgemm)>(handle, "cblas_dgemm");
    l.sgemv = symbol<decltype(l.sgemv)>(handle, "cblas_sgemv");
    l.dgemv = symbol<decltype(l.dgemv)>(handle, "cblas_dgemv");
    return l;
  }();
  return opened;
}

CBLAS_TRANSPOSE transpose(bool on) { return on ? CblasTrans : CblasNoTrans; }

// Larger sizes than the library's int are left to the next provider.
blasint size(std::uint64_t n) {
  if (n > INT_MAX)
    fail(TRL_E_UNSUPPORTED, "a size is larger than OpenBLAS can take: ", n, " (at most ", INT_MAX,
         ")");
  return static_cast<blasint>(n);
}

struct OpenBlas {
  static constexpr LinalgSpec spec{.name = "openblas",
                                   .summary = "OpenBLAS, one thread",
                                   .rank = 50,
                                   .classes = TRL_MM_GEMV | TRL_MM_GEMV_T | TRL_MM_OUTER |
                                              TRL_MM_TINY | TRL_MM_SKINNY | TRL_MM_SMALL |
                                              TRL_MM_LARGE};

  template <class T>
  static void gemm(const Product<T>& p) {
    const Library& l = library();
    const auto run = [&](auto f) {
      for (std::uint64_t i = 0; i < p.batch(); ++i)
        f(CblasColMajor, transpose(p.trans_a()), transpose(p.trans_b()), size(p.m()), size(p.n()),
          size(p.k()), p.alpha(), p.a(i), size(p.lda()), p.b(i), size(p.ldb()), p.beta(), p.c(i),
          size(p.ldc()));
    };
    if constexpr (sizeof(T) == 4)
      run(l.sgemm);
    else
      run(l.dgemm);
  }

  template <class T>
  static void gemv(const Product<T>& p) {
    const Library& l = library();
    const bool t = p.trans_a();
    const auto run = [&](auto f) {
      for (std::uint64_t i = 0; i < p.batch(); ++i) {
        // Unlike gemm, its gemv multiplies C by a beta of 0, so that a NaN there would stay.
        if (p.beta() == T(0)) std::fill_n(p.c(i), p.m(), T(0));
        f(CblasColMajor, transpose(t), size(t ? p.k() : p.m()), size(t ? p.m() : p.k()), p.alpha(),
          p.a(i), size(p.lda()), p.b(i), 1, p.beta(), p.c(i), 1);
      }
    };
    if constexpr (sizeof(T) == 4)
      run(l.sgemv);
    else
      run(l.dgemv);
  }

  static void check(trl_call* call);
};

// Numbers in [-1, 1] that depend on nothing but the position.
template <class T>
std::vector<T> numbers(std::size_t n, std::uint32_t seed) {
  std::vector<T> v(n);
  for (T& x : v) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<T>(static_cast<double>(seed >> 8) / (1 << 23) - 1);
  }
  return v;
}

struct Case {
  std::uint64_t m, n, k;
  bool trans_a, trans_b;
};
// Odd sizes around the blocks of its kernels, each transposition, vectors both ways.
constexpr Case kCases[] = {{37, 29, 43, false, false},  {65, 17, 129, true, false},
                           {19, 71, 33, false, true},   {33, 35, 31, true, true},
                           {129, 97, 67, false, false}, {71, 1, 131, false, false},
                           {131, 1, 71, true, false}};

template <class T>
void compare(trl_call* call, const Case& c) {
  const std::uint64_t lda = (c.trans_a ? c.k : c.m) + 3, ldb = (c.trans_b ? c.n : c.k) + 1,
                      ldc = c.m + 2;
  const std::vector<T> a = numbers<T>(lda * (c.trans_a ? c.m : c.k), 1);
  const std::vector<T> b = numbers<T>(ldb * (c.trans_b ? c.k : c.n), 2);
  std::vector<T> got = numbers<T>(ldc * c.n, 3);
  const std::vector<T> before = got;
  trl_mm_args args{};
  args.struct_size = sizeof args;
  args.flags =
      sdk::detail::flag(c.trans_a, TRL_MM_TRANS_A) | sdk::detail::flag(c.trans_b, TRL_MM_TRANS_B);
  args.call = call;
  args.a = a.data();
  args.b = b.data();
  args.c = got.data();
  args.m = c.m;
  args.n = c.n;
  args.k = c.k;
  args.lda = lda;
  args.ldb = ldb;
  args.ldc = ldc;
  args.batch = 1;
  args.alpha = 0.5;
  args.beta = 1;
  const Product<T> product{args};
  c.n == 1 ? OpenBlas::gemv<T>(product) : OpenBlas::gemm<T>(product);

  const double tolerance = (sizeof(T) == 4 ? 2e-6 : 4e-15) * static_cast<double>(c.k);
  for (std::uint64_t j = 0; j < c.n; ++j)
    for (std::uint64_t i = 0; i < ldc; ++i) {
      double sum = 0;
      for (std::uint64_t p = 0; i < c.m && p < c.k; ++p)
        sum += double(a[c.trans_a ? p + i * lda : i + p * lda]) *
               double(b[c.trans_b ? j + p * ldb : p + j * ldb]);
      const double want = before[i + j * ldc] + 0.5 * sum, is = got[i + j * ldc];
      if (std::abs(is - want) <= tolerance) continue;  // false for NaN
      fail(TRL_E_INTERNAL, "computes ", is, " at (", i, ",", j, ") of an ",
           sizeof(T) == 4 ? "f32" : "f64", " product ", c.m, "x", c.n, "x", c.k, ", right is ",
           want, " (another OPENBLAS_CORETYPE may help)");
    }
}

void OpenBlas::check(trl_call* call) {
  library();
  for (const Case& c : kCases) {
    compare<float>(call, c);
    compare<double>(call, c);
  }
}

}  // namespace

TRL_OPS(products, OpenBlas)
}  // namespace trellis::ops

TRL_PLUGIN("linalg-openblas", PLUGIN_VERSION, "core", products)
