// SPDX-License-Identifier: Apache-2.0
#include "rnn_test.hpp"

using namespace rnn_test;

namespace {
const In kA{{4}, {0.5, -1.0, 0.25, 2.0}}, kZn{{2}, {1.0, -0.3}}, kH{{2}, {0.8, -0.4}};
}

TEST_CASE("gru_reset: values and gradients") {
  const Result r = run("gru_reset", {kA, kH}, {}, {{1, -2}});
  CHECK(near(r.value[0], {0.4497412007086385, -0.3523188311911529}));
  CHECK(near(r.gradient[0], {0, 0, 0.19690726619007867, 0.0839948683228052}));
  CHECK(near(r.gradient[1], {0.5621765008857981, -1.7615941559557646}));
}

TEST_CASE("gru_cell: values and gradients; the update gate weights the candidate") {
  const Result r = run("gru_cell", {kA, kZn, kH}, {}, {{1, -2}});
  CHECK(near(r.value[0], {0.7760939240019826, -0.3707694595077393}));
  CHECK(near(r.gradient[0], {-0.00902551592063078, -0.04273847476971776, 0, 0}));
  CHECK(near(r.gradient[1], {0.2614169478030059, -0.4922364705237452}));
  CHECK(near(r.gradient[2], {0.3775406687981454, -1.4621171572600098}));
  const Result open = run("gru_cell", {{{2}, {1e4, 0}}, {{1}, {0.5}}, {{1}, {7}}});
  CHECK(near(open.value[0], {std::tanh(0.5)}));
}

TEST_CASE("gru cells: refuse sizes that do not fit") {
  CHECK(refusal("gru_reset", {Dim{3}, Dim{1}}) ==
        "[gru_reset] length of a is not a multiple of 2: {3}");
  CHECK(refusal("gru_cell", {Dim{4}, Dim{3}, Dim{2}}) ==
        "[gru_cell] sizes differ: a is {4}, zn is {3} (need {2})");
  CHECK(refusal("gru_cell", {Dim{4}, Dim{2}, Dim{1}}) ==
        "[gru_cell] sizes differ: a is {4}, h is {1} (need {2})");
}
