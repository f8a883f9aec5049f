// SPDX-License-Identifier: Apache-2.0
#include "linalg/dispatch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>
#include <string_view>

#include "runtime/call.hpp"

namespace trellis::detail {

namespace {

enum State : uint8_t { kUntested, kGood, kWrong };

constexpr const char* kClassNames[] = {"gemv",   "gemv_t", "outer", "tiny",
                                       "skinny", "small",  "large"};

bool transposed_a(const trl_mm_args& x) { return x.flags & TRL_MM_TRANS_A; }
bool transposed_b(const trl_mm_args& x) { return x.flags & TRL_MM_TRANS_B; }

std::string_view view(const trl_str& s) { return {s.p, s.n}; }

trl_status refuse(const trl_mm_args& x, const char* who, trl_status status,
                  const std::string& fact) {
  const std::string text = fmt::format("[{}] {}", who, fact);
  return x.call->host->fail(x.call, status, {text.data(), text.size()});
}

// Leading dimension `ld` of a rows x cols matrix.
std::string small_ld(const char* what, uint64_t ld, uint64_t rows, uint64_t cols) {
  return fmt::format("ld{} is {}: {} is stored as {}x{} (at least {})", what, ld,
                     static_cast<char>(*what - 'a' + 'A'), rows, cols, rows);
}

trl_status check_arguments(const trl_mm_args& x, const char* who) {
  if (x.call == nullptr) return TRL_E_INVALID;
  if (x.struct_size < sizeof(trl_mm_args))
    return refuse(
        x, who, TRL_E_ABI,
        fmt::format("struct_size is {} (at least {})", x.struct_size, sizeof(trl_mm_args)));
  if (x.dtype != TRL_F32 && x.dtype != TRL_F64)
    return refuse(x, who, TRL_E_DTYPE, fmt::format("dtype is {} (f32 or f64)", x.dtype));
  if (x.device != TRL_CPU)
    return refuse(x, who, TRL_E_UNSUPPORTED, fmt::format("device is {} (0, the CPU)", x.device));
  if (x.flags & ~(TRL_MM_TRANS_A | TRL_MM_TRANS_B))
    return refuse(x, who, TRL_E_INVALID,
                  fmt::format("flags are {:#x} (TRL_MM_TRANS_A and _B only)", x.flags));
  if (x.batch == 0) return refuse(x, who, TRL_E_INVALID, "batch is 0 (at least 1)");
  if (x.m == 0 || x.n == 0) return TRL_OK;
  if (x.c == nullptr) return refuse(x, who, TRL_E_INVALID, "c is null");
  if (x.ldc < x.m) return refuse(x, who, TRL_E_SHAPE, small_ld("c", x.ldc, x.m, x.n));
  if (x.batch > 1) {
    const uint64_t extent = (x.n - 1) * x.ldc + x.m;
    if (x.stride_c != 0 && x.stride_c < extent)
      return refuse(
          x, who, TRL_E_SHAPE,
          fmt::format("stride_c is {}: the results of the batch overlap (0, or at least {})",
                      x.stride_c, extent));
    if (x.stride_c == 0 && x.beta != 1)
      return refuse(x, who, TRL_E_INVALID,
                    fmt::format("stride_c is 0 with batch {} and beta {} (beta 1 sums the batch)",
                                x.batch, x.beta));
  }
  if (x.k == 0) return TRL_OK;
  if (x.a == nullptr || x.b == nullptr)
    return refuse(x, who, TRL_E_INVALID, x.a ? "b is null" : "a is null");
  const uint64_t rows_a = transposed_a(x) ? x.k : x.m, rows_b = transposed_b(x) ? x.n : x.k;
  if (x.lda < rows_a)
    return refuse(x, who, TRL_E_SHAPE, small_ld("a", x.lda, rows_a, transposed_a(x) ? x.m : x.k));
  if (x.ldb < rows_b)
    return refuse(x, who, TRL_E_SHAPE, small_ld("b", x.ldb, rows_b, transposed_b(x) ? x.k : x.n));
  return TRL_OK;
}

// What is left of C when there is nothing to multiply.
template <class T>
void scale(const trl_mm_args& x) {
  const T beta = static_cast<T>(x.beta);
  for (uint64_t b = 0; b < x.batch; ++b)
    for (uint64_t j = 0; j < x.n; ++j) {
      T* c = static_cast<T*>(x.c) + b * x.stride_c + j * x.ldc;
      for (uint64_t i = 0; i < x.m; ++i) c[i] = beta == 0 ? T(0) : beta * c[i];
    }
}

// A batch that shares A is one wider product, and a sum over the batch one deeper product, where
// the operands lie so.
void fold_batch(trl_mm_args& x) {
  if (x.batch == 1) return;
  if (x.stride_a == 0 && x.stride_b != 0 && x.stride_c != 0 && !transposed_b(x)) {
    const bool vectors = x.n == 1 && x.stride_b >= x.k && x.stride_c >= x.m;
    if (vectors) x.ldb = x.stride_b, x.ldc = x.stride_c;
    if (vectors || (x.stride_b == x.n * x.ldb && x.stride_c == x.n * x.ldc)) {
      x.n *= x.batch;
      x.batch = 1;
    }
  } else if (x.stride_c == 0 && x.stride_a != 0 && x.stride_b != 0 && !transposed_a(x) &&
             transposed_b(x)) {
    const bool vectors = x.k == 1 && x.stride_a >= x.m && x.stride_b >= x.n;
    if (vectors) x.lda = x.stride_a, x.ldb = x.stride_b;
    if (vectors || (x.stride_a == x.k * x.lda && x.stride_b == x.k * x.ldb)) {
      x.k *= x.batch;
      x.batch = 1;
    }
  }
}

// c^T = a^T B is c = B^T a: a row vector becomes a column where it lies without gaps.
void turn_row_vector(trl_mm_args& x) {
  if (x.m != 1 || x.n == 1 || x.ldc != 1 || !(transposed_a(x) || x.lda == 1)) return;
  std::swap(x.a, x.b);
  std::swap(x.stride_a, x.stride_b);
  x.flags = transposed_b(x) ? 0u : uint32_t(TRL_MM_TRANS_A);
  x.lda = x.ldb;
  x.m = x.n;
  x.n = 1;
  x.ldb = x.k;
  x.ldc = x.m;
}

// A vector operand without gaps: what gemv can take.
bool is_vector(const trl_mm_args& x) {
  return x.n == 1 && (!transposed_b(x) || x.ldb == 1 || x.k == 1);
}

}  // namespace

uint32_t LinalgDispatch::classify(uint64_t m, uint64_t n, uint64_t k, uint32_t flags) {
  if (n == 1) return flags & TRL_MM_TRANS_A ? TRL_MM_GEMV_T : TRL_MM_GEMV;
  if (k == 1) return TRL_MM_OUTER;
  const double volume = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  if (volume <= 16.0 * 16 * 16) return TRL_MM_TINY;
  if (n < 64) return TRL_MM_SKINNY;
  return volume <= 128.0 * 128 * 128 ? TRL_MM_SMALL : TRL_MM_LARGE;
}

LinalgDispatch::LinalgDispatch(RuntimeCore& core) : core_(core) {
  for (const auto& entry : core.registry->linalgs()) {
    const trl_linalg_desc& desc = entry->desc;
    if ((desc.dtype != TRL_F32 && desc.dtype != TRL_F64) ||
        (desc.device.n != 0 && view(desc.device) != "cpu"))
      continue;
    Provider& provider = *providers_.emplace_back(std::make_unique<Provider>());
    provider.entry = entry.get();
    for (int c = 0; c < kClasses; ++c)
      if (desc.classes & (1u << c)) route(desc.dtype, 1u << c).push_back(&provider);
  }
  for (auto& by_class : routes_)
    for (Route& r : by_class)
      std::stable_sort(r.begin(), r.end(), [](const Provider* a, const Provider* b) {
        return a->entry->desc.rank > b->entry->desc.rank;
      });
}

LinalgDispatch::Route& LinalgDispatch::route(uint16_t dtype, uint32_t shape_class) {
  return routes_[dtype == TRL_F64][static_cast<size_t>(std::countr_zero(shape_class))];
}

bool LinalgDispatch::usable(Provider& provider) {
  const uint8_t known = provider.state.load(std::memory_order_acquire);
  if (known != kUntested) [[likely]]
    return known == kGood;

  const std::lock_guard lock(check_mutex_);
  if (const uint8_t now = provider.state.load(std::memory_order_acquire); now != kUntested)
    return now == kGood;
  const LinalgEntry& entry = *provider.entry;
  trl_status status = TRL_OK;
  if (entry.desc.check != nullptr) {
    Call call(core_);
    call.begin(Phase::init, entry.plugin->self);
    status = entry.desc.check(&call);
    if (status < 0)
      core_.log(3, fmt::format("[linalg] '{}' of {} is not used, its self check failed: {}",
                               entry.id, entry.plugin->id, call.take_text(status)));
  }
  provider.state.store(status < 0 ? kWrong : kGood, std::memory_order_release);
  return status >= 0;
}

const LinalgEntry* LinalgDispatch::provider(DType dtype, uint32_t shape_class) {
  for (Provider* p : route(static_cast<uint16_t>(dtype), shape_class))
    if (usable(*p)) return p->entry;
  return nullptr;
}

trl_status LinalgDispatch::gemm(const trl_mm_args& args) {
  if (const trl_status status = check_arguments(args, "gemm"); status < 0) return status;
  trl_mm_args x = args;
  return run(x, "gemm");
}

trl_status LinalgDispatch::gemv(const trl_mm_args& args) {
  trl_mm_args x = args;
  x.flags &= ~uint32_t(TRL_MM_TRANS_B);
  x.ldb = x.k;
  x.ldc = x.m;
  if (const trl_status status = check_arguments(x, "gemv"); status < 0) return status;
  if (x.n != 1)
    return refuse(x, "gemv", TRL_E_SHAPE, fmt::format("n is {} (1; gemm takes more)", x.n));
  return run(x, "gemv");
}

trl_status LinalgDispatch::run(trl_mm_args& x, const char* who) {
  if (x.m == 0 || x.n == 0) return TRL_OK;
  if (x.k == 0) {
    x.dtype == TRL_F64 ? scale<double>(x) : scale<float>(x);
    return TRL_OK;
  }
  fold_batch(x);
  turn_row_vector(x);
  const bool vector = is_vector(x);
  if (vector) x.flags &= ~uint32_t(TRL_MM_TRANS_B);
  const uint32_t shape_class =
      x.n == 1 && !vector ? uint32_t(TRL_MM_SKINNY) : classify(x.m, x.n, x.k, x.flags);

  for (Provider* p : route(x.dtype, shape_class)) {
    if (!usable(*p)) continue;
    const trl_linalg_desc& desc = p->entry->desc;
    void* const self = x.call->self;  // the caller's; the provider belongs to another plugin
    x.call->self = p->entry->plugin->self;
    const trl_status status = vector && desc.gemv != nullptr ? desc.gemv(&x) : desc.gemm(&x);
    x.call->self = self;
    if (status != TRL_E_UNSUPPORTED) return status;
    as_call(x.call).take_text(status);  // what this one could not do is no failure of the product
  }
  return refuse(
      x, who, TRL_E_UNSUPPORTED,
      fmt::format("no provider for {} products of class {} ({})",
                  x.dtype == TRL_F64 ? "f64" : "f32", kClassNames[std::countr_zero(shape_class)],
                  providers_.empty() ? "none is loaded; load a linalg plugin"
                                     : "load another linalg plugin"));
}

}  // namespace trellis::detail
