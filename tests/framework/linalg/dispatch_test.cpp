// SPDX-License-Identifier: Apache-2.0
#include "linalg/dispatch.hpp"

#include <doctest/doctest.h>

#include <thread>

#include "allocations.hpp"
#include "runtime/call.hpp"
#include "validate/products.hpp"

using namespace trellis;
using namespace trellis::test;
using validate::awkward_shapes;
using validate::Operands;
using validate::Shape;

namespace {

// What the last product looked like when it reached a provider.
trl_mm_args seen;
std::atomic<int> checks{0};
int gemms = 0, gemvs = 0;

template <class T>
trl_status loops(const trl_mm_args* x) {
  const bool ta = x->flags & TRL_MM_TRANS_A, tb = x->flags & TRL_MM_TRANS_B;
  for (uint64_t e = 0; e < x->batch; ++e) {
    const T* a = static_cast<const T*>(x->a) + e * x->stride_a;
    const T* b = static_cast<const T*>(x->b) + e * x->stride_b;
    T* c = static_cast<T*>(x->c) + e * x->stride_c;
    for (uint64_t j = 0; j < x->n; ++j)
      for (uint64_t i = 0; i < x->m; ++i) {
        double sum = 0;
        for (uint64_t p = 0; p < x->k; ++p)
          sum += double(a[ta ? p + i * x->lda : i + p * x->lda]) *
                 double(b[tb ? j + p * x->ldb : p + j * x->ldb]);
        T& to = c[i + j * x->ldc];
        to = static_cast<T>(x->alpha * sum + (x->beta == 0 ? 0 : x->beta * double(to)));
      }
  }
  return TRL_OK;
}

template <class T>
trl_status good_gemm(const trl_mm_args* x) {
  seen = *x;
  ++gemms;
  return loops<T>(x);
}
template <class T>
trl_status good_gemv(const trl_mm_args* x) {
  trl_mm_args y = *x;
  CHECK(y.n == 1);
  CHECK((y.flags & TRL_MM_TRANS_B) == 0);
  seen = *x;
  ++gemvs;
  y.ldb = y.k;
  y.ldc = y.m;
  return loops<T>(&y);
}
trl_status nonsense(const trl_mm_args* x) {
  for (uint64_t i = 0; i < x->m; ++i) static_cast<float*>(x->c)[i] = 42;
  return TRL_OK;
}
trl_status unwilling(const trl_mm_args* x) {
  return x->call->host->fail(x->call, TRL_E_UNSUPPORTED, TRL_STR("[unwilling] not this one"));
}
trl_status broken(const trl_mm_args* x) {
  return x->call->host->fail(x->call, TRL_E_INTERNAL, TRL_STR("[broken] no luck"));
}
trl_status good_check(trl_call*) {
  ++checks;
  return TRL_OK;
}
trl_status failing_check(trl_call* call) {
  ++checks;
  return call->host->fail(call, TRL_E_INTERNAL, TRL_STR("[fake] 1 + 1 is 3"));
}

constexpr uint32_t kAll = 2 * TRL_MM_LARGE - 1;

trl_linalg_desc provider(trl_str id, int16_t rank, uint32_t classes, uint16_t dtype = TRL_F32) {
  trl_linalg_desc d{};
  d.struct_size = sizeof d;
  d.id = id;
  d.summary = TRL_STR("for tests");
  d.device = TRL_STR("cpu");
  d.dtype = dtype;
  d.rank = rank;
  d.classes = classes;
  d.check = good_check;
  d.gemm = dtype == TRL_F32 ? good_gemm<float> : good_gemm<double>;
  d.gemv = dtype == TRL_F32 ? good_gemv<float> : good_gemv<double>;
  return d;
}

struct Bench {
  detail::RuntimeCore core;
  std::vector<trl_linalg_desc> descs;
  std::vector<const trl_linalg_desc*> pointers;
  std::string log;
  std::unique_ptr<detail::LinalgDispatch> dispatch;
  std::unique_ptr<detail::Call> call;

  explicit Bench(std::vector<trl_linalg_desc> d) : descs(std::move(d)) {
    for (const trl_linalg_desc& desc : descs) pointers.push_back(&desc);
    core.registry = std::make_unique<Registry>();
    core.log_sink = [this](int, std::string_view text) { log += std::string(text) + "\n"; };
    trl_plugin table{};
    table.struct_size = sizeof table;
    table.abi_major = TRL_ABI_MAJOR;
    table.abi_minor = table.min_host_minor = TRL_ABI_MINOR;
    table.id = TRL_STR("test-linalg");
    table.version = TRL_STR("1.0.0");
    table.linalgs = pointers.data();
    table.n_linalgs = static_cast<uint32_t>(pointers.size());
    PluginRecord record;
    record.id = "test-linalg";
    record.version = "1.0.0";
    record.namespaces = {"fake"};
    if (!pointers.empty()) core.registry->add(record, table).self = this;
    dispatch = std::make_unique<detail::LinalgDispatch>(core);
    call = std::make_unique<detail::Call>(core);
    call->begin(detail::Phase::exec, &core);
    checks = gemms = gemvs = 0;
  }

  // Text of the failure; empty: the product is right.
  template <class T>
  std::string run(const Shape& shape, bool vector = false) {
    Operands<T> x(shape, call.get());
    return run(x, vector);
  }
  template <class T>
  std::string run(Operands<T>& x, bool vector = false) {
    const trl_status st = vector ? dispatch->gemv(x.args()) : dispatch->gemm(x.args());
    CHECK(call->self == &core);
    return st == TRL_OK ? x.difference() : call->take_text(st);
  }
  template <class F>
  std::string run_with(F&& change, const Shape& shape = {3, 2, 4}, bool vector = false) {
    Operands<float> x(shape, call.get());
    change(x.args());
    return run(x, vector);
  }
};

Bench one() {
  return Bench(
      {provider(TRL_STR("fake.one"), 1, kAll), provider(TRL_STR("fake.one"), 1, kAll, TRL_F64)});
}

}  // namespace

TEST_CASE("linalg: shape classes") {
  const auto classify = detail::LinalgDispatch::classify;
  CHECK(classify(500, 1, 500, 0) == TRL_MM_GEMV);
  CHECK(classify(500, 1, 500, TRL_MM_TRANS_A) == TRL_MM_GEMV_T);
  CHECK(classify(500, 500, 1, 0) == TRL_MM_OUTER);
  CHECK(classify(16, 16, 16, 0) == TRL_MM_TINY);
  CHECK(classify(16, 16, 17, 0) == TRL_MM_SKINNY);
  CHECK(classify(1024, 63, 1024, 0) == TRL_MM_SKINNY);
  CHECK(classify(128, 128, 128, 0) == TRL_MM_SMALL);
  CHECK(classify(128, 128, 129, 0) == TRL_MM_LARGE);
  CHECK(classify(UINT64_MAX, UINT64_MAX, UINT64_MAX, 0) == TRL_MM_LARGE);
}

TEST_CASE("linalg: products of every form come out right") {
  Bench bench = one();
  for (Shape shape : awkward_shapes()) {
    if (shape.m * shape.n * shape.k > 100000) continue;
    CHECK(bench.run<float>(shape) == "");
    CHECK(bench.run<double>(shape) == "");
    shape.n = 1;
    shape.trans_b = false;
    shape.pad_b = shape.pad_c = 0;
    CHECK(bench.run<float>(shape, true) == "");
  }
}

TEST_CASE("linalg: a vector goes to gemv, on either side of the product") {
  Bench bench = one();
  CHECK(bench.run<float>({.m = 7, .n = 1, .k = 5}) == "");
  CHECK(bench.run<float>({.m = 1, .n = 7, .k = 5}) == "");
  CHECK(seen.m == 7);
  CHECK(seen.flags == TRL_MM_TRANS_A);
  CHECK(bench.run<float>({.m = 1, .n = 7, .k = 5, .trans_a = true, .trans_b = true}) == "");
  CHECK(seen.flags == 0);
  CHECK(bench.run<float>({.m = 7, .n = 1, .k = 5, .trans_b = true}) ==
        "");  // 1x5, its elements side by side
  CHECK(gemvs == 4);
  CHECK(gemms == 0);
  CHECK(bench.run<float>({.m = 7, .n = 1, .k = 5, .trans_b = true, .pad_b = 1}) ==
        "");  // not so here
  CHECK(gemms == 1);
}

TEST_CASE("linalg: a provider without gemv gets vectors through gemm") {
  trl_linalg_desc d = provider(TRL_STR("fake.one"), 1, kAll);
  d.gemv = nullptr;
  Bench bench({d});
  CHECK(bench.run<float>({.m = 7, .n = 1, .k = 5}) == "");
  CHECK(bench.run<float>({.m = 7, .n = 1, .k = 5}, true) == "");
  CHECK(gemms == 2);
}

TEST_CASE("linalg: a batch that shares A is one product") {
  Bench bench = one();
  CHECK(bench.run<float>({.m = 7, .n = 2, .k = 5, .batch = 6, .share_a = true}) == "");
  CHECK(seen.n == 12);
  CHECK(seen.batch == 1);
  CHECK(bench.run<float>({.m = 7, .n = 1, .k = 5, .batch = 6, .share_a = true}) == "");
  CHECK(seen.n == 6);
  CHECK(bench.run<float>({.m = 7, .n = 2, .k = 5, .trans_b = true, .batch = 6, .share_a = true}) ==
        "");
  CHECK(seen.batch == 6);
  CHECK(bench.run<float>({.m = 7, .n = 2, .k = 5, .batch = 6, .share_a = true, .share_b = true}) ==
        "");
  CHECK(seen.batch == 6);
}

TEST_CASE("linalg: a sum over the batch is one deeper product") {
  Bench bench = one();
  CHECK(bench.run<float>(
            {.m = 7, .n = 3, .k = 2, .trans_b = true, .beta = 1, .batch = 4, .sum = true}) == "");
  CHECK(seen.k == 8);
  CHECK(seen.batch == 1);
  CHECK(bench.run<float>(
            {.m = 7, .n = 3, .k = 1, .trans_b = true, .beta = 1, .batch = 4, .sum = true}) == "");
  CHECK(seen.k == 4);
  CHECK(bench.run<float>({.m = 7, .n = 3, .k = 2, .beta = 1, .batch = 4, .sum = true}) == "");
  CHECK(seen.batch == 4);
}

TEST_CASE("linalg: nothing to multiply") {
  Bench bench = one();
  CHECK(bench.run<float>({.m = 3, .n = 2, .k = 0, .pad_c = 1, .beta = 0}) == "");
  CHECK(bench.run<double>({.m = 3, .n = 2, .k = 0, .beta = 0.5, .batch = 2}) == "");
  CHECK(bench.run<float>({.m = 0, .n = 2, .k = 4}) == "");
  CHECK(bench.run<float>({.m = 3, .n = 0, .k = 4}) == "");
  CHECK(gemms + gemvs == 0);
}

TEST_CASE("linalg: wrong arguments are refused") {
  Bench bench = one();
  const auto with = [&](auto change) { return bench.run_with(change); };
  CHECK(with([](trl_mm_args& x) { x.struct_size = 8; }) ==
        "[gemm] struct_size is 8 (at least 144)");
  CHECK(with([](trl_mm_args& x) { x.dtype = TRL_I64; }) == "[gemm] dtype is 4 (f32 or f64)");
  CHECK(with([](trl_mm_args& x) { x.device = 1; }) == "[gemm] device is 1 (0, the CPU)");
  CHECK(with([](trl_mm_args& x) { x.flags = 9; }) ==
        "[gemm] flags are 0x9 (TRL_MM_TRANS_A and _B only)");
  CHECK(with([](trl_mm_args& x) { x.batch = 0; }) == "[gemm] batch is 0 (at least 1)");
  CHECK(with([](trl_mm_args& x) { x.a = nullptr; }) == "[gemm] a is null");
  CHECK(with([](trl_mm_args& x) { x.b = nullptr; }) == "[gemm] b is null");
  CHECK(with([](trl_mm_args& x) { x.c = nullptr; }) == "[gemm] c is null");
  CHECK(with([](trl_mm_args& x) { x.lda = 2; }) ==
        "[gemm] lda is 2: A is stored as 3x4 (at least 3)");
  CHECK(with([](trl_mm_args& x) { x.flags = TRL_MM_TRANS_A; }) ==
        "[gemm] lda is 3: A is stored as 4x3 (at least 4)");
  CHECK(with([](trl_mm_args& x) { x.ldb = 3; }) ==
        "[gemm] ldb is 3: B is stored as 4x2 (at least 4)");
  CHECK(with([](trl_mm_args& x) { x.ldc = 2; }) ==
        "[gemm] ldc is 2: C is stored as 3x2 (at least 3)");
  CHECK(with([](trl_mm_args& x) { x.batch = 2, x.stride_c = 5; }) ==
        "[gemm] stride_c is 5: the results of the batch overlap (0, or at least 6)");
  CHECK(with([](trl_mm_args& x) { x.batch = 2, x.stride_c = 0; }) ==
        "[gemm] stride_c is 0 with batch 2 and beta 0 (beta 1 sums the batch)");
  CHECK(bench.run_with([](trl_mm_args&) {}, {3, 2, 4}, true) ==
        "[gemv] n is 2 (1; gemm takes more)");
  CHECK(gemms + gemvs == 0);

  trl_mm_args none{};
  CHECK(bench.dispatch->gemm(none) == TRL_E_INVALID);
  CHECK(bench.dispatch->gemv(none) == TRL_E_INVALID);
}

TEST_CASE("linalg: the highest rank of a class serves it") {
  trl_linalg_desc other = provider(TRL_STR("fake.other"), 5, TRL_MM_TINY);
  other.gemm = nonsense;
  Bench bench(
      {provider(TRL_STR("fake.one"), 1, kAll), other, provider(TRL_STR("fake.late"), 1, kAll)});
  CHECK(bench.dispatch->provider(DType::f32, TRL_MM_TINY)->id == "fake.other");
  CHECK(bench.dispatch->provider(DType::f32, TRL_MM_SKINNY)->id == "fake.one");
  CHECK(bench.dispatch->provider(DType::f64, TRL_MM_SKINNY) == nullptr);
  CHECK(bench.run<float>({3, 2, 4}) != "");
  CHECK(bench.run<float>({50, 20, 40}) == "");
}

TEST_CASE("linalg: a provider whose check fails is reported once and not used") {
  trl_linalg_desc wrong = provider(TRL_STR("fake.wrong"), 50, kAll);
  wrong.check = failing_check;
  wrong.gemm = nonsense;
  Bench bench({provider(TRL_STR("fake.one"), 1, kAll), wrong});
  CHECK(checks == 0);
  CHECK(bench.run<float>({3, 2, 4}) == "");
  CHECK(bench.run<float>({50, 20, 40}) == "");
  CHECK(bench.log ==
        "[linalg] 'fake.wrong' of test-linalg is not used, its self check failed: [fake] 1 + 1 is "
        "3\n");
  CHECK(checks == 2);
}

TEST_CASE("linalg: a check runs when its provider is about to be used") {
  Bench bench({provider(TRL_STR("fake.tiny"), 1, TRL_MM_TINY),
               provider(TRL_STR("fake.rest"), 1, kAll & ~uint32_t(TRL_MM_TINY))});
  CHECK(checks == 0);
  CHECK(bench.run<float>({3, 2, 4}) == "");
  CHECK(checks == 1);
  CHECK(bench.run<float>({50, 20, 40}) == "");
  CHECK(bench.run<float>({50, 20, 40}) == "");
  CHECK(checks == 2);
}

TEST_CASE("linalg: what a provider cannot do goes to the next one, what fails does not") {
  trl_linalg_desc first = provider(TRL_STR("fake.first"), 50, kAll);
  first.gemm = unwilling;
  Bench bench({provider(TRL_STR("fake.one"), 1, kAll), first});
  CHECK(bench.run<float>({3, 2, 4}) == "");
  CHECK(bench.call->text == "");

  first.gemm = broken;
  Bench second({provider(TRL_STR("fake.one"), 1, kAll), first});
  CHECK(second.run<float>({3, 2, 4}) == "[broken] no luck");
}

TEST_CASE("linalg: nobody can do it") {
  Bench none({});
  CHECK(none.run<float>({3, 2, 4}) ==
        "[gemm] no provider for f32 products of class tiny (none is loaded; load a linalg plugin)");
  Bench bench({provider(TRL_STR("fake.one"), 1, TRL_MM_TINY)});
  CHECK(bench.run<float>({3, 1, 4}, true) ==
        "[gemv] no provider for f32 products of class gemv (load another linalg plugin)");
  CHECK(bench.run<double>({3, 2, 4}) ==
        "[gemm] no provider for f64 products of class tiny (load another linalg plugin)");
}

TEST_CASE("linalg: a provider sees its own plugin's self") {
  static void* inside;
  trl_linalg_desc d = provider(TRL_STR("fake.one"), 1, kAll);
  d.gemm = [](const trl_mm_args* x) {
    inside = x->call->self;
    return loops<float>(x);
  };
  Bench bench({d});
  CHECK(bench.run<float>({3, 2, 4}) == "");
  CHECK(inside == &bench);
}

TEST_CASE("linalg: one check although many threads come first") {
  Bench bench = one();
  std::vector<std::thread> threads;
  std::atomic<int> served{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back(
        [&] { served += bench.dispatch->provider(DType::f32, TRL_MM_TINY) != nullptr; });
  for (std::thread& t : threads) t.join();
  CHECK(served == 4);
  CHECK(checks == 1);
}

TEST_CASE("linalg: a product allocates nothing") {
  if (!kCountsAllocations) return;
  Bench bench = one();
  for (const Shape& shape : {Shape{3, 2, 4}, Shape{1, 7, 5}, Shape{9, 1, 9}, Shape{50, 20, 40}}) {
    Operands<float> x(shape, bench.call.get());
    bench.run(x);
    CHECK(allocations_in([&] { bench.dispatch->gemm(x.args()); }) == 0);
  }
}
