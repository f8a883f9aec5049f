// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <trellis/expr.hpp>
#include <trellis/model.hpp>
#include <trellis/random.hpp>
#include <vector>

#include "graph/graph_impl.hpp"

using namespace trellis;

namespace {

using Numbers = std::vector<double>;

Runtime& runtime() {
  static Runtime r;
  return r;
}
GraphOptions options(bool batching = true, Mode mode = Mode::train) {
  GraphOptions o;
  o.dtype = DType::f64;
  o.batching = batching;
  o.always_group = batching;
  o.mode = mode;
  return o;
}
Expr vec(Graph& g, const Dim& dim, const Numbers& v) {
  return g.input(dim, std::span<const double>(v));
}
Numbers value(const Expr& e) { return e.value().as_doubles(); }
Expr op(const Expr& x, const char* name, const Attrs& attrs = {}) {
  return x.graph().apply1(name, {x}, attrs);
}
Numbers draw(size_t n, uint64_t seed) {
  RandomEngine r(seed);
  Numbers v(n);
  for (double& x : v) x = 2 * r.uniform() - 1;
  return v;
}
void check_close(const Numbers& a, const Numbers& b, double tolerance) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i)
    CHECK_MESSAGE(
        std::abs(a[i] - b[i]) <= tolerance * std::max({1.0, std::abs(a[i]), std::abs(b[i])}),
        "number " << i << ": " << a[i] << " and " << b[i]);
}

// A small network: its loss at parameters (w1, b1, w2) for a batch of three inputs.
struct Net {
  Model model{runtime(), DType::f64};
  Parameter w1 = model.add_parameter("w1", {5, 4}, Init::from(draw(20, 1)));
  Parameter b1 = model.add_parameter("b1", {5}, Init::from(draw(5, 2)));
  Parameter w2 = model.add_parameter("w2", {3, 5}, Init::from(draw(15, 3)));

  std::vector<Parameter> all() { return {w1, b1, w2}; }
  Expr hidden(Graph& g, const Expr& x) {
    return op(g.apply1("affine", {g.parameter(b1), g.parameter(w1), x}), "tanh");
  }
  Expr loss(Graph& g) {
    const Expr x = vec(g, Dim({4}, 3), draw(12, 4));
    const Expr scores = g.parameter(w2) * hidden(g, x);
    return roles::sum_batches(
        op(scores, "cross_entropy", {{"ids", std::vector<int64_t>{0, 2, 1}}}));
  }
  Numbers gradient() {  // by backward
    Graph g(runtime(), options());
    model.reset_gradient();
    g.backward(loss(g));
    Numbers all_of;
    for (const Parameter& p : all())
      for (const double d : p.gradient().as_doubles()) all_of.push_back(d);
    return all_of;
  }
  void move(const Numbers& direction, double h) {
    size_t at = 0;
    for (const Parameter& p : all())
      for (uint64_t i = 0; i < p.dim().total(); ++i)
        p.value().set(i, p.value().at(i) + h * direction[at++]);
  }
};

}  // namespace

TEST_CASE("differentiate: again and again") {
  Graph g(runtime(), options());
  const Expr x = vec(g, {3}, {1, 2, -3});
  const Expr y = roles::sum(op(x, "cube"));
  const Expr first = differentiate(y, x);
  CHECK(first.dim() == x.dim());
  CHECK(value(first) == Numbers{3, 12, 27});
  const Expr second = differentiate(roles::sum(first), x);
  CHECK(value(second) == Numbers{6, 12, -18});
  CHECK(value(differentiate(roles::sum(second), x)) == Numbers{6, 6, 6});
  g.backward(roles::sum(second), true);
  CHECK(x.gradient().as_doubles() == Numbers{6, 6, 6});
}

TEST_CASE("differentiate: equals backward for every parameter of a network") {
  for (const bool batching : {false, true}) {
    Net net;
    Graph g(runtime(), options(batching));
    const Expr loss = net.loss(g);
    std::vector<Expr> wrt;
    for (const Parameter& p : net.all()) wrt.push_back(g.parameter(p));
    Numbers got;
    for (const Expr& d : differentiate(loss, wrt))
      for (const double v : value(d)) got.push_back(v);
    check_close(got, net.gradient(), 1e-12);
  }
}

TEST_CASE(
    "differentiate: a product of the Hessian and a vector, against differences of gradients") {
  Net net;
  const Numbers direction = draw(40, 9);
  Graph g(runtime(), options());
  std::vector<Expr> wrt, parts;
  for (const Parameter& p : net.all()) wrt.push_back(g.parameter(p));
  size_t at = 0;
  for (const Expr& d : differentiate(net.loss(g), wrt)) {
    const Numbers v(direction.begin() + at, direction.begin() + at + d.dim().total());
    at += v.size();
    parts.push_back(roles::sum(roles::mul(d, vec(g, d.dim(), v))));
  }
  const Expr along = parts[0] + parts[1] + parts[2];
  Numbers by_backward, by_expression;
  g.backward(along);
  for (const Parameter& p : net.all())
    for (const double d : p.gradient().as_doubles()) by_backward.push_back(d);
  for (const Expr& d : differentiate(along, wrt))
    for (const double v : value(d)) by_expression.push_back(v);

  constexpr double h = 1e-5;
  net.move(direction, h);
  const Numbers up = net.gradient();
  net.move(direction, -2 * h);
  const Numbers down = net.gradient();
  Numbers expected(up.size());
  for (size_t i = 0; i < up.size(); ++i) expected[i] = (up[i] - down[i]) / (2 * h);
  check_close(by_backward, expected, 1e-6);
  check_close(by_expression, by_backward, 1e-11);
}

TEST_CASE("differentiate: a gradient penalty trains") {
  // The slope of the network at given inputs is pushed to length 1.
  Net net;
  const auto penalty = [&](Graph& g) {
    const Expr x = vec(g, Dim({4}, 3), draw(12, 4));
    const Expr y =
        roles::sum_batches(roles::sum(op(g.parameter(net.w2) * net.hidden(g, x), "square")));
    const Expr slope = differentiate(y, x);
    const Expr length = op(roles::sum(op(slope, "square")), "sqrt");  // one a batch element
    return roles::sum_batches(op(length - 1, "square"));
  };
  const auto at = [&] {
    Graph g(runtime(), options());
    return penalty(g).scalar();
  };
  const double before = at();
  Graph g(runtime(), options());
  net.model.reset_gradient();
  g.backward(penalty(g));
  const Numbers direction = draw(40, 5);
  double expected = 0;
  size_t k = 0;
  Numbers descent;
  for (const Parameter& p : net.all())
    for (const double d : p.gradient().as_doubles()) {
      expected += d * direction[k++];
      descent.push_back(-d);
    }
  constexpr double h = 1e-6;
  net.move(direction, h);
  const double up = at();
  net.move(direction, -2 * h);
  const double down = at();
  net.move(direction, h);
  CHECK(std::abs((up - down) / (2 * h) - expected) <= 1e-6 * std::max(1.0, std::abs(expected)));
  net.move(descent, 1e-3);
  CHECK(at() < before);
}

TEST_CASE("differentiate: by nodes between, by y itself, and by what it does not depend on") {
  Graph g(runtime(), options());
  const Expr x = vec(g, {2}, {2, 3}), other = vec(g, Dim({2}, 2), {1, 1, 1, 1});
  const Expr h = op(x, "square");
  const Expr y = roles::sum(roles::mul(h, h));
  const Expr later = y + 1.0;
  const std::vector<Expr> wrt{h, x, y, other, later, h};
  const std::vector<Expr> d = differentiate(y, wrt);
  CHECK(value(d[0]) == Numbers{8, 18});
  CHECK(value(d[1]) == Numbers{32, 108});
  CHECK(value(d[2]) == Numbers{1});
  CHECK(d[3].dim() == other.dim());
  CHECK(value(d[3]) == Numbers{0, 0, 0, 0});
  CHECK(value(d[4]) == Numbers{0});
  CHECK(value(d[5]) == Numbers{8, 18});
  CHECK(differentiate(y, std::span<const Expr>()).empty());
  // stop_gradient stops it, and what is a constant on the way takes none
  const Expr stopped = roles::sum(roles::mul(op(x, "stop_gradient"), x));
  CHECK(value(differentiate(stopped, x)) == Numbers{2, 3});
}

TEST_CASE("differentiate: broadcast inputs receive sums, over axes and over the batch") {
  Graph g(runtime(), options());
  const Expr x = vec(g, {2}, {1, 2});
  const Expr m = vec(g, Dim({2, 3}, 2), draw(12, 7));
  const Expr y = roles::sum_batches(roles::sum(roles::mul(m, x)));
  const std::vector<Expr> wrt{x, m};
  const std::vector<Expr> d = differentiate(y, wrt);
  g.backward(y, true);
  check_close(value(d[0]), x.gradient().as_doubles(), 1e-14);
  check_close(value(d[1]), m.gradient().as_doubles(), 1e-14);
}

TEST_CASE("differentiate: dropout's mask is the same in the gradient") {
  for (const bool batching : {false, true}) {
    Graph g(runtime(), options(batching));
    const Expr x = vec(g, Dim({8}, 2), draw(16, 3)), other = roles::dropout(x, 0.5);
    const Expr y = roles::dropout(x, 0.25);
    const Expr total = roles::sum_batches(roles::sum(op(y, "cube") + other));
    const Expr d = differentiate(total, x);
    g.backward(total, true);
    check_close(value(d), x.gradient().as_doubles(), 1e-14);
    const Expr later = roles::dropout(x, 0.25);  // masks of later nodes are their own
    CHECK(value(later) != value(y));
    g.backward(roles::sum_batches(roles::sum(d)), true);
    const Numbers v = value(x), kept = value(y), second = x.gradient().as_doubles();
    for (size_t i = 0; i < v.size(); ++i)
      CHECK(second[i] == doctest::Approx(kept[i] == 0 ? 0 : 6 * v[i] / (0.75 * 0.75 * 0.75)));
  }
}

TEST_CASE("differentiate: what adds nothing in this mode is passed") {
  Graph g(runtime(), options(true, Mode::infer));
  const Expr x = vec(g, {2}, {3, 4});
  CHECK(value(differentiate(roles::sum(op(roles::dropout(x, 0.5), "square")), x)) == Numbers{6, 8});
}

TEST_CASE("differentiate: what it refuses has a text and adds nothing") {
  Graph g(runtime(), options());
  const Expr x = vec(g, {2}, {1, 2}), batched = vec(g, Dim({}, 3), {1, 2, 3});
  const Expr largest = op(op(op(x, "max"), "tanh"), "square");
  const Expr index = op(x, "argmax");
  const size_t size = g.size();
  CHECK_THROWS_WITH_AS(differentiate(x, x),
                       "[differentiate] needs a scalar: got {2} (one element, batch 1)", Error);
  CHECK_THROWS_WITH_AS(
      differentiate(batched, x),
      "[differentiate] needs a scalar: got {}x3 (reduce the batch first: sum_batches)", Error);
  CHECK_THROWS_WITH_AS(
      differentiate(index, x),
      ("[differentiate] i64 values have no gradient: " + g.describe(index) + " (needs f32 or f64)")
          .c_str(),
      Error);
  const std::string text =
      "[max] has no gradient as an expression: node #3 = core.max(#1) {} "
      "(needs an operator with expand_grad); ops-core " +
      std::string(version());
  CHECK_THROWS_WITH_AS(differentiate(largest, x), text.c_str(), Error);
  CHECK(g.size() == size);
  Graph h(runtime(), options());
  CHECK_THROWS_AS(differentiate(roles::sum(x), vec(h, {1}, {1})), Error);  // of another graph
  CHECK(value(differentiate(roles::sum(x), x)) == Numbers{1, 1});
}

TEST_CASE("differentiate: an operator that gives no gradient it can use is named") {
  Graph g(runtime(), options());
  const Expr x = vec(g, {2}, {1, 2});
  const Expr y = roles::sum(op(x, "tanh"));
  auto& desc = const_cast<trl_op_desc&>(runtime().registry().op("core.tanh").desc);
  const auto before = desc.expand_grad;
  const auto with = [&](trl_status (*f)(const trl_expand_args*)) {
    desc.expand_grad = f;
    const size_t size = g.size();
    std::string text;
    try {
      differentiate(y, x);
    } catch (const Error& e) {
      text = e.what();
    }
    desc.expand_grad = before;
    CHECK(g.size() == size);
    return text;
  };
  const std::string plugin = "; ops-core " + std::string(version());
  CHECK(with([](const trl_expand_args*) -> trl_status { throw 1; }) ==
        "[tanh] an exception left its expand_grad (a plugin must stop its own)" + plugin);
  CHECK(with([](const trl_expand_args* a) {
          return a->call->host->fail(a->call, TRL_E_INVALID, TRL_STR("not today"));
        }) == "[tanh] not today" + plugin + ", gradient of node #2 = core.tanh(#1) {2}");
  static trl_expr loss;
  loss = g.impl().to_c(vec(g, {3}, {0, 0, 0}).id());
  CHECK(with([](const trl_expand_args* a) {
          a->out[0] = loss;
          return trl_status{TRL_OK};
        }) ==
        "[tanh] its gradient for input 0 is f64 {3}, the input is f64 {2} (needs the input's "
        "shape, or one that broadcasts to it or from it)" +
            plugin);
  // left absent: zero
  desc.expand_grad = [](const trl_expand_args*) { return trl_status{TRL_OK}; };
  CHECK(value(differentiate(y, x)) == Numbers{0, 0});
  desc.expand_grad = before;
}
