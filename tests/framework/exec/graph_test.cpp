// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sstream>
#include <thread>

#include "support/test_ops.hpp"

using namespace trellis;
using test::apply;
using test::TestRuntime;

TEST_CASE("graph: counts of values given and needed must agree") {
  TestRuntime rt;
  Graph g(rt);
  CHECK_THROWS_WITH_AS(g.input(Dim({2, 3}, 2), std::vector<float>(11)),
                       "[input] 11 values given for {2,3}x2 (needs 12)", Error);
  CHECK_THROWS_WITH_AS(g.input(TensorView()), "[input] the tensor is empty (needs one with data)",
                       Error);
  CHECK(g.size() == 0);
}

TEST_CASE("graph: one_hot, sparse inputs and constants") {
  TestRuntime rt;
  Graph g(rt);
  const uint32_t ids[] = {2, 0};
  CHECK(g.one_hot(3, ids).value().as_vector() == std::vector<float>{0, 0, 1, 1, 0, 0});
  CHECK_THROWS_WITH_AS(g.one_hot(2, ids), "[one_hot] id is out of bounds: 2 (needs 0 to 1)", Error);
  CHECK_THROWS_WITH_AS(g.one_hot(2, {}), "[one_hot] no ids given (needs at least one)", Error);
  const uint64_t at[] = {3, 1};
  const double values[] = {7, 8};
  const Expr s = g.sparse_input(Dim({2}, 2), at, values, -1);
  CHECK(s.value().as_vector() == std::vector<float>{-1, 8, -1, 7});
  CHECK(g.constant(Dim({2}), 0.5).value().as_vector() == std::vector<float>{.5f, .5f});
  CHECK(g.zeros(Dim({1})).scalar() == 0);
  CHECK(g.ones(Dim({1})).scalar() == 1);
}

TEST_CASE("graph: pointers must not be null") {
  TestRuntime rt;
  Model m(rt);
  const LookupParameter t = m.add_lookup("t", 2, Dim({1}));
  Graph g(rt);
  CHECK_THROWS_WITH_AS(g.input_pointer(Dim(), static_cast<const float*>(nullptr)),
                       "[input_pointer] the pointer is null (needs memory that outlives the node)",
                       Error);
  CHECK_THROWS_WITH_AS(g.lookup_pointer(t, nullptr),
                       "[lookup_pointer] the pointer is null (needs memory that outlives the node)",
                       Error);
}

TEST_CASE("graph: f64 graphs take f32 numbers, and pointers of either type") {
  TestRuntime rt;
  Graph g(rt, {.dtype = DType::f64});
  const float x[] = {1, 2};
  CHECK(g.input(Dim({2}), std::span<const float>(x)).dtype() == DType::f64);
  CHECK(apply(g, "square", {g.input_pointer(Dim({2}), x)}).value().as_doubles() ==
        std::vector<double>{1, 4});
  CHECK_THROWS_WITH_AS(Graph(rt, {.dtype = DType::i64}), "[graph] dtype is i64 (needs f32 or f64)",
                       Error);
}

TEST_CASE("graph: tensors of 16-bit floats become inputs of the graph's float type") {
  TestRuntime rt;
  for (const DType stored : {DType::f16, DType::bf16})
    for (const DType type : {DType::f32, DType::f64}) {
      const Tensor t(Dim({2}, 2), stored);
      for (uint64_t i = 0; i < 4; ++i) t.set(i, 1.5 * double(i));
      Graph g(rt, {.dtype = type});
      const Expr x = g.input(t);
      CHECK(x.dtype() == type);
      CHECK(x.dim() == t.dim());
      CHECK(apply(g, "square", {x}).value().as_vector() == std::vector<float>{0, 2.25f, 9, 20.25f});
      CHECK(g.constant(Dim(), 0.1).dtype() == type);
    }
  const Tensor f(Dim({3})), h(Dim({3}), DType::f16);
  f.set(1, 0.1);
  tensor_tools::copy(h, f);
  tensor_tools::copy(f, h);
  CHECK(f.at(1) == doctest::Approx(0.1).epsilon(1e-3));
  CHECK(f.at(1) != 0.1f);
}

TEST_CASE("graph: an expression of a cleared or destroyed graph is refused everywhere") {
  TestRuntime rt;
  const char* text =
      "[expression] expression from an older graph: the graph was cleared, reverted or destroyed "
      "since (make it anew)";
  Graph g(rt);
  const Expr x = g.input(1);
  CHECK(x.alive());
  g.clear();
  CHECK_FALSE(x.alive());
  CHECK_THROWS_WITH_AS(apply(g, "square", {x}), text, Error);
  CHECK_THROWS_WITH_AS(x.value(), text, Error);
  CHECK_THROWS_WITH_AS(x.dim(), text, Error);
  CHECK_THROWS_WITH_AS(g.backward(x), text, Error);
  CHECK_THROWS_WITH_AS(g.value(x), text, Error);
  const Expr again = g.input(2);  // same id as x
  CHECK_THROWS_WITH_AS(x.value(), text, Error);
  CHECK(again.scalar() == 2);
  Expr orphan;
  {
    Graph h(rt, {.immediate = true});
    orphan = h.input(3);
    CHECK_THROWS_WITH_AS(
        apply(g, "mul", {again, orphan}),
        "[expression] it belongs to another graph (all inputs of a node must be of one graph)",
        Error);
  }
  CHECK_THROWS_WITH_AS(orphan.value(), text, Error);
  CHECK_THROWS_AS(Expr().value(), Error);
}

TEST_CASE("graph: several live graphs, each with its own nodes; handles share one") {
  TestRuntime rt;
  Graph a(rt), b(rt);
  const Expr x = apply(a, "square", {a.input(2)}), y = apply(b, "square", {b.input(3)});
  CHECK(x.scalar() == 4);
  CHECK(y.scalar() == 9);
  Graph c = x.graph();
  CHECK(apply(c, "square", {x}).scalar() == 16);
  CHECK(a.size() == 3);
  CHECK(a.serial() != b.serial());
  const uint64_t serial = a.serial();
  a.clear();
  CHECK(a.serial() != serial);
  a.clear(42);
  CHECK(a.serial() == 42);
}

TEST_CASE("graph: the mode changes only while the graph is empty") {
  TestRuntime rt;
  Graph g(rt);
  g.input(1);
  CHECK_THROWS_WITH_AS(g.set_mode(Mode::infer),
                       "[set_mode] the graph has 1 nodes (needs an empty one: call clear first)",
                       Error);
  g.clear();
  g.set_mode(Mode::infer);
  CHECK(apply(g, "square", {g.input(2)}).scalar() == 4);
}

TEST_CASE("graph: dot names every node and edge") {
  TestRuntime rt;
  Graph g(rt);
  const Expr x = g.input(Dim({2}), std::vector<float>{1, 2});
  apply(g, "mul", {x, apply(g, "square", {x})});
  std::ostringstream out, with_memory;
  g.dot(out);
  CHECK(out.str() ==
        "digraph G {\n  rankdir=LR;\n  nodesep=.05;\n"
        "  N1 [label=\"v1 = input {2}\"];\n"
        "  N2 [label=\"v2 = test.square(#1) {2}\"];\n  N1 -> N2;\n"
        "  N3 [label=\"v3 = test.mul(#1, #2) {2}\"];\n  N1 -> N3;\n  N2 -> N3;\n}\n");
  g.dot(with_memory, true);
  CHECK(with_memory.str().find("input {2}\\n8 bytes") != std::string::npos);
}

TEST_CASE("graph: dump shows every node, the last one too") {
  TestRuntime rt;
  Model m(rt);
  Graph g(rt);
  std::ostringstream empty;
  g.dump(empty);
  CHECK(empty.str() == "empty graph\n");
  const Parameter p = m.add_parameter("p", Dim({2}), Init::from({1, 2}));
  const Expr loss = apply(g, "total", {apply(g, "square", {g.parameter(p)})});
  std::ostringstream before, after, nan;
  g.dump(before, false, true);
  CHECK(before.str().find("gradient: (not computed)") != std::string::npos);
  g.backward(loss);
  g.dump(after, true, true);
  CHECK(after.str().find("node #3 = test.total(#2) {}") != std::string::npos);
  CHECK(after.str().find("5") != std::string::npos);
  apply(g, "square", {g.input(1e30)});
  g.dump(nan, false, false, true);
  CHECK(nan.str().find("invalid") != std::string::npos);
  CHECK(g.describe(loss) == "node #3 = test.total(#2) {}");
}

TEST_CASE("graph: threads with graphs of their own read one model") {
  TestRuntime rt;
  Model m(rt);
  const Parameter w = m.add_parameter("w", Dim({8, 8}), Init::from(std::vector<double>(64, 0.125)));
  std::vector<GradientBlock> blocks;
  for (int i = 0; i < 4; ++i) blocks.emplace_back(m);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      Graph g(rt, {.serial = uint64_t(i), .gradients = &blocks[i]});
      for (int k = 0; k < 20; ++k) {
        g.clear(uint64_t(i));
        Expr h = g.input(Dim({8}), std::vector<float>(8, 1.f));
        for (int s = 0; s < 5; ++s) h = apply(g, "apply", {g.parameter(w), h});
        g.backward(apply(g, "total", {apply(g, "noise", {h})}));
      }
    });
  for (auto& t : threads) t.join();
  GradientBlock sum(m);
  for (const auto& b : blocks) sum.add(b);
  m.gradients().add(sum);
  CHECK(w.gradient().at(0) != 0);
  CHECK(tensor_tools::is_finite(w.gradient()));
}
