// SPDX-License-Identifier: Apache-2.0
//
// Level 3: shape inference and attributes.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "validate/op_tests.hpp"
#include "validate/tests.hpp"

namespace trellis::validate {
namespace {

std::string same_answer(const Inferred& a, const Inferred& b) {
  if (a.status != b.status) return fmt::format("status {} and then {}", a.status, b.status);
  if (a.status != TRL_OK) return {};
  for (size_t o = 0; o < a.out.size(); ++o) {
    if (a.dtypes[o] != b.dtypes[o])
      return fmt::format("output {} has element type {} and then {}", o, a.dtypes[o], b.dtypes[o]);
    bool same = a.out[o].rank == b.out[o].rank && a.out[o].batch == b.out[o].batch;
    for (uint32_t k = 0; same && k < std::min<uint32_t>(a.out[o].rank, TRL_MAX_RANK); ++k)
      same = a.out[o].d[k] == b.out[o].d[k];
    if (!same) return fmt::format("output {} has two shapes", o);
  }
  if (a.view_of != b.view_of || a.view_offset != b.view_offset ||
      a.stops_gradient != b.stops_gradient)
    return "a view and then another";
  return {};
}

void pure(Context& ctx, const Subject& subject) {
  const Op op(ctx.bench(), subject.id);
  if (!op.desc().infer) ctx.skip("no shape inference: it stands for a graph");
  const std::vector<Case> cases = make_cases(ctx.bench(), op, ctx.seed());
  BenchCall call(ctx.bench());
  std::vector<Inferred> first;
  for (const Case& c : cases) first.push_back(infer(call, c, DType::f64, TRL_CALL_TRAIN));
  // Again, each behind itself and behind every other, in another order.
  for (size_t i = cases.size(); i-- > 0;)
    for (const size_t before : {i, size_t{0}, cases.size() - 1, cases.size() / 2}) {
      ctx.at(fmt::format("{}, infer behind that of {}", cases[i].text(), cases[before].text()));
      infer(call, cases[before], DType::f32, 0);
      const Inferred again = infer(call, cases[i], DType::f64, TRL_CALL_TRAIN);
      if (const auto d = same_answer(first[i], again); !d.empty())
        ctx.fail(fmt::format("{}: infer is not pure: {}", cases[i].text(), d));
    }
}

// Forward and backward of a case, twice with other bytes around the buffers and other poison: a
// kernel that reads beyond what infer accepted crashes, or sees the difference.
void run_accepted(Context& ctx, const Case& c, DType dtype, bool may_fail) {
  if (!c.op->kernel(dtype) || !c.op->kernel(dtype)->forward) return;
  const Values v = draw_values(c, ctx.seed());
  KernelRun a(ctx.bench(), c, v, {.dtype = dtype, .poison = 0xFF, .around = 0xFF});
  KernelRun b(ctx.bench(), c, v, {.dtype = dtype, .poison = 0x3F, .around = 0x3E});
  const bool back = c.op->kernel(dtype)->backward && is_differentiable(*c.op, a);
  for (KernelRun* run : {&a, &b}) {
    const trl_status st = run->try_forward();
    if (st != TRL_OK) {
      if (run->call().text.empty())
        ctx.fail(fmt::format("{}: forward fails with status {} and no text", a.text(), st));
      if (!may_fail)
        ctx.fail(
            fmt::format("{}: forward fails with status {}: {}", a.text(), st, run->call().text));
      return;
    }
    if (back) run->backward(draw_gradients(*run, ctx.seed()), all_wanted(*run, Wanted::add));
  }
  std::string d = different_bits(a, b);
  if (d.empty() && back) d = different_gradient_bits(a, b);
  if (!d.empty()) ctx.fail(fmt::format("{}: reads what is not its input: {}", a.text(), d));
}

Dim random_dim(RandomEngine& r, const std::vector<uint32_t>& sizes, bool same_rank, uint32_t rank) {
  Dim d;
  d.rank = same_rank ? rank : static_cast<uint32_t>(r.below(TRL_MAX_RANK + 1));
  for (uint32_t k = 0; k < d.rank; ++k) d.d[k] = sizes[r.below(sizes.size())];
  return d;
}

// Sizes of one tensor whose product the host would refuse never reach a plugin.
bool is_possible(const Case& c) {
  try {
    for (const auto& d : c.inputs)
      if (d) static_cast<void>(Dim(trl_dim(*d)));
    return true;
  } catch (const Error&) {
    return false;
  }
}

void refuse(Context& ctx, const Subject& subject) {
  const Op op(ctx.bench(), subject.id);
  if (!op.desc().infer) ctx.skip("no shape inference: it stands for a graph");
  const std::vector<Case> cases = make_cases(ctx.bench(), op, ctx.seed());
  RandomEngine r(ctx.seed(), 21);
  BenchCall call(ctx.bench());
  const std::vector<std::vector<uint32_t>> palettes = {
      {1, 2, 3}, {2, 3},   {1, 5},     {3, 4},           {7},
      {1},       {2, 131}, {1, 65537}, {4294967295u, 1}, {1u << 20}};
  uint32_t accepted = 0, tried = 0;
  const trl_in_spec* last = op.desc().n_in ? &op.in(op.desc().n_in - 1u) : nullptr;
  for (int round = 0; round < 400; ++round) {
    Case c = cases[r.below(cases.size())];
    const auto& sizes = palettes[r.below(palettes.size())];
    const bool same_rank = r.below(2) == 0;
    const auto rank = static_cast<uint32_t>(r.below(TRL_MAX_RANK + 1));
    const uint32_t batch = r.below(3) == 0 ? 3 : 1;
    if (last && (last->flags & TRL_IN_VARIADIC) && r.below(3) == 0)
      c.inputs.resize(1 + r.below(5), Dim());
    const uint64_t changes = 1 + r.below(3);
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      const bool optional = (op.in(i).flags & TRL_IN_OPTIONAL) != 0;
      if (optional && r.below(4) == 0) {
        c.inputs[i].reset();
        continue;
      }
      if (!c.inputs[i]) continue;
      if (changes == 1 && r.below(2) == 0) {
        // One size of one input.
        if (c.inputs[i]->rank) c.inputs[i]->d[r.below(c.inputs[i]->rank)] = sizes[0];
      } else if (changes > 1) {
        *c.inputs[i] = random_dim(r, sizes, same_rank, rank);
      }
      c.inputs[i]->batch = batch == 3 && r.below(4) != 0 ? 3 : 1;
    }
    if (!c.settle() || !is_possible(c)) continue;
    for (size_t i = 0; i < c.attrs.size(); ++i)
      if (is_per_batch(op.attr(i))) draw_attr(c, i, r);
    ctx.at(fmt::format("{}, infer", c.text()));
    ++tried;
    const Inferred answer = infer(call, c, DType::f64, TRL_CALL_TRAIN);
    if (answer.status != TRL_OK) continue;
    ++accepted;
    uint64_t room = c.numbers();
    bool possible = true;
    for (size_t o = 0; o < answer.out.size(); ++o) {
      const trl_dim& d = answer.out[o];
      if (d.rank > TRL_MAX_RANK)
        ctx.fail(fmt::format("{}: infer answers rank {} for output {} (needed at most {})",
                             c.text(), d.rank, o, TRL_MAX_RANK));
      try {
        room = std::max(room, Dim(d).total());
      } catch (const Error&) {
        possible = false;  // the host refuses it
      }
    }
    if (answer.view_of >= static_cast<int64_t>(c.inputs.size()))
      ctx.fail(fmt::format("{}: infer declares a view of input {}", c.text(), answer.view_of));
    ctx.at(fmt::format("{}, which infer accepts", c.text()));
    if (possible && room <= 5000)
      run_accepted(ctx, c, op.kernel(DType::f64) ? DType::f64 : DType::f32, true);
  }
  ctx.note(fmt::format("{} shapes, {} accepted", tried, accepted));
}

bool is_finite(double edge) { return std::abs(edge) < 1e300; }

// Whether a kernel has ids whose bound only it knows: with other attributes they may be wrong.
bool has_free_ids(const Op& op) {
  for (uint16_t i = 0; i < op.desc().n_attrs; ++i)
    if ((op.attr(i).flags & TRL_ATTR_PER_BATCH) && op.attr(i).bound_input < 0) return true;
  return false;
}

// The smallest cases with one attribute set; what infer accepts must run.
void run_edge(Context& ctx, const std::vector<Case>& cases, size_t attr, double edge) {
  int tried = 0;
  for (const Case& given : cases) {
    if (given.numbers() > 5000 || ++tried > 6) return;
    Case c = given;
    CaseAttr& a = c.attrs[attr];
    a.i = static_cast<int64_t>(edge);
    a.f = edge;
    std::fill(a.is.begin(), a.is.end(), a.i);
    std::fill(a.fs.begin(), a.fs.end(), edge);
    ctx.at(fmt::format("{}, an attribute at its edge", c.text()));
    BenchCall call(ctx.bench());
    for (const DType dtype : {DType::f64, DType::f32}) {
      if (!c.op->kernel(dtype)) continue;
      const Inferred answer = infer(call, c, dtype, TRL_CALL_TRAIN);
      if (answer.status != TRL_OK) continue;
      uint64_t room = 0;
      try {
        for (const trl_dim& d : answer.out) room = std::max(room, Dim(d).total());
      } catch (const Error&) {
        continue;
      }
      if (room <= (1u << 20)) run_accepted(ctx, c, dtype, has_free_ids(*c.op));
    }
  }
}

// Beyond the range the host refuses, whatever the plugin says.
void refuse_beyond(Context& ctx, const Op& op, size_t attr, double value) {
  const trl_attr_spec& s = op.attr(attr);
  const std::string key(view_of(s.key));
  const Example e = parse_examples(view_of(op.desc().example)).front();
  Attrs attrs;
  for (const Attr& a : e.attrs)
    if (a.key != key) attrs.push_back(a);
  attrs.push_back(
      {key, s.type == TRL_ATTR_F64 ? AttrValue(value) : AttrValue(static_cast<int64_t>(value))});
  Graph g(ctx.runtime(), {.dtype = DType::f64});
  std::vector<Expr> xs;
  for (size_t i = 0; i < e.inputs.size(); ++i) {
    if (!e.inputs[i]) {
      xs.emplace_back();
      continue;
    }
    const uint16_t fixed = op.in(i).dtype;
    Tensor t(*e.inputs[i], fixed ? static_cast<DType>(fixed) : DType::f64);
    xs.push_back(g.input(t));
  }
  try {
    g.apply(op.id(), xs, attrs);
  } catch (const Error&) {
    return;
  }
  ctx.fail(
      fmt::format("{}: {}={} lies out of the declared range and is accepted", op.id(), key, value));
}

void run_ids(Context& ctx, const std::vector<Case>& cases, size_t attr, bool bounded) {
  int tried = 0;
  for (const Case& given : cases) {
    if (given.numbers() > 5000 || ++tried > 8) return;
    const trl_attr_spec& s = given.op->attr(attr);
    std::vector<int64_t> edges;
    if (bounded) {
      const auto bound = static_cast<int64_t>(bound_of(given, attr));
      if (bound == 0) continue;
      edges = {0, (s.flags & TRL_ATTR_BOUND_CLOSED) ? bound : bound - 1};
    } else if (s.lo <= s.hi && is_finite(s.hi) && s.hi < 1e6) {
      edges = {static_cast<int64_t>(s.lo), static_cast<int64_t>(s.hi)};
    } else {
      // The kernel knows the bound: what it does not like it refuses.
      edges = {-1, 5, 1 << 20, int64_t{1} << 40};
    }
    for (const int64_t id : edges) {
      Case c = given;
      std::fill(c.attrs[attr].is.begin(), c.attrs[attr].is.end(), id);
      ctx.at(fmt::format("{}, {}", c.text(),
                         bounded ? "ids at the edge of their bound" : "ids, no bound is declared"));
      for (const DType dtype : {DType::f64, DType::f32}) run_accepted(ctx, c, dtype, !bounded);
    }
  }
}

void edges(Context& ctx, const Subject& subject) {
  const Op op(ctx.bench(), subject.id);
  if (op.desc().n_attrs == 0) ctx.skip("it has no attributes");
  if (!op.desc().infer || (!op.kernel(DType::f64) && !op.kernel(DType::f32)))
    ctx.skip("a composite: it has no kernel of its own");
  const std::vector<Case> cases = make_cases(ctx.bench(), op, ctx.seed());
  for (uint16_t i = 0; i < op.desc().n_attrs; ++i) {
    const trl_attr_spec& s = op.attr(i);
    if (s.flags & TRL_ATTR_PER_BATCH) {
      run_ids(ctx, cases, i, s.bound_input >= 0);
      continue;
    }
    if (s.type == TRL_ATTR_BOOL || s.type == TRL_ATTR_CHOICE) {
      const uint32_t n = s.type == TRL_ATTR_BOOL ? 2 : s.n_choices;
      for (uint32_t k = 0; k < n; ++k) run_edge(ctx, cases, i, k);
      continue;
    }
    if (!(s.lo <= s.hi)) continue;
    const bool whole = s.type == TRL_ATTR_I64 || s.type == TRL_ATTR_I64S;
    const bool scalar = s.type == TRL_ATTR_I64 || s.type == TRL_ATTR_F64;
    for (const double edge : {s.lo, s.hi}) {
      if (!is_finite(edge) || (whole && std::abs(edge) > 1e9)) continue;
      run_edge(ctx, cases, i, edge);
      if (!scalar) continue;
      const double step = whole ? 1 : std::max(1e-6, std::abs(edge) * 1e-6);
      refuse_beyond(ctx, op, i, edge == s.lo ? edge - step : edge + step);
    }
  }
}

constexpr Test kTests[] = {
    {"shape.pure", 3, Kind::op, "infer depends on its arguments alone and leaves them as they are",
     pure},
    {"shape.refuse", 3, Kind::op,
     "any shapes are answered or refused with a text, and what is accepted runs", refuse},
    {"attrs.edges", 3, Kind::op,
     "attributes and ids at the edges of what is declared run, beyond it they are refused", edges},
};

}  // namespace

std::span<const Test> shape_tests() { return kTests; }

}  // namespace trellis::validate
