// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <trellis/random.hpp>
#include <trellis/tensor.hpp>
#include <vector>

using namespace trellis;
using namespace trellis::tensor_tools;

namespace {

const double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

Tensor f64(const Dim& dim, const std::vector<double>& v) {
  return Tensor(dim, std::span<const double>(v));
}
Tensor f32(const Dim& dim, const std::vector<float>& v) {
  return Tensor(dim, std::span<const float>(v));
}
std::vector<int64_t> integers(const Tensor& t) {
  const auto v = t.as<int64_t>();
  return {v.begin(), v.end()};
}

}  // namespace

TEST_CASE_TEMPLATE("tools: is_finite sees every element", T, float, double) {
  const DType dtype = sizeof(T) == 4 ? DType::f32 : DType::f64;
  const Tensor t(Dim({10007}), dtype);
  CHECK(is_finite(t));
  for (const uint64_t at : {0, 4095, 4096, 10006}) {
    for (const double bad : {kNan, kInf, -kInf}) {
      t.set(at, bad);
      CHECK_FALSE(is_finite(t));
    }
    t.set(at, 0);
  }
  fill(t, std::numeric_limits<T>::max());
  CHECK(is_finite(t));
}

TEST_CASE("tools: fill, scale and clip") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor t(Dim({3}, 2), dtype);
    fill(t, 2);
    CHECK(t.as_doubles() == std::vector<double>(6, 2));
    scale(t, 3, -1);
    CHECK(t.as_doubles() == std::vector<double>(6, 5));
    t.set(0, -7);
    clip(t, -1, 4);
    CHECK(t.at(0) == -1);
    CHECK(t.at(5) == 4);
    t.set(0, kNan);
    clip(t, -1, 4);
    CHECK(std::isnan(t.at(0)));
    CHECK_THROWS_WITH_AS(clip(t, 2, 1), "[clip] empty range: 2 to 1 (needed lo <= hi)", Error);
  }
  const Tensor i(Dim({3}), DType::i64);
  fill(i, 4);
  CHECK(integers(i) == std::vector<int64_t>{4, 4, 4});
  CHECK_THROWS_WITH_AS(scale(i, 2), "[scale] wrong element type: i64 (needed f32 or f64)", Error);
  CHECK_THROWS_WITH_AS(fill(TensorView(), 1), "[fill] no elements: an empty view", Error);
}

TEST_CASE("tools: identity") {
  const Tensor t(Dim({2, 2}, 2));
  fill(t, 9);
  identity(t);
  CHECK(t.as_vector() == std::vector<float>{1, 0, 0, 1, 1, 0, 0, 1});
  CHECK_THROWS_WITH_AS(identity(Tensor(Dim({2, 3}))), "[identity] not a square matrix: {2,3}",
                       Error);
  CHECK_THROWS_WITH_AS(identity(Tensor(Dim({2}))), "[identity] not a square matrix: {2}", Error);
}

TEST_CASE("tools: copy converts and checks sizes") {
  const Tensor d = f64(Dim({2, 2}), {1, 2.5, -3, 4});
  const Tensor f(Dim({4}));
  copy(f, d);
  CHECK(f.as_vector() == std::vector<float>{1, 2.5, -3, 4});
  const Tensor i(Dim({4}), DType::i64);
  copy(i, f);
  CHECK(integers(i) == std::vector<int64_t>{1, 2, -3, 4});
  copy(d, i);
  CHECK(d.as_doubles() == std::vector<double>{1, 2, -3, 4});
  CHECK_THROWS_WITH_AS(copy(Tensor(Dim({3})), d),
                       "[copy] sizes differ: {3} and {2,2} (needed equally many elements)", Error);
  CHECK_THROWS_AS(copy(Tensor(Dim({4}), DType::u8), d), Error);
}

TEST_CASE("tools: set_elements checks the count") {
  const Tensor t(Dim({2}, 2));
  set_elements(t, std::vector<float>{1, 2, 3, 4});
  CHECK(t.at(3) == 4);
  set_elements(t, std::vector<double>{5, 6, 7, 8});
  CHECK(t.at(3) == 8);
  CHECK_THROWS_WITH_AS(set_elements(t, std::vector<float>{1}),
                       "[set_elements] wrong number of values for {2}x2: 1 (needed 4)", Error);
}

TEST_CASE("tools: copy_element and accumulate") {
  const Tensor a = f64(Dim({3}), {1, 2, 3}), b = f64(Dim({3}), {10, 20, 30});
  copy_element(a, 2, b, 0);
  CHECK(b.as_doubles() == std::vector<double>{3, 20, 30});
  CHECK_THROWS_AS(copy_element(a, 3, b, 0), Error);
  CHECK_THROWS_AS(copy_element(a, 0, b, 3), Error);
  accumulate(a, b);
  CHECK(a.as_doubles() == std::vector<double>{4, 22, 33});
  CHECK_THROWS_WITH_AS(accumulate(a, f32(Dim({3}), {1, 2, 3})),
                       "[accumulate] element types differ: f64 and f32", Error);
  CHECK_THROWS_AS(accumulate(a, f64(Dim({2}), {1, 2})), Error);
}

TEST_CASE("tools: random fills") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    RandomEngine r(5);
    const Tensor t(Dim({50, 40}, 10), dtype);
    const double n = 20000;
    double sum = 0, squares = 0;
    random_normal(t, r, 3, 2);
    for (const double v : t.as_doubles()) sum += v, squares += (v - 3) * (v - 3);
    CHECK(std::fabs(sum / n - 3) < 0.06);
    CHECK(std::fabs(squares / n - 4) < 0.15);
    random_uniform(t, r, -2, 6);
    sum = 0;
    for (const double v : t.as_doubles()) {
      REQUIRE(v >= -2);
      REQUIRE(v <= 6);
      sum += v;
    }
    CHECK(std::fabs(sum / n - 2) < 0.08);
    random_bernoulli(t, r, 0.25, 4);
    sum = 0;
    for (const double v : t.as_doubles()) {
      const bool is_either = v == 0 || v == 4;
      REQUIRE(is_either);
      sum += v;
    }
    CHECK(std::fabs(sum / n - 1) < 0.05);
    random_bernoulli(t, r, 1);
    CHECK(t.as_doubles() == std::vector<double>(20000, 1));
    random_bernoulli(t, r, 0);
    CHECK(t.as_doubles() == std::vector<double>(20000, 0));
  }
  RandomEngine a(5), b(5), other(6);
  const Tensor x(Dim({8})), y(Dim({8})), z(Dim({8}));
  random_normal(x, a);
  random_normal(y, b);
  random_normal(z, other);
  CHECK(x.as_vector() == y.as_vector());
  CHECK(x.as_vector() != z.as_vector());
  CHECK_THROWS_WITH_AS(random_normal(x, a, 0, -1), "[random_normal] bad deviation: -1 (at least 0)",
                       Error);
  CHECK_THROWS_WITH_AS(random_uniform(x, a, 1, 0),
                       "[random_uniform] empty range: 1 to 0 (needed lo <= hi)", Error);
  CHECK_THROWS_WITH_AS(random_bernoulli(x, a, 1.5),
                       "[random_bernoulli] bad probability: 1.5 (0 to 1)", Error);
  CHECK_THROWS_AS(random_bernoulli(x, a, kNan), Error);
}

TEST_CASE("tools: random_orthonormal") {
  RandomEngine r(2);
  const uint32_t n = 20;
  const Tensor t(Dim({n, n}), DType::f64);
  random_orthonormal(t, r, 3);
  for (uint32_t i = 0; i < n; ++i) {
    for (uint32_t j = 0; j < n; ++j) {
      double dot = 0;
      for (uint32_t k = 0; k < n; ++k) dot += t.at({k, i}) * t.at({k, j});
      CHECK(std::fabs(dot - (i == j ? 9 : 0)) < 1e-12);
    }
  }
  const Tensor one(Dim({1, 1}));
  random_orthonormal(one, r);
  CHECK(std::fabs(one.at(0)) == 1);
  CHECK_THROWS_WITH_AS(random_orthonormal(Tensor(Dim({3}, 3)), r),
                       "[random_orthonormal] not a square matrix: {3}x3", Error);
}

TEST_CASE("tools: logsumexp along either axis of a matrix that is not square") {
  const Tensor t = f64(Dim({2, 3}), {1, 2, 3, 4, 5, 6});
  const Tensor columns = logsumexp(t, 0), rows = logsumexp(t, 1);
  CHECK(columns.dim() == Dim({3}));
  CHECK(rows.dim() == Dim({2}));
  for (uint32_t j = 0; j < 3; ++j)
    CHECK(columns.at(j) ==
          doctest::Approx(std::log(std::exp(t.at({0, j})) + std::exp(t.at({1, j})))));
  for (uint32_t i = 0; i < 2; ++i)
    CHECK(rows.at(i) == doctest::Approx(std::log(std::exp(t.at({i, 0})) + std::exp(t.at({i, 1})) +
                                                 std::exp(t.at({i, 2})))));
}

TEST_CASE("tools: logsumexp is stable") {
  CHECK(logsumexp(f32(Dim({2}), {1000, 1000})).as_scalar() ==
        doctest::Approx(1000 + std::log(2.0)));
  CHECK(logsumexp(f32(Dim({2}), {-1000, -1000})).as_scalar() ==
        doctest::Approx(-1000 + std::log(2.0)));
  CHECK(logsumexp(f64(Dim({2}), {-kInf, 3})).as_scalar() == 3);
  CHECK(logsumexp(f64(Dim({2}), {-kInf, -kInf})).as_scalar() == -kInf);
  CHECK(logsumexp(f64(Dim({2}), {kInf, 3})).as_scalar() == kInf);
  CHECK(std::isnan(logsumexp(f64(Dim({2}), {kInf, kNan})).as_scalar()));
}

TEST_CASE("tools: reductions take any axis of any rank and keep the batch") {
  const Dim dim({2, 3, 2, 2}, 3);
  Tensor t(dim, DType::f64);
  RandomEngine r(8);
  random_normal(t, r);
  for (uint32_t axis = 0; axis < 4; ++axis) {
    const Tensor largest = argmax(t, axis), sums = logsumexp(t, axis);
    CHECK(largest.dim() == dim.deleted(axis));
    CHECK(sums.dim() == dim.deleted(axis));
    uint32_t i[4];
    uint64_t slice = 0;
    for (uint32_t b = 0; b < 3; ++b) {
      for (i[3] = 0; i[3] < (axis == 3 ? 1 : dim.d[3]); ++i[3]) {
        for (i[2] = 0; i[2] < (axis == 2 ? 1 : dim.d[2]); ++i[2]) {
          for (i[1] = 0; i[1] < (axis == 1 ? 1 : dim.d[1]); ++i[1]) {
            for (i[0] = 0; i[0] < (axis == 0 ? 1 : dim.d[0]); ++i[0], ++slice) {
              double sum = 0, best = -kInf;
              int64_t where = -1;
              for (uint32_t k = 0; k < dim.d[axis]; ++k) {
                uint32_t at[4] = {i[0], i[1], i[2], i[3]};
                at[axis] = k;
                const double v = t.at({at[0], at[1], at[2], at[3]}, b);
                sum += std::exp(v);
                if (v > best) best = v, where = k;
              }
              REQUIRE(largest.as<int64_t>()[slice] == where);
              REQUIRE(sums.at(slice) == doctest::Approx(std::log(sum)));
            }
          }
        }
      }
    }
  }
  CHECK_THROWS_WITH_AS(logsumexp(t, 4), "[logsumexp] no axis 4: {2,3,2,2}x3 has 4 dimensions",
                       Error);
  CHECK_THROWS_WITH_AS(argmax(Tensor(Dim())), "[argmax] no axis 0: {} has 0 dimensions", Error);
  CHECK_THROWS_WITH_AS(argmax(Tensor(Dim({3})), 1), "[argmax] no axis 1: {3} has 1 dimension",
                       Error);
}

TEST_CASE("tools: argmax gives the lowest index of equals and shows NaN") {
  CHECK(integers(argmax(f32(Dim({4}), {1, 3, 3, 2})))[0] == 1);
  CHECK(integers(argmax(f64(Dim({3}), {-kInf, -kInf, -kInf})))[0] == 0);
  CHECK(integers(argmax(f64(Dim({4}), {1, kNan, kInf, kNan})))[0] == 1);
}

TEST_CASE("tools: topk is descending, with the lowest index of equals first") {
  const auto [values, indices] = topk(f32(Dim({5}, 2), {1, 5, 3, 5, 2, 0, 0, 0, 0, 9}), 3);
  CHECK(values.dim() == Dim({3}, 2));
  CHECK(values.as_vector() == std::vector<float>{5, 5, 3, 9, 0, 0});
  CHECK(integers(indices) == std::vector<int64_t>{1, 3, 2, 4, 0, 1});
  const auto [rows, columns] = topk(f64(Dim({2, 3}), {1, 6, 2, 5, 3, 4}), 2, 1);
  CHECK(rows.dim() == Dim({2, 2}));
  CHECK(rows.as_doubles() == std::vector<double>{3, 6, 2, 5});
  CHECK(integers(columns) == std::vector<int64_t>{2, 0, 1, 1});
  const Tensor t(Dim({3}));
  CHECK_THROWS_WITH_AS(topk(t, 0), "[topk] bad k: 0 (1 to 3, the size of axis 0 of {3})", Error);
  CHECK_THROWS_WITH_AS(topk(t, 4), "[topk] bad k: 4 (1 to 3, the size of axis 0 of {3})", Error);
  CHECK_THROWS_AS(topk(t, 1, 1), Error);
}

TEST_CASE("tools: sample_log_prob draws by probability") {
  RandomEngine r(4);
  const double low = std::log(0.2), high = std::log(0.8);
  const Tensor t = f64(Dim({3}, 2), {low, -kInf, high, high + 700, low + 700, -kInf});
  int counts[2][3] = {};
  for (int i = 0; i < 20000; ++i) {
    const Tensor drawn = sample_log_prob(t, r);
    REQUIRE(drawn.dim() == Dim({}, 2));
    for (uint32_t b = 0; b < 2; ++b) ++counts[b][drawn.as<int64_t>()[b]];
  }
  CHECK(counts[0][1] == 0);
  CHECK(counts[1][2] == 0);
  CHECK(std::abs(counts[0][2] - 16000) < 400);
  CHECK(std::abs(counts[1][0] - 16000) < 400);
  CHECK_THROWS_WITH_AS(sample_log_prob(f64(Dim({2}), {-kInf, -kInf}), r),
                       "[sample_log_prob] no distribution in slice 0: log of the sum is -inf",
                       Error);
  CHECK_THROWS_AS(sample_log_prob(f64(Dim({2}), {kNan, 0}), r), Error);
}
