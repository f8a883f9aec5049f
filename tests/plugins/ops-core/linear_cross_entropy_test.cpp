// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

namespace {

std::vector<double> waves(size_t n, double start, double size = 1) {
  std::vector<double> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = size * std::sin(start + 1.7 * static_cast<double>(i));
  return v;
}

// cross_entropy(affine(b, w, x)): the same in two nodes.
Result two_nodes(const std::vector<In>& in, const Attrs& attrs) {
  Graph g(runtime(), options(Mode::train));
  const std::vector<Expr> x = inputs(g, in);
  const Expr y = g.apply1("cross_entropy", {g.apply("affine", x).at(0)}, attrs);
  g.backward(g.apply1("core.sum_batches", {y}), true);
  Result r{y.dim(), y.value().as_doubles(), {}};
  for (const Expr& e : x) r.gradient.push_back(e.gradient().as_doubles());
  return r;
}

}  // namespace

TEST_CASE("linear_cross_entropy: values and gradients") {
  // scores 1 + 3, 2 + 2, 0 + 5
  const std::vector<In> in = {{{3}, {1, 2, 0}}, {{3, 2}, {1, 0, 2, 1, 1, 1.5}}, {{2}, {1, 2}}};
  const Result r = grad("linear_cross_entropy", in, {{"ids", 1}});
  CHECK(r.dim == Dim{});
  // log(e^4 + e^4 + e^5) - 4
  const double log_sum = std::log(2 * std::exp(4.0) + std::exp(5.0));
  check_near(r.value, {log_sum - 4});
  const double p = std::exp(4 - log_sum), q = std::exp(5 - log_sum);
  check_near(r.gradient[0], {p, p - 1, q});
  check_near(r.gradient[1], {p, p - 1, q, 2 * p, 2 * (p - 1), 2 * q});
  check_near(r.gradient[2], {p + 2 * q, p + (p - 1) + 1.5 * q});
}

TEST_CASE("linear_cross_entropy: over several blocks of classes it is what two nodes are") {
  for (const uint32_t classes : {1u, 127u, 128u, 129u, 700u}) {
    CAPTURE(classes);
    const std::vector<In> in = {{{classes}, waves(classes, 0.3)},
                                {{classes, 5}, waves(classes * 5, 0.9)},
                                {Dim({5}, 3), waves(15, 2.1)}};
    const Attrs attrs = {{"ids", std::vector<int64_t>{0, classes / 2, classes - 1}}};
    const Result one = grad("linear_cross_entropy", in, attrs), two = two_nodes(in, attrs);
    check_near(one.value, two.value);
    for (size_t i = 0; i < 3; ++i) check_near(one.gradient[i], two.gradient[i]);
    check_near(eval("linear_cross_entropy", in, attrs).value, two.value);
  }
}

TEST_CASE("linear_cross_entropy: scores that lie far apart, within a block and between blocks") {
  std::vector<double> bias(300, -2000);
  bias[7] = 1000, bias[200] = 999, bias[299] = -kInf;
  const std::vector<In> in = {{{300}, bias}, {{300, 1}, std::vector<double>(300)}, {{1}, {1}}};
  const double log_sum = 1000 + std::log1p(std::exp(-1.0));
  check_near(eval("linear_cross_entropy", in, {{"ids", 7}}).value, {log_sum - 1000});
  check_near(eval("linear_cross_entropy", in, {{"ids", 3}}).value, {log_sum + 2000});
  check_near(eval("linear_cross_entropy", in, {{"ids", 299}}).value, {kInf});
  const Result r = grad("linear_cross_entropy", in, {{"ids", 3}});
  CHECK(near(r.gradient[0][3], -1));
  CHECK(near(r.gradient[0][7], 1 / (1 + std::exp(-1.0))));
  CHECK(near(r.gradient[0][200], 1 / (1 + std::exp(1.0))));
  CHECK(r.gradient[0][299] == 0);

  std::vector<double> low(300, 0.0);  // a whole block without a chance
  for (size_t i = 0; i < 128; ++i) low[i] = -kInf;
  const std::vector<In> half = {{{300}, low}, {{300, 1}, std::vector<double>(300)}, {{1}, {1}}};
  check_near(eval("linear_cross_entropy", half, {{"ids", 128}}).value, {std::log(172.0)});
  CHECK(grad("linear_cross_entropy", half, {{"ids", 128}}).gradient[0][5] == 0);

  low[150] = kNan;
  CHECK(std::isnan(eval("linear_cross_entropy",
                        {{{300}, low}, {{300, 1}, std::vector<double>(300)}, {{1}, {1}}},
                        {{"ids", 128}})
                       .value[0]));
}

TEST_CASE("linear_cross_entropy: refuses what does not fit") {
  const In b{{3}, {1, 2, 3}}, w{{3, 2}, {1, 2, 3, 4, 5, 6}}, x{{2}, {1, 2}};
  CHECK(refusal("linear_cross_entropy", {b, w, x}, {{"ids", 3}}) ==
        "[linear_cross_entropy] 'ids' is out of bounds: 3 (needs 0 to 2)");
  CHECK(refusal("linear_cross_entropy", {x, w, x}, {{"ids", 1}}) ==
        "[linear_cross_entropy] the bias does not fit: b is {2}, w is {3,2} (need {3})");
  CHECK(
      refusal("linear_cross_entropy", {b, w, b}, {{"ids", 1}}) ==
      "[linear_cross_entropy] inner sizes differ: w is {3,2}, x is {3} (need columns of w == rows "
      "of x)");
  CHECK(refusal("linear_cross_entropy", {b, w, {{2, 2}, {1, 2, 3, 4}}}, {{"ids", 1}}) ==
        "[linear_cross_entropy] takes a vector: x is {2,2} (need one column; a second dimension is "
        "not the batch)");
}
