// SPDX-License-Identifier: Apache-2.0
#include <trellis/expr.hpp>
#include <trellis/model.hpp>

#include "op_test.hpp"

using namespace op_test;

TEST_CASE(
    "sum_list, mean_list: one node for many tensors; a shared one gets the sum of its gradients") {
  const In a{Dim({2}, 3), {1, 2, 3, 4, 5, 6}}, b{{2}, {10, 20}};
  const Result sum = grad("sum_list", {a, b, b}), mean = grad("mean_list", {a, b});
  check_near(sum.value, {21, 42, 23, 44, 25, 46});
  check_near(sum.gradient[1], {3, 3});
  check_near(mean.value, {5.5, 11, 6.5, 12, 7.5, 13});
  check_near(mean.gradient[0], std::vector<double>(6, 0.5));
  check_near(mean.gradient[1], {1.5, 1.5});
  check_near(eval("sum_list", {a}).value, a.numbers);
}

TEST_CASE("sum_list: answers to DyNet's sum of a list, and refuses an empty one") {
  check_near(eval("dynet.sum", {{{1}, {1}}, {{1}, {2}}}).value, {3});
  CHECK(refusal("sum_list", {}) != "not refused");
}

TEST_CASE("sum_list: many inputs, different ones and the same one again and again") {
  for (const bool batching : {false, true}) {
    Model model(runtime());
    const Parameter p = model.add_parameter("p", {2}, Init::from({1, 2}));
    const Parameter q = model.add_parameter("q", {2}, Init::from({3, 4}));
    Graph g(runtime(), {.batching = batching});
    std::vector<Expr> same(40, g.parameter(p)), all = same, apart;
    for (int i = 0; i < 40; ++i) apart.push_back(g.parameter(q) * double(i));
    all.insert(all.end(), apart.begin(), apart.end());
    g.backward(roles::sum(g.apply("sum_list", all)[0]));
    CHECK(p.gradient().as_vector() == std::vector<float>{40, 40});
    CHECK(q.gradient().as_vector() == std::vector<float>{780, 780});
  }
}
