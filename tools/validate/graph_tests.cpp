// SPDX-License-Identifier: Apache-2.0
//
// Operators as users run them: through a graph of the real kernel, which batches, shares and
// differentiates.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <trellis/expr.hpp>
#include <trellis/graph.hpp>
#include <trellis/model.hpp>

#include "validate/cases.hpp"
#include "validate/loss.hpp"
#include "validate/numbers.hpp"
#include "validate/settings.hpp"
#include "validate/tests.hpp"

namespace trellis::validate {
namespace {

constexpr uint64_t kWeights = 4711;

// One application of an operator to numbers.
struct Applied {
  Case c;
  Values values;
};

Attrs attrs_of(const Case& c) {
  Attrs out;
  for (size_t i = 0; i < c.attrs.size(); ++i) {
    const trl_attr_spec& spec = c.op->attr(i);
    const trl_attr v = c.attrs[i].c();
    // Lists that are empty by default stay unnamed.
    if ((v.type == TRL_ATTR_I64S || v.type == TRL_ATTR_F64S) && v.count == 0 &&
        !(spec.flags & TRL_ATTR_REQUIRED))
      continue;
    const bool ids = (spec.flags & TRL_ATTR_PER_BATCH) != 0;
    trl_attr plain = v;
    if (!ids) plain.offsets = nullptr;
    out.push_back({std::string(view_of(spec.key)), attr_value(spec, plain, c.batch)});
  }
  return out;
}

bool takes_gradient(const Case& c, size_t i, DType dtype) {
  const trl_in_spec& spec = c.op->in(i);
  const DType type = spec.dtype ? static_cast<DType>(spec.dtype) : dtype;
  return c.inputs[i] && !(spec.flags & TRL_IN_NO_GRAD) && is_float(type);
}

bool has_gradient(const Op& op) {
  bool any = false;
  for (uint32_t o = 0; o < op.n_visible(); ++o) any |= !(op.out(o).flags & TRL_OUT_NO_GRAD);
  const trl_kernel_desc* const kernel = op.kernel(DType::f64);
  return any && (op.desc().expand || op.desc().expand_grad || (kernel && kernel->backward));
}

// Element b of a list of numbers for `batch` elements; a list for all serves each.
Numbers element(const Numbers& of, uint32_t batch, uint32_t b, uint32_t lists) {
  if (lists == 1) return of;
  const size_t n = of.size() / batch;
  return Numbers(of.begin() + static_cast<long>(b * n),
                 of.begin() + static_cast<long>((b + 1) * n));
}

struct Options {
  DType dtype = DType::f64;
  bool batching = false;
  Mode mode = Mode::train;
  bool gradient = true;
  bool one_leaf = false;    // inputs are all the first one
  bool one_weight = false;  // an input that is declared shared is one parameter for all calls
  bool again = false;       // every call twice, on the same leaves
  uint64_t first = 0;       // number of the weights of the first output
  bool expand = false;      // by the plugin's own expand
};

struct Outcome {
  std::vector<Numbers> outputs;    // of all calls, one after another
  std::vector<Numbers> gradients;  // by call and input; empty: takes none
  GraphStats stats;
};

// Runs calls in one graph; the losses are random projections of all float outputs.
class Network {
 public:
  Network(Context& c, const Options& o)
      : c_(c),
        o_(o),
        model_(c.runtime(), o.dtype),
        g_(c.runtime(), {.mode = o.mode,
                         .dtype = o.dtype,
                         .batching = o.batching,
                         .always_group = o.batching,
                         .serial = 77}) {}

  Outcome run(const std::vector<Applied>& calls) {
    std::vector<std::vector<Expr>> leaves;
    std::vector<Expr> outputs;
    for (const Applied& a : calls) {
      leaves.push_back(make_leaves(a));
      for (int time = 0; time < (o_.again ? 2 : 1); ++time)
        for (const Expr& y : apply(a, leaves.back())) outputs.push_back(y);
    }
    Outcome out;
    const bool gradient = o_.gradient && has_gradient(*calls[0].c.op);
    const std::vector<Expr> losses =
        gradient ? projection(g_, outputs, kWeights, o_.first) : std::vector<Expr>();
    g_.forward_all();  // asked for one by one, they would be computed one by one
    for (const Expr& y : outputs) out.outputs.push_back(y.value().as_doubles());
    out.stats = g_.stats();
    if (!gradient) return out;
    // The gradient of a node is that of the last backward; that of a parameter adds up.
    for (const Expr& loss : losses) {
      g_.backward(loss, true);
      size_t at = 0;
      for (size_t k = 0; k < calls.size(); ++k)
        for (size_t i = 0; i < leaves[k].size(); ++i, ++at) {
          if (out.gradients.size() <= at) out.gradients.emplace_back();
          if (!takes_gradient(calls[k].c, i, o_.dtype) || is_weight(calls[k].c, i)) continue;
          const Numbers d = leaves[k][i].gradient().as_doubles();
          out.gradients[at].resize(d.size());
          for (size_t e = 0; e < d.size(); ++e) out.gradients[at][e] += d[e];
        }
    }
    // A shared weight has one gradient for all calls.
    for (size_t i = 0; i < weights_.size(); ++i)
      if (weights_[i].valid()) out.gradients[i] = weights_[i].gradient().as_doubles();
    return out;
  }

 private:
  bool is_weight(const Case& c, size_t i) const {
    return o_.one_weight && c.inputs[i] && c.inputs[i]->batch == 1 &&
           c.op->in(i).merge == TRL_IN_SHARED && c.op->in(i).dtype == 0 &&
           takes_gradient(c, i, o_.dtype);
  }

  std::vector<Expr> make_leaves(const Applied& a) {
    std::vector<Expr> xs;
    weights_.resize(std::max(weights_.size(), a.c.inputs.size()));
    for (size_t i = 0; i < a.c.inputs.size(); ++i) {
      if (!a.c.inputs[i]) {
        xs.emplace_back();
      } else if (o_.one_leaf && i > 0) {
        xs.push_back(xs[0]);
      } else if (is_weight(a.c, i)) {
        if (!weights_[i].valid())
          weights_[i] = model_.add_parameter("w", *a.c.inputs[i], Init::from(a.values[i]));
        xs.push_back(g_.parameter(weights_[i]));
      } else {
        const trl_in_spec& spec = a.c.op->in(i);
        Tensor t(*a.c.inputs[i], spec.dtype ? static_cast<DType>(spec.dtype) : o_.dtype);
        for (uint64_t k = 0; k < a.values[i].size(); ++k) t.set(k, a.values[i][k]);
        xs.push_back(g_.input(t));
      }
    }
    return xs;
  }

  std::vector<Expr> apply(const Applied& a, const std::vector<Expr>& xs) {
    if (!o_.expand) {
      if (xs.empty()) throw Skip{"it takes no inputs: the graph has no way to make its node"};
      return g_.apply(a.c.op->id(), xs, attrs_of(a.c));
    }
    BenchCall call(c_.bench());
    call.self = c_.bench().self();
    call.graph = &g_;
    std::vector<trl_expr> in, out(a.c.op->n_visible());
    for (const Expr& x : xs) in.push_back(x.empty() ? trl_expr{} : call.to_c(x));
    std::vector<trl_attr> attrs;
    for (const CaseAttr& attr : a.c.attrs) attrs.push_back(attr.c());
    trl_expand_args args{};
    args.struct_size = sizeof args;
    args.flags = o_.mode == Mode::train ? uint32_t{TRL_CALL_TRAIN} : 0u;
    args.call = &call;
    args.attrs = attrs.data();
    args.n_attrs = static_cast<uint32_t>(attrs.size());
    args.in = in.data();
    args.n_in = static_cast<uint32_t>(in.size());
    args.out = out.data();
    args.n_out = static_cast<uint32_t>(out.size());
    args.batch = call.attr_batch = a.c.batch;
    call.must("expand", [&] { return a.c.op->desc().expand(&args); });
    std::vector<Expr> ys;
    for (const trl_expr& e : out) ys.push_back(call.from_c(e));
    return ys;
  }

  Context& c_;
  Options o_;
  Model model_;
  Graph g_;
  std::vector<Parameter> weights_;  // by input
};

Outcome run(Context& c, const std::vector<Applied>& calls, const Options& o) {
  return Network(c, o).run(calls);
}
Outcome run(Context& c, const Applied& call, const Options& o) {
  return run(c, std::vector<Applied>{call}, o);
}

// Relative to the larger of 1 and the numbers.
std::string compare(const std::string& what, const std::vector<Numbers>& got,
                    const std::vector<Numbers>& needed, double tolerance) {
  return difference(what, got, needed, tolerance, tolerance);
}

void same(Context& c, const Applied& a, const std::string& when, const Outcome& got,
          const Outcome& needed, double values, double gradients) {
  std::string d = compare("output", got.outputs, needed.outputs, values);
  if (d.empty()) d = compare("gradient of input", got.gradients, needed.gradients, gradients);
  if (!d.empty()) c.fail(fmt::format("{}: {}: {}", a.c.text(), when, d));
}

// f for the cases of an operator, the smallest first.
void each(Context& c, const Subject& subject, std::string_view test,
          const std::function<void(const Op&, const Case&)>& f) {
  const Op op(c.bench(), subject.id);
  if (const std::string reason = op.unchecked(test); !reason.empty()) c.skip(reason);
  constexpr uint64_t kNumbers = 3000;
  bool any = false;
  for (const Case& one : make_cases(c.bench(), op, c.seed())) {
    if (any && one.numbers() > kNumbers) break;
    any = true;
    c.at(one.text());
    f(op, one);
  }
}

Applied draw(const Case& c, uint64_t seed) { return {c, draw_values(c, seed)}; }

bool accepted(Context& c, const Case& one) {
  if (!one.op->desc().infer) return true;
  BenchCall call(c.bench());
  call.self = c.bench().self();
  return infer(call, one, DType::f64, TRL_CALL_TRAIN).status == TRL_OK;
}

// The same operator on other numbers, with other ids, and in other batch sizes where it takes them:
// what may be merged with a case.
std::vector<Applied> siblings(Context& c, const Case& one, size_t n) {
  std::vector<Applied> out{draw(one, c.seed())};
  RandomEngine random(c.seed(), 5);
  for (size_t k = 1; k < n; ++k) {
    Case other = one;
    constexpr uint32_t kBatches[] = {1, 1, 3, 2, 1};
    const uint32_t batch = kBatches[k % std::size(kBatches)];
    if (k > 1 && !one.op->changes_batch())
      for (size_t i = 0; i < other.inputs.size(); ++i)
        if (other.inputs[i] && other.inputs[i]->batch == one.batch &&
            one.op->in(i).merge == TRL_IN_CONCAT)
          other.inputs[i]->batch = batch;
    other.batch = 1;
    for (const auto& d : other.inputs)
      if (d) other.batch = std::max(other.batch, d->batch);
    for (size_t i = 0; i < other.attrs.size(); ++i)
      if (is_per_batch(one.op->attr(i))) draw_attr(other, i, random);
    if (!other.settle() || !accepted(c, other)) other = one;
    out.push_back(draw(other, c.seed() + k));
  }
  return out;
}

// ---- batch.merged

void check_merged(Context& c, const Subject& subject) {
  uint64_t merged_calls = 0, single_calls = 0;
  each(c, subject, "batch.merged", [&](const Op& op, const Case& one) {
    const bool draws = op.has(TRL_OP_STOCHASTIC);
    const std::vector<Applied> calls = siblings(c, one, 5);
    for (const bool weight : {false, true}) {
      Options alone, together;
      together.batching = true;
      alone.one_weight = together.one_weight = weight;
      const Outcome single = run(c, calls, alone), merged = run(c, calls, together);
      single_calls += single.stats.forward_calls;
      merged_calls += merged.stats.forward_calls;
      const auto name = [&](const char* what, size_t of, size_t at, size_t each) {
        return fmt::format("{} {} of call {} of {} ({})", what, at % each, at / each + 1, of,
                           calls[at / each].c.text());
      };
      const size_t outs = op.n_visible(), ins = one.inputs.size();
      for (size_t k = 0; k < single.outputs.size(); ++k)
        if (const std::string d = difference(
                name("merged with others: output", calls.size(), k, outs), merged.outputs[k],
                single.outputs[k], draws ? 0 : 1e-11, draws ? 0 : 1e-11);
            !d.empty())
          c.fail(d);
      for (size_t k = 0; k < single.gradients.size(); ++k)
        if (const std::string d =
                difference(name("merged with others: gradient of input", calls.size(), k, ins),
                           merged.gradients[k], single.gradients[k], 1e-11, 1e-11);
            !d.empty())
          c.fail(d);
      same(c, calls[0], "merged with others a second time", run(c, calls, together), merged, 0, 0);
      if (op.has(TRL_OP_STOCHASTIC | TRL_OP_MODE)) continue;
      together.mode = Mode::infer;
      together.gradient = false;
      if (const std::string d = difference("merged in inference mode: output",
                                           run(c, calls, together).outputs, merged.outputs, 0, 0);
          !d.empty())
        c.fail(fmt::format("{}: {}", one.text(), d));
    }
    // In the other float type.
    if (!op.unchecked("forward.f32").empty() || !op.kernel(DType::f32)) return;
    Options single, merged;
    single.dtype = merged.dtype = DType::f32;
    merged.batching = true;
    const Outcome a = run(c, calls, single), b = run(c, calls, merged);
    same(c, calls[0], "f32, merged with others", b, a, draws ? 0 : 2e-5, 2e-4);
  });
  c.note(merged_calls < single_calls
             ? fmt::format("{} kernel calls instead of {}", merged_calls, single_calls)
             : "nothing was merged");
}

// ---- batch.order

// A case with its batch elements in another order.
Applied permuted(const Applied& a, const std::vector<uint32_t>& order) {
  Applied out = a;
  for (size_t i = 0; i < a.values.size(); ++i) {
    if (!a.c.inputs[i] || a.c.inputs[i]->batch == 1) continue;
    out.values[i].clear();
    for (const uint32_t b : order) {
      const Numbers part = element(a.values[i], a.c.batch, b, a.c.inputs[i]->batch);
      out.values[i].insert(out.values[i].end(), part.begin(), part.end());
    }
  }
  for (size_t i = 0; i < a.c.attrs.size(); ++i) {
    const CaseAttr& from = a.c.attrs[i];
    if (from.offsets.empty()) continue;
    CaseAttr& to = out.c.attrs[i];
    to.is.clear();
    to.fs.clear();
    to.offsets = {0};
    for (const uint32_t b : order) {
      for (uint32_t k = from.offsets[b]; k < from.offsets[b + 1]; ++k) {
        if (!from.is.empty()) to.is.push_back(from.is[k]);
        if (!from.fs.empty()) to.fs.push_back(from.fs[k]);
      }
      to.offsets.push_back(static_cast<uint32_t>(std::max(to.is.size(), to.fs.size())));
    }
  }
  return out;
}

void check_order(Context& c, const Subject& subject) {
  bool any = false;
  each(c, subject, "batch.order", [&](const Op& op, const Case& one) {
    if (op.changes_batch()) throw Skip{"declared as one that mixes the batch"};
    if (op.has(TRL_OP_STOCHASTIC)) throw Skip{"draws numbers of its own for each batch element"};
    if (one.batch < 2) return;
    any = true;
    const Applied a = draw(one, c.seed());
    std::vector<uint32_t> order(one.batch);
    std::iota(order.begin(), order.end(), 0u);
    std::rotate(order.begin(), order.begin() + 1, order.end());
    std::reverse(order.begin() + 1, order.end());
    Options o;
    o.gradient = false;
    const Outcome plain = run(c, a, o), turned = run(c, permuted(a, order), o);
    for (size_t k = 0; k < plain.outputs.size(); ++k) {
      Numbers needed;
      for (const uint32_t b : order) {
        const Numbers part = element(plain.outputs[k], one.batch, b, one.batch);
        needed.insert(needed.end(), part.begin(), part.end());
      }
      if (const std::string d =
              difference(fmt::format("output {}", k), turned.outputs[k], needed, 1e-12, 1e-12);
          !d.empty())
        c.fail(
            fmt::format("{}: its batch elements in the order {}: {} (that element in the order "
                        "given)",
                        one.text(), fmt::join(order, ","), d));
    }
    // By itself, each element is what it is in the batch.
    for (uint32_t b = 0; b < one.batch; b += std::max(1u, one.batch / 3)) {
      Applied single = permuted(a, {b});
      for (auto& d : single.c.inputs)
        if (d) d->batch = 1;
      single.c.batch = 1;
      const Outcome alone = run(c, single, o);
      for (size_t k = 0; k < plain.outputs.size(); ++k)
        if (const std::string d =
                difference(fmt::format("output {}", k), alone.outputs[k],
                           element(plain.outputs[k], one.batch, b, one.batch), 1e-12, 1e-12);
            !d.empty())
          c.fail(fmt::format("{}: batch element {} alone: {} (in the batch)", one.text(), b, d));
    }
  });
  if (!any) c.skip("no case has a batch");
}

// ---- batch.elementwise

void check_elementwise(Context& c, const Subject& subject) {
  const Op op(c.bench(), subject.id);
  if (!op.has(TRL_OP_ELEMENTWISE)) c.skip("not declared element-wise");
  if (op.has(TRL_OP_STOCHASTIC)) c.skip("draws random numbers: never merged across shapes");
  std::vector<Applied> calls;
  std::vector<Numbers> flat;
  const auto plain = [&](const Case& one) {
    if (one.inputs.empty() || !one.inputs[0]) return false;
    for (const auto& d : one.inputs)
      if (!d || !(*d == *one.inputs[0])) return false;
    for (const CaseAttr& a : one.attrs)
      if (!a.offsets.empty()) return false;
    return true;
  };
  each(c, subject, "batch.elementwise", [&](const Op&, const Case& one) {
    if (!plain(one)) return;
    // One set of attributes: others are another operator as far as merging goes.
    if (!calls.empty()) {
      const auto text = [](const Case& of) {
        std::string t;
        for (size_t i = 0; i < of.attrs.size(); ++i) t += of.attrs[i].text(of.op->attr(i)) + ";";
        return t + std::to_string(of.inputs.size());
      };
      if (text(one) != text(calls[0].c)) return;
    }
    Case of_mine = one;
    of_mine.op = &op;
    calls.push_back(draw(of_mine, c.seed() + calls.size()));
  });
  if (calls.size() < 2) c.skip("no cases with inputs of one shape and no per-batch attributes");

  Options alone, together;
  together.batching = true;
  const Outcome single = run(c, calls, alone), merged = run(c, calls, together);
  same(c, calls[0], fmt::format("merged with {} calls of other shapes", calls.size() - 1), merged,
       single, 1e-12, 1e-12);

  // As one run of elements.
  Applied run_of_all = calls[0];
  const size_t ins = calls[0].values.size(), outs = op.n_visible();
  for (size_t i = 0; i < ins; ++i) {
    run_of_all.values[i].clear();
    for (const Applied& a : calls)
      run_of_all.values[i].insert(run_of_all.values[i].end(), a.values[i].begin(),
                                  a.values[i].end());
    run_of_all.c.inputs[i] = Dim{static_cast<uint32_t>(run_of_all.values[i].size())};
  }
  run_of_all.c.batch = 1;
  if (!accepted(c, run_of_all.c))
    c.fail(fmt::format("{}: refused, though declared element-wise", run_of_all.c.text()));
  Options o;
  o.gradient = false;
  const Outcome all = run(c, run_of_all, o);
  for (size_t k = 0; k < outs; ++k) {
    Numbers needed;
    for (size_t n = 0; n < calls.size(); ++n)
      needed.insert(needed.end(), single.outputs[n * outs + k].begin(),
                    single.outputs[n * outs + k].end());
    if (const std::string d =
            difference(fmt::format("output {}", k), all.outputs[k], needed, 1e-12, 1e-12);
        !d.empty())
      c.fail(fmt::format("{}: the elements of {} calls one after another: {} (by themselves)",
                         run_of_all.c.text(), calls.size(), d));
  }
  c.note(fmt::format("{} shapes in {} kernel calls", calls.size(), merged.stats.forward_calls));
}

// ---- batch.ids

void check_ids(Context& c, const Subject& subject) {
  const Op op(c.bench(), subject.id);
  bool any = false, bounded = false;
  for (uint16_t i = 0; i < op.desc().n_attrs; ++i) {
    any |= (op.attr(i).flags & TRL_ATTR_PER_BATCH) != 0;
    bounded |= op.attr(i).bound_input >= 0;
  }
  if (!any) c.skip("no ids");
  if (!bounded) c.skip("its ids have no bound");
  size_t refused = 0;
  each(c, subject, "batch.ids", [&](const Op&, const Case& one) {
    const Applied good = draw(one, c.seed());
    for (size_t i = 0; i < one.attrs.size(); ++i) {
      const uint64_t bound = bound_of(one, i);
      if (bound == 0 || one.attrs[i].is.empty()) continue;
      const trl_attr_spec& spec = op.attr(i);
      const auto first = static_cast<int64_t>(bound) + (spec.flags & TRL_ATTR_BOUND_CLOSED ? 1 : 0);
      Graph g(c.runtime(), {.dtype = DType::f64});
      std::vector<Expr> xs;
      for (size_t k = 0; k < good.values.size(); ++k)
        xs.push_back(one.inputs[k]
                         ? g.input(*one.inputs[k], std::span<const double>(good.values[k]))
                         : Expr());
      // Before the first good one, and after it, when the shapes are known.
      for (const bool known : {false, true}) {
        if (known) g.apply(op.id(), xs, attrs_of(one));
        const size_t nodes = g.size();
        for (const int64_t bad : {int64_t{-1}, first, int64_t{1} << 20, int64_t{1} << 40,
                                  std::numeric_limits<int64_t>::min()})
          for (const size_t at : {size_t{0}, one.attrs[i].is.size() - 1}) {
            Case wrong = one;
            wrong.attrs[i].is[at] = bad;
            bool is_refused = false;
            try {
              g.apply(op.id(), xs, attrs_of(wrong));
            } catch (const Error&) {
              is_refused = true;
            }
            if (!is_refused)
              c.fail(fmt::format("{}: not refused, though '{}' ends at {}", wrong.text(),
                                 view_of(spec.key), first - 1));
            if (g.size() != nodes)
              c.fail(
                  fmt::format("{}: refused, but {} nodes stayed", wrong.text(), g.size() - nodes));
            ++refused;
          }
      }
      g.apply(op.id(), xs, attrs_of(one))[0].value();
    }
  });
  if (refused == 0) c.skip("no case has ids with a bound");
  c.note(fmt::format("{} refused", refused));
}

// ---- gradient.same-input

void check_same_input(Context& c, const Subject& subject) {
  bool any = false;
  each(c, subject, "gradient.same-input", [&](const Op& op, const Case& one) {
    if (!has_gradient(op)) throw Skip{"declared without a gradient"};
    if (op.has(TRL_OP_STOCHASTIC)) throw Skip{"draws anew in each node"};
    const Applied a = draw(one, c.seed());
    // Two nodes on the same leaves receive the sum of what each would.
    Options first, second;
    second.first = op.n_visible();
    Outcome sum = run(c, a, first);
    const Outcome other = run(c, a, second);
    sum.outputs.insert(sum.outputs.end(), other.outputs.begin(), other.outputs.end());
    for (size_t i = 0; i < sum.gradients.size(); ++i)
      for (size_t k = 0; k < sum.gradients[i].size(); ++k)
        sum.gradients[i][k] += other.gradients[i][k];
    for (const bool batching : {false, true}) {
      Options both;
      both.again = true;
      both.batching = batching;
      same(c, a, batching ? "two nodes on the same inputs, merged" : "two nodes on the same inputs",
           run(c, a, both), sum, 1e-12, 1e-11);
    }
    any = true;

    // One value as all inputs of one node.
    bool alike = one.inputs.size() > 1;
    for (size_t i = 0; i < one.inputs.size(); ++i)
      alike = alike && one.inputs[i] && *one.inputs[i] == *one.inputs[0] &&
              takes_gradient(one, i, DType::f64) && op.in(i).domain == op.in(0).domain &&
              op.in(i).dtype == op.in(0).dtype;
    if (!alike) return;
    Applied equal = a;
    for (Numbers& v : equal.values) v = equal.values[0];
    Outcome separate = run(c, equal, {});
    for (size_t i = 1; i < separate.gradients.size(); ++i)
      for (size_t k = 0; k < separate.gradients[0].size(); ++k)
        separate.gradients[0][k] += separate.gradients[i][k];
    for (const bool batching : {false, true}) {
      Options o;
      o.one_leaf = true;
      o.batching = batching;
      Outcome shared = run(c, equal, o);
      shared.gradients.resize(1);
      separate.gradients.resize(1);
      same(c, equal, "one value as every input", shared, separate, 1e-12, 1e-11);
    }
  });
  if (!any) c.skip("no case with a gradient");
}

// ---- gradient.expand

// What stands for the composite's gradient where it has no kernel to be compared with.
void differences(Context& c, const Applied& a, const Options& o, const Outcome& base) {
  RandomEngine random(c.seed(), 9);
  constexpr double h = 1e-5;
  const auto loss = [&](const Applied& at) {
    Options forward = o;
    forward.gradient = false;
    const Outcome out = run(c, at, forward);
    double sum = 0;
    for (size_t k = 0; k < out.outputs.size(); ++k) {
      RandomEngine weights(kWeights, k);
      const Numbers w = uniform_numbers(out.outputs[k].size(), weights);
      for (size_t e = 0; e < w.size(); ++e) sum += w[e] * out.outputs[k][e];
    }
    return sum;
  };
  for (size_t i = 0; i < a.values.size(); ++i) {
    if (!takes_gradient(a.c, i, o.dtype)) continue;
    Applied up = a, down = a;
    double got = 0;
    for (size_t k = 0; k < a.values[i].size(); ++k) {
      const double d = 2 * random.uniform() - 1;
      up.values[i][k] += h * d;
      down.values[i][k] -= h * d;
      got += base.gradients[i][k] * d;
    }
    const double needed = (loss(up) - loss(down)) / (2 * h);
    if (!close(got, needed, 1e-6, 1e-6))
      c.fail(
          fmt::format("{}: gradient of input {} along a random direction is {} (differences: {})",
                      a.c.text(), i, got, needed));
  }
}

void check_expand(Context& c, const Subject& subject) {
  const Op op(c.bench(), subject.id);
  if (!op.desc().expand) c.skip("no composite");
  const bool kernel = op.kernel(DType::f64) != nullptr;
  each(c, subject, "gradient.expand", [&](const Op&, const Case& one) {
    const Applied a = draw(one, c.seed());
    Options expanded;
    expanded.expand = true;
    const Outcome macro = run(c, a, expanded), node = run(c, a, {});
    if (!op.has(TRL_OP_STOCHASTIC))
      same(c, a, kernel ? "its kernel, and what it expands to" : "applied, and expanded by hand",
           node, macro, 1e-10, 1e-9);
    if (!kernel && has_gradient(op) && !op.has(TRL_OP_STOCHASTIC) &&
        op.unchecked("gradient.difference").empty())
      differences(c, a, {}, node);
  });
  if (!kernel) c.note("no kernel of its own: its gradients agree with differences");
}

// ---- gradient.expand-grad

// One call with plain inputs: the first derivatives of a random projection of its outputs, as
// expressions and by backward, and the second ones along a random direction.
struct Derivatives {
  std::vector<Numbers> expression, backward, second;
  double along = 0;  // the projection of the first derivatives whose slope is `second`
};

Derivatives derive(Context& c, const Applied& a, bool batching) {
  Graph g(c.runtime(),
          {.dtype = DType::f64, .batching = batching, .always_group = batching, .serial = 77});
  RandomEngine r(kWeights);
  const auto projected = [&](const Expr& y) {
    Tensor w(y.dim(), y.dtype());
    for (uint64_t k = 0; k < w.dim().total(); ++k) w.set(k, r.uniform() * 2 - 1);
    const Expr sum = roles::sum_batches(roles::sum(roles::mul(y, g.input(w))));
    return y.dtype() == DType::f64 ? sum
                                   : g.apply1("core.cast", {sum}, {{"dtype", std::string("f64")}});
  };
  std::vector<Expr> xs, wanted;
  for (size_t i = 0; i < a.values.size(); ++i) {
    xs.push_back(a.c.inputs[i] ? g.input(*a.c.inputs[i], std::span<const double>(a.values[i]))
                               : Expr());
    if (takes_gradient(a.c, i, DType::f64)) wanted.push_back(xs[i]);
  }
  Expr loss = g.constant(Dim(), 0);
  for (const Expr& y : g.apply(a.c.op->id(), xs, attrs_of(a.c)))
    if (is_float(y.dtype())) loss += projected(y);
  const std::vector<Expr> first = differentiate(loss, wanted);
  Derivatives out;
  g.backward(loss, true);
  Expr along = g.constant(Dim(), 0);
  for (size_t i = 0; i < wanted.size(); ++i) {
    out.expression.push_back(first[i].value().as_doubles());
    out.backward.push_back(wanted[i].gradient().as_doubles());
    along += projected(first[i]);
  }
  out.along = along.scalar();
  g.backward(along, true);
  for (const Expr& x : wanted) out.second.push_back(x.gradient().as_doubles());
  return out;
}

void check_expand_grad(Context& c, const Subject& subject) {
  const Op op(c.bench(), subject.id);
  if (!op.desc().expand_grad) c.skip("its gradient is no expression");
  if (!op.kernel(DType::f64) && !op.desc().expand) c.skip("no f64 kernel");
  const bool smooth = op.unchecked("gradient.difference").empty();
  size_t second = 0;
  each(c, subject, "gradient.expand-grad", [&](const Op&, const Case& one) {
    for (size_t i = 0; i < one.inputs.size(); ++i)
      if (op.in(i).dtype != 0) throw Skip{"an input has an element type of its own"};
    const Applied a = draw(one, c.seed());
    for (const bool batching : {false, true}) {
      const Derivatives d = derive(c, a, batching);
      if (const std::string text = difference("gradient", d.expression, d.backward, 1e-10, 1e-10);
          !text.empty())
        c.fail(fmt::format("{}: expand_grad, and the kernel's backward: {}", one.text(), text));
      if (!smooth) continue;
      RandomEngine r(c.seed(), 17);
      constexpr double h = 1e-5;
      Applied up = a, down = a;
      double got = 0;
      size_t w = 0;
      for (size_t i = 0; i < a.values.size(); ++i) {
        if (!takes_gradient(one, i, DType::f64)) continue;
        for (size_t k = 0; k < a.values[i].size(); ++k) {
          const double v = 2 * r.uniform() - 1;
          up.values[i][k] += h * v;
          down.values[i][k] -= h * v;
          got += d.second[w][k] * v;
        }
        ++w;
      }
      const double needed =
          (derive(c, up, batching).along - derive(c, down, batching).along) / (2 * h);
      // Sums of many terms, of which some are steep: what rounding leaves of a difference.
      const double scale = std::max({1.0, std::fabs(got), std::fabs(needed), std::fabs(d.along)});
      if (!(std::fabs(got - needed) <= 1e-6 * scale))
        c.fail(
            fmt::format("{}: second derivative of expand_grad along a random direction is {} "
                        "(differences: {})",
                        one.text(), got, needed));
      ++second;
    }
  });
  c.note(fmt::format("{} second derivatives", second));
}

constexpr Test kTests[] = {
    {"gradient.same-input", 5, Kind::op, "a value that is used twice receives the sum",
     check_same_input},
    {"gradient.expand", 5, Kind::op, "a composite is what its kernel is, or has right gradients",
     check_expand},
    {"gradient.expand-grad", 5, Kind::op,
     "the gradient as an expression is that of backward, and can be differentiated",
     check_expand_grad},
    {"batch.merged", 6, Kind::op,
     "merged with others in a graph, values, gradients and masks are what they are alone",
     check_merged},
    {"batch.order", 6, Kind::op, "in a graph, a batch element does not depend on the others",
     check_order},
    {"batch.elementwise", 6, Kind::op,
     "in a graph, an element-wise operator may see unrelated elements as one run",
     check_elementwise},
    {"batch.ids", 6, Kind::op, "an id beyond its bound is refused at every node", check_ids},
};

}  // namespace

std::span<const Test> graph_tests() { return kTests; }

}  // namespace trellis::validate
