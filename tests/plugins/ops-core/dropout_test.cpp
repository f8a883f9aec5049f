// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

namespace {

const In kOnes{{1000}, std::vector<double>(1000, 1)};

double share_of(const std::vector<double>& v, double x) {
  double n = 0;
  for (const double e : v) n += e == x;
  return n / static_cast<double>(v.size());
}

}  // namespace

TEST_CASE(
    "dropout: in train mode elements are zero or scaled, and the gradient uses the same mask") {
  const Result r = grad("dropout", {kOnes}, {{"p", 0.5}});
  CHECK(share_of(r.value, 0) == doctest::Approx(0.5).epsilon(0.1));
  CHECK(share_of(r.value, 0) + share_of(r.value, 2) == 1);
  CHECK(r.gradient[0] == r.value);
}

TEST_CASE("dropout: does nothing in inference mode unless told to") {
  CHECK(eval("dropout", {kOnes}, {{"p", 0.5}}).value == kOnes.numbers);
  CHECK(eval("dropout", {kOnes}, {{"p", 0.5}, {"always", true}}).value != kOnes.numbers);
}

TEST_CASE("dropout: probability 0 keeps everything, 1 nothing") {
  CHECK(eval("dropout", {kOnes}, {{"p", 0.0}}, Mode::train).value == kOnes.numbers);
  CHECK(share_of(eval("dropout", {kOnes}, {{"p", 1.0}}, Mode::train).value, 0) == 1);
}

TEST_CASE("dropout: refuses a probability outside [0, 1]") {
  CHECK(refusal("dropout", {kOnes}, {{"p", 1.5}}) ==
        "[dropout] attribute 'p': 1.5 (needed 0 to 1)");
}
