// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

TEST_CASE("gaussian_noise: mean and deviation in train mode; the gradient passes") {
  const In x{{10000}, std::vector<double>(10000, 5)};
  const Result r = grad("gaussian_noise", {x}, {{"deviation", 2.0}});
  double mean = 0, square = 0;
  for (const double v : r.value) mean += v / 10000;
  for (const double v : r.value) square += (v - mean) * (v - mean) / 10000;
  CHECK(mean == doctest::Approx(5).epsilon(0.02));
  CHECK(std::sqrt(square) == doctest::Approx(2).epsilon(0.03));
  CHECK(r.gradient[0] == std::vector<double>(10000, 1));
}

TEST_CASE("gaussian_noise: silent in inference mode unless told otherwise") {
  const In x{{3}, {1, 2, 3}};
  CHECK(eval("gaussian_noise", {x}).value == x.numbers);
  CHECK(eval("gaussian_noise", {x}, {{"deviation", 0.0}}, Mode::train).value == x.numbers);
  CHECK(eval("gaussian_noise", {x}, {{"always", true}}).value != x.numbers);
}
