// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <trellis/expr.hpp>
#include <trellis/model.hpp>
#include <trellis/random.hpp>
#include <vector>

using namespace trellis;

namespace {

using Numbers = std::vector<double>;

Runtime& runtime() {
  static Runtime r;
  return r;
}
GraphOptions options(bool batching = true) {
  GraphOptions o;
  o.dtype = DType::f64;
  o.batching = batching;
  o.always_group = batching;
  o.serial = 5;
  return o;
}
Numbers draw(size_t n, uint64_t seed) {
  RandomEngine r(seed);
  Numbers v(n);
  for (double& x : v) x = 2 * r.uniform() - 1;
  return v;
}
Expr op(const Expr& x, const char* name) { return x.graph().apply1(name, {x}); }
Expr total(const Expr& x) { return roles::sum_batches(roles::sum(x)); }
void check_close(const Numbers& a, const Numbers& b, double tolerance) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i)
    CHECK(std::abs(a[i] - b[i]) <= tolerance * std::max(1.0, std::abs(b[i])));
}

// Blocks of two layers; each is kept whole or computed twice.
struct Deep {
  Model model{runtime(), DType::f64};
  std::vector<Parameter> w;
  LookupParameter words = model.add_lookup("words", 3, {4}, Init::from(draw(12, 8)));
  double dropout = 0;

  Deep() {
    for (int i = 0; i < 4; ++i)
      w.push_back(model.add_parameter("w", {4, 4}, Init::from(draw(16, 20 + i))));
  }
  Expr block(Graph& g, const Expr& x, int i) {
    Expr h = op(g.parameter(w[2 * i]) * x, "tanh");
    if (dropout > 0) h = roles::dropout(h, dropout);
    return op(g.parameter(w[2 * i + 1]) * h + g.lookup(words, i), "tanh");
  }
  Expr loss(Graph& g, bool twice) {
    const Numbers numbers = draw(8, 4);
    Expr h = g.input(Dim({4}, 2), std::span<const double>(numbers));
    for (int i = 0; i < 2; ++i)
      h = twice ? recompute(h, [this, i](Graph& in, const Expr& x) { return block(in, x, i); })
                : block(g, h, i);
    return total(roles::mul(h, h));
  }
  Numbers gradients() {
    Numbers all;
    for (const Parameter& p : w)
      for (const double d : p.gradient().as_doubles()) all.push_back(d);
    for (uint32_t i = 0; i < 3; ++i)
      if (const TensorView d = words.row_gradient(i); !d.empty())
        for (const double v : d.as_doubles()) all.push_back(v);
    return all;
  }
  double value(bool twice) {
    Graph g(runtime(), options());
    return loss(g, twice).scalar();
  }
};

}  // namespace

TEST_CASE("recompute: values and gradients are those of the nodes in place") {
  for (const bool batching : {false, true}) {
    Deep plain, twice;
    Graph a(runtime(), options(batching)), b(runtime(), options(batching));
    const Expr x = plain.loss(a, false), y = twice.loss(b, true);
    CHECK(y.scalar() == doctest::Approx(x.scalar()).epsilon(1e-14));
    a.backward(x);
    b.backward(y);
    check_close(twice.gradients(), plain.gradients(), 1e-13);
    CHECK(plain.gradients().size() == 64 + 8);
    b.backward(y);  // they accumulate, as ever
    a.backward(x);
    check_close(twice.gradients(), plain.gradients(), 1e-13);
  }
}

TEST_CASE("recompute: gradients of inputs and several inputs") {
  Graph g(runtime(), options());
  const Numbers a{1, 2}, b{3, 4};
  const Expr x = g.input(Dim({2}), std::span<const double>(a)),
             y = g.input(Dim({2}, 1), std::span<const double>(b));
  const std::vector<Expr> both{x, y};
  const Expr z = recompute(both, [](Graph&, std::span<const Expr> in) {
    return roles::mul(op(in[0], "square"), in[1]);
  });
  CHECK(z.value().as_doubles() == Numbers{3, 16});
  g.backward(total(z), true);
  CHECK(x.gradient().as_doubles() == Numbers{6, 16});
  CHECK(y.gradient().as_doubles() == Numbers{1, 4});
}

TEST_CASE("recompute: random masks are the same in both passes, and anew for each node") {
  Deep net;
  net.dropout = 0.5;
  Graph g(runtime(), options());
  const Expr y = net.loss(g, true);
  g.backward(y);
  CHECK(net.value(true) == y.scalar());  // the same serial, the same masks
  const Numbers d = net.gradients(), direction = draw(64, 3);
  const auto move = [&](double h) {
    size_t at = 0;
    for (const Parameter& p : net.w)
      for (uint64_t i = 0; i < 16; ++i) p.value().set(i, p.value().at(i) + h * direction[at++]);
  };
  double expected = 0;
  for (size_t i = 0; i < 64; ++i) expected += d[i] * direction[i];
  constexpr double h = 1e-6;
  move(h);
  const double up = net.value(true);
  move(-2 * h);
  const double down = net.value(true);
  CHECK(std::abs((up - down) / (2 * h) - expected) <= 1e-6 * std::max(1.0, std::abs(expected)));

  Graph f(runtime(), options());
  const Expr x = f.constant(Dim({64}), 1);
  const auto drop = [](Graph&, const Expr& in) { return roles::dropout(in, 0.5); };
  f.checkpoint();
  const Numbers first = recompute(x, drop).value().as_doubles();
  CHECK(recompute(x, drop).value().as_doubles() != first);
  f.revert();
  CHECK(recompute(x, drop).value().as_doubles() != first);
}

TEST_CASE("recompute: follows the graph's mode") {
  GraphOptions o = options();
  o.mode = Mode::infer;
  Graph g(runtime(), o);
  const auto drop = [](Graph&, const Expr& x) { return roles::dropout(x, 0.5); };
  CHECK(recompute(g.constant(Dim({64}), 1), drop).value().as_doubles() == Numbers(64, 1));
  g.clear();
  g.set_mode(Mode::train);
  CHECK(recompute(g.constant(Dim({64}), 1), drop).value().as_doubles() != Numbers(64, 1));
}

TEST_CASE("recompute: parts within parts, and what only a part trains") {
  Deep plain, twice;
  Graph a(runtime(), options()), b(runtime(), options());
  const Numbers numbers = draw(4, 4);
  const auto in = [&](Graph& g) { return g.input(Dim({4}), std::span<const double>(numbers)); };
  a.backward(total(plain.block(a, plain.block(a, in(a), 0), 1)));
  const Expr y = recompute(in(b), [&](Graph&, const Expr& x) {
    return recompute(recompute(x, [&](Graph& h, const Expr& z) { return twice.block(h, z, 0); }),
                     [&](Graph& h, const Expr& z) { return twice.block(h, z, 1); });
  });
  b.backward(total(y));
  check_close(twice.gradients(), plain.gradients(), 1e-13);
}

TEST_CASE("recompute: memory is that of one part and the borders") {
  constexpr int kParts = 8, kLayers = 16;
  constexpr uint32_t kSize = 1 << 16;  // 256 KiB of f32
  Model m(runtime());
  Parameter p = m.add_parameter("p", {kSize}, "constant");
  const auto layers = [](Expr x) {
    for (int i = 0; i < kLayers; ++i) x = op(x, "tanh");
    return x;
  };
  const auto reserved = [&](bool twice) {
    Graph g(runtime());
    Expr x = g.parameter(p);
    for (int i = 0; i < kParts; ++i)
      x = twice ? recompute(x, [&](Graph&, const Expr& in) { return layers(in); }) : layers(x);
    g.backward(total(x));
    const GraphStats s = g.stats();
    // values (and gradients) of all layers, or of the borders
    const uint64_t bytes = uint64_t(kSize) * 4 * kParts * (twice ? 1 : kLayers);
    CHECK(s.forward_bytes >= bytes);
    CHECK(s.forward_bytes < bytes + bytes / 2);
    CHECK(s.backward_bytes < bytes + bytes);
    return s.reserved_bytes;
  };
  const uint64_t plain = reserved(false);
  CHECK(plain > uint64_t(kSize) * 4 * kParts * kLayers * 2);
  CHECK(reserved(true) < plain / 2);
}

TEST_CASE("recompute: what is refused, and what fails inside") {
  Deep net;
  Graph g(runtime(), options());
  const Numbers numbers{1, 2, 3, 4};
  const Expr x = g.input(Dim({4}), std::span<const double>(numbers));
  CHECK_THROWS_WITH_AS(recompute(std::span<const Expr>(), {}),
                       "[recompute] no inputs: 0 (at least 1)", Error);
  const size_t size = g.size();
  CHECK_THROWS_WITH_AS(
      recompute(x, [&](Graph&, const Expr&) { return x; }),
      "[expression] it belongs to another graph (all inputs of a node must be of one graph)",
      Error);
  CHECK_THROWS_WITH_AS(
      recompute(x,
                [&](Graph&, const Expr&) {
                  return recompute(x, [](Graph&, const Expr& y) { return y; });
                }),
      "[recompute] used on the outer graph from inside a part (needs the graph that is handed in)",
      Error);
  CHECK_THROWS_WITH_AS(recompute(x, [](Graph&, const Expr& y) { return op(y, "argmax"); }),
                       "[recompute] the part made i64 of inputs of f64 (needs one float type)",
                       Error);
  CHECK_THROWS_AS(recompute(x, [](Graph&, const Expr& y) { return y * y; }), Error);
  CHECK(g.size() == size);

  int calls = 0;
  const Expr changes =
      recompute(x, [&](Graph&, const Expr& y) { return ++calls == 1 ? y : roles::slice(y, 0, 2); });
  try {
    changes.value();
    FAIL("not refused");
  } catch (const Error& e) {
    CHECK(std::string(e.what()).starts_with(
        "[recompute] the forward function threw: [recompute] the part made {2} now, {4} before "
        "(needs the same nodes each time); kernel"));
  }

  // A failure on the way back leaves no gradient, of what is trained inside neither.
  const Expr start = recompute(g.parameter(net.w[0]), [&](Graph& in, const Expr& y) {
    return in.custom(
        {op(y, "tanh")}, y.dim(),
        [](std::span<const TensorView> from, const TensorView& to) {
          tensor_tools::copy(to, from[0]);
        },
        [](std::span<const TensorView>, const TensorView&, const TensorView&,
           std::span<const TensorView>) { throw std::runtime_error("no way"); });
  });
  const Expr end =
      recompute(start, [&](Graph& in, const Expr& y) { return in.parameter(net.w[1]) * y; });
  CHECK_THROWS_AS(g.backward(total(end)), Error);
  for (const double d : net.gradients()) CHECK(d == 0);
  const Expr good =
      recompute(g.parameter(net.w[2]), [](Graph&, const Expr& y) { return op(y, "square"); });
  g.backward(total(good));
  CHECK(net.w[2].gradient().at(3) == 2 * net.w[2].value().at(3));
}
