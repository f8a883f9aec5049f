// SPDX-License-Identifier: Apache-2.0
//
// One operand, element by element, no attributes: y = f(x), dx = dy * slope. A row says what its
// slope is a function of, and only that is kept: x (Keep::input) or y (Keep::output).

#include "kernels/simd.hpp"
#include "kernels/terms.hpp"

namespace trellis::ops {

// "exp({3}); exp({2,3}x4); exp({})"
template <Name kName>
inline constexpr auto kExamples = [] {
  struct {
    char text[3 * sizeof(kName.text) + 32]{};
    std::size_t n = 0;
  } all;
  for (const std::string_view call : {"({3}); ", "({2,3}x4); ", "({})"}) {
    for (const char c : kName.view()) all.text[all.n++] = c;
    for (const char c : call) all.text[all.n++] = c;
  }
  return all;
}();

template <Name kName, Name kSummary, Name kFormula, Name kAlias, Keep kKeeps, auto kF, auto kSlope,
          Domain kDomain = Domain::any, Name kRole = "">
struct Unary {
  static constexpr OpSpec spec = [] {
    OpSpec s{.name = kName.view(),
             .summary = kSummary.view(),
             .formula = kFormula.view(),
             .examples = {kExamples<kName>.text, kExamples<kName>.n},
             .role = kRole.view(),
             .inputs = {In("x").in(kDomain)},
             .batch = Batch::elementwise,
             .keeps = kKeeps};
    if (!kAlias.view().empty()) s.aliases = {kAlias.view()};
    return s;
  }();

  static Dim infer(Dims x) { return x[0]; }
  static void forward(auto x, auto y) { map(x, y, simd::wide(kF)); }
  static void backward(const auto& b) {
    if constexpr (kKeeps == Keep::none)
      grad_zip(b.dy(), b.dx(), simd::wide([](auto dy) { return dy * kSlope(dy); }));
    else if constexpr (kKeeps == Keep::input)
      grad_zip(b.x(), b.dy(), b.dx(), simd::wide([](auto x, auto dy) { return dy * kSlope(x); }));
    else
      grad_zip(b.y(), b.dy(), b.dx(), simd::wide([](auto y, auto dy) { return dy * kSlope(y); }));
  }

  using uses = GradientOps;
  static Expr expand_grad(const auto& g) {
    const auto dy = term(g, g.dy());
    if constexpr (kKeeps == Keep::none)
      return dy * kSlope(dy);
    else
      return dy * kSlope(term(g, kKeeps == Keep::input ? g.x() : g.y()));
  }
};

using Neg = Unary<"neg", "negation", "y = -x", "dynet.negate", Keep::none,
                  [](auto x) { return -x; }, [](auto) { return -1; }, Domain::any, "neg">;
using Exp = Unary<"exp", "exponential", "y = exp(x)", "dynet.exp", Keep::output,
                  [](auto x) { return simd::exp(x); }, [](auto y) { return y; }>;
using Log =
    Unary<"log", "natural logarithm", "y = log(x)", "dynet.log", Keep::input,
          [](auto x) { return simd::log(x); }, [](auto x) { return 1 / x; }, Domain::positive>;
using Log1p = Unary<"log1p", "logarithm of 1 + x, accurate near 0", "y = log(1 + x)", "",
                    Keep::input, [](auto x) { return simd::log1p(x); },
                    [](auto x) { return 1 / (1 + x); }, Domain::positive>;
using Expm1 =
    Unary<"expm1", "exponential minus 1, accurate near 0", "y = exp(x) - 1", "", Keep::output,
          [](auto x) { return simd::expm1(x); }, [](auto y) { return y + 1; }>;
using Sqrt =
    Unary<"sqrt", "square root", "y = sqrt(x)", "dynet.sqrt", Keep::output,
          [](auto x) { return simd::sqrt(x); }, [](auto y) { return 0.5 / y; }, Domain::positive>;
using Reciprocal =
    Unary<"reciprocal", "one divided by x", "y = 1 / x", "", Keep::output,
          [](auto x) { return 1 / x; }, [](auto y) { return -y * y; }, Domain::nonzero>;
using Abs = Unary<"abs", "absolute value; the slope at 0 is 0", "y = |x|", "dynet.abs", Keep::input,
                  [](auto x) { return simd::abs(x); }, [](auto x) { return simd::sign(x); },
                  Domain::nonzero>;
using Square = Unary<"square", "square", "y = x^2", "dynet.square", Keep::input,
                     [](auto x) { return x * x; }, [](auto x) { return 2 * x; }>;
using Cube = Unary<"cube", "third power", "y = x^3", "dynet.cube", Keep::input,
                   [](auto x) { return x * x * x; }, [](auto x) { return 3 * x * x; }>;
using Sin = Unary<"sin", "sine", "y = sin(x)", "dynet.sin", Keep::input,
                  [](auto x) { return simd::sin(x); }, [](auto x) { return simd::cos(x); }>;
using Cos = Unary<"cos", "cosine", "y = cos(x)", "dynet.cos", Keep::input,
                  [](auto x) { return simd::cos(x); }, [](auto x) { return -simd::sin(x); }>;
using Tan = Unary<"tan", "tangent", "y = tan(x)", "dynet.tan", Keep::output,
                  [](auto x) { return simd::sin(x) / simd::cos(x); },
                  [](auto y) { return 1 + y * y; }, Domain::unit>;
using Sinh = Unary<"sinh", "hyperbolic sine", "y = sinh(x)", "dynet.sinh", Keep::input,
                   [](auto x) { return simd::sinh(x); }, [](auto x) { return simd::cosh(x); }>;
using Cosh = Unary<"cosh", "hyperbolic cosine", "y = cosh(x)", "dynet.cosh", Keep::input,
                   [](auto x) { return simd::cosh(x); }, [](auto x) { return simd::sinh(x); }>;
using Erf = Unary<"erf", "error function", "y = erf(x)", "dynet.erf", Keep::input,
                  [](auto x) { return simd::erf(x); },
                  [](auto x) { return 1.1283791670955125739 * simd::exp(-x * x); }>;
using Sigmoid =
    Unary<"sigmoid", "logistic function", "y = 1 / (1 + exp(-x))", "dynet.logistic", Keep::output,
          [](auto x) { return simd::sigmoid(x); }, [](auto y) { return y * (1 - y); }>;
using LogSigmoid =
    Unary<"log_sigmoid", "logarithm of the logistic function, right in both tails",
          "y = -log(1 + exp(-x))", "dynet.log_sigmoid", Keep::input,
          [](auto x) { return -simd::softplus(-x); }, [](auto x) { return simd::sigmoid(-x); }>;
using Softplus =
    Unary<"softplus", "smooth form of relu", "y = log(1 + exp(x))", "", Keep::input,
          [](auto x) { return simd::softplus(x); }, [](auto x) { return simd::sigmoid(x); }>;
using Softsign =
    Unary<"softsign", "x over 1 plus its absolute value", "y = x / (1 + |x|)", "dynet.softsign",
          Keep::output, [](auto x) { return x / (1 + simd::abs(x)); },
          [](auto y) {
            const auto rest = 1 - simd::abs(y);
            return rest * rest;
          }>;
using Relu =
    Unary<"relu", "the positive part; the slope at 0 is 0", "y = max(x, 0)", "dynet.rectify",
          Keep::output, [](auto x) { return simd::select(x <= decltype(x)(0), 0, x); },
          [](auto y) { return simd::step(y); }, Domain::nonzero>;

// What the slope of relu is as an operator: gradients that choose are written with it.
struct Heaviside {
  static constexpr OpSpec spec{
      .name = "heaviside",
      .summary = "step function: 1 where x is positive, else 0; NaN gives 1",
      .doc = "A constant for gradients.",
      .formula = "y = 0 if x <= 0 else 1",
      .examples = "heaviside({3}); heaviside({2,3}x4); heaviside({})",
      .inputs = {In("x").in(Domain::nonzero).no_grad()},
      .batch = Batch::elementwise,
      .unchecked = "gradient: it is zero wherever there is one"};

  static Dim infer(Dims x) { return x[0]; }
  static void forward(auto x, auto y) {
    map(x, y, simd::wide([](auto v) { return simd::step(v); }));
  }
};

TRL_OPS(unary, Neg, Exp, Log, Log1p, Expm1, Sqrt, Reciprocal, Abs, Square, Cube, Sin, Cos, Tan,
        Sinh, Cosh, Erf, Sigmoid, LogSigmoid, Softplus, Softsign, Relu, Heaviside)

}  // namespace trellis::ops
