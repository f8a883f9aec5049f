// SPDX-License-Identifier: Apache-2.0
//
// Activations that have a setting.
//
//   leaky_relu  y = x, or slope x below 0
//   elu         y = x, or alpha (exp(x) - 1) below 0
//   silu        y = x sigmoid(beta x)
//   gelu        y = x P(normal < x), exactly or by a tanh

#include "kernels/simd.hpp"
#include "kernels/terms.hpp"

namespace trellis::ops {

struct LeakyRelu {
  struct Attrs {
    double slope = 0.01;
  };
  static constexpr auto attrs = fields(field("slope", &Attrs::slope, "slope below 0"));
  static constexpr OpSpec spec{.name = "leaky_relu",
                               .summary = "x, with a small slope below 0",
                               .formula = "y = x if x > 0 else slope * x",
                               .examples = "leaky_relu({3}); leaky_relu({2,3}x4, slope=0.2)",
                               .inputs = {In("x").in(Domain::nonzero)},
                               .batch = Batch::elementwise,
                               .keeps = Keep::input};

  static Dim infer(const Attrs&, Dims x) { return x[0]; }
  static void forward(const Attrs& a, auto x, auto y) {
    map(x, y,
        simd::wide([s = a.slope](auto v) { return simd::select(v > decltype(v)(0), v, s * v); }));
  }
  static void backward(const Attrs& a, const auto& b) {
    grad_zip(b.x(), b.dy(), b.dx(), simd::wide([s = a.slope](auto x, auto dy) {
               return simd::select(x > decltype(x)(0), dy, s * dy);
             }));
  }

  using uses = GradientOps;
  static Expr expand_grad(const Attrs& a, const auto& g) {
    return term(g, g.dy()) * ((1 - a.slope) * simd::step(term(g, g.x())) + a.slope);
  }
};

struct Elu {
  struct Attrs {
    double alpha = 1, scale = 1;
  };
  static constexpr auto attrs =
      fields(field("alpha", &Attrs::alpha, "minus the limit on the left"),
             field("scale", &Attrs::scale,
                   "factor of the whole; with alpha 1.6732632423543772 and "
                   "scale 1.0507009873554805 this is selu"));
  static constexpr OpSpec spec{.name = "elu",
                               .summary = "x, bending into an exponential below 0",
                               .formula = "y = scale * (x if x > 0 else alpha * (exp(x) - 1))",
                               .examples =
                                   "elu({3}); elu({2,3}x4, alpha=0.5); "
                                   "elu({2}, alpha=1.6732632423543772, scale=1.0507009873554805)",
                               .aliases = {"dynet.elu"},
                               .inputs = {In("x").in(Domain::nonzero)},
                               .batch = Batch::elementwise,
                               .keeps = Keep::input};

  static Dim infer(const Attrs&, Dims x) { return x[0]; }
  static void forward(const Attrs& a, auto x, auto y) {
    map(x, y, simd::wide([=](auto v) {
          return a.scale * simd::select(v > decltype(v)(0), v, a.alpha * simd::expm1(v));
        }));
  }
  static void backward(const Attrs& a, const auto& b) {
    grad_zip(b.x(), b.dy(), b.dx(), simd::wide([=](auto x, auto dy) {
               return a.scale * dy * simd::select(x > decltype(x)(0), 1, a.alpha * simd::exp(x));
             }));
  }

  using uses = GradientOps;
  static Expr expand_grad(const Attrs& a, const auto& g) {
    const auto x = term(g, g.x()), right = simd::step(x);
    const auto left = (1 - right) * simd::exp(simd::min(x, 0));
    return term(g, g.dy()) * (a.scale * right + a.scale * a.alpha * left);
  }
};

struct Silu {
  struct Attrs {
    double beta = 1;
  };
  static constexpr auto attrs = fields(field("beta", &Attrs::beta, "steepness"));
  static constexpr OpSpec spec{.name = "silu",
                               .summary = "x times its logistic function",
                               .formula = "y = x * sigmoid(beta * x)",
                               .examples = "silu({3}); silu({2,3}x4, beta=2.5)",
                               .aliases = {"dynet.silu"},
                               .inputs = {"x"},
                               .batch = Batch::elementwise,
                               .keeps = Keep::input};

  static Dim infer(const Attrs&, Dims x) { return x[0]; }
  static void forward(const Attrs& a, auto x, auto y) {
    map(x, y, simd::wide([=](auto v) { return v * simd::sigmoid(a.beta * v); }));
  }
  static void backward(const Attrs& a, const auto& b) {
    grad_zip(b.x(), b.dy(), b.dx(), simd::wide([=](auto x, auto dy) { return dy * slope(a, x); }));
  }

  using uses = GradientOps;
  static Expr expand_grad(const Attrs& a, const auto& g) {
    return term(g, g.dy()) * slope(a, term(g, g.x()));
  }

 private:
  static auto slope(const Attrs& a, auto x) {
    const auto s = simd::sigmoid(a.beta * x);
    return s * (1 + a.beta * x * (1 - s));
  }
};

struct Gelu {
  enum class Form { erf, tanh };
  struct Attrs {
    Form form = Form::erf;
  };
  static constexpr auto attrs = fields(
      field("form", &Attrs::form, "exact, or the usual approximation", choices("erf", "tanh")));
  static constexpr OpSpec spec{.name = "gelu",
                               .summary = "x times the probability that a normal number is smaller",
                               .formula = "y = x * (1 + erf(x / sqrt(2))) / 2",
                               .examples = "gelu({3}); gelu({2,3}x4, form=tanh)",
                               .inputs = {"x"},
                               .batch = Batch::elementwise,
                               .keeps = Keep::input};

  static Dim infer(const Attrs&, Dims x) { return x[0]; }
  static void forward(const Attrs& a, auto x, auto y) {
    if (a.form == Form::erf)
      map(x, y, simd::wide([](auto v) { return v * 0.5 * (1 + simd::erf(v * kHalfRoot)); }));
    else
      map(x, y, simd::wide([](auto v) { return v * 0.5 * (1 + simd::tanh(inner(v))); }));
  }
  static void backward(const Attrs& a, const auto& b) {
    if (a.form == Form::erf)
      grad_zip(b.x(), b.dy(), b.dx(),
               simd::wide([](auto x, auto dy) { return dy * erf_slope(x); }));
    else
      grad_zip(b.x(), b.dy(), b.dx(),
               simd::wide([](auto x, auto dy) { return dy * tanh_slope(x); }));
  }

  using uses = GradientOps;
  static Expr expand_grad(const Attrs& a, const auto& g) {
    const auto x = term(g, g.x()), dy = term(g, g.dy());
    return dy * (a.form == Form::erf ? erf_slope(x) : tanh_slope(x));
  }

 private:
  static auto erf_slope(auto x) {
    return 0.5 * (1 + simd::erf(x * kHalfRoot)) + x * kDensity * simd::exp(-0.5 * x * x);
  }
  static auto tanh_slope(auto x) {
    const auto t = simd::tanh(inner(x));
    return 0.5 * (1 + t + x * (1 - t * t) * kTwoOverPi * (1 + 3 * kCubic * x * x));
  }
  static constexpr double kHalfRoot = 0.70710678118654752440;   // 1 / sqrt(2)
  static constexpr double kDensity = 0.39894228040143267794;    // 1 / sqrt(2 pi)
  static constexpr double kTwoOverPi = 0.79788456080286535588;  // sqrt(2 / pi)
  static constexpr double kCubic = 0.044715;
  static auto inner(auto x) { return kTwoOverPi * x * (1 + kCubic * x * x); }
};

TRL_OPS(activations, LeakyRelu, Elu, Silu, Gelu)

}  // namespace trellis::ops
