// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <map>
#include <random>

#include "support/test_ops.hpp"

using namespace trellis;
using test::apply;
using test::counts;
using test::TestRuntime;

namespace {

std::vector<float> v(std::initializer_list<float> x) { return x; }

// A random graph of f64 nodes over every trait, built the same for the same seed; returns its loss.
struct Random {
  std::mt19937 rng;
  explicit Random(uint32_t seed) : rng(seed) {}
  uint32_t below(uint32_t n) { return uint32_t(rng() % n); }
  double number() { return double(rng() % 2001) / 1000 - 1; }
};

Expr build(Graph& g, Model& m, uint32_t seed, std::vector<Expr>* all) {
  Random r(seed);
  const Parameter w = m.parameter("w"), b = m.parameter("b");
  const LookupParameter t = m.lookup("t");
  std::vector<Expr> pool;
  const auto input = [&](uint32_t batch) {
    std::vector<double> x(2 * batch);
    for (double& e : x) e = r.number();
    return g.input(Dim({2}, batch), x);
  };
  for (int i = 0; i < 6; ++i) pool.push_back(input(1 + r.below(3) * (r.below(2))));
  for (int i = 0; i < 4; ++i) pool.push_back(g.lookup(t, r.below(5)));
  pool.push_back(apply(g, "part", {g.parameter(b)}));  // a view of a leaf
  const auto fits = [&](const Expr& x, const Expr& y) {
    return x.dim().batch == y.dim().batch || x.dim().batch == 1 || y.dim().batch == 1;
  };
  const uint32_t n = 30 + r.below(120);
  while (pool.size() < n) {
    const Expr x = pool[r.below(uint32_t(pool.size()))], y = pool[r.below(uint32_t(pool.size()))];
    switch (r.below(11)) {
      case 10:
        pool.push_back(apply(g, "part", {x}));  // a view
        break;
      case 0:
        pool.push_back(apply(g, "square", {x}));
        break;
      case 1:
        if (fits(x, y)) pool.push_back(apply(g, "mul", {x, y}));
        break;
      case 2:
      case 3:
        pool.push_back(apply(g, "apply", {g.parameter(w), x}));
        break;
      case 4:
        pool.push_back(apply(g, "mul", {g.parameter(b), x}));
        break;
      case 5:
        if (x.dim() == y.dim()) {
          const auto o = g.apply("test.both", std::vector<Expr>{x, y});
          pool.push_back(o[r.below(2)]);
        }
        break;
      case 6:
        pool.push_back(apply(g, "noise", {x}));
        break;
      case 7:
        pool.push_back(apply(g, "fourth", {x}));
        break;
      case 8:
        pool.push_back(g.lookup(t, r.below(5)));
        break;
      case 9: {
        const Expr s = apply(g, "pick", {x}, {{"ids", int64_t(r.below(2))}, {"times", r.number()}});
        // back to two elements: [s, ..] through a product with a constant row is not available, so
        // join the losses
        if (all) all->push_back(s);
        break;
      }
    }
    // keep numbers small
    if (pool.size() % 7 == 0)
      pool.push_back(apply(g, "mul", {pool.back(), g.constant(Dim({2}), 0.3)}));
  }
  Expr loss = g.input(0);
  std::vector<Expr> parts;
  for (const Expr& x : pool) parts.push_back(apply(g, "total_batches", {apply(g, "total", {x})}));
  for (const Expr& x : parts) loss = g.apply("test.both", std::vector<Expr>{loss, x})[0];
  if (all) {
    for (const Expr& s : *all)
      loss = g.apply("test.both", std::vector<Expr>{loss, apply(g, "total_batches", {s})})[0];
    all->insert(all->end(), pool.begin(), pool.end());
  }
  return loss;
}

bool near(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= 1e-9 * std::max(1.0, std::abs(a[i])))) return false;
  return true;
}

}  // namespace

TEST_CASE(
    "plan: random graphs give equal values and gradients with batching, without, and without the "
    "memo") {
  TestRuntime rt;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    std::vector<std::vector<double>> values[3], grads[3];
    for (int way = 0; way < 3; ++way) {
      Model m(rt, DType::f64);
      m.add_parameter("w", Dim({2, 2}), Init::from({0.5, -0.2, 0.3, 0.7}));
      m.add_parameter("b", Dim({2}), Init::from({0.9, -0.6}));
      m.add_lookup("t", 5, Dim({2}), Init::from({.1, .2, .3, .4, .5, .6, .7, .8, .9, 1}));
      Graph g(rt, {.dtype = DType::f64,
                   .batching = way == 0,
                   .always_group = way == 0,
                   .memo = way != 2,
                   .serial = seed});
      std::vector<Expr> all;
      const Expr loss = build(g, m, seed, &all);
      g.backward(loss, seed % 2 == 0);
      values[way].push_back(loss.value().as_doubles());
      for (const Expr& e : all) values[way].push_back(e.value().as_doubles());
      for (const Expr& e : all)
        if (seed % 2 == 0) grads[way].push_back(e.gradient().as_doubles());
      grads[way].push_back(m.parameter("w").gradient().as_doubles());
      grads[way].push_back(m.parameter("b").gradient().as_doubles());
      for (uint32_t i = 0; i < 5; ++i)
        grads[way].push_back(m.lookup("t").row_gradient(i).empty()
                                 ? std::vector<double>{0, 0}
                                 : m.lookup("t").row_gradient(i).as_doubles());
    }
    for (int way : {1, 2}) {
      REQUIRE(values[0].size() == values[way].size());
      for (size_t i = 0; i < values[0].size(); ++i) CHECK(near(values[0][i], values[way][i]));
      for (size_t i = 0; i < grads[0].size(); ++i) CHECK(near(grads[0][i], grads[way][i]));
    }
  }
}

TEST_CASE(
    "plan: equal nodes run as one call, forward and backward, and a shared weight's gradient is "
    "one call") {
  TestRuntime rt;
  Model m(rt);
  const Parameter w = m.add_parameter("w", Dim({32, 32}));
  Graph g(rt);
  std::vector<Expr> sums;
  for (int i = 0; i < 10; ++i) {
    const std::vector<float> x(32, float(i));
    Expr h = g.input(Dim({32}), x);
    for (int step = 0; step < 3; ++step) h = apply(g, "apply", {g.parameter(w), h});
    sums.push_back(apply(g, "total", {h}));
  }
  Expr loss = sums[0];
  for (int i = 1; i < 10; ++i) loss = g.apply("test.both", std::vector<Expr>{loss, sums[i]})[0];
  counts = {};
  loss.value();
  CHECK(counts.forward == 3 + 1 + 9);
  counts = {};
  g.backward(loss);
  // 9 of `both`; the inputs' gradients at steps 2 and 3 (step 1 has only the weight's); one for all
  // weights. `total` does not count.
  CHECK(counts.backward == 2 + 1);
}

TEST_CASE("plan: element-wise nodes of different shapes run as one") {
  TestRuntime rt;
  Model m(rt);
  const Parameter w =
      m.add_parameter("w", Dim({64, 64}), Init::from(std::vector<double>(4096, 0.01)));
  Graph g(rt);
  std::vector<Expr> ys;
  for (uint32_t n = 1; n <= 6; ++n) {
    const Expr x = g.input(Dim({n}), std::vector<float>(n, float(n)));
    ys.push_back(apply(g, "square", {x}));
    // work that makes planning pay
    ys.push_back(
        apply(g, "apply", {g.parameter(w), g.input(Dim({64}), std::vector<float>(64, 1.f))}));
  }
  counts = {};
  g.forward(ys);
  CHECK(counts.forward == 2);
  for (uint32_t n = 1; n <= 6; ++n)
    CHECK(ys[2 * (n - 1)].value().as_vector() == std::vector<float>(n, float(n * n)));
}

TEST_CASE("plan: per-batch attributes are concatenated when nodes merge") {
  TestRuntime rt;
  Model m(rt);
  const Parameter w =
      m.add_parameter("w", Dim({64, 64}), Init::from(std::vector<double>(4096, 0.01)));
  Graph g(rt);
  std::vector<Expr> ys;
  std::vector<float> expected;
  for (uint32_t i = 0; i < 8; ++i) {
    const uint32_t batch = 1 + i % 3;
    std::vector<float> x(64 * batch);
    for (size_t j = 0; j < x.size(); ++j) x[j] = float(j);
    const Expr in = g.input(Dim({64}, batch), x);
    const Expr h = apply(g, "apply", {g.parameter(w), in});  // makes batching worth it
    std::vector<int64_t> ids;
    for (uint32_t b = 0; b < batch; ++b) ids.push_back((i * 7 + b) % 64);
    ys.push_back(apply(g, "pick", {in}, {{"ids", ids}, {"times", double(i)}}));
    ys.push_back(apply(g, "total", {h}));
    for (uint32_t b = 0; b < batch; ++b) expected.push_back(float(b * 64 + ids[b]) * float(i));
  }
  counts = {};
  g.forward(ys);
  CHECK(counts.forward == 3);
  std::vector<float> got;
  for (size_t i = 0; i < ys.size(); i += 2)
    for (const float x : ys[i].value().as_vector()) got.push_back(x);
  CHECK(got == expected);
}

TEST_CASE(
    "plan: random masks are the same bits with and without batching, and differ between graphs") {
  TestRuntime rt;
  Model m(rt);
  const Parameter w =
      m.add_parameter("w", Dim({16, 16}), Init::from(std::vector<double>(256, 0.1)));
  std::vector<std::vector<float>> out[3];
  for (int way = 0; way < 3; ++way) {
    Graph g(rt, {.batching = way == 0, .serial = way == 2 ? 8 : 7});
    std::vector<Expr> ys;
    for (uint32_t i = 0; i < 6; ++i) {
      const Expr h =
          apply(g, "apply", {g.parameter(w), g.input(Dim({16}, 2), std::vector<float>(32, 1.f))});
      ys.push_back(apply(g, "noise", {h}));
    }
    g.forward(ys);
    for (const Expr& y : ys) out[way].push_back(y.value().as_vector());
  }
  CHECK(out[0] == out[1]);
  CHECK(out[0] != out[2]);
  CHECK(out[0][0] != out[0][1]);
}

TEST_CASE("plan: a reverted node never repeats its mask") {
  TestRuntime rt;
  Graph g(rt);
  const Expr x = g.input(Dim({8}), std::vector<float>(8, 1.f));
  g.checkpoint();
  const auto first = apply(g, "noise", {x}).value().as_vector();
  g.revert();
  g.checkpoint();
  CHECK(apply(g, "noise", {x}).value().as_vector() != first);
}

TEST_CASE("plan: checkpoint and revert give memory and expressions back") {
  TestRuntime rt;
  Model m(rt);
  const Parameter p = m.add_parameter("p", Dim({2}), Init::from({2, 3}));
  Graph g(rt);
  const Expr a = apply(g, "square", {g.input(Dim({2}), v({1, 2}))});
  g.checkpoint();
  const uint64_t before = g.stats().forward_bytes;
  uint64_t high = 0;
  for (int i = 0; i < 100; ++i) {
    g.checkpoint();
    const Expr b = apply(g, "mul", {a, g.parameter(p)});
    CHECK(b.value().as_vector() == v({2, 12}));
    high = std::max(high, g.stats().forward_bytes);
    g.revert();
    CHECK_FALSE(b.alive());
    CHECK_THROWS_WITH_AS(b.value(),
                         "[expression] expression from an older graph: the graph was cleared, "
                         "reverted or destroyed since (make it anew)",
                         Error);
    CHECK(g.stats().forward_bytes == before);
  }
  CHECK(high <= before + 1024);
  CHECK(a.value().as_vector() == v({1, 4}));
  const Expr c = apply(g, "mul", {a, g.parameter(p)});
  CHECK(c.value().as_vector() == v({2, 12}));
  g.backward(apply(g, "total", {c}));
  CHECK(p.gradient().as_vector() == v({1, 4}));
  g.revert();
  CHECK_THROWS_WITH_AS(g.revert(), "[revert] no checkpoint is set (call checkpoint first)", Error);
  CHECK(a.value().as_vector() == v({1, 4}));
  Graph empty(rt);
  empty.checkpoint();
  empty.revert();
  CHECK(empty.size() == 0);
}

TEST_CASE("plan: values invalidated between checkpoint and revert are computed again") {
  TestRuntime rt;
  Graph g(rt);
  float x = 2;
  const Expr a = apply(g, "square", {g.input_pointer(Dim(), &x)});
  CHECK(a.scalar() == 4);
  g.checkpoint();
  x = 3;
  g.invalidate();
  CHECK(apply(g, "square", {a}).scalar() == 81);
  g.revert();
  CHECK(apply(g, "square", {g.input(5)}).scalar() == 25);
  CHECK(a.scalar() == 9);
}

TEST_CASE("plan: graphs are reused without growing") {
  TestRuntime rt;
  Model m(rt);
  const Parameter w = m.add_parameter("w", Dim({16, 16}));
  Graph g(rt);
  uint64_t reserved = 0;
  for (int i = 0; i < 2000; ++i) {
    g.clear();
    Expr h = g.input(Dim({16}), std::vector<float>(16, 1.f));
    for (int s = 0; s < 3 + i % 5; ++s) h = apply(g, "apply", {g.parameter(w), h});
    g.backward(apply(g, "total", {h}));
    if (i == 100) reserved = g.stats().reserved_bytes;
  }
  CHECK(g.stats().reserved_bytes == reserved);
  g.clear();
  g.shrink();
  CHECK(g.stats().reserved_bytes <= reserved);
  CHECK(apply(g, "square", {g.input(3)}).scalar() == 9);
  CHECK_THROWS_WITH_AS(
      g.shrink(), "[shrink] the graph has 2 nodes (needs an empty one: call clear first)", Error);
}
