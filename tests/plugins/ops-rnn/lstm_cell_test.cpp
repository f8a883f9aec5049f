// SPDX-License-Identifier: Apache-2.0
#include "rnn_test.hpp"

using namespace rnn_test;

namespace {
const In kZ{{8}, {0.5, -1.0, 0.25, 2.0, -0.75, 1.5, 1.0, -0.3}}, kC{{2}, {0.8, -0.4}};
}

TEST_CASE("lstm_cell: values and gradients of both outputs") {
  const Result r = run("lstm_cell", {kZ, kC}, {}, {{1, -2}, {0.5, 3}});
  CHECK(near(r.value[0], {0.2563432508783952, -0.35120974839415225}));
  CHECK(near(r.value[1], {1.0959012779032193, -0.45937567878471075}));
  CHECK(near(r.gradient[0],
             {0.11024965070507721, -0.09545501114943618, 0.08530568243882591, -0.030116443187570747,
              0.1741028756739799, 0.12813924463340365, 0.16103216670704296, 0.4101789449374426}));
  CHECK(near(r.gradient[1], {0.4788147129633228, 1.5875534370665163}));
}

TEST_CASE("lstm_cell: the forget bias is an attribute") {
  const Result r = run("lstm_cell", {kZ, kC}, {{"forget_bias", 0}});
  CHECK(near(r.value[0], {0.23345888765222786, -0.3318345052254571}));
  CHECK(near(r.value[1], {0.9238025896721048, -0.4306648592468903}));
}

TEST_CASE("lstm_cell: a cell shared by the batch gets the sum of the gradients") {
  Numbers z = kZ.numbers;
  z.insert(z.end(), kZ.numbers.begin(), kZ.numbers.end());
  const Result r = run("lstm_cell", {{Dim({8}, 2), z}, kC}, {}, {{1, -2}, {0.5, 3}});
  CHECK(near(r.gradient[1], {2 * 0.4788147129633228, 2 * 1.5875534370665163}));
}

TEST_CASE("lstm_cell: gates saturate without overflow and NaN passes") {
  const double nan = std::nan("");
  const Result r = run("lstm_cell", {{{4}, {1e4, 1e4, 1e4, 1e4}}, {{1}, {2}}});
  CHECK(near(r.value[1], {3}));
  const Result s = run("lstm_cell", {{{4}, {-1e4, -1e4, -1e4, -1e4}}, {{1}, {2}}});
  CHECK(near(s.value[1], {0}));
  CHECK(std::isnan(run("lstm_cell", {{{4}, {nan, 0, 0, 0}}, {{1}, {1}}}).value[0][0]));
}

TEST_CASE("lstm_cell: small numbers keep their digits") {
  const double tiny = 1e-9;  // g = tanh(tiny) = tiny to 18 digits; i = 1/2
  const Result r = run("lstm_cell", {{{4}, {0, 0, 0, tiny}}, {{1}, {0}}});
  CHECK(r.value[1][0] == doctest::Approx(tiny / 2).epsilon(1e-14));
}

TEST_CASE("lstm_cell: refuses sizes that do not fit") {
  CHECK(refusal("lstm_cell", {Dim{6}, Dim{2}}) ==
        "[lstm_cell] length of z is not a multiple of 4: {6}");
  CHECK(refusal("lstm_cell", {Dim{8}, Dim{3}}) ==
        "[lstm_cell] sizes differ: z is {8}, c is {3} (need {2})");
  CHECK(refusal("lstm_cell", {Dim{8, 2}, Dim{2}}) ==
        "[lstm_cell] takes a vector: z is {8,2} (need one column; a second dimension is not the "
        "batch)");
}
