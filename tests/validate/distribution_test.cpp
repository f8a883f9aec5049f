// SPDX-License-Identifier: Apache-2.0
#include "validate/distribution.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace trellis::validate;
using doctest::Approx;

namespace {

double value(const char* expression) {
  const auto v = evaluate(expression, {{"gain", 3}, {"fan_in", 4}});
  return v ? *v : std::nan("");
}
bool unreadable(const char* expression) { return std::isnan(value(expression)); }

}  // namespace

TEST_CASE("distribution: expressions as formulas write them") {
  CHECK(value("1 + 2 * 3") == 7);
  CHECK(value("gain^2 / fan_in") == 9.0 / 4);
  CHECK(value("-2^2") == -4);
  CHECK(value("gain sqrt(fan_in)") == 6);
  CHECK(value("2 (gain - 1)") == 4);
  CHECK(value("8 / 2 / 2") == 2);
  CHECK(value("1e-2") == 0.01);
}

TEST_CASE("distribution: what cannot be computed has no value") {
  CHECK(unreadable(""));
  CHECK(unreadable("1 +"));
  CHECK(unreadable("(1"));
  CHECK(unreadable("unknown"));
  CHECK(unreadable("d0 + .. + dL-1"));
  CHECK(unreadable("1 / 0"));
  CHECK(unreadable("sqrt(0 - 1)"));
  CHECK(unreadable(std::string(100, '(').c_str()));
  CHECK(unreadable(std::string(100000, '-').c_str()));
}

TEST_CASE("distribution: normal, uniform, and names that are defined behind") {
  const auto normal = Distribution::parse("w ~ N(mean, std^2)");
  REQUIRE(normal);
  const auto n = normal->at({{"mean", 2}, {"std", 3}});
  REQUIRE(n);
  CHECK(n->mean() == 2);
  CHECK(n->deviation() == 3);
  CHECK(!normal->at({{"mean", 2}}));

  const auto uniform = Distribution::parse("w ~ U[-s, s), s = gain sqrt(3 / fan_in)");
  REQUIRE(uniform);
  const auto u = uniform->at({{"gain", 2}, {"fan_in", 12}});
  REQUIRE(u);
  CHECK(u->uniform);
  CHECK(u->a == -1);
  CHECK(u->b == 1);
  CHECK(u->deviation() == Approx(2 / std::sqrt(12.0)));
  CHECK(uniform->text() == "U[-s, s)");
}

TEST_CASE("distribution: a name that is defined twice is not known") {
  const auto d = Distribution::parse("w ~ U[-s, s), s = 1; filters: s = 2");
  REQUIRE(d);
  CHECK(!d->at({}));
}

TEST_CASE("distribution: other formulas name none") {
  CHECK(!Distribution::parse("w = value"));
  CHECK(!Distribution::parse("w ~ Cauchy(0, 1)"));
  CHECK(!Distribution::parse("w ~ N(0, 1"));
  CHECK(!Distribution::parse("w ~"));
  CHECK(!Distribution::parse("w ~ U[0]"));
}
