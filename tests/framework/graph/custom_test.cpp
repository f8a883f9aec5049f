// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <stdexcept>

#include "support/test_ops.hpp"

using namespace trellis;
using test::apply;
using test::TestRuntime;

namespace {

using Views = std::span<const TensorView>;

std::vector<float> v(std::initializer_list<float> x) { return x; }
Expr vec(Graph& g, std::vector<float> x) { return g.input(Dim({uint32_t(x.size())}), x); }

// y = x1 x2 + x1, element by element, all of one shape
void forward(Views x, const TensorView& y) {
  for (size_t i = 0; i < y.dim().total(); ++i) y.set(i, x[0].at(i) * x[1].at(i) + x[0].at(i));
}
void backward(Views x, const TensorView&, const TensorView& dy, Views dx) {
  for (size_t i = 0; i < dy.dim().total(); ++i) {
    if (!dx[0].empty()) dx[0].set(i, dx[0].at(i) + dy.at(i) * (x[1].at(i) + 1));
    if (!dx[1].empty()) dx[1].set(i, dx[1].at(i) + dy.at(i) * x[0].at(i));
  }
}
// The sum over the batch, as a program would write it: another shape than its input's.
void sum_forward(Views x, const TensorView& y) {
  tensor_tools::fill(y, 0);
  for (uint32_t b = 0; b < x[0].dim().batch; ++b)
    tensor_tools::accumulate(y, x[0].batch_element(b));
}
void sum_backward(Views, const TensorView&, const TensorView& dy, Views dx) {
  for (uint32_t b = 0; b < dx[0].dim().batch; ++b)
    tensor_tools::accumulate(dx[0].batch_element(b), dy);
}

}  // namespace

TEST_CASE("custom: values and gradients, batched and alone, other nodes above and below") {
  TestRuntime rt;
  for (const bool batching : {false, true}) {
    Model m(rt);
    Parameter p = m.add_parameter("p", Dim({2}), Init::from({3, 4}));
    Graph g(rt, {.batching = batching, .always_group = batching});
    const Expr x = g.parameter(p);
    std::vector<Expr> ys;
    for (int i = 0; i < 3; ++i)
      ys.push_back(
          g.custom({apply(g, "square", {x}), vec(g, {float(i), 1})}, Dim({2}), forward, backward));
    const Expr last = apply(g, "total", {g.custom({ys[1], ys[2]}, Dim({2}), forward, backward)});
    CHECK(ys[2].value().as_vector() == v({27, 32}));
    CHECK(last.scalar() == 18 * 27 + 18 + 32 * 32 + 32);
    g.backward(last);
    // ys[1] = 2 p^2 each; ys[2] = (3 p0^2, 2 p1^2)
    CHECK(ys[1].gradient().as_vector() == v({28, 33}));
    CHECK(p.gradient().as_vector() == v({2 * 3 * (2 * 28 + 3 * 18), 2 * 4 * (2 * 33 + 2 * 32)}));
    CHECK(g.describe(ys[0]) == "node #4 = kernel.custom(#2, #3) {2}");
  }
}

TEST_CASE("custom: any shape and batch, f64, one value used twice") {
  TestRuntime rt;
  for (const bool batching : {false, true}) {
    Graph g(rt, {.dtype = DType::f64, .batching = batching});
    const Expr x = g.input(Dim({2}, 3), std::vector<double>{1, 2, 3, 4, 5, 6});
    const Expr y = g.custom({x}, Dim({2}), sum_forward, sum_backward);
    CHECK(y.dtype() == DType::f64);
    CHECK(y.value().as_doubles() == std::vector<double>{9, 12});
    const Expr z = g.custom({y, y}, Dim({2}), forward, backward);  // y^2 + y
    g.backward(apply(g, "total", {z}), true);
    CHECK(x.gradient().as_doubles() == std::vector<double>{19, 25, 19, 25, 19, 25});
  }
}

TEST_CASE("custom: without a backward function it is a constant for gradients") {
  TestRuntime rt;
  Model m(rt);
  Parameter p = m.add_parameter("p", Dim({2}), Init::from({3, 4}));
  Graph g(rt);
  const Expr x = g.parameter(p), y = g.custom({x, x}, Dim({2}), forward);
  g.backward(apply(g, "total", {apply(g, "mul", {x, y})}));
  CHECK(p.gradient().as_vector() == v({12, 20}));
}

TEST_CASE("custom: is forgotten with its node, functions too") {
  TestRuntime rt;
  Graph g(rt);
  const auto make = [&](std::weak_ptr<int>& alive) {
    auto held = std::make_shared<int>(2);
    alive = held;
    return g.custom({vec(g, {1, 2})}, Dim({2}), [held](Views x, const TensorView& y) {
      tensor_tools::copy(y, x[0]);
      tensor_tools::scale(y, *held);
    });
  };
  std::weak_ptr<int> first, second;
  const Expr a = make(first);
  g.checkpoint();
  const Expr b = make(second);
  CHECK(b.value().as_vector() == v({2, 4}));
  g.revert();
  CHECK_FALSE(first.expired());
  CHECK(second.expired());
  CHECK_FALSE(b.alive());
  CHECK(a.value().as_vector() == v({2, 4}));
  g.invalidate();
  CHECK(a.value().as_vector() == v({2, 4}));
  g.clear();
  CHECK(first.expired());
  CHECK_THROWS_AS(a.value(), Error);
  // shape inference is remembered as for other nodes
  CHECK(make(first).value().as_vector() == v({2, 4}));
  CHECK(g.stats().infer_calls == 0);
}

TEST_CASE("custom: what is refused, and what a function throws, leaves the graph usable") {
  TestRuntime rt;
  Model m(rt);
  Parameter p = m.add_parameter("p", Dim({2}), Init::from({1, 2}));
  for (const bool immediate : {false, true}) {
    Graph g(rt, {.immediate = immediate});
    const Expr x = g.parameter(p);
    const size_t size = g.size();
    CHECK_THROWS_WITH_AS(g.custom({x}, Dim({2}), {}),
                         "[custom] the forward function is empty (needs one to call)", Error);
    CHECK_THROWS_WITH_AS(g.custom(std::span<const Expr>(), Dim({2}), sum_forward),
                         "[custom] no inputs: 0 (at least 1; numbers alone are an input())", Error);
    CHECK(g.size() == size);

    const auto text_of = [&](CustomForward f) {
      std::string text;
      try {
        g.custom({x}, Dim({2}), std::move(f), {}, {}).value();
      } catch (const Error& e) {
        text = e.what();
      }
      return text;
    };
    const std::string end = "; kernel " + std::string(version()) + ", node #2, forward, inputs {2}";
    CHECK(text_of([](Views, const TensorView&) { throw std::runtime_error("boom"); }) ==
          "[custom] the forward function threw: boom" + end);
    if (immediate) CHECK(g.size() == size);
    Graph h(rt, {.immediate = immediate});
    const Expr y = h.parameter(p);
    CHECK_THROWS_WITH_AS(
        h.custom({y}, Dim({2}), [](Views, const TensorView&) { throw 1; }, {}, {}).value(),
        ("[custom] the forward function threw what is no std::exception" + end).c_str(), Error);
    // the wrong element type, the wrong number of elements
    CHECK_THROWS_AS(h.custom({y}, Dim({2}),
                             [](Views in, const TensorView& out) {
                               out.as<double>()[0] = in[0].as<double>()[0];
                             })
                        .value(),
                    Error);
    CHECK_THROWS_AS(
        h.custom({y}, Dim({3}),
                 [](Views in, const TensorView& out) { tensor_tools::copy(out, in[0]); })
            .value(),
        Error);
    CHECK(apply(h, "square", {y}).value().as_vector() == v({1, 4}));
  }

  Graph g(rt);
  const Expr x = g.parameter(p);
  const Expr good = apply(g, "total", {apply(g, "square", {x})});
  const Expr bad = apply(g, "total",
                         {g.custom({x}, Dim({2}), sum_forward,
                                   [](Views, const TensorView&, const TensorView&, Views) {
                                     throw std::runtime_error("no way back");
                                   },
                                   {})});
  CHECK_THROWS_WITH_AS(g.backward(bad),
                       ("[custom] the backward function threw: no way back; kernel " +
                        std::string(version()) + ", node #4, backward, inputs {2}")
                           .c_str(),
                       Error);
  CHECK(p.gradient().as_vector() == v({0, 0}));
  g.backward(good);
  CHECK(p.gradient().as_vector() == v({2, 4}));
}

TEST_CASE("custom: a function may not use the graph that calls it") {
  TestRuntime rt;
  for (const bool batching : {false, true}) {
    Graph g(rt, {.batching = batching, .always_group = batching});
    const Expr x = vec(g, {1, 2}), done = apply(g, "square", {x}),
               open = apply(g, "square", {done});
    done.value();
    for (const std::function<void()>& act :
         {std::function<void()>([&] { open.value(); }),
          std::function<void()>([&] { done.value(); }),
          std::function<void()>([&] { apply(g, "square", {x}); }),
          std::function<void()>([&] { g.clear(); })}) {
      const size_t size = g.size();
      const Expr y = g.custom(
          {&x, 1}, Dim({2}), [&](Views, const TensorView&) { act(); }, nullptr);
      CHECK_THROWS_AS(y.value(), Error);
      CHECK(g.size() == size + 1);
    }
    CHECK(open.value().as_vector() == v({1, 16}));
  }
}
