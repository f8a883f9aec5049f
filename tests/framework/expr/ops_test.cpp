// SPDX-License-Identifier: Apache-2.0
//
// The typed functions, and the entry they stand on.
#include <doctest/doctest.h>

#include <trellis/ops.hpp>
#include <trellis/ops/core.hpp>
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

TEST_CASE("ops: a typed call is the call by name") {
  Graph g = graph();
  const Expr x = vec(g, {3}, {0.5, -1, 2});
  CHECK(value(ops::tanh(x)) == value(g.apply1("core.tanh", {x})));
  CHECK(value(ops::leaky_relu(x, 0.2)) ==
        value(g.apply1("core.leaky_relu", {x}, {{"slope", 0.2}})));
}

TEST_CASE("ops: inputs in any number come as arguments, lists or vectors") {
  Graph g = graph();
  const Expr x = vec(g, {2}, {1, 2}), y = vec(g, {1}, {3}), w = vec(g, {1, 2}, {10, 20});
  const std::vector<Expr> both{x, y};
  CHECK(value(ops::concat(x, y)) == Numbers{1, 2, 3});
  CHECK(value(ops::concat({x, y})) == Numbers{1, 2, 3});
  CHECK(value(ops::concat(both, 0)) == Numbers{1, 2, 3});
  CHECK(value(ops::affine(y, w, x)) == Numbers{53});
  CHECK(value(ops::affine(y, {w, x, w, x})) == Numbers{103});
  CHECK_THROWS_AS(ops::concat(std::vector<Expr>{}), Error);
  const std::vector<Expr> many(40, y);
  CHECK(ops::concat(many).dim() == Dim{40});
}

TEST_CASE("ops: one id, an id for each batch element, or a list of them") {
  Graph g = graph();
  const Expr x = vec(g, Dim({2}, 2), {1, 2, 3, 4});
  const std::vector<uint32_t> ids{1, 0};
  CHECK(value(ops::pick(x, 1)) == Numbers{2, 4});
  CHECK(value(ops::pick(x, ids)) == Numbers{2, 3});
  CHECK(value(ops::pick(x, {0, 1})) == Numbers{1, 4});
  const std::vector<uint32_t> large(100, 1);
  CHECK(value(ops::pick(vec(g, {2}, {5, 6}), large)) == Numbers(100, 6.0));
  CHECK_THROWS_AS(ops::pick(x, 2), Error);
}

TEST_CASE("ops: several outputs come as a struct, optional inputs may be left out") {
  Graph g = graph();
  const auto [h, c] = ops::lstm_cell(vec(g, {4}, {0, 0, 0, 0}), vec(g, {1}, {1}), 0.0);
  CHECK(value(c) == Numbers{0.5});
  CHECK(h.scalar() == doctest::Approx(0.5 * std::tanh(0.5)));
  const Expr z = vec(g, {5}, {0, 0, 1, 0, 0});
  CHECK(ops::tree_lstm_cell(vec(g, {3}, {0, 0, 1})).c.scalar() ==
        doctest::Approx(0.5 * std::tanh(1.0)));
  CHECK(ops::tree_lstm_cell(z, vec(g, {1}, {2}), {}, 0.0).c.scalar() ==
        doctest::Approx(0.5 * std::tanh(1.0) + 1));
  // Only the right child: what is left out in the middle stays a place.
  CHECK(ops::tree_lstm_cell(z, {}, vec(g, {1}, {2}), 0.0).c.scalar() ==
        doctest::Approx(0.5 * std::tanh(1.0) + 1));
}

TEST_CASE("ops: attributes out of range are refused") {
  Graph g = graph();
  CHECK_THROWS_WITH_AS(ops::dropout(vec(g, {1}, {1}), 1.5), doctest::Contains("attribute 'p': 1.5"),
                       Error);
}

TEST_CASE("ops: a header of another version of the plugin is noticed") {
  Graph g = graph();
  const Expr x = vec(g, {1}, {1});
  Expr y;
  CHECK_THROWS_WITH_AS(apply_ordered(op_name_id("core.dropout"), {&x, 1}, {}, {&y, 1}),
                       "[core.dropout] wrong number of attributes: 0 (need 2; was the typed header "
                       "made from another "
                       "version of the plugin?)",
                       Error);
  CHECK_THROWS_WITH_AS(apply_ordered(op_name_id("core.tanh"), {}, {}, {&y, 1}),
                       "[core.tanh] no inputs: 0 (at least 1)", Error);
}

TEST_CASE("ops: an operator that the runtime lacks is an error of that runtime only") {
  RuntimeOptions none;
  none.no_plugins = true;
  const Runtime bare(none);
  Graph without(bare), with = graph();
  try {
    ops::tanh(without.input(1));
    FAIL("not refused");
  } catch (const Error& e) {
    CHECK(std::string(e.what()).find("core.tanh") != std::string::npos);
  }
  CHECK(ops::tanh(with.input(0)).scalar() == 0);
}

TEST_CASE("ops: ragged lists of ids keep their places") {
  const std::vector<std::vector<uint32_t>> lists{{1, 2}, {}, {3}};
  const detail::IdsAttr ids{std::span<const std::vector<uint32_t>>(lists)};
  const trl_attr a = ids;
  CHECK(a.count == 3);
  CHECK(std::vector<int64_t>(a.v.is, a.v.is + 3) == std::vector<int64_t>{1, 2, 3});
  CHECK(std::vector<uint32_t>(a.offsets, a.offsets + 4) == std::vector<uint32_t>{0, 2, 2, 3});
}
