// SPDX-License-Identifier: Apache-2.0
//
// One operator at a time through the public interface, in f64. What every operator must do -
// gradients, batching, adding - is checked elsewhere for all of them; here are values, special
// cases and refusals.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <trellis/graph.hpp>
#include <trellis/runtime.hpp>
#include <vector>

namespace op_test {

using namespace trellis;

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

inline Runtime& runtime() {
  static Runtime r;
  return r;
}

// An input: a shape and its numbers, column-major, batch outermost.
struct In {
  Dim dim;
  std::vector<double> numbers;
};

struct Result {
  Dim dim;
  std::vector<double> value;
  std::vector<std::vector<double>> gradient;  // of the sum of all elements, per input
};

inline std::vector<Expr> inputs(Graph& g, const std::vector<In>& in) {
  std::vector<Expr> x;
  for (const In& i : in) x.push_back(g.input(i.dim, std::span<const double>(i.numbers)));
  return x;
}

inline GraphOptions options(Mode mode) {
  GraphOptions o;
  o.mode = mode;
  o.dtype = DType::f64;
  return o;
}

inline Result eval(std::string_view op, const std::vector<In>& in, const Attrs& attrs = {},
                   Mode mode = Mode::infer) {
  Graph g(runtime(), options(mode));
  const std::vector<Expr> x = inputs(g, in);
  const Expr y = g.apply(op, x, attrs).at(0);
  return {y.dim(), y.value().as_doubles(), {}};
}

// The same with gradients, in train mode. The first output is weighted with `weights` (ones when
// empty) and summed.
inline Result grad(std::string_view op, const std::vector<In>& in, const Attrs& attrs = {},
                   std::vector<double> weights = {}, Mode mode = Mode::train) {
  Graph g(runtime(), options(mode));
  const std::vector<Expr> x = inputs(g, in);
  const Expr y = g.apply(op, x, attrs).at(0);
  weights.resize(y.dim().total(), 1);
  const Expr w = g.input(y.dim(), std::span<const double>(weights));
  g.backward(g.apply1("core.sum_batches", {g.apply1("core.sum", {g.apply1("core.mul", {y, w})})}),
             true);
  Result r{y.dim(), y.value().as_doubles(), {}};
  for (const Expr& e : x) r.gradient.push_back(e.gradient().as_doubles());
  return r;
}

// What the operator says when it refuses, without what the host adds.
inline std::string refusal(std::string_view op, const std::vector<In>& in,
                           const Attrs& attrs = {}) {
  try {
    eval(op, in, attrs);
  } catch (const Error& e) {
    const std::string text = e.what();
    return text.substr(0, text.find("; ops-core "));
  }
  return "not refused";
}

// Equal within 1e-6 of 1 or of the larger; NaN equals NaN.
inline bool near(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::fabs(a - b) <= 1e-6 * std::fmax(1, std::fmax(std::fabs(a), std::fabs(b)));
}
inline std::string list(const std::vector<double>& v) {
  std::string s = "(";
  for (const double x : v) s += (s.size() > 1 ? " " : "") + std::to_string(x);
  return s + ")";
}
inline void check_near(const std::vector<double>& got, const std::vector<double>& expected) {
  bool same = got.size() == expected.size();
  for (size_t i = 0; same && i < got.size(); ++i) same = near(got[i], expected[i]);
  CHECK_MESSAGE(same, "got " << list(got) << ", expected " << list(expected));
}

}  // namespace op_test
