// SPDX-License-Identifier: Apache-2.0
//
// Builders: their descriptors by direct calls, their steps as users run them - chains, stacks,
// trees - with parameters of known numbers.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <trellis/expr.hpp>
#include <trellis/io.hpp>
#include <trellis/registry.hpp>
#include <trellis/rnn.hpp>

#include "validate/bench_host.hpp"
#include "validate/descriptors.hpp"
#include "validate/loss.hpp"
#include "validate/numbers.hpp"
#include "validate/settings.hpp"
#include "validate/tests.hpp"

namespace trellis::validate {
namespace {

// A builder with settings, and the shapes its step takes.
struct Plan {
  const trl_builder_desc* desc = nullptr;
  std::string id, text;  // "acme.mgu(input=3, hidden=2)"
  Attrs attrs;
  std::vector<Dim> in, context;
  bool chain = true, stacks = false;
  std::vector<std::string> names;  // of the parameters, in the first model that was made
};

struct Outcome {
  std::vector<Numbers> values, gradients;
  std::vector<std::string> of;  // whose gradient each one is
  double loss = 0;
};

using Step = std::vector<Expr>;  // the inputs of one step

// Parameters with numbers of their own, and the network on them.
class Net {
 public:
  Net(const Runtime& runtime, const Plan& plan, DType dtype, uint32_t layers, uint64_t seed)
      : plan_(plan), model_(runtime, dtype) {
    RnnOptions options;
    options.layers = layers;
    if (plan.chain)
      chain_.emplace(model_, plan.id, plan.attrs, options);
    else
      tree_.emplace(model_, plan.id, plan.attrs, options);
    for (const Parameter& p : model_.parameters()) parameters_.push_back(p);
    for (const LookupParameter& p : model_.lookups()) parameters_.push_back(p);
    RandomEngine random(seed);
    for (Parameter& p : parameters_) {
      const Numbers v = uniform_numbers(p.dim().total(), random, 0.8);
      p.set_value(std::span<const double>(v));
    }
  }
  Model& model() { return model_; }
  std::vector<Parameter>& parameters() { return parameters_; }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const Parameter& p : parameters_) out.push_back(p.name());
    return out;
  }

  Graph graph(bool batching, Mode mode = Mode::train) const {
    GraphOptions o;
    o.mode = mode;
    o.dtype = model_.dtype();
    o.batching = batching;
    o.always_group = batching;
    o.serial = 77;
    return Graph(model_.runtime(), o);
  }
  Expr leaf(Graph& g, const Dim& dim, RandomEngine& random) const {
    const Numbers v = uniform_numbers(dim.total(), random, 0.8);
    return g.input(dim, std::span<const double>(v));
  }
  std::vector<Step> steps(Graph& g, size_t n, uint32_t batch, RandomEngine& random) const {
    std::vector<Step> out(n);
    for (Step& s : out)
      for (const Dim& d : plan_.in) s.push_back(leaf(g, d.with_batch(batch), random));
    return out;
  }
  Step contexts(Graph& g, uint32_t batch, RandomEngine& random) const {
    Step out;
    for (const Dim& d : plan_.context) out.push_back(leaf(g, d.with_batch(batch), random));
    return out;
  }
  RnnState start(const Graph& g, const Step& contexts) const {
    return chain_->start(g, {}, contexts);
  }
  const Rnn& chain() const { return *chain_; }

  // The outputs for a sequence: of a chain one a step, of a tree one a node of
  // ((x0 x1) x2) x3 ..
  std::vector<Expr> run(Graph& g, const std::vector<Step>& xs, const Step& contexts) const {
    if (plan_.chain) return run_steps(start(g, contexts), xs);
    const RnnTree tree = tree_->start(g, contexts);
    std::vector<Expr> out;
    std::optional<RnnState> left;
    for (const Step& x : xs) {
      const RnnState leaf = tree.add(std::span<const RnnState>(), x);
      out.push_back(leaf.output());
      if (left) {
        std::vector<RnnState> children{*left, leaf};
        children.resize(std::min<size_t>(children.size(), plan_.desc->max_pred), leaf);
        left = tree.add(children, plan_.desc->min_in == 0 ? Step{} : x);
      } else {
        left = leaf;
      }
      out.push_back(left->output());
    }
    return out;
  }
  // The whole sequence at once where a builder can.
  std::vector<Expr> run_steps(const RnnState& from, const std::vector<Step>& xs) const {
    if (plan_.in.size() == 1) {
      Step whole;
      for (const Step& x : xs) whole.push_back(x[0]);
      return from.transduce(whole);
    }
    return run_one_by_one(from, xs);
  }
  std::vector<Expr> run_one_by_one(RnnState s, const std::vector<Step>& xs) const {
    std::vector<Expr> out;
    for (const Step& x : xs) out.push_back((s = s.add(x)).output());
    return out;
  }

 private:
  const Plan& plan_;
  Model model_;
  std::vector<Parameter> parameters_;
  std::optional<Rnn> chain_;
  std::optional<TreeRnn> tree_;
};

// Values, and the gradients of a random projection of all outputs, of inputs and parameters.
void finish(Graph& g, Net& net, const std::vector<Step>& leaves, const std::vector<Expr>& out,
            bool gradients, Outcome& to) {
  const std::vector<Expr> losses = projection(g, out, 5);
  if (losses.empty()) throw Failure{"no output is of a float type"};
  to.loss = losses[0].scalar();  // first: values asked for one by one are computed one by one
  for (const Expr& y : out) to.values.push_back(y.value().as_doubles());
  if (!gradients) return;
  net.model().reset_gradient();
  g.backward(losses[0], true);
  for (size_t s = 0; s < leaves.size(); ++s)
    for (size_t i = 0; i < leaves[s].size(); ++i) {
      to.gradients.push_back(leaves[s][i].gradient().as_doubles());
      to.of.push_back(fmt::format("input {} of step {}", i, s));
    }
  for (const Parameter& p : net.parameters()) {
    to.gradients.push_back(p.gradient().as_doubles());
    to.of.push_back("parameter " + p.name());
  }
}

// Several sequences of (length, batch) in one graph.
using Lengths = std::vector<std::pair<size_t, uint32_t>>;
const Lengths kMany{{3, 1}, {1, 1}, {4, 2}, {3, 1}, {2, 3}};

Outcome run(Net& net, bool batching, const Lengths& sequences, Mode mode = Mode::train,
            bool gradients = true) {
  Graph g = net.graph(batching, mode);
  RandomEngine random(100);
  std::vector<Step> leaves;
  std::vector<Expr> out;
  for (const auto& [length, batch] : sequences) {
    const std::vector<Step> xs = net.steps(g, length, batch, random);
    const Step contexts = net.contexts(g, batch, random);
    leaves.insert(leaves.end(), xs.begin(), xs.end());
    leaves.push_back(contexts);
    for (const Expr& y : net.run(g, xs, contexts)) out.push_back(y);
  }
  Outcome to;
  finish(g, net, leaves, out, gradients, to);
  return to;
}

void same(Context& c, const Plan& plan, const std::string& what, const Outcome& got,
          const Outcome& needed, double values, double gradients) {
  if (const std::string d = difference("output", got.values, needed.values, values, values);
      !d.empty())
    c.fail(fmt::format("{}: {}: {}", plan.text, what, d));
  for (size_t i = 0; i < std::min(got.gradients.size(), needed.gradients.size()); ++i)
    if (const std::string d = difference("gradient of " + got.of[i], got.gradients[i],
                                         needed.gradients[i], gradients, gradients);
        !d.empty())
      c.fail(fmt::format("{}: {}: {}", plan.text, what, d));
}

// Shapes to try for an input or a context: nothing declares them, so a vector of each size the
// builder was given, then memories of such vectors.
std::vector<Dim> candidates(const Settings& settings, std::span<const trl_attr_spec* const> specs,
                            int16_t first) {
  std::vector<Dim> out;
  const auto add = [&](size_t i) {
    const trl_attr& v = settings.all()[i];
    if (specs[i]->type == TRL_ATTR_I64 && v.v.i > 0 && v.v.i < 64)
      out.push_back(Dim{static_cast<uint32_t>(v.v.i)});
  };
  if (first >= 0) add(static_cast<size_t>(first));
  for (size_t i = 0; i < specs.size(); ++i) add(i);
  const size_t vectors = out.size();
  for (size_t i = 0; i < vectors; ++i) out.push_back(out[i].appended(4));
  out.push_back(Dim{1});
  return out;
}

// Finds shapes that a step accepts. Throws Skip with the last refusal when there are none.
void find_shapes(Context& c, Plan& plan, const Settings& settings,
                 std::span<const trl_attr_spec* const> specs) {
  const trl_builder_desc& d = *plan.desc;
  const uint32_t n_in = d.min_in > 0 ? d.min_in : d.max_in > 0 ? 1 : 0;
  const std::vector<Dim> inputs =
      n_in == 0 ? std::vector<Dim>{Dim{}} : candidates(settings, specs, d.input_attr);
  const std::vector<Dim> contexts =
      d.min_context == 0 ? std::vector<Dim>{Dim{}} : candidates(settings, specs, d.hidden_attr);
  std::string refusal;
  for (const Dim& x : inputs)
    for (const Dim& m : contexts) {
      plan.in.assign(n_in, x);
      plan.context.assign(d.min_context, m);
      try {
        Net net(c.runtime(), plan, DType::f64, 1, 1);
        Graph g = net.graph(false, Mode::infer);
        RandomEngine random(1);
        const std::vector<Step> xs = net.steps(g, 1, 1, random);
        const Step memory = net.contexts(g, 1, random);
        net.run(g, xs, memory);
        plan.names = net.names();
        return;
      } catch (const Error& e) {
        if (refusal.empty() || d.input_attr < 0) refusal = e.what();
        // A declared size settles the shape of an input: what is refused now is a fault.
        if (d.input_attr >= 0 && d.min_context == 0)
          c.fail(fmt::format("{}: a step with inputs {} is refused: {}", plan.text, x.to_string(),
                             refusal));
      }
    }
  throw Skip{
      fmt::format("no shape of inputs and contexts that was tried is accepted: {}", refusal)};
}

std::span<const trl_attr_spec* const> specs_of(const trl_builder_desc& d) {
  return {d.attrs, d.n_attrs};
}

Settings sized(const trl_builder_desc& d, Settings s) {
  if (d.input_attr >= 0) s.set(static_cast<size_t>(d.input_attr), int64_t{3});
  if (d.hidden_attr >= 0) s.set(static_cast<size_t>(d.hidden_attr), int64_t{2});
  return s;
}

std::vector<Plan> plans(Context& c, const Subject& subject) {
  const trl_builder_desc& d = builder_desc(c.bench().tables(), subject.id);
  std::vector<Plan> out;
  for (const Settings& variant : variants(specs_of(d), false)) {
    const Settings s = sized(d, variant);
    Plan p;
    p.desc = &d;
    p.id = subject.id;
    p.attrs = s.attrs();
    p.text = fmt::format("{}({})", p.id, s.text());
    p.chain = d.max_pred == 1;
    p.stacks = d.input_attr >= 0 && d.hidden_attr >= 0 && d.min_in <= 1 && d.max_in >= 1;
    if (!p.chain && d.min_pred > 0)
      throw Skip{fmt::format("a step takes at least {} predecessors, so nothing can begin a tree",
                             d.min_pred)};
    find_shapes(c, p, s, specs_of(d));
    out.push_back(std::move(p));
  }
  return out;
}

// f for every setting, alone and, where builders can be stacked, as two layers.
void each(Context& c, const Subject& subject,
          const std::function<void(const Plan&, uint32_t layers)>& f) {
  for (Plan& plan : plans(c, subject)) {
    const std::string plain = plan.text;
    for (uint32_t layers = 1; layers <= (plan.stacks ? 2u : 1u); ++layers) {
      plan.text = layers == 1 ? plain : fmt::format("{}, {} layers", plain, layers);
      c.at(plan.text);
      f(plan, layers);
    }
  }
}

// ---- builder.describe

// Room for a struct that the host hands out, with a pattern behind it.
template <class T>
struct Framed {
  T value{};
  unsigned char behind[64];
  Framed() {
    std::memset(&value, 0, sizeof value);
    std::memset(behind, 0x5A, sizeof behind);
  }
  bool intact() const {
    return std::all_of(std::begin(behind), std::end(behind),
                       [](unsigned char b) { return b == 0x5A; });
  }
};

// Everything that a builder says of itself for some settings, as text: to compare, and to show.
std::string describe(Context& c, BenchCall& call, const trl_builder_desc& d, const Settings& s,
                     const std::string& text) {
  const std::span<const trl_attr> a = s.all();
  const auto n = static_cast<uint32_t>(a.size());
  Framed<trl_builder_info> info;
  info.value.struct_size = sizeof info.value;
  call.must("describe", [&] { return d.describe(&call, a.data(), n, &info.value); });
  if (!info.intact()) c.fail(text + ": describe wrote behind the struct it was given");
  const trl_builder_info& b = info.value;
  if (b.n_state < 1 || b.n_state > 64)
    c.fail(fmt::format("{}: {} expressions in a state (needed 1 to 64)", text, b.n_state));
  if (b.n_params > 4096 || b.n_prepared > 4096)
    c.fail(fmt::format("{}: {} parameters, {} prepared (needed at most 4096)", text, b.n_params,
                       b.n_prepared));
  if (b.h_index >= b.n_state)
    c.fail(fmt::format("{}: the output is expression {} of a state of {}", text, b.h_index,
                       b.n_state));
  if (b.n_prepared > 0 && d.prepare == nullptr)
    c.fail(fmt::format("{}: {} prepared expressions, but no prepare", text, b.n_prepared));
  std::string all =
      fmt::format("state {} output {} prepared {}:", b.n_state, b.h_index, b.n_prepared);
  for (uint32_t i = 0; i < b.n_state; ++i) {
    Framed<trl_dim> dim;
    dim.value.batch = 1;
    call.must("state", [&] { return d.state(&call, a.data(), n, i, &dim.value); });
    if (!dim.intact()) c.fail(text + ": state wrote behind the struct it was given");
    const Dim shape = valid_dim(dim.value, fmt::format("{}: state {}", text, i));
    all += " " + shape.to_string();
    if (i == b.h_index && d.hidden_attr >= 0 &&
        shape.rows() != static_cast<uint64_t>(a[static_cast<size_t>(d.hidden_attr)].v.i))
      c.fail(fmt::format("{}: the output is {}, but '{}' is {}", text, shape.to_string(),
                         view_of(d.attrs[d.hidden_attr]->key),
                         a[static_cast<size_t>(d.hidden_attr)].v.i));
  }
  std::vector<std::string> names;
  for (uint32_t i = 0; i < b.n_params; ++i) {
    Framed<trl_param_spec> spec;
    spec.value.struct_size = sizeof spec.value;
    spec.value.dim.batch = 1;
    call.must("param", [&] { return d.param(&call, a.data(), n, i, &spec.value); });
    if (!spec.intact()) c.fail(text + ": param wrote behind the struct it was given");
    all += " " + param_text(spec.value, fmt::format("{}: parameter {}", text, i));
    const std::string name(view_of(spec.value.name));
    if (std::find(names.begin(), names.end(), name) != names.end())
      c.fail(fmt::format("{}: two parameters are called '{}'", text, name));
    names.push_back(name);
  }
  return all;
}

void check_describe(Context& c, const Subject& subject) {
  const trl_builder_desc& d = builder_desc(c.bench().tables(), subject.id);
  BenchCall call(c.bench());
  call.self = c.bench().self();
  for (const Settings& variant : variants(specs_of(d), false)) {
    const Settings s = sized(d, variant);
    const std::string text = fmt::format("{}({})", subject.id, s.text());
    c.at(text);
    const std::string first = describe(c, call, d, s, text);
    // Other sizes in between: what is described must not depend on what was asked before.
    Settings other = s;
    for (const int16_t i : {d.input_attr, d.hidden_attr})
      if (i >= 0) other.set(static_cast<size_t>(i), int64_t{7});
    describe(c, call, d, other, fmt::format("{}({})", subject.id, other.text()));
    const std::string again = describe(c, call, d, s, text);
    if (again != first)
      c.fail(fmt::format("{}: described differently the second time: {} (the first: {})", text,
                         again, first));
  }
  // The initializers and names are those a real model takes.
  for (const Plan& plan : plans(c, subject))
    for (const DType dtype : {DType::f32, DType::f64})
      Net(c.runtime(), plan, dtype, plan.stacks ? 2 : 1, 1);
}

// ---- builder.gradient

void check_gradient(Context& c, const Subject& subject) {
  size_t numbers = 0;
  each(c, subject, [&](const Plan& plan, uint32_t layers) {
    Net net(c.runtime(), plan, DType::f64, layers, 11);
    const Lengths few{{3, 1}, {2, 2}};
    const Outcome exact = run(net, true, few);
    size_t at = exact.gradients.size() - net.parameters().size();
    for (Parameter& p : net.parameters()) {
      const Numbers& gradient = exact.gradients[at++];
      if (!p.trainable()) continue;
      const TensorView value = p.value();
      for (uint64_t i = 0; i < value.dim().total(); ++i) {
        const double x = value.at(i);
        const double needed = slope(
            [&](double v) {
              value.set(i, v);
              return run(net, true, few, Mode::train, false).loss;
            },
            x);
        value.set(i, x);
        if (!close(gradient[i], needed, 1e-6, 1e-8))
          c.fail(fmt::format("{}: gradient of parameter {}, element {} is {} (differences: {})",
                             plan.text, p.name(), i, gradient[i], needed));
        ++numbers;
      }
    }
    Net single(c.runtime(), plan, DType::f32, layers, 11);
    same(c, plan, "in f32", run(single, true, few), exact, 1e-4, 1e-3);
  });
  c.note(fmt::format("{} numbers by differences", numbers));
}

// ---- builder.pure

void check_pure(Context& c, const Subject& subject) {
  each(c, subject, [&](const Plan& plan, uint32_t layers) {
    Net net(c.runtime(), plan, DType::f64, layers, 11);
    const Outcome first = run(net, true, kMany), again = run(net, true, kMany);
    same(c, plan, "the same network a second time", again, first, 0, 0);
    same(c, plan, "in inference mode", run(net, true, kMany, Mode::infer, false), first, 0, 0);
    if (!plan.chain) return;

    Graph g = net.graph(true);
    RandomEngine random(9);
    const std::vector<Step> xs = net.steps(g, 3, 2, random);
    const Step contexts = net.contexts(g, 2, random);
    const RnnState start = net.start(g, contexts), one = start.add(xs[0]);
    const Numbers before = one.output().value().as_doubles();
    const RnnState a = one.add(xs[1]), other = one.add(xs[2]), repeated = one.add(xs[1]);
    const auto compare = [&](const char* what, const Expr& got, const Numbers& needed) {
      if (const std::string d = difference("the output", got.value().as_doubles(), needed, 0, 0);
          !d.empty())
        c.fail(fmt::format("{}: {}: {}", plan.text, what, d));
    };
    other.output().value();
    compare("a step repeated from the same state", repeated.output(),
            a.output().value().as_doubles());
    compare("a state after steps were made from it", one.output(), before);
    // Handed in again, a state is the same state.
    std::vector<Expr> zeros = start.s();
    compare("a start state that is given",
            net.chain().start(g, zeros, contexts).add(xs[0]).output(), before);
    compare("a state that is set", start.set_s(one.s()).add(xs[1]).output(),
            a.output().value().as_doubles());
  });
}

// ---- builder.batched

void check_batched(Context& c, const Subject& subject) {
  each(c, subject, [&](const Plan& plan, uint32_t layers) {
    Net net(c.runtime(), plan, DType::f64, layers, 11);
    same(c, plan, "merged with others, and alone", run(net, true, kMany), run(net, false, kMany),
         1e-12, 1e-11);

    // The elements of a batch by themselves.
    Graph g = net.graph(false);
    RandomEngine random(3);
    const std::vector<Step> xs = net.steps(g, 3, 3, random);
    const Step contexts = net.contexts(g, 3, random);
    const std::vector<Expr> whole = net.run(g, xs, contexts);
    for (uint32_t b = 0; b < 3; ++b) {
      const auto part = [&](const Step& of) {
        Step out;
        for (const Expr& e : of) out.push_back(g.input(e.value().batch_element(b)));
        return out;
      };
      std::vector<Step> single;
      for (const Step& x : xs) single.push_back(part(x));
      const std::vector<Expr> alone = net.run(g, single, part(contexts));
      for (size_t t = 0; t < whole.size(); ++t)
        if (const std::string d = difference(fmt::format("output {}", t),
                                             whole[t].value().batch_element(b).as_doubles(),
                                             alone[t].value().as_doubles(), 1e-12, 1e-12);
            !d.empty())
          c.fail(fmt::format("{}: element {} of a batch of 3, and alone: {}", plan.text, b, d));
    }
  });
}

// ---- builder.sequence

void check_sequence(Context& c, const Subject& subject) {
  bool any = false;
  each(c, subject, [&](const Plan& plan, uint32_t layers) {
    if (!plan.chain) throw Skip{"a tree has no sequences"};
    if (plan.in.size() != 1)
      throw Skip{fmt::format("a step takes {} inputs, so there is no whole-sequence form",
                             plan.in.size())};
    any = true;
    Net net(c.runtime(), plan, DType::f64, layers, 11);
    // From a state that is not zero, too.
    for (const size_t before : {size_t{0}, size_t{1}}) {
      Outcome outcomes[2];
      for (const bool whole : {true, false}) {
        Graph g = net.graph(true);
        RandomEngine random(8);
        const std::vector<Step> xs = net.steps(g, 4, 2, random);
        const Step contexts = net.contexts(g, 2, random);
        RnnState from = net.start(g, contexts);
        for (size_t t = 0; t < before; ++t) from = from.add(xs[t]);
        const std::vector<Step> rest(xs.begin() + static_cast<long>(before), xs.end());
        const std::vector<Expr> out =
            whole ? net.run_steps(from, rest) : net.run_one_by_one(from, rest);
        if (out.size() != rest.size())
          c.fail(fmt::format("{}: {} outputs of a sequence of {}", plan.text, out.size(),
                             rest.size()));
        if (!net.run_steps(from, {}).empty()) c.fail(plan.text + ": an empty sequence has outputs");
        finish(g, net, xs, out, true, outcomes[whole]);
      }
      // One product of all steps may round differently from a product for each.
      same(c, plan, "a whole sequence, and step by step", outcomes[1], outcomes[0], 1e-12, 1e-11);
    }
  });
  if (any && builder_desc(c.bench().tables(), subject.id).sequence == nullptr)
    c.note("no form of its own: the host makes a step after another");
}

// ---- builder.save

struct TemporaryFile {
  std::filesystem::path path;
  TemporaryFile() {
    std::string name =
        (std::filesystem::temp_directory_path() / "trellis-validate-XXXXXX").string();
    const int fd = ::mkstemp(name.data());
    if (fd < 0) throw Failure{"no temporary file can be made: " + name};
    ::close(fd);
    path = name;
  }
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
};

void check_save(Context& c, const Subject& subject) {
  each(c, subject, [&](const Plan& plan, uint32_t layers) {
    Net net(c.runtime(), plan, DType::f32, layers, 11),
        fresh(c.runtime(), plan, DType::f32, layers, 12);
    // A file outlives the process: other names next time are as bad as other numbers.
    if (layers == 1)
      for (size_t i = 0; i < plan.names.size(); ++i)
        if (fresh.names().size() != plan.names.size() || fresh.names()[i] != plan.names[i])
          c.fail(fmt::format("{}: its parameters are called {} in one model and {} in another",
                             plan.text, fmt::join(plan.names, ", "),
                             fmt::join(fresh.names(), ", ")));
    const Outcome before = run(net, true, kMany, Mode::infer, false);
    const TemporaryFile file;
    save_weights(net.model(), file.path);
    load_weights(fresh.model(), file.path);
    same(c, plan, "saved, and loaded into a new model", run(fresh, true, kMany, Mode::infer, false),
         before, 0, 0);
  });
}

constexpr Test kTests[] = {
    {"builder.describe", 3, Kind::builder,
     "describe, state and param are pure and what they say can be made", check_describe},
    {"builder.gradient", 5, Kind::builder, "gradients of all parameters agree with differences",
     check_gradient},
    {"builder.pure", 6, Kind::builder,
     "a step depends on its state and inputs alone, and leaves the state as it was", check_pure},
    {"builder.batched", 6, Kind::builder, "a batch, and merged steps, are what single ones are",
     check_batched},
    {"builder.sequence", 6, Kind::builder, "a whole sequence is its steps, values and gradients",
     check_sequence},
    {"builder.save", 8, Kind::builder, "a saved network gives the same bits in a new model",
     check_save},
};

}  // namespace

std::span<const Test> builder_tests() { return kTests; }

}  // namespace trellis::validate
