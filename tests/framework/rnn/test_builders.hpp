// SPDX-License-Identifier: Apache-2.0
//
// Builders with every trait that the kernel must handle, registered by hand beside the real
// plugins, and counters of their calls.
#pragma once

#include <array>
#include <string>
#include <trellis/expr.hpp>
#include <trellis/rnn.hpp>
#include <trellis/sdk/builder.hpp>
#include <vector>

#include "registry/registry.hpp"
#include "runtime/call.hpp"

namespace test_builders {

struct Counts {
  int prepare = 0, step = 0, sequence = 0;
};
inline Counts counts;

namespace author {
using namespace trellis::sdk;

using Affine = Use<"core.affine">;
using Tanh = Use<"core.tanh">;

// State: a (the sum of the inputs so far, through w), h = tanh(a + u h), b = a. The output lies in
// the middle.
struct Chain {
  struct Attrs {
    std::int64_t input = 0, hidden = 0;
  };
  static constexpr auto attrs =
      fields(field("input", &Attrs::input, "size of an input", required(), at_least(1)),
             field("hidden", &Attrs::hidden, "size of the output", required(), at_least(1)));
  using uses = Uses<Affine, Tanh>;
  static constexpr BuilderSpec spec{.name = "chain",
                                    .summary = "a chain",
                                    .h_index = 1,
                                    .input_attr = "input",
                                    .hidden_attr = "hidden"};
  static Params params(const Attrs& a) {
    return {Param("w", {size(a.hidden), size(a.input)}),
            Param("u", {size(a.hidden), size(a.hidden)})};
  }
  static std::vector<Dim> state(const Attrs& a) { return std::vector<Dim>(3, Dim{size(a.hidden)}); }
  static std::array<Expr, 3> one(const auto& s, Expr x, Expr a, Expr h) {
    const Expr sum = s.template apply<Affine>({a, s.param(0), x});
    return {sum, s.template apply<Tanh>({s.template apply<Affine>({sum, s.param(1), h})}), sum};
  }
  static std::array<Expr, 3> step(const Attrs&, const auto& s) {
    ++counts.step;
    return one(s, s.in(), s.prev(0), s.prev(1));
  }
};

// The same with a form for whole sequences.
struct Whole : Chain {
  static constexpr BuilderSpec spec{.name = "whole",
                                    .summary = "a chain at once",
                                    .h_index = 1,
                                    .input_attr = "input",
                                    .hidden_attr = "hidden"};
  static void sequence(const Attrs&, const auto& q) {
    ++counts.sequence;
    Expr a = q.prev(0), h = q.prev(1);
    for (std::uint32_t t = 0; t < q.n_steps(); ++t) {
      const std::array<Expr, 3> state = one(q, q.in_at(t), a, h);
      for (std::uint32_t i = 0; i < 3; ++i) q.set(t, i, state[i]);
      a = state[0], h = state[1];
    }
  }
};

// Reads a memory: h = tanh(prepared + tied x), prepared = fixed memory + row 0 of a table.
struct Reader {
  struct Attrs {
    std::int64_t n = 2;
  };
  static constexpr auto attrs = fields(field("n", &Attrs::n, "size of everything", at_least(1)));
  using uses = Uses<Affine, Tanh>;
  static constexpr BuilderSpec spec{
      .name = "reader", .summary = "with a context", .contexts = {0, 1}, .n_prepared = 1};
  static Params params(const Attrs& a) {
    const std::uint32_t n = size(a.n);
    return {Param("tied", {n, n}).external(),
            Param("fixed", {n, n}).init("core.identity").constant(), Param("table", {n}).lookup(1)};
  }
  static std::vector<Dim> state(const Attrs& a) { return {Dim{size(a.n)}}; }
  static Expr prepare(const Attrs& a, const auto& s) {
    ++counts.prepare;
    const Expr memory = s.n_context() != 0 ? s.context(0) : s.constant(Dim{size(a.n)}, 1);
    return s.template apply<Affine>({memory, s.param(1), memory});
  }
  static Expr step(const Attrs&, const auto& s) {
    return s.template apply<Tanh>({s.template apply<Affine>({s.prepared(0), s.param(0), s.in()})});
  }
};

// Two inputs a step.
struct Pair {
  using uses = Uses<Affine>;
  static constexpr BuilderSpec spec{.name = "pair", .summary = "two inputs", .inputs = {2, 2}};
  static Params params(const NoAttrs&) { return {Param("w", {2, 2})}; }
  static std::vector<Dim> state(const NoAttrs&) { return {Dim{2}}; }
  static Expr step(const NoAttrs&, const auto& s) {
    return s.template apply<Affine>({s.in(0), s.param(0), s.in(1), s.param(0), s.prev(0)});
  }
};

// A node sums its children; it always takes two.
struct Twos {
  using uses = Uses<Affine>;
  static constexpr BuilderSpec spec{
      .name = "twos", .summary = "a strict tree", .predecessors = {2, 2}, .inputs = {1, 1}};
  static Params params(const NoAttrs&) { return {Param("w", {2, 2}).init("core.identity")}; }
  static std::vector<Dim> state(const NoAttrs&) { return {Dim{2}}; }
  static Expr step(const NoAttrs&, const auto& s) {
    return s.template apply<Affine>({s.in(), s.param(0), s.prev(0, 0), s.param(0), s.prev(0, 1)});
  }
};

inline void group(Catalog& catalog) { catalog.add<Chain, Whole, Reader, Pair, Twos>(__FILE__); }

}  // namespace author

// The real plugins and those above.
class TestRuntime {
 public:
  TestRuntime() {
    using namespace trellis;
    detail::RuntimeCore& core = runtime_.core();
    detail::Call call(core);
    trl_plugin table{};
    table.struct_size = sizeof table;
    call.begin(detail::Phase::entry, nullptr);
    if (sdk::detail::plugin_entry(&call, &table, {"test-builders", "1.0.0", "test"},
                                  {&author::group}) != TRL_OK)
      fail(ErrorKind::internal, call.text);
    PluginRecord record;
    record.id = "test-builders";
    record.version = "1.0.0";
    record.path = "test";
    record.namespaces = {"test"};
    PluginRecord& added = core.registry->add(std::move(record), table);
    plugin_ = &added;
    call.begin(detail::Phase::init, nullptr);
    if (table.init(&call, &added.self) != TRL_OK) fail(ErrorKind::internal, call.text);
  }
  // One more builder, with a descriptor made by hand.
  void add(const trl_builder_desc& desc) {
    using namespace trellis;
    struct Kept {
      trl_builder_desc desc;
      const trl_builder_desc* table;
    };
    static std::vector<std::unique_ptr<Kept>> kept;
    static int n = 0;
    kept.push_back(std::make_unique<Kept>(Kept{desc, nullptr}));
    kept.back()->table = &kept.back()->desc;
    trl_plugin table{};
    table.struct_size = sizeof table;
    table.builders = &kept.back()->table;
    table.n_builders = 1;
    PluginRecord record;
    record.id = "by-hand-" + std::to_string(n++);
    record.version = "1.0.0";
    record.path = "test";
    record.namespaces = {"test"};
    runtime_.core().registry->add(std::move(record), table);
  }
  ~TestRuntime() {  // the loader does it for plugins it loaded
    trellis::detail::Call call(runtime_.core());
    call.begin(trellis::detail::Phase::fini, plugin_->self);
    plugin_->table.fini(&call);
  }
  TestRuntime(const TestRuntime&) = delete;
  trellis::Runtime& get() { return runtime_; }

 private:
  trellis::Runtime runtime_;
  trellis::PluginRecord* plugin_ = nullptr;
};

inline trellis::Runtime& runtime() {
  static TestRuntime r;
  return r.get();
}

using Numbers = std::vector<double>;

inline trellis::Graph graph(trellis::Mode mode = trellis::Mode::train) {
  trellis::GraphOptions o;
  o.mode = mode;
  o.dtype = trellis::DType::f64;
  return trellis::Graph(runtime(), o);
}
inline trellis::Expr vec(trellis::Graph& g, const trellis::Dim& dim, const Numbers& v) {
  return g.input(dim, std::span<const double>(v));
}
inline Numbers value(const trellis::Expr& e) { return e.value().as_doubles(); }
inline void set(trellis::Parameter p, const Numbers& v) { p.set_value(std::span<const double>(v)); }

inline std::string refusal(const auto& f) {
  try {
    f();
  } catch (const trellis::Error& e) {
    return e.what();
  }
  return "not refused";
}

}  // namespace test_builders
