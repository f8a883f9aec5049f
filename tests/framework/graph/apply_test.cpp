// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "support/test_ops.hpp"

using namespace trellis;
using test::apply;
using test::TestRuntime;

namespace {
std::vector<float> ones(size_t n) { return std::vector<float>(n, 1.f); }
}  // namespace

TEST_CASE("apply: a refused node is not added and the graph is usable") {
  TestRuntime rt;
  Graph g(rt);
  const Expr x = g.input(Dim({3}), ones(3)), w = g.input(Dim({2, 2}), ones(4));
  const size_t n = g.size();
  CHECK_THROWS_WITH_AS(apply(g, "apply", {w, x}),
                       "[apply] shapes do not fit; test-ops 1.0.0, inputs {2,2} {3}", Error);
  CHECK_THROWS_WITH_AS(apply(g, "faulty", {x}, {{"when", 1}}),
                       "[faulty] refused: as asked (infer); test-ops 1.0.0, inputs {3}", Error);
  CHECK(g.size() == n);
  CHECK(apply(g, "square", {x}).value().as_vector() == ones(3));
}

TEST_CASE("apply: number of inputs") {
  TestRuntime rt;
  Graph g(rt);
  const Expr x = g.input(1);
  CHECK_THROWS_WITH_AS(apply(g, "mul", {x}),
                       "[mul] takes 2 inputs: got 1; test-ops 1.0.0, inputs {}", Error);
  CHECK_THROWS_WITH_AS(apply(g, "square", {x, x}),
                       "[square] takes 1 input: got 2; test-ops 1.0.0, inputs {} {}", Error);
  CHECK_THROWS_WITH_AS(
      apply(g, "square", {Expr()}),
      "[square] input 'x' is missing: got an empty expression; test-ops 1.0.0, inputs -", Error);
}

TEST_CASE("apply: batch sizes must be equal or 1") {
  TestRuntime rt;
  Graph g(rt);
  const auto in = [&](uint32_t batch) { return g.input(Dim({1}, batch), ones(batch)); };
  for (const auto& [a, b, ok] : {std::tuple{1u, 1u, true},
                                 {3u, 1u, true},
                                 {1u, 3u, true},
                                 {3u, 3u, true},
                                 {3u, 2u, false}}) {
    if (ok) {
      CHECK(apply(g, "mul", {in(a), in(b)}).dim().batch == std::max(a, b));
    } else {
      CHECK_THROWS_WITH_AS(
          apply(g, "mul", {in(a), in(b)}),
          "[mul] batch sizes differ: input 1 is {1}x2 in a batch of 3 (all must be equal or 1); "
          "test-ops 1.0.0, inputs {1}x3 {1}x2",
          Error);
    }
  }
}

TEST_CASE("apply: no promotion of float types") {
  TestRuntime rt;
  Graph g(rt);
  const Expr a = g.input(1), b = g.input(Tensor(Dim(), DType::f64)),
             c = g.input(Tensor(Dim(), DType::i64));
  CHECK_THROWS_WITH_AS(apply(g, "mul", {a, b}),
                       "[mul] float types differ: input 0 is f32, input 1 is f64 (insert a cast); "
                       "test-ops 1.0.0, inputs {} {}",
                       Error);
  CHECK_THROWS_WITH_AS(apply(g, "square", {c}),
                       "[square] input 'x' is i64 (needs f32 or f64); test-ops 1.0.0, inputs {}",
                       Error);
  CHECK(apply(g, "square", {b}).dtype() == DType::f64);
}

TEST_CASE("apply: every id of every node is checked, also of patterns seen before") {
  TestRuntime rt;
  Graph g(rt);
  const Expr x = g.input(Dim({4}), ones(4));
  for (int round = 0; round < 2; ++round) {
    CHECK(apply(g, "pick", {x}, {{"ids", {3, 0}}}).dim() == Dim({}, 2));
    for (const int64_t bad : {int64_t(-1), int64_t(4), int64_t(101)})
      CHECK_THROWS_WITH_AS(apply(g, "pick", {x}, {{"ids", std::vector<int64_t>{0, bad}}}),
                           ("[pick] 'ids' is out of bounds: " + std::to_string(bad) +
                            ", batch element 1 (needs 0 to 3); test-ops 1.0.0, inputs {4}")
                               .c_str(),
                           Error);
  }
  const Expr xb = g.input(Dim({4}, 3), ones(12));
  CHECK_THROWS_WITH_AS(apply(g, "pick", {xb}, {{"ids", {0, 1}}}),
                       "[pick] 'ids' has values for 2 examples in a batch of 3 (needs 1 or as "
                       "many); test-ops 1.0.0, inputs {4}x3",
                       Error);
}

TEST_CASE("apply: attributes are checked by name, type and range") {
  TestRuntime rt;
  Graph g(rt);
  const Expr x = g.input(Dim({4}), ones(4));
  CHECK_THROWS_AS(apply(g, "part", {x}, {{"begin", 1}}), Error);
  CHECK_THROWS_AS(apply(g, "part", {x}, {{"start", 101}}), Error);
  CHECK_THROWS_AS(apply(g, "part", {x}, {{"start", "one"}}), Error);
  CHECK_THROWS_AS(apply(g, "pick", {x}), Error);  // ids have no default
  CHECK_THROWS_AS(apply(g, "nothing", {x}), Error);
  CHECK_THROWS_WITH_AS(apply(g, "part", {x}, {{"start", 3}}),
                       "[part] declares a view that does not lie in its input: offset 3, {2} of "
                       "{4}; test-ops 1.0.0, inputs {4}",
                       Error);
  CHECK(apply(g, "part", {x}, {{"start", 2}}).value().as_vector() == ones(2));
}

TEST_CASE("apply: a composite adds the nodes it stands for, or none") {
  TestRuntime rt;
  Graph g(rt);
  const Expr x = g.input(3);
  const Expr y = apply(g, "fourth", {x});
  CHECK(g.size() == 3);
  CHECK(y.scalar() == 81);
  const Expr wrong = g.input(Tensor(Dim(), DType::i64));
  const size_t n = g.size();
  CHECK_THROWS_AS(apply(g, "fourth", {wrong}), Error);
  CHECK(g.size() == n);
  CHECK(y.scalar() == 81);
}

TEST_CASE("apply: inference runs once a pattern, or at every node without the memo") {
  TestRuntime rt;
  for (const bool memo : {true, false}) {
    Graph g(rt, {.memo = memo});
    Expr x = g.input(Dim({2}), ones(2));
    for (int i = 0; i < 10; ++i) x = apply(g, "square", {x});
    CHECK(g.stats().infer_calls == (memo ? 1 : 10));
    const Expr y = apply(g, "square", {g.input(Dim({3}), ones(3))});
    CHECK(g.stats().infer_calls == (memo ? 2 : 11));
    CHECK(y.value().as_vector() == ones(3));
  }
}
