// SPDX-License-Identifier: Apache-2.0
//
// Matrix products: checks the arguments, brings them into their simplest form, and hands them to
// the provider that ranks highest for their shape class. Holds no hot loop. Ranks are constants of
// the providers' descriptors, one set per CPU level (docs/decisions/0001-linalg-table.md); nothing
// is measured.
//
// 1 A provider's self check runs when it is about to be used for the first time, never before:
// opening a large library
//   costs more than everything else at start-up. A provider whose check fails is reported once and
//   not used.
// 2 After that first use a product takes no lock and allocates nothing here.
// 3 A vector never reaches a provider's gemm (n == 1 nor m == 1) unless it is strided or the
// provider has no gemv.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <trellis/tensor.hpp>
#include <vector>

#include "registry/registry.hpp"
#include "runtime/core.hpp"

namespace trellis::detail {

class LinalgDispatch {
 public:
  // Takes the providers that core.registry has now; made again when plugins are added.
  explicit LinalgDispatch(RuntimeCore& core);

  // C = alpha op(A) op(B) + beta C, `batch` times; see trl_mm_args. Any stride may be 0: an operand
  // shared by the batch; with stride_c 0 and beta 1 the products are summed. Failure is recorded on
  // args.call. [exec], any number of threads.
  trl_status gemm(const trl_mm_args& args);
  trl_status gemv(const trl_mm_args& args);  // n must be 1; ldb and ldc are ignored

  // One bit TRL_MM_*: what C[m,n] = op(A)[m,k] op(B)[k,n] counts as. flags: TRL_MM_TRANS_*.
  static uint32_t classify(uint64_t m, uint64_t n, uint64_t k, uint32_t flags);

  // Who serves products of this class, checked; null: nobody.
  const LinalgEntry* provider(DType dtype, uint32_t shape_class);

 private:
  struct Provider {
    const LinalgEntry* entry = nullptr;
    std::atomic<uint8_t> state{0};  // State, in dispatch.cpp
  };
  using Route = std::vector<Provider*>;  // highest rank first
  static constexpr int kClasses = 7;

  Route& route(uint16_t dtype, uint32_t shape_class);
  bool usable(Provider& provider);
  trl_status run(trl_mm_args& args, const char* who);

  RuntimeCore& core_;
  std::vector<std::unique_ptr<Provider>> providers_;
  std::array<std::array<Route, kClasses>, 2> routes_;  // f32, f64
  std::mutex check_mutex_;
};

}  // namespace trellis::detail
