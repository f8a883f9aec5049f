// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "support/test_ops.hpp"

using namespace trellis;
using test::apply;
using test::counts;
using test::TestRuntime;

namespace {
std::vector<float> v(std::initializer_list<float> x) { return x; }
Expr vec(Graph& g, std::vector<float> x) { return g.input(Dim({uint32_t(x.size())}), x); }
}  // namespace

TEST_CASE("forward: nothing is computed before a value is asked for") {
  TestRuntime rt;
  Graph g(rt);
  counts = {};
  const Expr y = apply(g, "square", {vec(g, {2, 3})});
  const Expr unused = apply(g, "square", {y});
  CHECK(counts.forward == 0);
  CHECK(y.value().as_vector() == v({4, 9}));
  CHECK(counts.forward == 1);
  CHECK(y.value().as_vector() == v({4, 9}));
  CHECK(counts.forward == 1);
  CHECK(unused.value().as_vector() == v({16, 81}));
  CHECK(counts.forward == 2);
}

TEST_CASE("forward: an earlier value after a later one is not computed again") {
  TestRuntime rt;
  Graph g(rt);
  const Expr a = apply(g, "square", {g.input(3)}), b = apply(g, "square", {a});
  CHECK(b.scalar() == 81);
  counts = {};
  CHECK(a.scalar() == 9);
  CHECK(g.incremental_forward(a).as_scalar() == 9);
  CHECK(counts.forward == 0);
}

TEST_CASE("forward: starts again from the leaves and computes only what is needed") {
  TestRuntime rt;
  Graph g(rt);
  float x = 2;
  const Expr in = g.input_pointer(Dim(), &x);
  const Expr a = apply(g, "square", {in}), b = apply(g, "square", {a});
  CHECK(g.forward(b).as_scalar() == 16);
  x = 3;
  CHECK(b.scalar() == 16);
  counts = {};
  CHECK(g.forward(a).as_scalar() == 9);
  CHECK(counts.forward == 1);
  CHECK(b.scalar() == 81);
}

TEST_CASE("forward: a list of expressions, unconnected ones too") {
  TestRuntime rt;
  Graph g(rt);
  const Expr a = apply(g, "square", {g.input(2)}), b = apply(g, "square", {g.input(3)});
  const Expr both[] = {a, b};
  const auto values = g.forward(both);
  CHECK(values[0].as_scalar() == 4);
  CHECK(values[1].as_scalar() == 9);
}

TEST_CASE("forward: everything built so far, each node once") {
  TestRuntime rt;
  Graph g(rt);
  const Expr a = apply(g, "square", {g.input(2)}), b = apply(g, "square", {g.input(3)});
  counts = {};
  g.forward_all();
  const int calls = counts.forward;
  CHECK(calls >= 1);
  CHECK(calls <= 2);
  CHECK(a.scalar() == 4);
  CHECK(b.scalar() == 9);
  CHECK(counts.forward == calls);
}

TEST_CASE("forward: values of invalidated nodes are computed again, earlier ones kept") {
  TestRuntime rt;
  Graph g(rt);
  float x = 1;
  const Expr in = g.input_pointer(Dim(), &x);
  const Expr a = apply(g, "square", {in}), b = apply(g, "square", {a});
  CHECK(b.scalar() == 1);
  x = 2;
  counts = {};
  g.invalidate(b);
  CHECK(b.scalar() == 1);  // a was kept
  CHECK(counts.forward == 1);
  g.invalidate();
  CHECK(b.scalar() == 16);
}

TEST_CASE("forward: several outputs, hidden ones kept in train mode only") {
  for (const Mode mode : {Mode::train, Mode::infer}) {
    TestRuntime rt;
    Graph g(rt, {.mode = mode});
    const auto out = g.apply("test.both", std::vector<Expr>{vec(g, {5, 1}), vec(g, {2, 3})});
    REQUIRE(out.size() == 2);
    CHECK(out[1].value().as_vector() == v({3, -2}));
    CHECK(out[0].value().as_vector() == v({7, 4}));
  }
}

TEST_CASE("forward: views share memory, slices of batched values are copied") {
  TestRuntime rt;
  Graph g(rt);
  const Expr x = vec(g, {1, 2, 3, 4});
  const Expr p = apply(g, "part", {x}, {{"start", 1}});
  counts = {};
  CHECK(p.value().as_vector() == v({2, 3}));
  CHECK(p.value().data() == static_cast<float*>(x.value().data()) + 1);
  const Expr xb = g.input(Dim({3}, 2), v({1, 2, 3, 4, 5, 6}));
  CHECK(apply(g, "part", {xb}, {{"start", 1}}).value().as_vector() == v({2, 3, 5, 6}));
  CHECK(counts.forward == 0);
}

TEST_CASE("forward: per-batch ids and free scalars, one for all or one each") {
  TestRuntime rt;
  Graph g(rt);
  const Expr x = g.input(Dim({2}, 2), v({1, 2, 3, 4}));
  CHECK(apply(g, "pick", {x}, {{"ids", {1, 0}}}).value().as_vector() == v({2, 3}));
  CHECK(apply(g, "pick", {x}, {{"ids", 1}}).value().as_vector() == v({2, 4}));
  CHECK(apply(g, "pick", {x}, {{"ids", 1}, {"times", 0.5}}).value().as_vector() == v({1, 2}));
  const Expr one = vec(g, {7, 8});
  CHECK(apply(g, "pick", {one}, {{"ids", {0, 1, 0}}}).value().as_vector() == v({7, 8, 7}));
}

TEST_CASE("forward: a failing kernel is named, and the graph goes on") {
  TestRuntime rt;
  for (const bool batching : {false, true}) {
    Graph g(rt, {.batching = batching, .always_group = batching});
    const Expr a = apply(g, "square", {g.input(2)});
    const Expr bad = apply(g, "faulty", {a}, {{"when", 2}});
    const Expr after = apply(g, "square", {bad});
    CHECK_THROWS_WITH_AS(
        after.value(),
        "[faulty] failed: as asked (forward); test-ops 1.0.0, node #3, forward, inputs {}", Error);
    CHECK(a.scalar() == 4);
    CHECK(apply(g, "square", {a}).scalar() == 16);
    CHECK_THROWS_AS(bad.value(), Error);  // still has no value
  }
}

TEST_CASE("forward: check level full finds a kernel that writes past its output") {
  TestRuntime rt;
  Graph g(rt);
  const Expr bad = apply(g, "faulty", {vec(g, {1, 2, 3})}, {{"when", 4}});
  rt.get().core().check = detail::CheckLevel::full;
  CHECK_THROWS_WITH_AS(
      bad.value(),
      "[faulty] wrote outside its output: the guard bytes changed (the kernel must stay within its "
      "shape); test-ops 1.0.0, node #2, forward, inputs {3}",
      Error);
  CHECK(apply(g, "square", {g.input(3)}).scalar() == 9);
}

TEST_CASE("forward: immediate mode computes at once, check_validity names the node") {
  TestRuntime rt;
  Graph g(rt, {.immediate = true, .check_validity = true});
  counts = {};
  const Expr a = apply(g, "square", {g.input(2)});
  CHECK(counts.forward == 1);
  CHECK(a.scalar() == 4);
  const Expr big = g.input(1e30);
  const size_t nodes = g.size();
  CHECK_THROWS_WITH_AS(apply(g, "square", {big}),
                       "[square] NaN or Inf in its value: node #4 = test.square(#3) {} "
                       "(check_validity is on); test-ops "
                       "1.0.0, node #4, forward, inputs {}",
                       Error);
  CHECK(g.size() == nodes);  // not added
  CHECK(apply(g, "square", {a}).scalar() == 16);
}

TEST_CASE("forward: lookups, single and batched, by value and by pointer") {
  TestRuntime rt;
  Model m(rt);
  LookupParameter t = m.add_lookup("t", 3, Dim({2}), Init::from({1, 2, 3, 4, 5, 6}));
  Graph g(rt);
  CHECK(g.lookup(t, 1).value().as_vector() == v({3, 4}));
  const uint32_t ids[] = {2, 0};
  CHECK(g.lookup(t, ids).value().as_vector() == v({5, 6, 1, 2}));
  uint32_t moving = 0;
  const Expr p = g.lookup_pointer(t, &moving);
  CHECK(p.value().as_vector() == v({1, 2}));
  moving = 2;
  CHECK(g.forward(p).as_vector() == v({5, 6}));
  moving = 3;
  CHECK_THROWS_WITH_AS(g.forward(p),
                       "[lookup] id is out of bounds: 3 of '/t' (needs 0 to 2); node #3, forward",
                       Error);
  CHECK(g.table(t).dim() == Dim({2, 3}));
  CHECK(g.table(t).value().as_vector() == v({1, 2, 3, 4, 5, 6}));
}
