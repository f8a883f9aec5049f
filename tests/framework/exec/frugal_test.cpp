// SPDX-License-Identifier: Apache-2.0
//
// Graphs that hold only the values that were asked for: the same numbers in less memory, and a clear
// answer when one is gone.

#include <doctest/doctest.h>

#include <functional>
#include <sstream>
#include <string>
#include <trellis/model.hpp>
#include <trellis/random.hpp>
#include <vector>

#include "support/test_ops.hpp"

using namespace trellis;
using test::apply;

namespace {

test::TestRuntime& runtime() {
  static test::TestRuntime rt;
  return rt;
}

GraphOptions options(KeptValues values, bool batching = true) {
  GraphOptions o;
  o.mode = Mode::infer;
  o.values = values;
  o.batching = batching;
  return o;
}

Expr vec(Graph& g, uint32_t n, double value = 0.5) {
  return g.input(Dim({n}), std::vector<double>(n, value));
}

Expr half(Graph& g, const Expr& x) { return apply(g, "mul", {x, g.constant(x.dim(), 0.5)}); }

std::string text_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("kept values: a long chain takes the memory of two values") {
  for (const bool batching : {false, true}) {
    CAPTURE(batching);
    Graph all(runtime(), options(KeptValues::all, batching));
    Graph few(runtime(), options(KeptValues::requested, batching));
    std::vector<double> results;
    for (Graph* g : {&all, &few}) {
      Expr x = vec(*g, 4096, 0.999);
      for (int i = 0; i < 200; ++i) x = apply(*g, "square", {half(*g, x)});
      results.push_back(x.value().at(0));
    }
    CHECK(results[0] == results[1]);
    CHECK(all.stats().forward_bytes > 400u * 4096 * 4);
    CHECK(few.stats().forward_bytes < 4u * 4096 * 4);
  }
}

TEST_CASE("kept values: merged groups give their memory to later ones") {
  Graph all(runtime(), options(KeptValues::all)), few(runtime(), options(KeptValues::requested));
  std::vector<std::vector<double>> results;
  for (Graph* g : {&all, &few}) {
    std::vector<Expr> xs;
    for (int i = 0; i < 64; ++i) {
      Expr x = vec(*g, 512, 0.9 + 0.001 * i);
      for (int k = 0; k < 20; ++k) x = apply(*g, "square", {half(*g, x)});
      xs.push_back(x);
    }
    g->forward_all();
    for (const Expr& x : xs) results.push_back(x.value().as_doubles());
  }
  for (size_t i = 0; i < 64; ++i) CHECK(results[i] == results[64 + i]);
  CHECK(few.stats().groups == all.stats().groups);
  CHECK(few.stats().forward_bytes * 10 < all.stats().forward_bytes);
}

TEST_CASE("kept values: asking for one that is gone says so, and how to have it") {
  Graph g(runtime(), options(KeptValues::requested));
  const Expr x = vec(g, 3), y = apply(g, "square", {x}), z = half(g, y);
  CHECK(z.value().at(0) == doctest::Approx(0.125));
  const std::string gone =
      "[graph] the value of node #2 = test.square(#1) {3} was given back: the graph keeps only "
      "what "
      "is asked for (ask for it with the others, call keep() on it before, or make the graph with "
      "values = all)";
  CHECK(text_of([&] { y.value(); }) == gone);
  CHECK(text_of([&] { g.keep(y); }) == gone);
  const Expr late = apply(g, "square", {y});
  CHECK(text_of([&] { late.value(); }) == gone);
  CHECK(x.value().at(0) == 0.5);  // leaves stay
  CHECK(z.value().at(0) == doctest::Approx(0.125));
  std::ostringstream dump;
  CHECK_THROWS_AS(g.dump(dump), Error);  // `late` cannot be computed

  // To compute everything again is to have everything again.
  const std::vector<Expr> both = {y, late};
  const std::vector<TensorView> values = g.forward(both);
  CHECK(values[0].at(0) == 0.25);
  CHECK(values[1].at(0) == 0.0625);
}

TEST_CASE("kept values: what is held") {
  Graph g(runtime(), options(KeptValues::requested));
  const Expr x = vec(g, 3);
  const Expr asked = apply(g, "square", {x}), kept = half(g, asked);
  const Expr sink = half(g, kept), other = apply(g, "square", {kept});
  CHECK(asked.value().at(0) == 0.25);
  g.keep(kept);
  // `other` is not computed here, and what it reads waits for it.
  CHECK(sink.value().at(0) == doctest::Approx(0.0625));
  CHECK(kept.value().at(0) == doctest::Approx(0.125));
  CHECK(asked.value().at(0) == 0.25);
  CHECK(other.value().at(0) == doctest::Approx(1.0 / 64));
  // A node made later reads what nothing read so far.
  CHECK(half(g, sink).value().at(0) == doctest::Approx(1.0 / 32));
  std::ostringstream dump;
  const Expr end = half(g, half(g, sink));
  end.value();
  g.dump(dump);
  CHECK(dump.str().find("value: (given back)") != std::string::npos);
}

TEST_CASE("kept values: in train mode all of them") {
  GraphOptions o = options(KeptValues::requested);
  o.mode = Mode::train;
  Graph g(runtime(), o);
  const Expr x = vec(g, 3), y = apply(g, "square", {x}), z = half(g, y);
  z.value();
  CHECK(y.value().at(0) == 0.25);
}

TEST_CASE("kept values: after a failure everything can be asked for again") {
  Graph g(runtime(), options(KeptValues::requested));
  const Expr x = vec(g, 3), y = apply(g, "square", {x});
  const Expr bad = apply(g, "faulty", {half(g, y)}, {{"when", 2}});
  CHECK(text_of([&] { bad.value(); }).find("failed: as asked (forward)") != std::string::npos);
  CHECK(text_of([&] { bad.value(); }).find("failed: as asked (forward)") != std::string::npos);
  CHECK(y.value().at(0) == 0.25);
}

TEST_CASE("kept values: random graphs give the same numbers, whatever is asked for and when") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    std::vector<std::vector<double>> results[2];
    for (const KeptValues values : {KeptValues::all, KeptValues::requested}) {
      RandomEngine r(seed);
      GraphOptions o = options(values, seed % 3 != 0);
      o.always_group = seed % 3 == 1;
      Graph g(runtime(), o);
      std::vector<Expr> made;
      for (int i = 0; i < 4; ++i) made.push_back(vec(g, 4 + 4 * (i % 2), 0.3 + 0.1 * i));
      auto& out = results[values == KeptValues::all ? 0 : 1];
      // Only the newest nodes are used again: older ones may be gone.
      for (int round = 0; round < 6; ++round) {
        std::vector<Expr> fresh;
        for (int i = 0; i < 12; ++i) {
          const auto pick = [&] {
            const size_t n = made.size() + fresh.size();
            const size_t k = r.next_u32() % n;
            return k < made.size() ? made[k] : fresh[k - made.size()];
          };
          const Expr a = pick();
          switch (r.next_u32() % 5) {
            case 0:
              fresh.push_back(apply(g, "square", {a}));
              break;
            case 1:
              fresh.push_back(half(g, a));
              break;
            case 2:
              fresh.push_back(apply(g, "part", {a}, {{"start", 0}}));
              break;
            case 3:
              fresh.push_back(apply(g, "total", {a}));
              break;
            default: {
              const Expr b = pick();
              fresh.push_back(a.dim() == b.dim() ? apply(g, "mul", {a, b}) : half(g, b));
            }
          }
        }
        for (const Expr& e : fresh) g.keep(e);
        const Expr asked = fresh[r.next_u32() % fresh.size()];
        out.push_back(asked.value().as_doubles());
        if (round % 2) g.forward_all();
        made.assign(fresh.begin() + 6, fresh.end());
      }
    }
    CHECK(results[0] == results[1]);
  }
}
