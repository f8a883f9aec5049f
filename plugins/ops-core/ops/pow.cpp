// SPDX-License-Identifier: Apache-2.0
//
// Powers, element by element, broadcasting: negative bases to whole exponents included.
//
//   z  = x^y
//   dx = dz y x^(y-1)        0 where y is 0
//   dy = dz z log(x)         0 where x is 0 and y is not negative

#include "kernels/simd.hpp"
#include "kernels/terms.hpp"

namespace trellis::ops {

namespace {

template <class V>
V power(const V& x, const V& y) {
  const V size = simd::exp(y * simd::log(simd::abs(x)));
  const auto whole = y == simd::round(y);
  const V half = y * 0.5;
  const V negative = simd::select(whole, simd::select(half == simd::round(half), size, -size),
                                  std::numeric_limits<double>::quiet_NaN());
  V z = simd::select(x < V(0), negative, size);
  // The common exponents exactly; and 1 where the logarithm says nothing.
  z = simd::select(y == V(2), x * x, z);
  z = simd::select(y == V(3), x * x * x, z);
  z = simd::select(y == V(1), x, z);
  return simd::select((y == V(0)) | (x == V(1)), 1, z);
}

}  // namespace

struct Pow {
  static constexpr OpSpec spec{
      .name = "pow",
      .summary = "power, element by element",
      .doc =
          "Shapes broadcast as for add. A negative base to an exponent that is no whole number is "
          "NaN; "
          "0^0 is 1.",
      .formula = "z = x^y",
      .examples = "pow({3}, {3}); pow({2,3}x4, {}); pow({2}, {2,3}x2)",
      .aliases = {"dynet.pow"},
      .inputs = {In("x").in(Domain::positive), "y"},
      .outputs = {"z"},
      .batch = Batch::elementwise,
      .keeps = Keep::input,
  };

  static Dim infer(Dims x) { return broadcast(x); }
  static void forward(auto x, auto z) {
    zip(x[0], x[1], z, simd::wide([](auto a, auto b) { return power(a, b); }));
  }
  static void backward(const auto& b) {
    grad_zip(b.x(0), b.x(1), b.dy(), b.dx(0), simd::wide([](auto x, auto y, auto dz) {
               return simd::select(y == decltype(y)(0), 0, dz * y * power(x, y - 1));
             }));
    grad_zip(b.x(0), b.x(1), b.dy(), b.dx(1), simd::wide([](auto x, auto y, auto dz) {
               const decltype(x) zero(0);
               return simd::select((x == zero) & (y >= zero), 0, dz * power(x, y) * simd::log(x));
             }));
  }

  using uses = GradientOps;
  static void expand_grad(const auto& g) {
    const auto x = term(g, g.x(0)), y = term(g, g.x(1)), dz = term(g, g.dy());
    if (g.wants(0)) g.dx(0, dz * y * x.template with<use::Pow>(y - 1));
    if (g.wants(1)) g.dx(1, dz * term(g, g.y()) * simd::log(x));
  }
};

TRL_OPS(pow, Pow)

}  // namespace trellis::ops
