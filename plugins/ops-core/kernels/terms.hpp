// SPDX-License-Identifier: Apache-2.0
//
// Expressions with the operators and functions of numbers, so that expand_grad reads like the
// formula, and a formula written for elements serves expressions, too.
//
//   using uses = GradientOps;
//   static Expr expand_grad(const auto& g) {
//     const auto y = term(g, g.y()), dy = term(g, g.dy());
//     return dy * (1 - y * y);
//   }
#pragma once

#include <trellis/sdk/op.hpp>

namespace trellis::ops {

namespace use {
using Add = Use<"core.add">;
using Sub = Use<"core.sub">;
using Mul = Use<"core.mul">;
using Div = Use<"core.div">;
using Neg = Use<"core.neg">;
using ScaleShift = Use<"core.scale_shift", "scale", "shift">;
using Scale = Use<"core.scale_shift", "scale">;
using Reciprocal = Use<"core.reciprocal">;
using Exp = Use<"core.exp">;
using Log = Use<"core.log">;
using Log1p = Use<"core.log1p">;
using Sin = Use<"core.sin">;
using Cos = Use<"core.cos">;
using Sinh = Use<"core.sinh">;
using Cosh = Use<"core.cosh">;
using Tanh = Use<"core.tanh">;
using Erf = Use<"core.erf">;
using Sigmoid = Use<"core.sigmoid">;
using Sqrt = Use<"core.sqrt">;
using Abs = Use<"core.abs">;
using Heaviside = Use<"core.heaviside">;
using Pow = Use<"core.pow">;
using Maximum = Use<"core.maximum">;
using Minimum = Use<"core.minimum">;
using MatMul = Use<"core.matmul">;
using Affine = Use<"core.affine">;
using CrossEntropy = Use<"core.cross_entropy", "ids">;
using Transpose = Use<"core.transpose", "dims">;
using Reshape = Use<"core.reshape", "shape", "batch">;
using Concat = Use<"core.concat", "axis">;
using Slice = Use<"core.slice", "start", "end", "axis">;
using Sum = Use<"core.sum", "axes">;
using CumSum = Use<"core.cumsum", "axis">;
using Softmax = Use<"core.softmax", "axis">;
using Pick = Use<"core.pick", "ids", "axis">;
using Scatter = Use<"core.scatter", "ids", "size", "axis">;
using PickBatch = Use<"core.pick_batch", "ids">;
using Cast = Use<"core.cast", "dtype">;
using Dropout = Use<"core.dropout", "p", "always">;
}  // namespace use

using GradientOps =
    Uses<use::Add, use::Sub, use::Mul, use::Div, use::Neg, use::ScaleShift, use::Scale,
         use::Reciprocal, use::Exp, use::Log, use::Log1p, use::Sin, use::Cos, use::Sinh, use::Cosh,
         use::Tanh, use::Erf, use::Sigmoid, use::Sqrt, use::Abs, use::Heaviside, use::Pow,
         use::Maximum, use::Minimum, use::MatMul, use::Affine, use::CrossEntropy, use::Transpose,
         use::Reshape, use::Concat, use::Slice, use::Sum, use::CumSum, use::Softmax, use::Pick,
         use::Scatter, use::PickBatch, use::Cast, use::Dropout>;

// An expression of the graph that is being built; G is the Gradient<Op> at hand.
template <class G>
struct Term {
  const G* g;
  Expr e;

  operator Expr() const { return e; }
  Dim dim() const { return g->shape(e); }

  // One application of an operator to this.
  template <class U, class... V>
  Term to(const V&... values) const {
    return {g, g->template apply<U>({e}, values...)};
  }
  template <class U>
  Term with(const Term& y) const {
    return {g, g->template apply<U>({e, y.e})};
  }

  friend Term operator+(const Term& a, const Term& b) { return a.template with<use::Add>(b); }
  friend Term operator-(const Term& a, const Term& b) { return a.template with<use::Sub>(b); }
  friend Term operator*(const Term& a, const Term& b) { return a.template with<use::Mul>(b); }
  friend Term operator/(const Term& a, const Term& b) { return a.template with<use::Div>(b); }
  friend Term operator-(const Term& a) { return a.template to<use::Neg>(); }
  friend Term operator+(const Term& a, double b) { return a.scaled(1, b); }
  friend Term operator+(double a, const Term& b) { return b.scaled(1, a); }
  friend Term operator-(const Term& a, double b) { return a.scaled(1, -b); }
  friend Term operator-(double a, const Term& b) { return b.scaled(-1, a); }
  friend Term operator*(const Term& a, double b) { return a.scaled(b, 0); }
  friend Term operator*(double a, const Term& b) { return b.scaled(a, 0); }
  friend Term operator/(const Term& a, double b) { return a.scaled(1 / b, 0); }
  friend Term operator/(double a, const Term& b) {
    const Term r = b.template to<use::Reciprocal>();
    return a == 1 ? r : r.scaled(a, 0);
  }

 private:
  Term scaled(double scale, double shift) const {
    return to<use::ScaleShift>(Value{scale}, Value{shift});
  }
};

template <class G>
Term<G> term(const G& g, Expr e) {
  return {&g, e};
}
// The same elements under another shape and batch.
template <class G>
Term<G> reshaped(const Term<G>& x, const Dim& to) {
  std::int64_t sizes[TRL_MAX_RANK];
  for (std::uint32_t i = 0; i < to.rank; ++i) sizes[i] = to.d[i];
  return x.template to<use::Reshape>(Ints(sizes, to.rank), std::int64_t{to.batch});
}
// The sum along an axis, which stays with size 1; over all axes: one number an example.
template <class G>
Term<G> sum_kept(const Term<G>& x, std::uint32_t axis) {
  const std::int64_t axes[] = {axis};
  const Dim dim = x.dim();
  return reshaped(x.template to<use::Sum>(Ints(axes)), axis < dim.rank ? dim.with(axis, 1) : dim);
}
template <class G>
Term<G> sum_all(const Term<G>& x) {
  return x.template to<use::Sum>(Ints());
}
template <class G>
Term<G> transposed(const Term<G>& x) {
  static constexpr std::int64_t kSwap[] = {1, 0};
  return x.template to<use::Transpose>(Ints(kSwap));
}
// x in place on an axis between zeros, so that its size there becomes n.
template <class G>
Term<G> padded(const Term<G>& x, std::uint32_t axis, std::uint32_t at, std::uint32_t n) {
  const Dim dim = x.dim().with_batch(1);
  const std::uint32_t after = n - at - dim[axis];
  Expr parts[3];
  std::size_t count = 0;
  if (at > 0) parts[count++] = x.g->constant(dim.with(axis, at), 0, x);
  parts[count++] = x;
  if (after > 0) parts[count++] = x.g->constant(dim.with(axis, after), 0, x);
  if (count == 1) return x;
  return {x.g, x.g->template apply<use::Concat>(std::span<const Expr>(parts, count),
                                                std::int64_t{axis})};
}

// The words of simd.hpp for expressions.
namespace simd {
template <class G>
Term<G> exp(const Term<G>& x) {
  return x.template to<use::Exp>();
}
template <class G>
Term<G> log(const Term<G>& x) {
  return x.template to<use::Log>();
}
template <class G>
Term<G> log1p(const Term<G>& x) {
  return x.template to<use::Log1p>();
}
template <class G>
Term<G> sin(const Term<G>& x) {
  return x.template to<use::Sin>();
}
template <class G>
Term<G> cos(const Term<G>& x) {
  return x.template to<use::Cos>();
}
template <class G>
Term<G> sinh(const Term<G>& x) {
  return x.template to<use::Sinh>();
}
template <class G>
Term<G> cosh(const Term<G>& x) {
  return x.template to<use::Cosh>();
}
template <class G>
Term<G> tanh(const Term<G>& x) {
  return x.template to<use::Tanh>();
}
template <class G>
Term<G> erf(const Term<G>& x) {
  return x.template to<use::Erf>();
}
template <class G>
Term<G> sigmoid(const Term<G>& x) {
  return x.template to<use::Sigmoid>();
}
template <class G>
Term<G> abs(const Term<G>& x) {
  return x.template to<use::Abs>();
}
template <class G>
Term<G> sqrt(const Term<G>& x) {
  return x.template to<use::Sqrt>();
}
template <class G>
Term<G> step(const Term<G>& x) {
  return x.template to<use::Heaviside>();
}
template <class G>
Term<G> sign(const Term<G>& x) {
  return step(x) - step(-x);
}
template <class G>
Term<G> max(const Term<G>& x, double y) {
  return x.template with<use::Maximum>({x.g, x.g->constant(Dim{}, y, x)});
}
template <class G>
Term<G> min(const Term<G>& x, double y) {
  return x.template with<use::Minimum>({x.g, x.g->constant(Dim{}, y, x)});
}
}  // namespace simd

}  // namespace trellis::ops
