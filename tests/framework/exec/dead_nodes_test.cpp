// SPDX-License-Identifier: Apache-2.0
//
// Dead nodes need no pass that removes them: what no result asks for is never run, has no memory
// and cannot fail.

#include <doctest/doctest.h>

#include "support/test_ops.hpp"

using namespace trellis;
using test::apply;
using test::counts;
using test::TestRuntime;

namespace {

// square(x) summed, among `dead` nodes that hang on it and on each other.
struct Example {
  Model model;
  Graph g;
  Expr loss, last;

  Example(TestRuntime& rt, bool batching, int dead)
      : model(rt), g(rt, {.batching = batching, .always_group = batching}) {
    const std::vector<float> three{1, 2, 3};
    const Expr x = g.parameter(model.add_parameter("p", Dim({3}), Init::from({1, 2, 3})));
    const Expr y = apply(g, "square", {x});
    last = y;
    for (int i = 0; i < dead; ++i) last = apply(g, "mul", {last, g.input(Dim({3}), three)});
    if (dead > 0) last = apply(g, "faulty", {last}, {{"when", 2}});
    loss = apply(g, "total", {y});
  }
};

}  // namespace

TEST_CASE("dead nodes: are not computed, forward or backward, and take no memory") {
  TestRuntime rt;
  for (const bool batching : {false, true}) {
    Example none(rt, batching, 0), many(rt, batching, 50);
    uint64_t bytes[2] = {}, backward_bytes[2] = {};
    for (Example* e : {&none, &many}) {
      counts = {};
      CHECK(e->loss.scalar() == 14);
      CHECK(counts.forward == 2);
      e->g.backward(e->loss);
      CHECK(counts.forward == 2);
      CHECK(e->g.stats().backward_calls == 2);
      CHECK(e->model.parameter("p").gradient().as_vector() == std::vector<float>{2, 4, 6});
      const size_t i = e == &many;
      bytes[i] = e->g.stats().forward_bytes;
      backward_bytes[i] = e->g.stats().backward_bytes;
    }
    CHECK(bytes[0] == bytes[1]);
    CHECK(backward_bytes[0] == backward_bytes[1]);
    CHECK(many.g.stats().nodes > none.g.stats().nodes + 50);
    CHECK_THROWS_AS(many.last.value(), Error);  // asked for, it is alive, and fails as it should
  }
}
