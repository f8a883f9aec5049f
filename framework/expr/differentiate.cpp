// SPDX-License-Identifier: Apache-2.0
//
// Derivatives as expressions: a walk from y down to what it is differentiated by, in which every
// operator on the way adds the nodes of its own gradient (expand_grad). Reverse mode, like
// backward(), so the cost in nodes is a few times that of y, whatever the number of inputs.

#include <algorithm>
#include <string>
#include <trellis/expr.hpp>
#include <trellis/ops.hpp>

#include "rnn/roles.hpp"

namespace trellis {
namespace {

using detail::apply_role;
using detail::attr_of;
using detail::GraphImpl;
using detail::Kind;
using detail::kSecondary;

const trl_in_spec& in_spec(const OpEntry& op, size_t i) {
  return op.in[std::min(i, op.in.size() - 1)];
}

class Derivation {
 public:
  Derivation(GraphImpl& graph, uint32_t y, std::span<const uint32_t> wrt);
  std::vector<uint32_t> run();

 private:
  // Whether a gradient flows from a node into its input i.
  bool flows(uint32_t node, size_t i) const {
    const detail::Pattern& p = g_.pattern_of(node);
    return p.any_grad && is_float(g_.cls_of(g_.inputs(node)[i]).dtype) &&
           (p.all_inputs_grad || !(in_spec(*p.op, i).flags & TRL_IN_NO_GRAD));
  }
  void mark();
  void differentiate(uint32_t node);
  std::vector<uint32_t> expand(uint32_t node, const std::vector<uint32_t>& d_out);
  uint32_t fit(const OpEntry& op, size_t i, uint32_t d, uint32_t x);
  void add(uint32_t id, uint32_t d) {
    gradient_[id] = gradient_[id] ? apply_role(g_, Role::add, {gradient_[id], d}) : d;
  }
  [[noreturn]] void refuse(ErrorKind kind, const OpEntry& op, const std::string& text) const {
    fail(kind, "[" + op.name + "] " + text + "; " + op.plugin->id + " " + op.plugin->version);
  }

  GraphImpl& g_;
  uint32_t y_;
  std::span<const uint32_t> wrt_;
  std::vector<uint8_t> below_;      // by value: it is, or depends on, something of wrt
  std::vector<uint8_t> through_;    // by node: one of its inputs is below
  std::vector<uint32_t> gradient_;  // by value: the expression so far, 0: none
};

Derivation::Derivation(GraphImpl& graph, uint32_t y, std::span<const uint32_t> wrt)
    : g_(graph), y_(y), wrt_(wrt), below_(y + 1), through_(y + 1), gradient_(y + 1) {}

void Derivation::mark() {
  for (const uint32_t w : wrt_)
    if (w <= y_) below_[w] = 1;
  for (uint32_t id = 1; id <= y_; ++id) {
    if (g_.value(id).flags & kSecondary) {
      below_[id] |= through_[g_.node_of(id)] && is_float(g_.cls_of(id).dtype);
      continue;
    }
    const auto in = g_.inputs(id);
    for (size_t i = 0; i < in.size(); ++i)
      if (in[i] != GraphImpl::kAbsent && below_[in[i]] && flows(id, i)) through_[id] = 1;
    below_[id] |= through_[id] && is_float(g_.cls_of(id).dtype);
  }
}

std::vector<uint32_t> Derivation::run() {
  mark();
  if (below_[y_]) gradient_[y_] = g_.constant(g_.cls_of(y_).dim, g_.cls_of(y_).dtype, 1);
  for (uint32_t id = y_; id > 0; --id)
    if (through_[id]) differentiate(id);
  std::vector<uint32_t> out;
  for (const uint32_t w : wrt_)
    out.push_back(w <= y_ && gradient_[w] ? gradient_[w]
                                          : g_.constant(g_.cls_of(w).dim, g_.cls_of(w).dtype, 0));
  return out;
}

// All users of a node have a higher id, so the gradients of its outputs are complete.
void Derivation::differentiate(uint32_t node) {
  const uint32_t n = g_.pattern_of(node).n_visible;
  std::vector<uint32_t> d_out;
  bool reached = false;
  for (uint32_t o = 0; o < n; ++o) {
    d_out.push_back(node + o <= y_ ? gradient_[node + o] : 0);
    reached |= d_out.back() != 0;
  }
  if (!reached) return;
  const OpEntry& op = *g_.pattern_of(node).op;
  const std::vector<uint32_t> in(g_.inputs(node).begin(), g_.inputs(node).end());
  const std::vector<uint32_t> d_in = expand(node, d_out);
  for (size_t i = 0; i < in.size(); ++i)
    if (d_in[i] != GraphImpl::kAbsent) add(in[i], fit(op, i, d_in[i], in[i]));
}

std::vector<uint32_t> Derivation::expand(uint32_t node, const std::vector<uint32_t>& d_out) {
  const detail::Pattern& p = g_.pattern_of(node);
  const OpEntry& op = *p.op;
  // Copied: what the plugin adds may move the pools.
  const std::vector<uint32_t> in(g_.inputs(node).begin(), g_.inputs(node).end());
  std::vector<uint32_t> d_in(in.size(), GraphImpl::kAbsent);
  if (!op.desc.expand_grad) {
    // Dropout that drops nothing and its like: the same elements, so the same gradient.
    if (p.kind == Kind::view && g_.cls_of(node).dim == g_.cls_of(in[size_t(p.view_of)]).dim) {
      d_in[size_t(p.view_of)] = d_out[0];
      return d_in;
    }
    refuse(ErrorKind::plugin, op,
           "has no gradient as an expression: " + g_.describe(node) +
               " (needs an operator with expand_grad)");
  }
  std::vector<trl_attr> attrs(g_.attrs(p.attr).begin(), g_.attrs(p.attr).end());
  if (op.has_per_batch) {
    uint32_t at = 0;
    for (size_t i = 0; i < attrs.size(); ++i)
      if (op.attrs[i].per_batch()) attrs[i] = g_.payload(node).attrs[at++];
  }
  const auto c_expr = [&](uint32_t id) { return id ? g_.to_c(id) : trl_expr{}; };
  std::vector<trl_expr> given, out(in.size());
  for (const uint32_t i : in) given.push_back(c_expr(i));
  for (uint32_t o = 0; o < p.n_visible; ++o) given.push_back(c_expr(node + o));
  for (const uint32_t d : d_out) given.push_back(c_expr(d));
  for (size_t i = 0; i < in.size(); ++i)
    out[i].output = in[i] != GraphImpl::kAbsent && below_[in[i]] && flows(node, i);

  trl_expand_args a{};
  a.struct_size = sizeof a;
  a.flags = g_.options().mode == Mode::train ? uint32_t(TRL_CALL_TRAIN) : 0u;
  a.attrs = attrs.data();
  a.n_attrs = uint32_t(attrs.size());
  a.in = given.data();
  a.n_in = uint32_t(given.size());
  a.out = out.data();
  a.n_out = uint32_t(out.size());
  a.batch = p.batch;
  detail::Call call(g_.core());
  call.scratch = &g_.scratch();
  call.graph = &g_;
  call.plugin_id = op.plugin->id;
  call.depth = g_.call().depth;
  call.attr_batch = p.batch;
  call.begin(detail::Phase::graph, op.plugin->self);
  a.call = &call;
  const std::vector<trl_expr> wanted = out;
  const GraphImpl::SameNumbers numbers(g_, node);
  trl_status st = TRL_OK;
  try {
    st = op.desc.expand_grad(&a);
  } catch (...) {
    refuse(ErrorKind::plugin, op, "an exception left its expand_grad (a plugin must stop its own)");
  }
  if (st != TRL_OK) {
    const std::string text = call.take_text(st);
    fail(detail::kind_of(st), (text.starts_with("[") ? text : "[" + op.name + "] " + text) + "; " +
                                  op.plugin->id + " " + op.plugin->version + ", gradient of " +
                                  g_.describe(node));
  }
  for (size_t i = 0; i < in.size(); ++i)
    if (wanted[i].output) d_in[i] = g_.from_c(out[i]);
  return d_in;
}

// The gradient d of input i in the shape of the input x: summed where x was broadcast, broadcast
// where d is smaller.
uint32_t Derivation::fit(const OpEntry& op, size_t i, uint32_t d, uint32_t x) {
  const Dim to = g_.cls_of(x).dim, from = g_.cls_of(d).dim;
  const DType dtype = g_.cls_of(x).dtype;
  bool fits = from.batch == to.batch || from.batch == 1 || to.batch == 1;
  for (uint32_t a = 0; a < Dim::kMaxRank; ++a)
    fits &= from[a] == to[a] || from[a] == 1 || to[a] == 1;
  if (!fits || g_.cls_of(d).dtype != dtype)
    refuse(ErrorKind::plugin, op,
           "its gradient for input " + std::to_string(i) + " is " +
               std::string(dtype_name(g_.cls_of(d).dtype)) + " " + from.to_string() +
               ", the input is " + std::string(dtype_name(dtype)) + " " + to.to_string() +
               " (needs the input's shape, or one that broadcasts to it or from it)");
  if (from == to) return d;
  if (from.batch > to.batch) d = apply_role(g_, Role::sum_batches, {d});
  std::vector<int64_t> axes;
  Dim kept;
  kept.batch = std::min(from.batch, to.batch);
  kept.rank = to.rank;
  for (uint32_t a = 0; a < Dim::kMaxRank; ++a) {
    if (from[a] > to[a]) axes.push_back(a);
    if (a < to.rank) kept.d[a] = std::min(from[a], to[a]);
  }
  if (!axes.empty())
    d = apply_role(g_, Role::sum, {d}, {{"axes", attr_of(std::span<const int64_t>(axes))}});
  if (!(g_.cls_of(d).dim == kept)) {
    std::vector<int64_t> sizes;
    for (uint32_t a = 0; a < kept.rank; ++a) sizes.push_back(kept.d[a]);
    d = apply_role(g_, Role::reshape, {d}, {{"shape", attr_of(std::span<const int64_t>(sizes))}});
  }
  if (!(kept == to)) d = apply_role(g_, Role::add, {d, g_.constant(to, dtype, 0)});
  return d;
}

}  // namespace

std::vector<Expr> differentiate(const Expr& y, std::span<const Expr> wrt) {
  GraphImpl& g = GraphImpl::of(y);
  const uint32_t id = g.id_of(y);
  const detail::ClassInfo& c = g.cls_of(id);
  if (c.dim.total() != 1)
    fail(ErrorKind::shape, "[differentiate] needs a scalar: got " + c.dim.to_string() +
                               (c.elements == 1 ? " (reduce the batch first: sum_batches)"
                                                : " (one element, batch 1)"));
  std::vector<uint32_t> ids;
  for (const Expr& x : wrt) ids.push_back(g.id_of(x));
  ids.push_back(id);
  for (const uint32_t i : ids)
    if (!is_float(g.cls_of(i).dtype))
      fail(ErrorKind::dtype, "[differentiate] " + std::string(dtype_name(g.cls_of(i).dtype)) +
                                 " values have no gradient: " + g.describe(i) +
                                 " (needs f32 or f64)");
  ids.pop_back();
  const uint32_t size = g.size();
  std::vector<Expr> out;
  try {
    for (const uint32_t d : Derivation(g, id, ids).run()) out.push_back(g.expr(d));
  } catch (...) {
    g.truncate(size);
    throw;
  }
  return out;
}

Expr differentiate(const Expr& y, const Expr& wrt) {
  return differentiate(y, std::span<const Expr>(&wrt, 1))[0];
}

}  // namespace trellis
