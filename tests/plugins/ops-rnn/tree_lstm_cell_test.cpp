// SPDX-License-Identifier: Apache-2.0
#include "rnn_test.hpp"

using namespace rnn_test;

namespace {
const In kZ{{10}, {0.5, -1.0, 1.0, -0.3, 0.6, -0.9, 0.25, 2.0, -0.75, 1.5}},
    kLeaf{{6}, {0.5, -1.0, 1.0, -0.3, 0.6, -0.9}}, kLeft{{2}, {0.8, -0.4}},
    kRight{{2}, {-1.2, 0.1}};
}

TEST_CASE("tree_lstm_cell: values and gradients") {
  const Result r = run("tree_lstm_cell", {kZ, kLeft, kRight}, {}, {{1, -2}, {0.5, 3}});
  CHECK(near(r.value[0], {0.20053735343572676, -0.19033068800255687}));
  CHECK(near(r.value[1], {0.28151960217263794, -0.48125763606672356}));
  CHECK(near(r.gradient[0],
             {0.14842754608109482, -0.3266101951887713, 0.05393280087078143, 0.2186680788853668,
              0.5209052845946731, 0.30369606116358205, 0.1628637682193219, -0.04190832585307083,
              -0.347358887916737, 0.016258004763870508}));
  CHECK(near(r.gradient[1], {0.9141427183116623, 2.209148880409763}));
  CHECK(near(r.gradient[2], {0.6611471072618467, 2.1432104961281127}));
}

TEST_CASE("tree_lstm_cell: children may be left out") {
  const Result leaf = run("tree_lstm_cell", {kLeaf});
  CHECK(near(leaf.value[0], {0.23567252811239675, -0.08098102321125372}));
  CHECK(near(leaf.value[1], {0.33429151429584264, -0.1926421673356259}));
  const Result one = run("tree_lstm_cell", {kZ, kLeft}, {{"forget_bias", 0}});
  CHECK(near(one.value[0], {0.47885454705078395, -0.2113888988209161}));
  CHECK(near(one.value[1], {0.7840327150044811, -0.5449609985267788}));
}

TEST_CASE("tree_lstm_cell: refuses sizes that do not fit") {
  CHECK(refusal("tree_lstm_cell", {Dim{8}}) ==
        "[tree_lstm_cell] length of z is not a multiple of 3: {8}");
  CHECK(refusal("tree_lstm_cell", {Dim{8}, Dim{2}}) ==
        "[tree_lstm_cell] length of z is not a multiple of 5: {8}");
  CHECK(refusal("tree_lstm_cell", {Dim{10}, Dim{2}, Dim{3}}) ==
        "[tree_lstm_cell] sizes differ: z is {10}, right is {3} (need {2})");
}
