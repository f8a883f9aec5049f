// SPDX-License-Identifier: Apache-2.0

#include <trellis/expr.hpp>
#include <trellis/ops.hpp>

#include "rnn/roles.hpp"

namespace trellis {
namespace {

using detail::apply_role;
using detail::attr_of;
using detail::GraphImpl;
using detail::RoleAttr;

Expr unary(Role role, const Operand& x, std::initializer_list<RoleAttr> attrs = {}) {
  GraphImpl& g = GraphImpl::of(x.expr);
  return g.expr(apply_role(g, role, {g.id_of(x.expr)}, attrs, x.where));
}

Expr binary(Role role, const Operand& x, const Operand& y) {
  GraphImpl& g = GraphImpl::of(x.expr);
  return g.expr(apply_role(g, role, {g.id_of(x.expr), g.id_of(y.expr)}, {}, x.where));
}

Expr scale_shift(const Operand& x, double scale, double shift) {
  return unary(Role::scale_shift, x,
               {{"scale", attr_of(std::span<const double>(&scale, 1))},
                {"shift", attr_of(std::span<const double>(&shift, 1))}});
}

}  // namespace

Expr operator+(const Operand& x, const Operand& y) { return binary(Role::add, x, y); }
Expr operator-(const Operand& x, const Operand& y) { return binary(Role::sub, x, y); }
Expr operator*(const Operand& x, const Operand& y) {
  return binary(x.expr.dim().rank == 0 || y.expr.dim().rank == 0 ? Role::mul : Role::matmul, x, y);
}
Expr operator/(const Operand& x, const Operand& y) { return binary(Role::div, x, y); }
Expr operator-(const Operand& x) { return unary(Role::neg, x); }

Expr operator+(const Operand& x, double a) { return scale_shift(x, 1, a); }
Expr operator-(const Operand& x, double a) { return scale_shift(x, 1, -a); }
Expr operator*(const Operand& x, double a) { return scale_shift(x, a, 0); }
Expr operator/(const Operand& x, double a) { return scale_shift(x, 1 / a, 0); }
Expr operator+(double a, const Operand& x) { return x + a; }
Expr operator-(double a, const Operand& x) { return scale_shift(x, -1, a); }
Expr operator*(double a, const Operand& x) { return x * a; }
Expr operator/(double a, const Operand& x) {
  GraphImpl& g = GraphImpl::of(x.expr);
  return Operand(g.expr(g.constant(Dim{}, x.expr.dtype(), a)), x.where) / x;
}

Expr Expr::operator[](int64_t i) const {
  const Dim d = dim();
  if (d.rank == 0) fail(ErrorKind::shape, "[slice] a scalar has no entries");
  const int64_t size = d.d[0], at = i < 0 ? i + size : i;
  if (at < 0 || at >= size)
    fail(ErrorKind::range, "[slice] no such entry: " + std::to_string(i) + " of " + d.to_string());
  const auto start = static_cast<uint32_t>(at);
  // An operator [] has no place for the line that it is on.
  const Expr entry = roles::slice(*this, start, start + 1, 0, {});
  return roles::reshape(entry, d.deleted(0), {});
}

namespace roles {

Expr mul(const Expr& x, const Expr& y, SourceLine where) {
  return binary(Role::mul, {x, where}, y);
}
Expr sum(const Expr& x, std::span<const int64_t> axes, SourceLine where) {
  return unary(Role::sum, {x, where}, {{"axes", attr_of(axes)}});
}
Expr sum_batches(const Expr& x, SourceLine where) { return unary(Role::sum_batches, {x, where}); }

Expr concat(std::span<const Expr> xs, uint32_t axis, SourceLine where) {
  if (xs.empty()) fail(ErrorKind::argument, "[concat] no inputs: 0 (at least 1)");
  GraphImpl& g = GraphImpl::of(xs[0]);
  std::vector<uint32_t> ids;
  ids.reserve(xs.size());
  for (const Expr& x : xs) ids.push_back(g.id_of(x));
  return g.expr(apply_role(g, Role::concat, ids, {{"axis", attr_of(int64_t{axis})}}, where));
}

Expr slice(const Expr& x, uint32_t start, uint32_t end, uint32_t axis, SourceLine where) {
  return unary(Role::slice, {x, where},
               {{"start", attr_of(int64_t{start})},
                {"end", attr_of(int64_t{end})},
                {"axis", attr_of(int64_t{axis})}});
}

Expr reshape(const Expr& x, const Dim& dim, SourceLine where) {
  int64_t sizes[Dim::kMaxRank];
  for (uint32_t i = 0; i < dim.rank; ++i) sizes[i] = dim.d[i];
  return unary(Role::reshape, {x, where},
               {{"shape", attr_of(std::span<const int64_t>(sizes, dim.rank))}});
}

Expr dropout(const Expr& x, double p, SourceLine where) {
  return unary(Role::dropout, {x, where}, {{"p", attr_of(p)}});
}

}  // namespace roles
}  // namespace trellis
