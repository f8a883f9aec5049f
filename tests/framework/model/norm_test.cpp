// SPDX-License-Identifier: Apache-2.0

#include "model/norm.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using trellis::DType;
using trellis::detail::NormSum;

TEST_CASE("norm: several buffers count as one") {
  const std::vector<float> a{3, 0}, b{4};
  NormSum norm;
  CHECK(norm.value() == 0);
  CHECK(norm.add(a.data(), a.size(), DType::f32));
  CHECK(norm.add(b.data(), b.size(), DType::f32));
  CHECK(norm.value() == doctest::Approx(5));
  CHECK(norm.exceeds(4.99));
  CHECK_FALSE(norm.exceeds(5.01));
  CHECK(norm.factor(2.5) == doctest::Approx(0.5));
}

TEST_CASE("norm: a long buffer counts every element") {
  const std::vector<float> a(1003, 2.0f);
  NormSum norm;
  CHECK(norm.add(a.data(), a.size(), DType::f32));
  CHECK(norm.value() == doctest::Approx(2 * std::sqrt(1003.0)));
}

TEST_CASE("norm: blocks of a long buffer whose squares a float cannot hold count too") {
  for (const float size : {1e-25f, 1e-10f, 1.0f, 1e10f, 1e25f}) {
    std::vector<float> x(3 * 512 + 100, size);
    NormSum norm;
    CHECK(norm.add(x.data(), x.size(), DType::f32));
    CHECK(norm.value() == doctest::Approx(size * std::sqrt(double(x.size()))).epsilon(1e-6));
    for (const size_t i : {size_t{5}, size_t{700}, x.size() - 1})
      for (const float bad : {NAN, INFINITY, -INFINITY}) {
        std::vector<float> y = x;
        y[i] = bad;
        CHECK_FALSE(norm.add(y.data(), y.size(), DType::f32));
      }
  }
}

TEST_CASE("norm: squares that a float cannot hold do not overflow") {
  const std::vector<float> a(100, 1e20f);
  NormSum norm;
  CHECK(norm.add(a.data(), a.size(), DType::f32));
  CHECK(norm.value() == doctest::Approx(1e21));
  CHECK(norm.factor(1) == doctest::Approx(1e-21));
}

TEST_CASE("norm: squares that a double cannot hold neither overflow nor vanish") {
  const std::vector<double> large{3e200, 4e200}, small{3e-200, 4e-200}, tiny{5e-320}, one{1};
  NormSum norm;
  CHECK(norm.add(large.data(), 2, DType::f64));
  CHECK(norm.value() == doctest::Approx(5e200));
  CHECK(norm.add(one.data(), 1, DType::f64));
  CHECK(norm.add(small.data(), 2, DType::f64));
  CHECK(norm.value() == doctest::Approx(5e200));
  NormSum low;
  CHECK(low.add(small.data(), 2, DType::f64));
  CHECK(low.value() == doctest::Approx(5e-200));
  CHECK(low.add(tiny.data(), 1, DType::f64));
  CHECK(low.value() == doctest::Approx(5e-200));
  CHECK(low.add(large.data(), 2, DType::f64));
  CHECK(low.value() == doctest::Approx(5e200));
}

TEST_CASE("norm: a norm beyond double still gives a factor") {
  const std::vector<double> a(4, 1.5e308);
  NormSum norm;
  CHECK(norm.add(a.data(), 4, DType::f64));
  CHECK(std::isinf(norm.value()));
  CHECK(norm.exceeds(1e308));
  CHECK(norm.factor(3e307) * 1.5e308 == doctest::Approx(1.5e307));
}

TEST_CASE("norm: NaN and Inf are refused and leave the sum as it was") {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> bad[] = {{1, std::nanf("")}, {inf, 1}, {-inf}};
  NormSum norm;
  const float three = 3;
  CHECK(norm.add(&three, 1, DType::f32));
  for (const auto& v : bad) {
    CHECK_FALSE(norm.add(v.data(), v.size(), DType::f32));
    const std::vector<double> d(v.begin(), v.end());
    CHECK_FALSE(norm.add(d.data(), d.size(), DType::f64));
  }
  CHECK(norm.value() == doctest::Approx(3));
}
