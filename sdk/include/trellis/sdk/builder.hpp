// SPDX-License-Identifier: Apache-2.0
//
// Builders: the recipe of one recurrent step, pure in the state.
//
//   struct Elman {
//     struct Attrs { std::int64_t input = 0, hidden = 0; };
//     static constexpr auto attrs = fields(field("input", &Attrs::input, "size of an input",
//     required(), at_least(1)),
//                                          field("hidden", &Attrs::hidden, "size of the state",
//                                          required(), at_least(1)));
//     using Affine = Use<"core.affine">;
//     using Tanh = Use<"core.tanh">;
//     using uses = Uses<Affine, Tanh>;
//     static constexpr BuilderSpec spec{.name = "elman", .summary = "h' = tanh(W x + U h + b)",
//                                       .input_attr = "input", .hidden_attr = "hidden"};
//     static Params params(const Attrs& a) {
//       return {Param("b", {size(a.hidden)}).init("core.constant", "value", 0.0),
//               Param("w", {size(a.hidden), size(a.input)}), Param("u", {size(a.hidden),
//               size(a.hidden)})};
//     }
//     static std::vector<Dim> state(const Attrs& a) { return {Dim{size(a.hidden)}}; }
//     static Expr step(const Attrs&, const auto& s) {
//       return s.template apply<Tanh>({s.template apply<Affine>(
//           {s.param(0), s.param(1), s.in(0), s.param(2), s.prev(0)})});
//     }
//   };
//
// step returns an Expr or std::array<Expr, N>: the new state, output included. Optional: prepare(a,
// s), once a graph, returning what s.prepared(i) reads, with `n_prepared` in the spec; sequence(a,
// q) for a whole sequence at once (see Sequence).
#pragma once

#include <trellis/abi/builder.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <trellis/sdk/graph.hpp>
#include <trellis/sdk/params.hpp>
#include <trellis/sdk/plugin.hpp>
#include <vector>

namespace trellis::sdk {
inline namespace [[gnu::visibility("hidden")]] v0 {

// How many of something a step takes, lowest and highest; TRL_VARIADIC: no limit.
struct Count {
  std::uint16_t lo = 1, hi = 1;
};

struct BuilderSpec {
  std::string_view name{}, summary{}, doc{}, formula{};
  List<std::string_view, 6> aliases{};
  Count predecessors{
      1, 1};  // states a step takes: {1,1} a chain; {2,2} a binary tree; {0, TRL_VARIADIC} any tree
  Count inputs{1, 1}, contexts{0, 0};
  std::uint32_t h_index = 0;  // which expression of a state is the output
  std::uint32_t n_prepared = 0;
  std::string_view input_attr{},
      hidden_attr{};  // attributes with the sizes of input and output, for stacking
  std::uint32_t version = 1, state_version = 1;
};

// One step: what it is given. Valid during the call.
template <class B>
class Step : public GraphCall<B> {
 public:
  explicit Step(const trl_step_args& args) : GraphCall<B>(args.call), args_(args) {}

  Expr param(std::uint32_t i) const { return args_.params[i]; }
  std::uint32_t n_pred() const { return args_.n_pred; }
  Expr prev(std::uint32_t i,
            std::uint32_t pred = 0) const {  // expression i of a predecessor's state
    return args_.pred[pred * args_.n_state + i];
  }
  std::uint32_t n_in() const { return args_.n_in; }
  Expr in(std::uint32_t i = 0) const { return args_.in[i]; }
  std::uint32_t n_context() const { return args_.n_context; }
  Expr context(std::uint32_t i) const { return args_.context[i]; }
  Expr prepared(std::uint32_t i) const { return args_.prepared[i]; }
  std::uint32_t branch() const { return args_.branch; }  // tree builders: which child this is

 private:
  const trl_step_args& args_;
};

// A whole sequence: n_steps() steps from a start state. sequence(a, q) calls q.set(t, i, expr) for
// every state.
template <class B>
class Sequence : public Step<B> {
 public:
  explicit Sequence(const trl_sequence_args& args) : Step<B>(*args.first), args_(args) {}

  std::uint32_t n_steps() const { return args_.n_steps; }
  Expr in_at(std::uint32_t t, std::uint32_t i = 0) const {
    return args_.first->in[t * this->n_in() + i];
  }
  void set(std::uint32_t t, std::uint32_t i, Expr e) const {
    args_.states_out[t * args_.first->n_state + i] = e;
  }

 private:
  const trl_sequence_args& args_;
};

namespace detail {

template <class B>
trl_status builder_describe_of(trl_call* call, const trl_attr* attrs, std::uint32_t,
                               trl_builder_info* to) {
  return guard(call, B::spec.name, [&] {
    const auto a = read_attrs<B>(attrs);
    to->n_params = static_cast<std::uint32_t>(B::params(a).size());
    to->n_state = static_cast<std::uint32_t>(B::state(a).size());
    to->n_prepared = B::spec.n_prepared;
    to->h_index = B::spec.h_index;
  });
}
template <class B>
trl_status builder_state_of(trl_call* call, const trl_attr* attrs, std::uint32_t, std::uint32_t i,
                            trl_dim* to) {
  return guard(call, B::spec.name, [&] { *to = B::state(read_attrs<B>(attrs)).at(i); });
}
template <class B>
trl_status builder_prepare_of(const trl_step_args* args, trl_expr* prepared) {
  return guard(args->call, B::spec.name, [&] {
    put_exprs(prepared, B::prepare(read_attrs<B>(args->attrs), Step<B>(*args)));
  });
}
template <class B>
trl_status builder_step_of(const trl_step_args* args) {
  return guard(args->call, B::spec.name, [&] {
    put_exprs(args->state_out, B::step(read_attrs<B>(args->attrs), Step<B>(*args)));
  });
}
template <class B>
trl_status builder_sequence_of(const trl_sequence_args* args) {
  return guard(args->first->call, B::spec.name,
               [&] { B::sequence(read_attrs<B>(args->first->attrs), Sequence<B>(*args)); });
}

}  // namespace detail

template <class B>
void describe(Catalog& catalog, const BuilderSpec& spec, std::string_view file) {
  using detail::str;
  trl_builder_desc to{};
  to.struct_size = sizeof to;
  to.id = catalog.id(spec.name);
  to.summary = str(spec.summary);
  to.doc = str(spec.doc);
  to.formula = str(spec.formula);
  to.source = str(file);
  catalog.aliases(spec.aliases, to.aliases, to.n_aliases);
  catalog.attrs<B>(to.attrs, to.n_attrs);
  catalog.uses<B>();
  to.min_pred = spec.predecessors.lo;
  to.max_pred = spec.predecessors.hi;
  to.min_in = spec.inputs.lo;
  to.max_in = spec.inputs.hi;
  to.min_context = spec.contexts.lo;
  to.max_context = spec.contexts.hi;
  to.input_attr = static_cast<std::int16_t>(detail::attr_index<B>(spec.input_attr));
  to.hidden_attr = static_cast<std::int16_t>(detail::attr_index<B>(spec.hidden_attr));
  to.version = spec.version;
  to.state_version = spec.state_version;
  to.describe = &detail::builder_describe_of<B>;
  to.param = &detail::param_of<B>;
  to.state = &detail::builder_state_of<B>;
  to.step = &detail::builder_step_of<B>;
  using A = typename detail::AttrsOf<B>::type;
  if constexpr (requires(const A& a, const Step<B>& s) { B::prepare(a, s); })
    to.prepare = &detail::builder_prepare_of<B>;
  if constexpr (requires(const A& a, const Sequence<B>& q) { B::sequence(a, q); })
    to.sequence = &detail::builder_sequence_of<B>;
  catalog.builders.push_back(catalog.keep(to));
}

}  // namespace gnu::visibility("hidden")]]v0
}  // namespace trellis::sdk

namespace trellis::ops {
using namespace ::trellis::sdk;  // NOLINT
}
