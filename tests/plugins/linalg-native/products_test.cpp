// SPDX-License-Identifier: Apache-2.0
#include "../linalg_plugin.hpp"
#include "allocations.hpp"

using namespace trellis::test;

namespace {

const char* const kLevels[] = {"linalg-native", "linalg-native.v3", "linalg-native.v4"};

}  // namespace

TEST_CASE("linalg-native: every class has a provider for f32 and for f64") {
  const auto providers = open_linalg("linalg-native");
  uint32_t classes[2] = {0, 0};
  for (const trl_linalg_desc* p : providers) classes[p->dtype == TRL_F64] |= p->classes;
  CHECK(classes[0] == 2 * TRL_MM_LARGE - 1);
  CHECK(classes[1] == 2 * TRL_MM_LARGE - 1);
}

TEST_CASE("linalg-native: products agree with plain loops at every level") {
  const std::vector<Shape> shapes = awkward_shapes();
  for (const char* level : kLevels) {
    CAPTURE(level);
    for (const trl_linalg_desc* p : open_linalg(level))
      for (const Shape& shape : shapes) CHECK(try_product(*p, shape) == "");
  }
}

// Every number of rows and columns around tiles and vectors, every depth around a vector.
TEST_CASE("linalg-native: every size up to 67") {
  for (const char* level : kLevels) {
    CAPTURE(level);
    for (const trl_linalg_desc* p : open_linalg(level)) {
      std::string faults;
      for (uint64_t size = 1; size <= 67; ++size)
        for (const bool trans_a : {false, true})
          for (const bool trans_b : {false, true}) {
            Shape s{size, 13, 9, trans_a, trans_b};
            s.pad_a = size % 3;
            s.beta = size % 2 ? 0 : 1;
            faults += try_product(*p, s);
            s = {37, size, 11, trans_a, trans_b};
            s.pad_b = s.pad_c = size % 2;
            s.beta = 0.5;
            faults += try_product(*p, s);
            s = {29, 7, size, trans_a, trans_b};
            s.alpha = -1.5;
            faults += try_product(*p, s);
            faults += try_product(*p, {size, 1, 67 - size + 1, trans_a, trans_b});
          }
      CHECK(faults == "");
    }
  }
}

// Beyond one block of each kind: depth, columns of B, and far or regular columns of A.
TEST_CASE("linalg-native: larger than one block") {
  for (const char* level : kLevels) {
    CAPTURE(level);
    for (const trl_linalg_desc* p : open_linalg(level))
      for (const bool trans_a : {false, true})
        for (const bool trans_b : {false, true}) {
          CHECK(try_product(*p, {.m = 70,
                                 .n = 65,
                                 .k = 601,
                                 .trans_a = trans_a,
                                 .trans_b = trans_b,
                                 .beta = 0.5}) == "");
          CHECK(try_product(*p, {.m = 263,
                                 .n = 401,
                                 .k = 67,
                                 .trans_a = trans_a,
                                 .trans_b = trans_b,
                                 .beta = 1}) == "");
          CHECK(try_product(
                    *p, {.m = 19, .n = 1301, .k = 33, .trans_a = trans_a, .trans_b = trans_b}) ==
                "");
          CHECK(try_product(*p, {.m = 512,
                                 .n = 33,
                                 .k = 263,
                                 .trans_a = trans_a,
                                 .trans_b = trans_b,
                                 .alpha = 0.5}) == "");
          CHECK(try_product(*p, {.m = 2051,
                                 .n = 34,
                                 .k = 131,
                                 .trans_a = trans_a,
                                 .trans_b = trans_b,
                                 .pad_a = 1}) == "");
          CHECK(try_product(*p, {.m = 17003,
                                 .n = 1,
                                 .k = 19,
                                 .trans_a = trans_a,
                                 .trans_b = trans_b,
                                 .beta = 1}) == "");
        }
  }
}

TEST_CASE("linalg-native: a batch that adds up, or shares an operand") {
  for (const char* level : kLevels) {
    CAPTURE(level);
    for (const trl_linalg_desc* p : open_linalg(level))
      for (const uint64_t n : {1, 2, 13}) {
        CHECK(try_product(*p, {.m = 21, .n = n, .k = 17, .beta = 1, .batch = 5, .sum = true}) ==
              "");
        CHECK(try_product(*p, {.m = 21, .n = n, .k = 17, .batch = 5, .share_a = true}) == "");
        CHECK(try_product(
                  *p, {.m = 21, .n = n, .k = 17, .trans_a = true, .batch = 5, .share_b = true}) ==
              "");
      }
  }
}

TEST_CASE("linalg-native: one matrix as both operands") {
  for (const char* level : kLevels) {
    CAPTURE(level);
    for (const trl_linalg_desc* p : open_linalg(level)) {
      if (p->dtype != TRL_F64) continue;
      StubCall call;
      Operands<double> x({.m = 37, .n = 37, .k = 37, .trans_a = true}, &call);
      std::vector<double> c(37 * 37);
      trl_mm_args args = x.args();
      args.b = args.a;
      args.c = c.data();
      REQUIRE(p->gemm(&args) == TRL_OK);
      const double* a = static_cast<const double*>(args.a);
      for (int j = 0; j < 37; ++j)
        for (int i = 0; i < 37; ++i) {
          double sum = 0;
          for (int k = 0; k < 37; ++k) sum += a[k + 37 * i] * a[k + 37 * j];
          CHECK(c[i + 37 * j] == doctest::Approx(sum).epsilon(1e-12));
        }
    }
  }
}

TEST_CASE("linalg-native: a product allocates nothing") {
  if (!kCountsAllocations) return;
  StubCall call;
  for (const char* level : kLevels)
    for (const trl_linalg_desc* p : open_linalg(level)) {
      if (p->dtype != TRL_F64) continue;
      for (const Shape& shape :
           {Shape{5, 7, 9}, Shape{50, 16, 208, true}, Shape{200, 50, 3, false, true},
            Shape{256, 256, 256}, Shape{256, 256, 256, true, true}}) {
        Operands<double> x(shape, &call);
        CHECK(allocations_in([&] { p->gemm(&x.args()); }) == 0);
      }
      Operands<double> x({.m = 1000, .n = 1, .k = 1000}, &call);
      CHECK(allocations_in([&] { p->gemv(&x.args()); }) == 0);
      x.args().flags = TRL_MM_TRANS_A;
      CHECK(allocations_in([&] { p->gemv(&x.args()); }) == 0);
    }
}
