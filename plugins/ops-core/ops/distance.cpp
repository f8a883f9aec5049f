// SPDX-License-Identifier: Apache-2.0
//
// One number per example out of two tensors of the same shape, summed over all elements.
//
//   dot_product           y = sum x1 x2             dx1 = x2 dy, dx2 = x1 dy
//   squared_distance      y = sum (x1 - x2)^2       dx1 = 2 (x1 - x2) dy = -dx2
//   l1_distance           y = sum |x1 - x2|         dx1 = sign(x1 - x2) dy = -dx2
//   huber_distance        y = sum z^2/2, or c |z| - c^2/2 where |z| = |x1 - x2| > c
//   binary_cross_entropy  y = -sum (t log p + (1 - t) log(1 - p))

#include "kernels/simd.hpp"
#include "kernels/terms.hpp"

namespace trellis::ops {

namespace {

// y = sum of f(x1, x2) for each batch element.
template <class F>
void sum_pairs(const auto& f, F term) {
  const auto x1 = f.x(0), x2 = f.x(1);
  const std::uint64_t n = x1.size();
  for (std::uint32_t b = 0; b < f.batch(); ++b)
    *f.y().data(b) = sum_run(n, simd::wide(term), x1.data(b), x2.data(b));
}

}  // namespace

template <class Row>
struct Distance {
  static constexpr OpSpec spec = Row::spec;

  static Dim infer(Dims x) {
    same_as(x);
    return Dim{};
  }
  static void forward(const auto& f) {
    sum_pairs(f, [](auto a, auto b) { return Row::f(a, b); });
  }
  static void backward(const auto& b) {
    grad_zip(b.x(0), b.x(1), b.dy(), b.dx(0),
             simd::wide([](auto a, auto c, auto dy) { return dy * Row::slope(a, c); }));
    grad_zip(b.x(0), b.x(1), b.dy(), b.dx(1),
             simd::wide([](auto a, auto c, auto dy) { return dy * Row::second_slope(a, c); }));
  }

  using uses = GradientOps;
  static void expand_grad(const auto& g) {
    const auto x1 = term(g, g.x(0)), x2 = term(g, g.x(1)), dy = term(g, g.dy());
    if (g.wants(0)) g.dx(0, dy * Row::slope(x1, x2));
    if (g.wants(1)) g.dx(1, dy * Row::second_slope(x1, x2));
  }
};

struct DotRow {
  static constexpr OpSpec spec{
      .name = "dot_product",
      .summary = "sum of the products of corresponding elements",
      .formula = "y = sum_i x1_i x2_i",
      .examples = "dot_product({3}, {3}); dot_product({2,3}x4, {2,3}); dot_product({3}, {3,1}x2)",
      .aliases = {"dynet.dot_product"},
      .inputs = {"x1", "x2"},
      .keeps = Keep::input};
  static auto f(auto a, auto b) { return a * b; }
  static auto slope(auto, auto b) { return b; }
  static auto second_slope(auto a, auto) { return a; }
};

struct SquaredRow {
  static constexpr OpSpec spec{.name = "squared_distance",
                               .summary = "sum of the squared differences",
                               .doc = "No factor of one half.",
                               .formula = "y = sum_i (x1_i - x2_i)^2",
                               .examples =
                                   "squared_distance({3}, {3}); squared_distance({2,3}x4, {2,3}); "
                                   "squared_distance({3}, {3,1}x2)",
                               .aliases = {"dynet.squared_distance"},
                               .inputs = {"x1", "x2"},
                               .keeps = Keep::input};
  static auto f(auto a, auto b) { return (a - b) * (a - b); }
  static auto slope(auto a, auto b) { return 2 * (a - b); }
  static auto second_slope(auto a, auto b) { return 2 * (b - a); }
};

struct L1Row {
  static constexpr OpSpec spec{.name = "l1_distance",
                               .summary = "sum of the absolute differences; the slope at 0 is 0",
                               .formula = "y = sum_i |x1_i - x2_i|",
                               .examples = "l1_distance({3}, {3}); l1_distance({2,3}x4, {2,3})",
                               .aliases = {"dynet.l1_distance"},
                               .inputs = {"x1", "x2"},
                               .keeps = Keep::input};
  static auto f(auto a, auto b) { return simd::abs(a - b); }
  static auto slope(auto a, auto b) { return simd::sign(a - b); }
  static auto second_slope(auto a, auto b) { return simd::sign(b - a); }
};

struct BinaryCrossEntropyRow {
  static constexpr OpSpec spec{
      .name = "binary_cross_entropy",
      .summary = "minus the log-likelihood of targets in [0, 1] under probabilities",
      .doc = "Logarithms are no less than -100, so a sure and wrong p costs 100 per element.",
      .formula = "y = -sum_i (t_i log p_i + (1 - t_i) log(1 - p_i))",
      .examples = "binary_cross_entropy({3}, {3}); binary_cross_entropy({2,3}x4, {2,3})",
      .aliases = {"dynet.binary_log_loss"},
      .inputs = {In("p").in(Domain::probability), In("t").in(Domain::probability)},
      .keeps = Keep::input};
  static auto f(auto p, auto t) {
    return -(t * bounded(simd::log(p)) + (1 - t) * bounded(simd::log1p(-p)));
  }
  template <class G>
  static auto slope(const Term<G>& p, const Term<G>& t) {
    return (p - t) / simd::max(p * (1 - p), 1e-30);
  }
  static auto slope(auto p, auto t) {
    const decltype(p) zero(0), least(1e-30);
    const auto d = p * (1 - p);
    return simd::select(p == t, zero, (p - t) / simd::select(d > least, d, least));
  }
  static auto second_slope(auto p, auto) {
    return bounded(simd::log1p(-p)) - bounded(simd::log(p));
  }

 private:
  template <class G>
  static auto bounded(const Term<G>& v) {
    return simd::max(v, -100);
  }
  static auto bounded(auto v) { return simd::select(v < decltype(v)(-100), -100, v); }
};

struct HuberDistance {
  struct Attrs {
    double c = 1.345;
  };
  static constexpr auto attrs =
      fields(field("c", &Attrs::c, "where the square gives way to a line", at_least(0)));
  static constexpr OpSpec spec{
      .name = "huber_distance",
      .summary = "squared distance that grows like a line far out",
      .formula = "y = sum_i (z^2 / 2 if z < c else c z - c^2 / 2), z = |x1_i - x2_i|",
      .examples = "huber_distance({3}, {3}); huber_distance({2,3}x4, {2,3}, c=0.5)",
      .aliases = {"dynet.huber_distance"},
      .inputs = {"x1", "x2"},
      .keeps = Keep::input};

  static Dim infer(const Attrs&, Dims x) {
    same_as(x);
    return Dim{};
  }
  static void forward(const Attrs& a, const auto& f) {
    sum_pairs(f, [c = a.c](auto x1, auto x2) {
      const auto z = simd::abs(x1 - x2);
      return simd::select(z < decltype(z)(c), 0.5 * z * z, c * z - 0.5 * c * c);
    });
  }
  static void backward(const Attrs& a, const auto& b) {
    const auto slope = [c = a.c](auto x1, auto x2, auto dy) {
      const auto z = x1 - x2;
      return dy * simd::select(simd::abs(z) < decltype(z)(c), z, c * simd::sign(z));
    };
    grad_zip(b.x(0), b.x(1), b.dy(), b.dx(0), simd::wide(slope));
    grad_zip(b.x(1), b.x(0), b.dy(), b.dx(1), simd::wide(slope));
  }

  using uses = GradientOps;
  static void expand_grad(const Attrs& a, const auto& g) {
    const auto dy = term(g, g.dy()), z = term(g, g.x(0)) - term(g, g.x(1));
    const auto d = dy * simd::min(simd::max(z, -a.c), a.c);
    g.dx(0, d);
    if (g.wants(1)) g.dx(1, -d);
  }
};

TRL_OPS(distance, Distance<DotRow>, Distance<SquaredRow>, Distance<L1Row>,
        Distance<BinaryCrossEntropyRow>, HuberDistance)

}  // namespace trellis::ops
