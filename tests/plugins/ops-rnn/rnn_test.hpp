// SPDX-License-Identifier: Apache-2.0
//
// Cells and builders through the public interface, in f64. Expected numbers were computed apart, in
// complex arithmetic (values as the real part, gradients by the complex step).
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <string_view>
#include <trellis/expr.hpp>
#include <trellis/rnn.hpp>
#include <vector>

namespace rnn_test {

using namespace trellis;
using Numbers = std::vector<double>;

inline Runtime& runtime() {
  static Runtime r;
  return r;
}
inline Graph graph(Mode mode = Mode::train) {
  GraphOptions o;
  o.mode = mode;
  o.dtype = DType::f64;
  return Graph(runtime(), o);
}

struct In {
  Dim dim;
  Numbers numbers;
};
struct Result {
  std::vector<Numbers> value;     // of each output
  std::vector<Numbers> gradient;  // of sum_i weights_i . output_i, per input
};

inline Result run(std::string_view op, const std::vector<In>& in, const Attrs& attrs = {},
                  const std::vector<Numbers>& weights = {}) {
  Graph g = graph();
  std::vector<Expr> x;
  for (const In& i : in) x.push_back(g.input(i.dim, std::span<const double>(i.numbers)));
  const std::vector<Expr> y = g.apply(op, x, attrs);
  Result r;
  Expr loss = g.constant(Dim(), 0);
  for (size_t i = 0; i < y.size(); ++i) {
    r.value.push_back(y[i].value().as_doubles());
    if (i < weights.size())
      loss += roles::sum(roles::mul(
          y[i], g.input(y[i].dim().single_batch(), std::span<const double>(weights[i]))));
  }
  if (weights.empty()) return r;
  g.backward(roles::sum_batches(loss), true);
  for (const Expr& e : x) r.gradient.push_back(e.gradient().as_doubles());
  return r;
}

inline std::string refusal(std::string_view op, const std::vector<Dim>& dims) {
  Graph g = graph();
  std::vector<Expr> x;
  for (const Dim& d : dims) x.push_back(g.constant(d, 1));
  try {
    g.apply(op, x);
  } catch (const Error& e) {
    const std::string text = e.what();
    return text.substr(0, text.find("; ops-rnn"));
  }
  return "not refused";
}

inline bool near(const Numbers& got, const Numbers& expected, double tolerance = 1e-12) {
  bool same = got.size() == expected.size();
  for (size_t i = 0; same && i < got.size(); ++i)
    same = std::fabs(got[i] - expected[i]) <= tolerance * std::fmax(1, std::fabs(expected[i]));
  if (!same) {
    std::string text = "got";
    for (const double v : got) text += " " + std::to_string(v);
    text += ", expected";
    for (const double v : expected) text += " " + std::to_string(v);
    MESSAGE(text);
  }
  return same;
}

// Parameter k of a builder becomes entry (i, j) = 0.1 ((7 (i + rows j + shift)) mod 11) - 0.5.
inline void set_weights(const Parameter& p, uint32_t shift) {
  Parameter to = p;
  Numbers v(p.dim().total());
  for (size_t k = 0; k < v.size(); ++k)
    v[k] = 0.1 * static_cast<double>((k + shift) * 7 % 11) - 0.5;
  to.set_value(std::span<const double>(v));
}
inline void set_all(const Model& model, double value) {
  for (Parameter p : model.parameters()) {
    const Numbers v(p.dim().total(), p.dim().rank == 1 ? 0 : value);
    p.set_value(std::span<const double>(v));
  }
}
inline std::vector<Expr> two_inputs(Graph& g) {
  return {g.input(Dim{3}, std::span<const double>(Numbers{1.0, -0.5, 0.25})),
          g.input(Dim{3}, std::span<const double>(Numbers{0.3, 0.9, -1.1}))};
}

}  // namespace rnn_test
