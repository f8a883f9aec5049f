// SPDX-License-Identifier: Apache-2.0
//
// Every operator in the registry, without a list: its examples run with random numbers from the
// declared domains, and must agree with central differences, with f32, with themselves when merged,
// and with every other way to ask. One line of report an operator; a check that cannot apply is
// named with the reason that the schema gives.

#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <trellis/expr.hpp>
#include <trellis/graph.hpp>
#include <trellis/model.hpp>
#include <trellis/random.hpp>

#include "examples.hpp"
#include "registry/registry.hpp"

using namespace trellis;
using test::Example;

namespace {

Runtime& runtime() {
  static Runtime r;
  return r;
}

double draw(RandomEngine& r, uint8_t domain) {
  const double u = r.uniform();
  switch (domain) {
    case TRL_DOMAIN_POSITIVE:
      return 0.3 + 1.7 * u;
    case TRL_DOMAIN_UNIT:
      return -0.9 + 1.8 * u;
    case TRL_DOMAIN_PROBABILITY:
      return 0.1 + 0.8 * u;
    case TRL_DOMAIN_ABOVE_ONE:
      return 1.1 + 2 * u;
    case TRL_DOMAIN_NONZERO:
      return (r.next_u32() & 1 ? 1 : -1) * (0.3 + 1.7 * u);
    default:
      return -2 + 4 * u;
  }
}

const trl_in_spec& spec_of(const OpEntry& op, size_t i) {
  return op.in[std::min(i, op.in.size() - 1)];
}

// The inputs of one call as trainable leaves: a parameter, or the rows of a table where there is a
// batch.
struct Inputs {
  std::vector<std::vector<double>> values;
  std::vector<Dim> dims;

  Inputs(const OpEntry& op, const Example& e, uint64_t seed) {
    RandomEngine r(seed);
    for (size_t i = 0; i < e.inputs.size(); ++i) {
      dims.push_back(e.inputs[i] ? *e.inputs[i] : Dim());
      std::vector<double> v(e.inputs[i] ? dims[i].total() : 0);
      for (double& x : v) x = draw(r, spec_of(op, i).domain);
      values.push_back(std::move(v));
    }
  }
};

struct Options {
  DType dtype = DType::f64;
  bool batching = false;
  Mode mode = Mode::train;
  int constant = -1;  // this input takes no gradient
  int backwards = 1;
  bool shared_leaf = false;  // inputs of equal shape are one leaf
};

struct Outcome {
  std::vector<std::vector<double>> outputs;    // of all calls, one after another
  std::vector<std::vector<double>> gradients;  // of all inputs of all calls
  double loss = 0;
};

// Runs one example on several sets of inputs in one graph; the loss is a random projection of all
// float outputs.
Outcome run(const OpEntry& op, const Example& e, const std::vector<Inputs>& calls, const Options& o,
            bool gradient) {
  Model m(runtime(), o.dtype);
  Graph g(runtime(), {.mode = o.mode,
                      .dtype = o.dtype,
                      .batching = o.batching,
                      .always_group = o.batching,
                      .serial = 77});
  std::vector<std::vector<Parameter>> leaves;
  std::vector<std::vector<Expr>> outputs;
  std::vector<Expr> losses;
  RandomEngine projection(4711);
  for (const Inputs& in : calls) {
    std::vector<Expr> xs;
    leaves.emplace_back();
    for (size_t i = 0; i < in.values.size(); ++i) {
      if (!e.inputs[i]) {
        xs.emplace_back();
        leaves.back().emplace_back();
        continue;
      }
      if (o.shared_leaf && i > 0) {
        xs.push_back(xs[0]);
        leaves.back().push_back(leaves.back()[0]);
        continue;
      }
      const Dim& d = in.dims[i];
      const bool constant =
          o.constant == static_cast<int>(i) || spec_of(op, i).flags & TRL_IN_NO_GRAD;
      if (d.batch == 1) {
        Parameter p = m.add_parameter("p", d, Init::from(in.values[i]));
        xs.push_back(constant ? g.const_parameter(p) : g.parameter(p));
        leaves.back().push_back(p);
      } else {
        LookupParameter t = m.add_lookup("t", d.batch, d.single_batch(), Init::from(in.values[i]));
        std::vector<uint32_t> ids(d.batch);
        for (uint32_t b = 0; b < d.batch; ++b) ids[b] = b;
        xs.push_back(constant ? g.const_lookup(t, ids) : g.lookup(t, ids));
        leaves.back().push_back(t);
      }
    }
    outputs.push_back(g.apply(op.id, xs, e.attrs));
    for (const Expr& y : outputs.back()) {
      if (!is_float(y.dtype())) continue;
      Tensor w(y.dim(), y.dtype());
      for (uint64_t k = 0; k < w.dim().total(); ++k) w.set(k, projection.uniform() * 2 - 1);
      const Expr weighted = g.apply1("core.mul", {y, g.input(w)});
      losses.push_back(g.apply1("core.sum_batches", {g.apply1("core.sum", {weighted})}));
    }
  }
  Outcome out;
  Expr loss;
  if (!losses.empty()) {
    loss = g.apply("core.sum_list", losses)[0];
    out.loss = loss.scalar();
  }
  for (const auto& ys : outputs)
    for (const Expr& y : ys) out.outputs.push_back(y.value().as_doubles());
  if (!gradient) return out;
  for (int i = 0; i < o.backwards; ++i) g.backward(loss);
  for (size_t c = 0; c < calls.size(); ++c)
    for (size_t i = 0; i < leaves[c].size(); ++i) {
      std::vector<double> d(calls[c].values[i].size(), 0.0);
      if (e.inputs[i]) {
        if (calls[c].dims[i].batch == 1) {
          d = leaves[c][i].gradient().as_doubles();
        } else {
          const LookupParameter t = m.lookup(leaves[c][i].name());
          const size_t row = d.size() / t.rows();
          for (uint32_t b = 0; b < t.rows(); ++b)
            if (const TensorView v = t.row_gradient(b); !v.empty())
              for (size_t k = 0; k < row; ++k) d[b * row + k] = v.at(k);
        }
      }
      out.gradients.push_back(std::move(d));
    }
  return out;
}

// Largest difference, relative to the larger of 1 and the size of the numbers. NaN and Inf must be
// equal.
double distance(const std::vector<std::vector<double>>& a,
                const std::vector<std::vector<double>>& b) {
  if (a.size() != b.size()) return INFINITY;
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size()) return INFINITY;
    for (size_t k = 0; k < a[i].size(); ++k) {
      if (a[i][k] == b[i][k] || (std::isnan(a[i][k]) && std::isnan(b[i][k]))) continue;
      const double d =
          std::abs(a[i][k] - b[i][k]) / std::max({1.0, std::abs(a[i][k]), std::abs(b[i][k])});
      worst = std::isnan(d) ? INFINITY : std::max(worst, d);
    }
  }
  return worst;
}

class Checks {
 public:
  explicit Checks(const OpEntry& op)
      : op_(op), unchecked_(op.desc.unchecked.p, op.desc.unchecked.n) {}

  // False: the schema says why this check cannot apply.
  bool applies(const std::string& name) {
    if (unchecked_.starts_with(name + ":")) {
      skipped_[name] = unchecked_.substr(name.size() + 2);
      return false;
    }
    return true;
  }
  void done(const std::string& name) { ++done_[name]; }
  void not_applicable(const std::string& name, const std::string& why) { skipped_[name] = why; }
  size_t count() const { return done_.size(); }

  std::string report(size_t examples) const {
    std::string t =
        op_.id + " (" + op_.plugin->id + "): " + std::to_string(examples) + " examples;";
    for (const auto& [name, n] : done_) t += " " + name + " " + std::to_string(n);
    for (const auto& [name, why] : skipped_) t += "; no " + name + ": " + why;
    return t;
  }

 private:
  const OpEntry& op_;
  std::string unchecked_;
  std::map<std::string, int> done_;
  std::map<std::string, std::string> skipped_;
};

void check_gradient(const OpEntry& op, const Example& e, Checks& checks) {
  const std::vector<Inputs> calls{Inputs(op, e, 11)};
  const Outcome base = run(op, e, calls, {}, true);
  RandomEngine r(99);
  constexpr double h = 1e-5;
  for (size_t i = 0; i < calls[0].values.size(); ++i) {
    if (!e.inputs[i] || spec_of(op, i).flags & TRL_IN_NO_GRAD) continue;
    CAPTURE(i);
    for (int direction = 0; direction < 3; ++direction) {
      std::vector<Inputs> up = calls, down = calls;
      double expected = 0;
      for (size_t k = 0; k < calls[0].values[i].size(); ++k) {
        const double d = 2 * r.uniform() - 1;
        up[0].values[i][k] += h * d;
        down[0].values[i][k] -= h * d;
        expected += base.gradients[i][k] * d;
      }
      const double numeric =
          (run(op, e, up, {}, false).loss - run(op, e, down, {}, false).loss) / (2 * h);
      CHECK_MESSAGE(std::abs(numeric - expected) <=
                        1e-6 * std::max({1.0, std::abs(numeric), std::abs(expected)}),
                    "gradient: numeric " << numeric << ", kernel " << expected);
    }
    checks.done("gradient");
  }
}

// One call with plain inputs: the first derivatives of a random projection of its outputs, as
// expressions and by backward, and the second ones along a random direction.
struct Derivatives {
  std::vector<std::vector<double>> expression, backward, second;
  double along = 0;  // the projection of the first derivatives whose slope is `second`
};

Derivatives derive(const OpEntry& op, const Example& e, const Inputs& in, bool batching) {
  Graph g(runtime(),
          {.dtype = DType::f64, .batching = batching, .always_group = batching, .serial = 77});
  RandomEngine r(4711);
  const auto projected = [&](const Expr& y) {
    Tensor w(y.dim(), y.dtype());
    for (uint64_t k = 0; k < w.dim().total(); ++k) w.set(k, r.uniform() * 2 - 1);
    const Expr weighted = g.apply1("core.mul", {y, g.input(w)});
    const Expr sum = g.apply1("core.sum_batches", {g.apply1("core.sum", {weighted})});
    return y.dtype() == DType::f64 ? sum
                                   : g.apply1("core.cast", {sum}, {{"dtype", std::string("f64")}});
  };
  std::vector<Expr> xs, wanted, losses, slopes;
  for (size_t i = 0; i < in.values.size(); ++i) {
    xs.push_back(e.inputs[i] ? g.input(in.dims[i], in.values[i]) : Expr());
    if (e.inputs[i] && !(spec_of(op, i).flags & TRL_IN_NO_GRAD)) wanted.push_back(xs[i]);
  }
  for (const Expr& y : g.apply(op.id, xs, e.attrs))
    if (is_float(y.dtype())) losses.push_back(projected(y));
  const Expr loss = g.apply("core.sum_list", losses)[0];
  const std::vector<Expr> first = differentiate(loss, wanted);
  Derivatives out;
  g.backward(loss, true);
  for (size_t i = 0; i < wanted.size(); ++i) {
    out.expression.push_back(first[i].value().as_doubles());
    out.backward.push_back(wanted[i].gradient().as_doubles());
    slopes.push_back(projected(first[i]));
  }
  const Expr along = g.apply("core.sum_list", slopes)[0];
  out.along = along.scalar();
  g.backward(along, true);
  for (const Expr& x : wanted) out.second.push_back(x.gradient().as_doubles());
  return out;
}

void check_expression(const OpEntry& op, const Example& e, Checks& checks) {
  const Inputs in(op, e, 21);
  for (const bool batching : {false, true}) {
    const Derivatives d = derive(op, e, in, batching);
    CHECK_MESSAGE(distance(d.expression, d.backward) <= 1e-10,
                  "the gradient as an expression differs from backward's");
    checks.done("expression");
    if (!checks.applies("gradient")) continue;
    // second derivatives against differences of the first ones
    RandomEngine r(17);
    constexpr double h = 1e-5;
    Inputs up = in, down = in;
    double expected = 0;
    size_t w = 0;
    for (size_t i = 0; i < in.values.size(); ++i) {
      if (!e.inputs[i] || spec_of(op, i).flags & TRL_IN_NO_GRAD) continue;
      for (size_t k = 0; k < in.values[i].size(); ++k) {
        const double v = 2 * r.uniform() - 1;
        up.values[i][k] += h * v;
        down.values[i][k] -= h * v;
        expected += d.second[w][k] * v;
      }
      ++w;
    }
    const double numeric =
        (derive(op, e, up, batching).along - derive(op, e, down, batching).along) / (2 * h);
    CHECK_MESSAGE(std::abs(numeric - expected) <=
                      1e-6 * std::max({1.0, std::abs(numeric), std::abs(expected)}),
                  "second derivative: numeric " << numeric << ", backward " << expected);
    checks.done("second derivative");
  }
}

void check_example(const OpEntry& op, const Example& e, Checks& checks) {
  CAPTURE(e.text);
  std::vector<Inputs> calls;
  for (uint64_t s = 0; s < 5; ++s) calls.emplace_back(op, e, 100 + s);
  const std::vector<Inputs> one{calls[0]};
  bool differentiable = false;
  for (uint16_t o = 0; o < op.n_visible; ++o)
    differentiable |= !(op.out[o].flags & TRL_OUT_NO_GRAD);
  const Outcome first = run(op, e, one, {}, differentiable);

  // the same bits again
  const Outcome again = run(op, e, one, {}, differentiable);
  CHECK(distance(first.outputs, again.outputs) == 0);
  CHECK(distance(first.gradients, again.gradients) == 0);
  checks.done("determinism");

  if (!differentiable) {
    checks.not_applicable("gradient", "declared without one");
  } else if (checks.applies("gradient")) {
    check_gradient(op, e, checks);
  }
  if (op.desc.expand_grad) check_expression(op, e, checks);

  // merged with others of its kind, and alone
  const Outcome merged = run(op, e, calls, {.batching = true}, differentiable);
  const Outcome alone = run(op, e, calls, {}, differentiable);
  const double tolerance = op.stochastic ? 0 : 1e-11;
  CHECK_MESSAGE(distance(merged.outputs, alone.outputs) <= tolerance,
                "values: merged and alone differ");
  CHECK_MESSAGE(distance(merged.gradients, alone.gradients) <= 1e-11,
                "gradients: merged and alone differ");
  checks.done("batched");

  // f32
  if (checks.applies("f32")) {
    const Outcome f32 = run(op, e, one, {.dtype = DType::f32}, differentiable);
    CHECK_MESSAGE(distance(f32.outputs, first.outputs) <= 2e-5,
                  "values: f32 and f64 differ by " << distance(f32.outputs, first.outputs));
    CHECK_MESSAGE(distance(f32.gradients, first.gradients) <= 2e-4,
                  "gradients: f32 and f64 differ by " << distance(f32.gradients, first.gradients));
    checks.done("f32");
  }

  // inference computes what training computes
  if (op.stochastic || op.desc.flags & TRL_OP_MODE) {
    checks.not_applicable("inference", "looks at the mode by declaration");
  } else {
    CHECK(distance(run(op, e, one, {.mode = Mode::infer}, false).outputs, first.outputs) == 0);
    checks.done("inference");
  }

  if (!differentiable) return;
  // gradients that are not wanted leave the others as they are
  for (size_t i = 0; i < e.inputs.size(); ++i) {
    if (!e.inputs[i] || e.inputs.size() == 1) continue;
    Outcome without = run(op, e, one, {.constant = int(i)}, true);
    without.gradients[i] = first.gradients[i];
    CHECK_MESSAGE(distance(without.gradients, first.gradients) <= 1e-12,
                  "gradients change when input " << i << " takes none");
    checks.done("unwanted");
  }
  // gradients add up over calls of backward
  Outcome twice = run(op, e, one, {.backwards = 2}, true);
  for (auto& d : twice.gradients)
    for (double& x : d) x /= 2;
  CHECK(distance(twice.gradients, first.gradients) <= 1e-12);
  checks.done("accumulation");
  // one value used as several inputs receives the sum
  bool alike = e.inputs.size() > 1;
  for (size_t i = 0; i < e.inputs.size(); ++i)
    alike &= e.inputs[i] && *e.inputs[i] == *e.inputs[0] &&
             spec_of(op, i).domain == spec_of(op, 0).domain;
  if (alike) {
    std::vector<Inputs> equal = one;
    for (auto& v : equal[0].values) v = equal[0].values[0];
    const Outcome separate = run(op, e, equal, {}, true);
    std::vector<double> sum(separate.gradients[0].size(), 0.0);
    for (const auto& d : separate.gradients)
      for (size_t k = 0; k < sum.size(); ++k) sum[k] += d[k];
    for (const bool batching : {false, true}) {
      const Outcome shared = run(op, e, equal, {.batching = batching, .shared_leaf = true}, true);
      CHECK_MESSAGE(distance({shared.gradients[0]}, {sum}) <= 1e-11, "one value used twice");
    }
    checks.done("used twice");
  }
}

// Every id below 0 and at or beyond its bound is refused, alone and among good ones.
void check_ids(const OpEntry& op, const Example& e, Checks& checks) {
  for (const AttrSpec& spec : op.attrs) {
    if (!(spec.flags & TRL_ATTR_PER_BATCH) || spec.bound_input < 0) continue;
    const Inputs in(op, e, 5);
    Graph g(runtime(), {.dtype = DType::f64});
    std::vector<Expr> xs;
    for (size_t i = 0; i < in.values.size(); ++i) xs.push_back(g.input(in.dims[i], in.values[i]));
    const size_t nodes = g.size();
    for (const int64_t bad : {int64_t(-1), int64_t(1) << 20, int64_t(1) << 40}) {
      Attrs attrs;
      for (const Attr& a : e.attrs) attrs.push_back(a.key == spec.key ? Attr{a.key, bad} : a);
      CHECK_THROWS_AS(g.apply(op.id, xs, attrs), Error);
    }
    CHECK(g.size() == nodes);
    checks.done("ids");
  }
}

}  // namespace

TEST_CASE("ops: every operator of every loaded plugin keeps its promises") {
  const auto ops = runtime().registry().ops();
  REQUIRE(ops.size() > 40);
  size_t examples = 0;
  for (const auto& op : ops) {
    CAPTURE(op->id);
    Checks checks(*op);
    const std::string text(op->desc.example.p, op->desc.example.n);
    const auto cases = test::parse_examples(text);
    REQUIRE_MESSAGE(!cases.empty(), "an operator without an example cannot be checked");
    CHECK(op->desc.summary.n > 0);
    for (const Example& e : cases) {
      check_example(*op, e, checks);
      check_ids(*op, e, checks);
    }
    // determinism, batched, f32 or a reason, and more where there is a gradient
    CHECK(checks.count() >= 3);
    examples += cases.size();
    std::printf("%s\n", checks.report(cases.size()).c_str());
  }
  std::printf("%zu operators, %zu examples\n", ops.size(), examples);
}

TEST_CASE("examples: what cannot be read is named") {
  CHECK(test::parse_examples("f({2}x3, -, axis=-1, ids=[1,2], p=0.5, on=true, how=fast)")[0]
            .attrs.size() == 5);
  CHECK_THROWS_AS(test::parse_examples("f({2"), Error);
  CHECK_THROWS_AS(test::parse_examples("f({2}) g({2})"), Error);
  CHECK_THROWS_AS(test::parse_examples("f(axis=)"), Error);
}
