// SPDX-License-Identifier: Apache-2.0

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <trellis/model.hpp>
#include <vector>

using namespace trellis;
using doctest::Approx;

namespace {

RuntimeOptions options(uint64_t seed) {
  RuntimeOptions o;
  o.plugins = {"initializers"};
  o.seed = seed;
  return o;
}

const Runtime& runtime() {
  static const Runtime r(options(1));
  return r;
}

std::vector<double> filled(const Dim& dim, const Init& init = {}, DType dtype = DType::f32,
                           const Runtime& r = runtime()) {
  Model model(r, dtype);
  return model.add_parameter("w", dim, init).value().as_doubles();
}

std::vector<double> filled_table(uint32_t rows, const Dim& dim, const Init& init = {}) {
  Model model(runtime());
  return model.add_lookup("t", rows, dim, init).value().as_doubles();
}

double largest(const std::vector<double>& v) {
  double most = 0;
  for (const double x : v) most = std::max(most, std::abs(x));
  return most;
}
double mean(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x;
  return sum / static_cast<double>(v.size());
}
double variance(const std::vector<double>& v) {
  const double m = mean(v);
  double sum = 0;
  for (const double x : v) sum += (x - m) * (x - m);
  return sum / static_cast<double>(v.size());
}

std::string refusal(ErrorKind kind, const Dim& dim, const Init& init, bool table = false) {
  Model model(runtime());
  try {
    if (table)
      model.add_lookup("w", 3, dim, init);
    else
      model.add_parameter("w", dim, init);
  } catch (const Error& e) {
    if (e.kind() == kind) return e.what();
  }
  return {};
}
bool begins(const std::string& text, const std::string& start) { return text.find(start) == 0; }

// U[-bound, bound): nothing outside, and the variance of one.
void check_uniform(const std::vector<double>& v, double bound) {
  CHECK(largest(v) <= bound);
  CHECK(largest(v) > 0.99 * bound);
  CHECK(variance(v) == Approx(bound * bound / 3).epsilon(0.02));
  CHECK(std::abs(mean(v)) < 0.02 * bound);
}

}  // namespace

TEST_CASE("constant: every element is the value, 0 unless said") {
  CHECK(filled({2, 2}, "constant") == std::vector<double>{0, 0, 0, 0});
  CHECK(filled({3}, {"constant", {{"value", 1.5}}}) == std::vector<double>{1.5, 1.5, 1.5});
  CHECK(filled_table(2, {2}, {"core.constant", {{"value", -1}}}) ==
        std::vector<double>{-1, -1, -1, -1});
  CHECK(filled({1}, "dynet.const") == std::vector<double>{0});
}

TEST_CASE("uniform: stays in the interval and fills it") {
  check_uniform(filled({300, 200}, "uniform"), 1);
  for (const DType dtype : {DType::f32, DType::f64}) {
    std::vector<double> v = filled({300, 200}, {"uniform", {{"lo", 2}, {"hi", 4}}}, dtype);
    for (double& x : v) x -= 3;
    check_uniform(v, 1);
  }
  CHECK(begins(refusal(ErrorKind::argument, {2}, {"uniform", {{"lo", 1}, {"hi", 1}}}),
               "[core.uniform for /w] [uniform] empty interval: 1..1 (lo < hi)"));
}

TEST_CASE("normal: has the mean and the standard deviation that were asked for") {
  const std::vector<double> v = filled({300, 201}, {"normal", {{"mean", 2}, {"std", 0.5}}});
  CHECK(mean(v) == Approx(2).epsilon(0.01));
  CHECK(variance(v) == Approx(0.25).epsilon(0.02));
  double beyond = 0;
  for (const double x : v) beyond += std::abs(x - 2) > 1;  // two deviations: 4.55 %
  CHECK(beyond / static_cast<double>(v.size()) == Approx(0.0455).epsilon(0.1));
  CHECK(variance(filled({100000}, "normal", DType::f64)) == Approx(1).epsilon(0.02));
  CHECK(!refusal(ErrorKind::argument, {2}, {"normal", {{"std", -1}}}).empty());
}

TEST_CASE("glorot: is the default, and the bound follows the shape") {
  Model model(runtime());
  CHECK(filled({4, 2}) == filled({4, 2}, "glorot"));
  check_uniform(filled({300, 200}), std::sqrt(6.0 / 500));
  CHECK(largest(filled({4, 2})) <= 1.0);
  CHECK(largest(filled({12})) <= 0.5);
  check_uniform(filled({40000}), std::sqrt(3.0 / 40000));
  check_uniform(filled({30, 40, 50}), 3 / std::sqrt(120.0));
  check_uniform(filled({5, 7, 30, 40}), std::sqrt(6.0 / (70 * 5 * 7)));
  check_uniform(filled({20, 20, 20, 2, 2}), std::sqrt(15.0 / 64));
  check_uniform(filled({300, 200}, {"glorot", {{"gain", 2}}}), 2 * std::sqrt(6.0 / 500));
  CHECK(largest(filled({})) <= std::sqrt(3.0));
}

TEST_CASE("glorot: a lookup table counts as its rows") {
  check_uniform(filled_table(2000, {25}), std::sqrt(3.0 / 25));
  check_uniform(filled_table(500, {10, 14}), std::sqrt(6.0 / 24));
}

TEST_CASE("he: the variance is two by the number of inputs") {
  CHECK(variance(filled({200, 300}, "he")) == Approx(2.0 / 300).epsilon(0.02));
  CHECK(variance(filled({3, 5, 40, 100}, "he")) == Approx(2.0 / (3 * 5 * 40)).epsilon(0.02));
  CHECK(variance(filled({200, 300}, {"kaiming", {{"gain", 1}}})) ==
        Approx(1.0 / 300).epsilon(0.02));
}

TEST_CASE("identity: one on the diagonal, squares only") {
  CHECK(filled({3, 3}, "identity") == std::vector<double>{1, 0, 0, 0, 1, 0, 0, 0, 1});
  CHECK(begins(refusal(ErrorKind::shape, {3, 4}, "identity"),
               "[core.identity for /w] [identity] no identity of this shape: {3,4} (a square "
               "matrix)"));
  CHECK(begins(refusal(ErrorKind::shape, {3}, "identity", true),
               "[core.identity for /w] [identity] no identity for a lookup table: {3,3} (a square "
               "matrix)"));
  CHECK(!refusal(ErrorKind::shape, {9}, "identity").empty());
}

TEST_CASE("orthogonal: the shorter side is orthonormal") {
  struct Shape {
    uint32_t rows, columns;
  };
  for (const Shape s : {Shape{40, 40}, Shape{50, 20}, Shape{20, 50}, Shape{1, 3}, Shape{1, 1}}) {
    CAPTURE(s.rows);
    CAPTURE(s.columns);
    const std::vector<double> w =
        filled({s.rows, s.columns}, {"orthogonal", {{"gain", 2}}}, DType::f64);
    const bool tall = s.rows >= s.columns;
    const uint32_t n = tall ? s.columns : s.rows, length = tall ? s.rows : s.columns;
    const auto at = [&](uint32_t vector, uint32_t i) {
      return tall ? w[vector * s.rows + i] : w[i * s.rows + vector];
    };
    for (uint32_t a = 0; a < n; ++a)
      for (uint32_t b = 0; b <= a; ++b) {
        double dot = 0;
        for (uint32_t i = 0; i < length; ++i) dot += at(a, i) * at(b, i);
        CHECK(std::abs(dot - (a == b ? 4 : 0)) < 1e-12);
      }
  }
  CHECK(filled({4, 4}, "saxe") == filled({4, 4}, "orthogonal"));
  CHECK(begins(refusal(ErrorKind::shape, {9}, "orthogonal"),
               "[core.orthogonal for /w] [orthogonal] not orthogonal in this shape: {9} (a "
               "matrix)"));
  CHECK(begins(refusal(ErrorKind::shape, {3}, "orthogonal", true),
               "[core.orthogonal for /w] [orthogonal] no orthogonal lookup table: {3,3} (a "
               "matrix)"));
}

TEST_CASE("fill: numbers depend on seed and name, not on what was made before") {
  const Runtime same(options(1)), other(options(2));
  for (const char* id : {"uniform", "normal", "glorot", "he", "orthogonal"}) {
    CAPTURE(id);
    const std::vector<double> w = filled({6, 6}, id);
    CHECK(w == filled({6, 6}, id, DType::f32, same));
    CHECK(w != filled({6, 6}, id, DType::f32, other));
    Model model(runtime());
    const std::vector<double> v = model.add_parameter("v", {6, 6}, id).value().as_doubles();
    CHECK(v != w);
    CHECK(model.add_parameter("w", {6, 6}, id).value().as_doubles() == w);
    const std::vector<double> wide = filled({6, 6}, id, DType::f64);
    for (size_t i = 0; i < w.size(); ++i) CHECK(wide[i] == Approx(w[i]).epsilon(1e-5));
  }
}

TEST_CASE("fill: an unknown attribute is refused with the nearest one") {
  const std::string text = refusal(ErrorKind::argument, {2}, {"normal", {{"sdt", 1}}});
  CHECK(text.find("core.normal for /w") != std::string::npos);
  CHECK(text.find("'std'") != std::string::npos);
}
