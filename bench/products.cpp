// SPDX-License-Identifier: Apache-2.0
//
// Every provider at shapes of every class, f32; names are product/<provider>/<class>/MxNxK with `t`
// behind a transposed side. Figures in GFLOP/s.
#include <string>
#include <vector>

#include "linalg/dispatch.hpp"
#include "micro.hpp"
#include "registry/registry.hpp"
#include "runtime/call.hpp"

namespace trellis::bench {
namespace {

struct Product {
  const char* shape_class;
  uint64_t m, n, k;
  bool trans_a = false, trans_b = false;
};

// What small recurrent networks ask for: gates of one to 64 columns, their gradients, weights'
// gradients; then squares.
constexpr Product kProducts[] = {{"gemv", 256, 1, 256},
                                 {"gemv", 1024, 1, 256},
                                 {"gemv", 200, 1, 50},
                                 {"gemv_t", 256, 1, 256, true},
                                 {"gemv_t", 256, 1, 1024, true},
                                 {"gemv_t", 50, 1, 200, true},
                                 {"gemv", 6049, 1, 256},
                                 {"gemv_t", 256, 1, 6049, true},
                                 {"outer", 200, 50, 1},
                                 {"outer", 1024, 256, 1, false, true},
                                 {"tiny", 8, 8, 8},
                                 {"tiny", 16, 16, 16},
                                 {"skinny", 200, 2, 50},
                                 {"skinny", 200, 16, 50},
                                 {"skinny", 1024, 4, 256},
                                 {"skinny", 1024, 16, 256},
                                 {"skinny", 6049, 16, 256},
                                 {"skinny", 6049, 22, 256},
                                 {"skinny", 640, 2, 128},
                                 {"skinny", 640, 16, 128},
                                 {"skinny", 50, 4, 200, true},
                                 {"skinny", 50, 16, 200, true},
                                 {"skinny", 256, 16, 1024, true},
                                 {"skinny", 256, 22, 6049, true},
                                 {"skinny", 200, 50, 4, false, true},
                                 {"skinny", 200, 50, 16, false, true},
                                 {"skinny", 200, 50, 360, false, true},
                                 {"small", 64, 64, 64},
                                 {"small", 128, 128, 128},
                                 {"small", 416, 128, 23, false, true},
                                 {"large", 256, 256, 256},
                                 {"large", 1024, 64, 256},
                                 {"large", 256, 64, 1024, true},
                                 {"large", 416, 376, 128},
                                 {"large", 1024, 256, 20, false, true},
                                 {"large", 1024, 256, 350, false, true},
                                 {"large", 6049, 350, 256},
                                 {"large", 6049, 256, 22, false, true},
                                 {"large", 512, 512, 512},
                                 {"large", 1024, 1024, 1024}};

void multiply(benchmark::State& state, const LinalgEntry& provider, const Product& product) {
  detail::Call call(runtime().core());
  call.begin(detail::Phase::exec, provider.plugin->self);
  if (provider.desc.check != nullptr && provider.desc.check(&call) < 0)
    return state.SkipWithError("check failed");
  const std::vector<float> a(product.m * product.k, 0.5f), b(product.k * product.n, 0.25f);
  std::vector<float> c(product.m * product.n);
  trl_mm_args args{};
  args.struct_size = sizeof args;
  if (product.trans_a) args.flags |= TRL_MM_TRANS_A;
  if (product.trans_b) args.flags |= TRL_MM_TRANS_B;
  args.call = &call;
  args.a = a.data();
  args.b = b.data();
  args.c = c.data();
  args.m = args.ldc = product.m;
  args.n = product.n;
  args.k = product.k;
  args.lda = product.trans_a ? product.k : product.m;
  args.ldb = product.trans_b ? product.n : product.k;
  args.batch = 1;
  args.alpha = 1;
  args.dtype = TRL_F32;
  const auto f =
      product.n == 1 && provider.desc.gemv != nullptr ? provider.desc.gemv : provider.desc.gemm;
  const double flop = 2.0 * static_cast<double>(product.m * product.n * product.k);
  for (auto _ : state) f(&args);
  state.counters["flops"] = benchmark::Counter(flop, benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace

// Named after what is loaded, hence at run time.
void register_products() {
  for (const auto& entry : runtime().core().registry->linalgs()) {
    if (entry->desc.dtype != TRL_F32) continue;
    for (const Product& p : kProducts) {
      if (!(entry->desc.classes &
            detail::LinalgDispatch::classify(p.m, p.n, p.k, p.trans_a ? TRL_MM_TRANS_A : 0)))
        continue;
      const std::string name = "product/" + entry->id + "/" + p.shape_class + "/" +
                               std::to_string(p.m) + (p.trans_a ? "t" : "") + "x" +
                               std::to_string(p.n) + (p.trans_b ? "t" : "") + "x" +
                               std::to_string(p.k);
      benchmark::RegisterBenchmark(name.c_str(),
                                   [&entry, &p](benchmark::State& s) { multiply(s, *entry, p); });
    }
  }
}

}  // namespace trellis::bench
