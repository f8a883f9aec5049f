// SPDX-License-Identifier: Apache-2.0
//
// Expressions with operators. Each one asks the registry for the operator that has the role (add,
// matmul, ...), so they work with whatever plugin provides it: Error(plugin) naming the role when
// none does. Named functions come typed and documented from the schemas of the plugins, in
// trellis/ops/*.hpp.
//
// Shapes broadcast: missing trailing dimensions count as 1, sizes and batch sizes are equal or 1.
// Operands from two graphs throw Error(state).
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <trellis/graph.hpp>
#include <vector>

namespace trellis {

// What stands on either side of an operator: an expression and the line that the operator is on.
class Operand {
 public:
  Operand(const Expr& e, SourceLine w = SourceLine::here()) : expr(e), where(w) {}
  const Expr& expr;
  SourceLine where;
};

TRELLIS_API Expr operator+(const Operand& x, const Operand& y);
TRELLIS_API Expr operator-(const Operand& x, const Operand& y);
// The matrix product; element-wise where x or y is a scalar (rank 0).
TRELLIS_API Expr operator*(const Operand& x, const Operand& y);
TRELLIS_API Expr operator/(const Operand& x, const Operand& y);  // element-wise
TRELLIS_API Expr operator-(const Operand& x);

// A number scales or shifts every element. Different numbers do not hinder batching.
TRELLIS_API Expr operator+(const Operand& x, double a);
TRELLIS_API Expr operator-(const Operand& x, double a);
TRELLIS_API Expr operator*(const Operand& x, double a);
TRELLIS_API Expr operator/(const Operand& x, double a);
TRELLIS_API Expr operator+(double a, const Operand& x);
TRELLIS_API Expr operator-(double a, const Operand& x);
TRELLIS_API Expr operator*(double a, const Operand& x);
TRELLIS_API Expr operator/(double a, const Operand& x);

inline Expr& operator+=(Expr& x, const Operand& y) { return x = Operand(x, y.where) + y; }
inline Expr& operator-=(Expr& x, const Operand& y) { return x = Operand(x, y.where) - y; }
inline Expr& operator*=(Expr& x, double a) { return x = x * a; }
inline Expr& operator/=(Expr& x, double a) { return x = x / a; }

// The derivatives of a scalar with respect to any expressions of its graph, as new expressions of
// the same shapes: values like all others, to be used in a loss and differentiated again, by
// backward() or by another differentiate(). What y does not depend on has a gradient of zeros.
// Parameters receive nothing; functions given to on_gradient() are not called.
//
//   const Expr slope = differentiate(f(x), x);
//   g.backward(loss + 10.0 * penalty(slope));   // gradient penalty: second derivatives of f
//
// Throws Error(shape) unless y has one element and batch 1, Error(dtype) for integers, Error(plugin)
// naming an operator on the way that has no gradient as an expression (expand_grad in its plugin;
// `trellis op describe` tells). Then nothing was added.
TRELLIS_API std::vector<Expr> differentiate(const Expr& y, std::span<const Expr> wrt);
TRELLIS_API Expr differentiate(const Expr& y, const Expr& wrt);

// What `build` makes of the inputs, without keeping what lies between: its nodes are made in a
// graph of their own, computed, and dropped; backward makes them and computes them again. Memory of
// a deep network falls from all its values to those at the borders and of one part, for one more
// forward.
//
//   for (const Block& block : blocks)
//     h = recompute(h, [&](Graph& g, const Expr& x) { return block(g, x); });
//
// `build` is called several times and must make the same nodes each time, of the graph and inputs
// it is given and of parameters; what it refers to must live as long as the node. It sees zeros if
// it asks for values while the node is made. Gradients are those of the nodes in place; random masks
// are the same in both passes. Parts are not merged with each other; they may be nested.
//
// Inputs and result are floats of one type. Throws Error(argument) for no inputs, Error(state) when
// `build` uses the outer graph, Error(shape) or Error(dtype) when computing makes another result
// than making did.
using Part = std::function<Expr(Graph& graph, std::span<const Expr> inputs)>;
TRELLIS_API Expr recompute(std::span<const Expr> inputs, Part build,
                           SourceLine where = SourceLine::here());
TRELLIS_API Expr recompute(const Expr& input,
                           std::function<Expr(Graph& graph, const Expr& input)> build,
                           SourceLine where = SourceLine::here());

// Functions that need no header of a plugin.
namespace roles {

TRELLIS_API Expr mul(const Expr& x, const Expr& y,
                     SourceLine where = SourceLine::here());  // element-wise
// Over all elements of each example, or over the given axes (which are removed).
TRELLIS_API Expr sum(const Expr& x, std::span<const int64_t> axes = {},
                     SourceLine where = SourceLine::here());
TRELLIS_API Expr sum_batches(const Expr& x, SourceLine where = SourceLine::here());  // batch 1
TRELLIS_API Expr concat(std::span<const Expr> xs, uint32_t axis = 0,
                        SourceLine where = SourceLine::here());  // throws Error(argument) for none
inline Expr concat(std::initializer_list<Expr> xs, uint32_t axis = 0,
                   SourceLine where = SourceLine::here()) {
  return concat(std::span<const Expr>(xs.begin(), xs.size()), axis, where);
}
// Entries start .. end - 1 of an axis.
TRELLIS_API Expr slice(const Expr& x, uint32_t start, uint32_t end, uint32_t axis = 0,
                       SourceLine where = SourceLine::here());
// The same elements in order; the batch size of `dim` is not looked at.
TRELLIS_API Expr reshape(const Expr& x, const Dim& dim, SourceLine where = SourceLine::here());
// In train mode zeroes elements with probability p and scales the others by 1 / (1 - p); p in [0,
// 1].
TRELLIS_API Expr dropout(const Expr& x, double p, SourceLine where = SourceLine::here());

}  // namespace roles
}  // namespace trellis
