// SPDX-License-Identifier: Apache-2.0
#include "../linalg_plugin.hpp"
#include "allocations.hpp"

using namespace trellis::test;

namespace {

const char* const kLevels[] = {"linalg-eigen", "linalg-eigen.v3", "linalg-eigen.v4"};

}  // namespace

TEST_CASE("linalg-eigen: every class has a provider for f32 and for f64") {
  const auto providers = open_linalg("linalg-eigen");
  uint32_t classes[2] = {0, 0};
  for (const trl_linalg_desc* p : providers) classes[p->dtype == TRL_F64] |= p->classes;
  CHECK(classes[0] == 2 * TRL_MM_LARGE - 1);
  CHECK(classes[1] == 2 * TRL_MM_LARGE - 1);
}

TEST_CASE("linalg-eigen: products agree with plain loops at every level") {
  const std::vector<Shape> shapes = awkward_shapes();
  for (const char* level : kLevels) {
    CAPTURE(level);
    for (const trl_linalg_desc* p : open_linalg(level))
      for (const Shape& shape : shapes) CHECK(try_product(*p, shape) == "");
  }
}

TEST_CASE("linalg-eigen: depths and widths beyond one block") {
  for (const char* level : kLevels) {
    CAPTURE(level);
    for (const trl_linalg_desc* p : open_linalg(level))
      for (const bool trans : {false, true}) {
        CHECK(try_product(*p, {.m = 70, .n = 65, .k = 601, .trans_a = trans, .beta = 0.5}) == "");
        CHECK(try_product(*p, {.m = 19, .n = 1301, .k = 33, .trans_a = trans, .trans_b = true}) ==
              "");
      }
  }
}

TEST_CASE("linalg-eigen: small products and those with a vector allocate nothing") {
  if (!kCountsAllocations) return;
  StubCall call;
  for (const char* level : kLevels)
    for (const trl_linalg_desc* p : open_linalg(level)) {
      if (p->dtype != TRL_F64) continue;
      for (const Shape& shape : {Shape{5, 7, 9}, Shape{50, 16, 64, true}}) {
        Operands<double> x(shape, &call);
        CHECK(allocations_in([&] { p->gemm(&x.args()); }) == 0);
      }
      Operands<double> x({.m = 1000, .n = 1, .k = 1000}, &call);
      CHECK(allocations_in([&] { p->gemv(&x.args()); }) == 0);
    }
}
