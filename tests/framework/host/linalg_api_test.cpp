// SPDX-License-Identifier: Apache-2.0
//
// What the dispatch does is in linalg/dispatch_test.cpp; this is the way to it.
#include "calls.hpp"

using namespace trellis;
using namespace trellis::detail;
using namespace trellis::test;

TEST_CASE(
    "linalg_api: a product without a provider fails with a text, and none is allowed in infer") {
  HostCall c(Phase::exec);
  std::vector<float> a(4), b(2), r(2);
  trl_mm_args x{};
  x.struct_size = sizeof x;
  x.call = c;
  x.a = a.data();
  x.b = b.data();
  x.c = r.data();
  x.m = x.k = x.lda = x.ldb = x.ldc = 2;
  x.n = x.batch = 1;
  x.alpha = 1;
  x.dtype = TRL_F32;
  for (const auto product : {kLinalgApi.gemm, kLinalgApi.gemv}) {
    c.call.begin(Phase::exec, nullptr);
    const trl_status st = product(&x);
    CHECK(st < 0);
    CHECK_FALSE(c.text(st).empty());
    c.call.begin(Phase::infer, nullptr);
    CHECK(product(&x) == TRL_E_INVALID);
    CHECK(c.text(TRL_E_INVALID) == "[host] trl.linalg/1 is not allowed in infer");
  }
}
