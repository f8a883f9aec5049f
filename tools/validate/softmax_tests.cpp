// SPDX-License-Identifier: Apache-2.0
//
// Softmax builders: their graph macros on a real graph, with parameters of known numbers.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <trellis/model.hpp>

#include "validate/bench_host.hpp"
#include "validate/descriptors.hpp"
#include "validate/loss.hpp"
#include "validate/numbers.hpp"
#include "validate/settings.hpp"
#include "validate/tests.hpp"

namespace trellis::validate {
namespace {

std::span<const trl_attr_spec* const> specs_of(const trl_softmax_desc& d) {
  return {d.attrs, d.n_attrs};
}

// One softmax builder with settings and parameters of its own.
class Layer {
 public:
  Layer(Context& c, const trl_softmax_desc& desc, const Settings& settings, DType dtype,
        uint64_t seed)
      : desc_(desc),
        settings_(settings),
        call_(c.bench()),
        model_(c.runtime(), dtype),
        text_(fmt::format("{}({})", view_of(desc.id), settings.text())) {
    call_.self = c.bench().self();
    const std::span<const trl_attr> a = settings_.all();
    const auto n = static_cast<uint32_t>(a.size());
    uint32_t count = 0;
    call_.must("n_params", [&] { return desc_.n_params(&call_, a.data(), n, &count); });
    if (count > 4096) throw Failure{fmt::format("{}: {} parameters", text_, count)};
    RandomEngine random(seed);
    for (uint32_t i = 0; i < count; ++i) {
      trl_param_spec spec{};
      spec.struct_size = sizeof spec;
      spec.dim.batch = 1;
      call_.must("param", [&] { return desc_.param(&call_, a.data(), n, i, &spec); });
      const std::string what = fmt::format("{}: parameter {}", text_, i);
      described_ += param_text(spec, what) + "; ";
      const Dim dim = valid_dim(spec.dim, what);
      const std::string name(view_of(spec.name));
      Init init(std::string(view_of(spec.initializer)));
      for (uint32_t k = 0; k < spec.n_init_attrs; ++k) {
        const trl_attr& given = spec.init_attrs[k];
        AttrValue value = given.v.i;
        if (given.type == TRL_ATTR_F64) value = given.v.f;
        if (given.type == TRL_ATTR_BOOL) value = given.v.i != 0;
        init.attrs.push_back({std::string(view_of(spec.init_keys[k])), value});
      }
      Parameter p = spec.flags & TRL_PARAM_LOOKUP
                        ? Parameter(model_.add_lookup(name, spec.n_rows, dim, init))
                        : model_.add_parameter(name, dim, init);
      if (spec.flags & TRL_PARAM_CONSTANT) p.set_trainable(false);
      const Numbers v = uniform_numbers(p.dim().total(), random, 0.8);
      p.set_value(std::span<const double>(v));
      parameters_.push_back(p);
      tables_.push_back((spec.flags & TRL_PARAM_LOOKUP) != 0);
    }
  }

  const std::string& text() const { return text_; }
  const std::string& described() const { return described_; }
  Model& model() { return model_; }
  std::vector<Parameter>& parameters() { return parameters_; }

  Graph graph(bool batching = false, Mode mode = Mode::train, uint64_t serial = 77) const {
    GraphOptions o;
    o.mode = mode;
    o.dtype = model_.dtype();
    o.batching = batching;
    o.always_group = batching;
    o.serial = serial;
    return Graph(model_.runtime(), o);
  }
  Expr scores(Graph& g, const Expr& h) { return apply("scores", desc_.scores, g, h, nullptr); }
  Expr sample(Graph& g, const Expr& h) { return apply("sample", desc_.sample, g, h, nullptr); }
  // One id for each batch element of h.
  Expr loss(Graph& g, const Expr& h, const std::vector<int64_t>& ids) {
    std::vector<uint32_t> offsets(ids.size() + 1);
    std::iota(offsets.begin(), offsets.end(), 0u);
    trl_attr a{TRL_ATTR_I64S, static_cast<uint32_t>(ids.size()), {}, offsets.data()};
    a.v.is = ids.data();
    return apply("loss", desc_.loss, g, h, &a);
  }
  // The same, where it must be refused.
  bool refuses(Graph& g, const Expr& h, int64_t id) {
    try {
      loss(g, h, {id}).value();
    } catch (const Failure&) {
      return !call_.text.empty();
    } catch (const Error&) {
      return true;
    }
    return false;
  }

 private:
  Expr apply(const char* what, trl_status (*f)(const trl_softmax_args*), Graph& g, const Expr& h,
             const trl_attr* ids) {
    call_.graph = &g;
    call_.exprs.assign(1, Expr());
    std::vector<trl_expr> params;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      // A table is given whole.
      const Parameter& p = parameters_[i];
      params.push_back(call_.to_c(tables_[i] ? g.table(model_.lookup(p.name())) : g.parameter(p)));
    }
    trl_expr out{};
    trl_softmax_args args{};
    args.struct_size = sizeof args;
    args.call = &call_;
    args.attrs = settings_.all().data();
    args.n_attrs = static_cast<uint32_t>(settings_.all().size());
    args.params = params.data();
    args.n_params = static_cast<uint32_t>(params.size());
    args.h = call_.to_c(h);
    args.ids = ids;
    args.out = &out;
    call_.must(what, [&] { return f(&args); });
    return call_.from_c(out);
  }

  const trl_softmax_desc& desc_;
  Settings settings_;
  BenchCall call_;
  Model model_;
  std::string text_, described_;
  std::vector<Parameter> parameters_;
  std::vector<bool> tables_;
};

struct Plan {
  Settings settings;
  Dim h;
  uint32_t classes;
};

Expr leaf(Graph& g, const Dim& dim, uint64_t seed) {
  RandomEngine random(seed);
  const Numbers v = uniform_numbers(dim.total(), random, 0.8);
  return g.input(dim, std::span<const double>(v));
}

// Settings with the size of h they take, which nothing declares: each integer they hold is tried.
std::vector<Plan> plans(Context& c, const trl_softmax_desc& d) {
  std::vector<Plan> out;
  for (const Settings& s : variants(specs_of(d), false)) {
    std::string refusal;
    std::optional<Plan> found;
    for (const trl_attr& a : s.all()) {
      if (a.type != TRL_ATTR_I64 || a.v.i < 1 || a.v.i > 4096 || found) continue;
      const Dim h{static_cast<uint32_t>(a.v.i)};
      try {
        Layer layer(c, d, s, DType::f64, 1);
        Graph g = layer.graph();
        const Expr y = layer.scores(g, leaf(g, h, 1));
        y.value();
        found = Plan{s, h, static_cast<uint32_t>(y.dim().elements())};
      } catch (const Failure& f) {
        refusal = f.text;
      } catch (const Error& e) {
        refusal = e.what();
      }
    }
    if (!found && refusal.empty()) throw Skip{"no attribute holds a size that h could have"};
    if (!found)
      c.fail(fmt::format("{}({}): scores refuses h of every size that an attribute holds: {}",
                         view_of(d.id), s.text(), refusal));
    out.push_back(*found);
  }
  return out;
}

void each(Context& c, const Subject& subject,
          const std::function<void(const trl_softmax_desc&, const Plan&)>& f) {
  const trl_softmax_desc& d = softmax_desc(c.bench().tables(), subject.id);
  for (const Plan& plan : plans(c, d)) {
    c.at(fmt::format("{}({}), h {}", subject.id, plan.settings.text(), plan.h.to_string()));
    f(d, plan);
  }
}

double total(std::span<const Expr> losses) {
  double sum = 0;
  for (const Expr& l : losses) sum += l.scalar();
  return sum;
}

// The gradients of losses of one batch, h first.
std::vector<Numbers> gradients(Graph& g, Layer& layer, const std::vector<Expr>& losses,
                               std::span<const Expr> leaves) {
  layer.model().reset_gradient();
  std::vector<Numbers> out(leaves.size());
  for (const Expr& loss : losses) {
    g.backward(loss, true);
    for (size_t i = 0; i < leaves.size(); ++i) {
      const Numbers d = leaves[i].gradient().as_doubles();
      if (out[i].empty()) out[i].resize(d.size());
      for (size_t k = 0; k < d.size(); ++k) out[i][k] += d[k];
    }
  }
  for (const Parameter& p : layer.parameters()) out.push_back(p.gradient().as_doubles());
  return out;
}

// What is made of h, for all classes at once and for the first and the last one.
using Build = std::function<Expr(Graph&, const Expr& h)>;

void differences(Context& c, Layer& layer, const Plan& plan, const std::string& what,
                 const Build& build) {
  RandomEngine random(21);
  Numbers h = uniform_numbers(plan.h.total(), random, 0.8);
  const auto loss = [&] {
    Graph g = layer.graph();
    const Expr y = build(g, g.input(plan.h, std::span<const double>(h)));
    return total(projection(g, {&y, 1}, 7));
  };
  Graph g = layer.graph();
  const Expr x = g.input(plan.h, std::span<const double>(h));
  const Expr y = build(g, x);
  const std::vector<Numbers> exact = gradients(g, layer, projection(g, {&y, 1}, 7), {&x, 1});
  const auto compare = [&](const std::string& of, size_t i, double got, double needed) {
    if (!close(got, needed, 1e-6, 1e-8))
      c.fail(fmt::format("{}: {}: gradient of {}, element {} is {} (differences: {})", layer.text(),
                         what, of, i, got, needed));
  };
  for (size_t i = 0; i < h.size(); ++i) {
    const double at = h[i];
    compare("h", i, exact[0][i],
            slope(
                [&](double v) {
                  h[i] = v;
                  return loss();
                },
                at));
    h[i] = at;
  }
  for (size_t p = 0; p < layer.parameters().size(); ++p) {
    const Parameter& parameter = layer.parameters()[p];
    if (!parameter.trainable()) continue;
    const TensorView value = parameter.value();
    for (uint64_t i = 0; i < std::min<uint64_t>(value.dim().total(), 64); ++i) {
      const double at = value.at(i);
      compare("parameter " + parameter.name(), i, exact[1 + p][i],
              slope(
                  [&](double v) {
                    value.set(i, v);
                    return loss();
                  },
                  at));
      value.set(i, at);
    }
  }
}

// Draws by their probabilities: within six deviations of a binomial, so that one run in 10^8 fails
// by chance.
void check_samples(Context& c, Layer& layer, const Plan& plan, const Numbers& scores,
                   const Numbers& h) {
  constexpr uint32_t kDraws = 4000;
  Numbers many;
  for (uint32_t i = 0; i < kDraws; ++i) many.insert(many.end(), h.begin(), h.end());
  const Dim dim = plan.h.with_batch(kDraws);
  Numbers first;
  for (int again = 0; again < 2; ++again) {
    Graph g = layer.graph(false, Mode::train, c.seed());
    const Expr y = layer.sample(g, g.input(dim, std::span<const double>(many)));
    if (y.dtype() != DType::i64 || y.dim().total() != kDraws)
      c.fail(fmt::format("{}: a sample is {} {} (needed one i64 for each batch element)",
                         layer.text(), dtype_name(y.dtype()), y.dim().to_string()));
    const Numbers drawn = y.value().as_doubles();
    if (again == 0)
      first = drawn;
    else if (drawn != first)
      c.fail(layer.text() + ": sample: the same graph draws differently the second time");
  }
  std::vector<uint64_t> counts(scores.size());
  for (const double id : first) {
    if (!(id >= 0) || id >= static_cast<double>(counts.size()))
      c.fail(fmt::format("{}: sample: {} (needed 0 to {})", layer.text(), id, counts.size() - 1));
    ++counts[static_cast<size_t>(id)];
  }
  for (size_t k = 0; k < counts.size(); ++k) {
    const double p = std::exp(scores[k]), mean = p * kDraws;
    if (std::fabs(static_cast<double>(counts[k]) - mean) > 6 * std::sqrt(mean * (1 - p)) + 1)
      c.fail(fmt::format("{}: sample: class {} was drawn {} times of {} (its probability is {})",
                         layer.text(), k, counts[k], kDraws, p));
  }
}

void check_loss(Context& c, const Subject& subject) {
  each(c, subject, [&](const trl_softmax_desc& d, const Plan& plan) {
    Layer layer(c, d, plan.settings, DType::f64, 11);
    if (Layer(c, d, plan.settings, DType::f64, 11).described() != layer.described())
      c.fail(layer.text() + ": its parameters are described differently the second time");
    Graph g = layer.graph();
    const Expr h = leaf(g, plan.h, 21);
    const Numbers scores = layer.scores(g, h).value().as_doubles();
    double sum = 0;
    for (const double s : scores) sum += std::exp(s);
    if (!close(sum, 1, 1e-9, 0))
      c.fail(
          fmt::format("{}: the probabilities of all {} classes add up to {} (needed 1: scores "
                      "are log-probabilities)",
                      layer.text(), scores.size(), sum));
    for (uint32_t id = 0; id < plan.classes; ++id) {
      const Expr loss = layer.loss(g, h, {int64_t{id}});
      if (loss.dim().total() != 1)
        c.fail(fmt::format("{}: the loss of one h is {} (needed a scalar)", layer.text(),
                           loss.dim().to_string()));
      const double value = loss.scalar();
      if (!close(value, -scores[id], 1e-9, 1e-12))
        c.fail(fmt::format("{}: the loss of class {} is {} (its score says {})", layer.text(), id,
                           value, -scores[id]));
    }
    for (const int64_t bad : {int64_t{-1}, int64_t{plan.classes}, int64_t{1} << 40})
      if (!layer.refuses(g, h, bad))
        c.fail(fmt::format("{}: the loss of class {} is not refused (there are {})", layer.text(),
                           bad, plan.classes));
    differences(c, layer, plan, "scores",
                [&](Graph& to, const Expr& x) { return layer.scores(to, x); });
    for (const int64_t id : {int64_t{0}, int64_t{plan.classes} - 1})
      differences(c, layer, plan, fmt::format("loss of class {}", id),
                  [&](Graph& to, const Expr& x) { return layer.loss(to, x, {id}); });

    Layer single(c, d, plan.settings, DType::f32, 11);
    Graph f = single.graph();
    if (const std::string text =
            difference("score", single.scores(f, leaf(f, plan.h, 21)).value().as_doubles(), scores,
                       1e-4, 1e-4);
        !text.empty())
      c.fail(fmt::format("{}: in f32: {}", layer.text(), text));
    if (d.sample != nullptr) check_samples(c, layer, plan, scores, h.value().as_doubles());
  });
}

void check_batched(Context& c, const Subject& subject) {
  each(c, subject, [&](const trl_softmax_desc& d, const Plan& plan) {
    Layer layer(c, d, plan.settings, DType::f64, 11);
    constexpr uint32_t kBatch = 5;
    std::vector<int64_t> ids;
    for (uint32_t b = 0; b < kBatch; ++b) ids.push_back(int64_t{(b * 2 + 1) % plan.classes});

    // As one node, as nodes that are merged, and one by one.
    std::vector<std::vector<Numbers>> values, slopes;
    for (int form = 0; form < 3; ++form) {
      Graph g = layer.graph(form == 1);
      const Expr whole = leaf(g, plan.h.with_batch(kBatch), 31);
      std::vector<Expr> leaves, losses, scores;
      if (form == 0) {
        leaves = {whole};
        losses = {layer.loss(g, whole, ids)};
        scores = {layer.scores(g, whole)};
        if (losses[0].dim().batch != kBatch || losses[0].dim().elements() != 1)
          c.fail(fmt::format("{}: the loss of a batch of {} is {} (needed a scalar for each)",
                             layer.text(), kBatch, losses[0].dim().to_string()));
      } else {
        for (uint32_t b = 0; b < kBatch; ++b) {
          leaves.push_back(g.input(whole.value().batch_element(b)));
          losses.push_back(layer.loss(g, leaves[b], {ids[b]}));
          scores.push_back(layer.scores(g, leaves[b]));
        }
      }
      const std::vector<Expr> loss{g.custom(
          std::span<const Expr>(losses), Dim(),
          [](auto in, const TensorView& y) {
            double sum = 0;
            for (const TensorView& x : in)
              for (const double v : x.as_doubles()) sum += v;
            y.set(0, sum);
          },
          [](auto, const TensorView&, const TensorView& d_y, auto d_in) {
            for (const TensorView& dx : d_in)
              for (uint64_t k = 0; !dx.empty() && k < dx.dim().total(); ++k)
                dx.set(k, dx.at(k) + d_y.at(0));
          })};
      const std::vector<Numbers> exact = gradients(g, layer, loss, leaves);
      Numbers v, s, dh;
      for (const Expr& e : losses)
        for (const double x : e.value().as_doubles()) v.push_back(x);
      for (const Expr& e : scores)
        for (const double x : e.value().as_doubles()) s.push_back(x);
      for (size_t i = 0; i < leaves.size(); ++i)
        dh.insert(dh.end(), exact[i].begin(), exact[i].end());
      values.push_back({v, s});
      slopes.push_back({dh});
      slopes.back().insert(slopes.back().end(), exact.begin() + static_cast<long>(leaves.size()),
                           exact.end());
    }
    const char* const forms[] = {"as a batch", "merged"};
    for (int form = 0; form < 2; ++form) {
      std::string text = difference("loss (0) or score (1)", values[form], values[2], 1e-12, 1e-12);
      if (text.empty())
        text = difference("gradient of h (0) or parameter", slopes[form], slopes[2], 1e-11, 1e-11);
      if (!text.empty())
        c.fail(fmt::format("{}: {}, and one by one: {}", layer.text(), forms[form], text));
    }
  });
}

constexpr Test kTests[] = {
    {"softmax.loss", 5, Kind::softmax,
     "the loss is minus the score of its class, scores are log-probabilities, gradients agree with "
     "differences, samples follow the scores",
     check_loss},
    {"softmax.batched", 6, Kind::softmax, "a batch, and merged losses, are what single ones are",
     check_batched},
};

}  // namespace

std::span<const Test> softmax_tests() { return kTests; }

}  // namespace trellis::validate
