// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <trellis/tensor.hpp>
#include <utility>
#include <vector>

using namespace trellis;

namespace {

Tensor counting(const Dim& dim, DType dtype = DType::f32) {
  Tensor t(dim, dtype);
  for (uint64_t i = 0; i < dim.total(); ++i) t.set(i, static_cast<double>(i));
  return t;
}

}  // namespace

TEST_CASE("dtype: sizes and names") {
  const std::pair<DType, std::pair<size_t, const char*>> cases[] = {
      {DType::f32, {4, "f32"}}, {DType::f64, {8, "f64"}},  {DType::i32, {4, "i32"}},
      {DType::i64, {8, "i64"}}, {DType::u8, {1, "u8"}},    {DType::boolean, {1, "bool"}},
      {DType::f16, {2, "f16"}}, {DType::bf16, {2, "bf16"}}};
  for (const auto& [dtype, expected] : cases) {
    CHECK(dtype_size(dtype) == expected.first);
    CHECK(dtype_name(dtype) == expected.second);
  }
  CHECK_THROWS_WITH_AS(dtype_size(static_cast<DType>(77)), "[dtype] unknown element type: 77",
                       Error);
  CHECK_THROWS_WITH_AS(dtype_name(static_cast<DType>(0)), "[dtype] unknown element type: 0", Error);
}

TEST_CASE("tensor: a new one is zero and aligned") {
  const Tensor t(Dim({5, 7}, 3));
  CHECK(reinterpret_cast<uintptr_t>(t.data()) % 64 == 0);
  CHECK(t.as_vector() == std::vector<float>(105, 0.0f));
  CHECK(t.dtype() == DType::f32);
  CHECK(Tensor().empty());
}

TEST_CASE("tensor: made from values of either float type") {
  const std::vector<float> f{1, 2, 3};
  const std::vector<double> d{1, 2, 3};
  CHECK(Tensor(Dim({3}), f).dtype() == DType::f32);
  CHECK(Tensor(Dim({3}), d).dtype() == DType::f64);
  CHECK(Tensor(Dim({3}), d).as_doubles() == d);
  CHECK_THROWS_WITH_AS(Tensor(Dim({2}, 2), f),
                       "[tensor] wrong number of values for {2}x2: 3 (needed 4)", Error);
}

TEST_CASE("tensor: more memory than there is") {
  CHECK_THROWS_WITH_AS(
      Tensor(Dim({65536, 65536, 65536}, 16384), DType::f64),
      "[tensor] out of memory: {65536,65536,65536}x16384 of f64 (needs 4611686018427387904 "
      "elements of 8 bytes)",
      Error);
}

TEST_CASE("tensor: copies own their elements, moves leave nothing") {
  Tensor a = counting(Dim({3}));
  Tensor b(a);
  b.set(0, 9);
  CHECK(a.at(0) == 0);
  Tensor c;
  c = b;
  c.set(1, 8);
  CHECK(b.at(1) == 1);
  const void* data = c.data();
  Tensor d(std::move(c));
  CHECK(d.data() == data);
  CHECK(c.empty());
  a = std::move(d);
  CHECK(a.data() == data);
  const TensorView view = a;
  Tensor e(view);
  CHECK(e.data() != data);
  CHECK(e.as_vector() == a.as_vector());
  CHECK(Tensor(TensorView()).empty());
}

TEST_CASE("view: the batch runs slowest, the first index fastest") {
  const Tensor t = counting(Dim({2, 3}, 4));
  CHECK(t.at({1, 2}, 3) == 1 + 2 * 2 + 6 * 3);
  CHECK(t.batch_element(2).dim() == Dim({2, 3}));
  CHECK(t.batch_element(2).at(0) == 12);
  CHECK(t.at({1}) == 1);
  CHECK(t.at({1, 2, 0, 0}) == 5);
}

TEST_CASE("view: a batch of one serves every batch element") {
  const Tensor t = counting(Dim({3}));
  CHECK(t.batch_element(17).data() == t.data());
  CHECK(t.at({2}, 17) == 2);
}

TEST_CASE("view: indices are checked") {
  const Tensor t = counting(Dim({2, 3}, 4));
  CHECK_THROWS_WITH_AS(t.batch_element(4), "[batch_element] no batch element 4: {2,3}x4", Error);
  CHECK_THROWS_WITH_AS(t.at(24), "[at] no element 24: {2,3}x4 has 24 elements", Error);
  CHECK_THROWS_WITH_AS(t.set(24, 1), "[set] no element 24: {2,3}x4 has 24 elements", Error);
  CHECK_THROWS_WITH_AS(t.at({2, 0}), "[at] index out of bound on axis 0: 2 ({2,3}x4 has size 2)",
                       Error);
  CHECK_THROWS_WITH_AS(t.at({0, 0, 1}), "[at] index out of bound on axis 2: 1 ({2,3}x4 has size 1)",
                       Error);
  CHECK_THROWS_WITH_AS(t.at({0, 0}, 4), "[batch_element] no batch element 4: {2,3}x4", Error);
  CHECK_THROWS_WITH_AS(TensorView().at(0), "[at] no element 0: {} has 0 elements", Error);
  CHECK_THROWS_WITH_AS(TensorView().set(0, 1), "[set] no element 0: {} has 0 elements", Error);
}

TEST_CASE("view: as gives the elements only in their own type") {
  const Tensor t = counting(Dim({3}), DType::f64);
  CHECK(t.as<double>().size() == 3);
  CHECK(t.as<const double>()[2] == 2);
  CHECK_THROWS_WITH_AS(t.as<float>(),
                       "[tensor] wrong element type: asked for f32 of 4 bytes (the tensor is f64)",
                       Error);
  CHECK_THROWS_AS(t.as<int64_t>(), Error);
  CHECK_THROWS_AS(t.as<unsigned long long>(), Error);
  CHECK(Tensor(Dim({3}), DType::boolean).as<uint8_t>().size() == 3);
  CHECK_THROWS_WITH_AS(TensorView().as<float>(), "[tensor] no elements: an empty view", Error);
}

TEST_CASE("view: one element as a scalar") {
  CHECK(counting(Dim()).as_scalar() == 0);
  CHECK(counting(Dim({1, 1}), DType::i64).as_scalar() == 0);
  CHECK_THROWS_WITH_AS(counting(Dim({1}, 2)).as_scalar(),
                       "[as_scalar] {1}x2 has 2 elements (needed exactly one)", Error);
}

TEST_CASE("view: flat vectors from every type") {
  for (const DType dtype :
       {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8, DType::f16, DType::bf16}) {
    const Tensor t = counting(Dim({2}, 2), dtype);
    CHECK(t.as_vector() == std::vector<float>{0, 1, 2, 3});
    CHECK(t.as_doubles() == std::vector<double>{0, 1, 2, 3});
  }
  CHECK(TensorView().as_vector().empty());
  CHECK(TensorView().as_doubles().empty());
}

TEST_CASE("view: floats of 16 bits round to nearest even and keep what is special") {
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor half(Dim(), DType::f16), brain(Dim(), DType::bf16);
  const auto bits = [](const Tensor& t, double v) {
    t.set(0, v);
    return t.as<uint16_t>()[0];
  };
  const std::pair<double, uint16_t> halves[] = {
      {0.0, 0},
      {-0.0, 0x8000},
      {1, 0x3C00},
      {-2, 0xC000},
      {0.1, 0x2E66},
      {65504, 0x7BFF},
      {65519.99, 0x7BFF},
      {65520, 0x7C00},
      {1e300, 0x7C00},
      {infinity, 0x7C00},
      {-infinity, 0xFC00},
      {0x1p-14, 0x0400},
      {0x1p-24, 0x0001},
      {0x1p-25, 0x0000},
      {0x1.01p-25, 0x0001},
      {0x1.ffcp-15, 0x0400},  // rounds up out of the subnormals
      {1 + 0x1p-11, 0x3C00},
      {1 + 0x3p-11, 0x3C02},
      {1 + 0x1.01p-11, 0x3C01}};
  for (const auto& [value, expected] : halves) CHECK(bits(half, value) == expected);
  const std::pair<double, uint16_t> brains[] = {
      {1, 0x3F80},          {-2, 0xC000},      {3.14159265, 0x4049}, {1 + 0x1p-8, 0x3F80},
      {1 + 0x3p-8, 0x3F82}, {3.4e38, 0x7F80},  {0x1.fep127, 0x7F7F}, {0x1p-133, 0x0001},
      {0x1p-134, 0},        {infinity, 0x7F80}};
  for (const auto& [value, expected] : brains) CHECK(bits(brain, value) == expected);
  for (const Tensor* t : {&half, &brain}) {
    t->set(0, std::numeric_limits<double>::quiet_NaN());
    CHECK(std::isnan(t->at(0)));
    int changed = 0;
    for (uint32_t b = 0; b < 65536; ++b) {  // every number comes back
      t->as<uint16_t>()[0] = static_cast<uint16_t>(b);
      const double v = t->at(0);
      if (std::isnan(v)) continue;
      changed += bits(*t, v) != b;
    }
    CHECK(changed == 0);
  }
  CHECK_THROWS_AS(half.as<float>(), Error);
  CHECK_THROWS_AS(half.as<int64_t>(), Error);
}

TEST_CASE("view: integers refuse what they cannot hold") {
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor i64(Dim(), DType::i64), i32(Dim(), DType::i32), u8(Dim(), DType::u8);
  i64.set(0, -0x1p63);
  CHECK(i64.as<int64_t>()[0] == INT64_MIN);
  CHECK_THROWS_AS(i64.set(0, 0x1p63), Error);
  i32.set(0, 2147483647.0);
  CHECK(i32.at(0) == 2147483647.0);
  CHECK_THROWS_WITH_AS(i32.set(0, 2147483648.0), "[tensor] value does not fit: 2147483648 (i32)",
                       Error);
  CHECK_THROWS_AS(i32.set(0, -2147483649.0), Error);
  CHECK_THROWS_WITH_AS(u8.set(0, 256), "[tensor] value does not fit: 256 (u8)", Error);
  CHECK_THROWS_AS(u8.set(0, -1), Error);
  for (const Tensor* t : {&i64, &i32, &u8}) {
    CHECK_THROWS_AS(t->set(0, std::nan("")), Error);
    CHECK_THROWS_AS(t->set(0, infinity), Error);
    CHECK_THROWS_AS(t->set(0, -infinity), Error);
  }
}

TEST_CASE("view: text of all ranks and batches") {
  CHECK(counting(Dim()).to_string() == "0");
  CHECK(counting(Dim({3})).to_string() == "[0 1 2]");
  CHECK(counting(Dim({2, 3})).to_string() == "[0 2 4]\n[1 3 5]");
  CHECK(counting(Dim({2}, 2)).to_string() == "batch 0:\n[0 1]\nbatch 1:\n[2 3]");
  CHECK(counting(Dim({1, 2, 2}, 2)).to_string() ==
        "(:,:,0) batch 0:\n[0 1]\n(:,:,1) batch 0:\n[2 3]\n(:,:,0) batch 1:\n[4 5]\n(:,:,1) batch "
        "1:\n[6 7]");
  CHECK(counting(Dim({1, 1, 1, 2})).to_string() == "(:,:,0,0):\n[0]\n(:,:,0,1):\n[1]");
  Tensor t(Dim({3}));
  t.set(0, 0.1);
  t.set(1, std::numeric_limits<double>::infinity());
  t.set(2, -2.5);
  CHECK(t.to_string() == "[0.1 inf -2.5]");
  Tensor i(Dim(), DType::i64);
  i.as<int64_t>()[0] = 9007199254740993;
  CHECK(i.to_string() == "9007199254740993");
  CHECK(TensorView().to_string() == "(empty)");
}
