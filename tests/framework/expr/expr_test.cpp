// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <trellis/expr.hpp>
#include <vector>

using namespace trellis;

namespace {

using Numbers = std::vector<double>;

Runtime& runtime() {
  static Runtime r;
  return r;
}
Graph graph() {
  GraphOptions o;
  o.dtype = DType::f64;
  return Graph(runtime(), o);
}
Expr vec(Graph& g, const Dim& dim, const Numbers& v) {
  return g.input(dim, std::span<const double>(v));
}
Numbers value(const Expr& e) { return e.value().as_doubles(); }

}  // namespace

TEST_CASE("expr: arithmetic between expressions broadcasts") {
  Graph g = graph();
  const Expr x = vec(g, {2}, {6, -8}), y = vec(g, {2}, {3, 4}), s = vec(g, Dim(), {2});
  CHECK(value(x + y) == Numbers{9, -4});
  CHECK(value(x - y) == Numbers{3, -12});
  CHECK(value(x / y) == Numbers{2, -2});
  CHECK(value(-x) == Numbers{-6, 8});
  CHECK(value(x + s) == Numbers{8, -6});
  CHECK(value(x / s) == Numbers{3, -4});
  CHECK(value(roles::mul(x, y)) == Numbers{18, -32});
}

TEST_CASE("expr: * is the matrix product, and element-wise beside a scalar") {
  Graph g = graph();
  const Expr w = vec(g, {2, 2}, {1, 2, 3, 4}), x = vec(g, {2}, {5, 6}), s = vec(g, Dim(), {10});
  CHECK(value(w * x) == Numbers{23, 34});
  CHECK(value(s * x) == Numbers{50, 60});
  CHECK(value(w * s) == Numbers{10, 20, 30, 40});
  CHECK(value(s * s) == Numbers{100});
  const Expr batched = vec(g, Dim({}, 2), {2, 3});
  CHECK(value(batched * x) == Numbers{10, 12, 15, 18});
  CHECK_THROWS_AS(x * x, Error);  // {2} by {2} is no product
}

TEST_CASE("expr: numbers scale and shift from either side") {
  Graph g = graph();
  const Expr x = vec(g, {2}, {1, -2});
  CHECK(value(x + 0.5) == Numbers{1.5, -1.5});
  CHECK(value(0.5 + x) == Numbers{1.5, -1.5});
  CHECK(value(x - 1) == Numbers{0, -3});
  CHECK(value(1 - x) == Numbers{0, 3});
  CHECK(value(3 * x) == Numbers{3, -6});
  CHECK(value(x * 3) == Numbers{3, -6});
  CHECK(value(x / 4) == Numbers{0.25, -0.5});
  CHECK(value(4 / x) == Numbers{4, -2});
}

TEST_CASE("expr: different numbers are one call when they merge") {
  GraphOptions o;
  o.always_group = true;
  Graph g(runtime(), o);
  std::vector<Expr> xs;
  for (int i = 0; i < 64; ++i) xs.push_back(vec(g, {64}, Numbers(64, 1.0)) * (0.5 + i));
  g.forward_all();
  CHECK(g.stats().forward_calls == 1);
  CHECK(value(xs[7])[63] == 7.5);
}

TEST_CASE("expr: compound assignment makes a new node") {
  Graph g = graph();
  const Expr x = vec(g, {1}, {2});
  Expr sum = x;
  sum += x;
  sum -= vec(g, {1}, {1});
  sum *= 5;
  sum /= 2;
  CHECK(value(sum) == Numbers{7.5});
  CHECK(value(x) == Numbers{2});
}

TEST_CASE("expr: an entry of the first axis") {
  Graph g = graph();
  const Expr x = vec(g, {2, 3}, {1, 2, 3, 4, 5, 6}), v = vec(g, Dim({3}, 2), {1, 2, 3, 4, 5, 6});
  CHECK(value(x[1]) == Numbers{2, 4, 6});
  CHECK(x[1].dim() == Dim{3});
  CHECK(value(v[-1]) == Numbers{3, 6});
  CHECK(v[-1].dim() == Dim({}, 2));
  CHECK_THROWS_WITH_AS(v[3], "[slice] no such entry: 3 of {3}x2", Error);
  CHECK_THROWS_WITH_AS(v[-4], "[slice] no such entry: -4 of {3}x2", Error);
  CHECK_THROWS_WITH_AS(v[0][0], "[slice] a scalar has no entries", Error);
}

TEST_CASE("expr: functions by role") {
  Graph g = graph();
  const Expr x = vec(g, Dim({2}, 2), {1, 2, 3, 4}), m = vec(g, {2, 2}, {1, 2, 3, 4});
  const int64_t first[] = {0};
  CHECK(value(roles::sum(x)) == Numbers{3, 7});
  CHECK(value(roles::sum(m, first)) == Numbers{3, 7});
  CHECK(value(roles::sum_batches(x)) == Numbers{4, 6});
  CHECK(value(roles::concat({m[0], m[1]})) == Numbers{1, 3, 2, 4});
  CHECK(roles::concat({m, m}, 1).dim() == Dim{2, 4});
  CHECK(value(roles::slice(m, 1, 2, 1)) == Numbers{3, 4});
  CHECK(roles::reshape(m, {4}).dim() == Dim{4});
  CHECK(value(roles::dropout(x, 1)) == Numbers{0, 0, 0, 0});
  CHECK_THROWS_WITH_AS(roles::concat({}), "[concat] no inputs: 0 (at least 1)", Error);
}

TEST_CASE("expr: gradients flow through operators") {
  Graph g = graph();
  const Expr x = vec(g, {2}, {1, 2}), y = vec(g, {2}, {3, 5});
  g.backward(roles::sum(2 * roles::mul(x, y) - x / y + 1), true);
  CHECK(x.gradient().as_doubles()[0] == doctest::Approx(6 - 1.0 / 3));
  CHECK(y.gradient().as_doubles()[1] == doctest::Approx(4 + 2.0 / 25));
}

TEST_CASE("expr: graphs do not mix, and stale or empty expressions are refused") {
  Graph g = graph(), other = graph();
  const Expr x = g.input(1), y = other.input(2);
  const auto kind = [](auto f) {
    try {
      f();
    } catch (const Error& e) {
      return std::pair(e.kind(), std::string(e.what()));
    }
    return std::pair(ErrorKind::internal, std::string("not refused"));
  };
  CHECK(kind([&] { x + y; }).first == ErrorKind::state);
  CHECK(kind([&] { x + y; }).second.find("another graph") != std::string::npos);
  CHECK(kind([&] { roles::concat({x, y}); }).first == ErrorKind::state);
  CHECK(kind([&] { x + Expr(); }).first == ErrorKind::state);
  g.clear();
  CHECK(kind([&] { x + 1; }).second.find("older graph") != std::string::npos);
}

TEST_CASE("expr: without a plugin that has the role an operator says what is missing") {
  RuntimeOptions none;
  none.no_plugins = true;
  const Runtime bare(none);
  Graph g(bare);
  const Expr x = g.input(1);
  CHECK_THROWS_WITH_AS(
      x + x, "[role] no operator plays 'add' (load a plugin with one; loaded: no plugins)", Error);
}
