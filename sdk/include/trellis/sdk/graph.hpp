// SPDX-License-Identifier: Apache-2.0
//
// Building nodes: what composites, gradients as expressions, builders and softmax builders have in
// common.
//
//   using Affine = Use<"core.affine">;
//   using Dropout = Use<"core.dropout", "p">;
//   struct Mine {
//     using uses = Uses<Affine, Dropout>;
//     static Expr expand(const auto& g) {
//       return g.template apply<Dropout>({g.template apply<Affine>({g.in(0), g.in(1), g.in(2)})},
//                                        0.5);
//     }
//   };
#pragma once

#include <trellis/abi/op.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <trellis/sdk/plugin.hpp>
#include <trellis/sdk/tensor.hpp>
#include <type_traits>

namespace trellis::sdk {
inline namespace [[gnu::visibility("hidden")]] v0 {

using Expr = trl_expr;

// A number for an attribute that varies freely (Scalars).
struct Value {
  double number;
};
// The index of a choice, for an attribute declared with choices().
struct Choice {
  std::int64_t index;
};

namespace detail {

template <class V>
trl_attr given(const V& value) {
  trl_attr a{};
  a.count = 1;
  if constexpr (std::is_same_v<V, trl_attr>)
    return value;
  else if constexpr (std::is_same_v<V, Value>)
    a.type = TRL_ATTR_F64S, a.v.fs = &value.number;
  else if constexpr (std::is_same_v<V, Choice>)
    a.type = TRL_ATTR_CHOICE, a.v.i = value.index;
  else if constexpr (std::is_arithmetic_v<V> || std::is_enum_v<V>)
    return attr_of(value);
  else if constexpr (std::is_convertible_v<V, Ints>)
    return attr_of(Ints(value));
  else
    return attr_of(Floats(value));
  return a;
}

}  // namespace detail

// `Owner` is the builder or operator whose `uses` may be applied. [graph] only.
template <class Owner>
class GraphCall {
 public:
  explicit GraphCall(trl_call* call)
      : call_(call),
        self_(detail::self_of(call)),
        graph_(detail::need(self_.graph, "trl.graph/1")) {}

  // One application of an operator: its inputs, then the attributes named in Use<...>, in that
  // order - numbers, flags, Choice, Value, lists, or a trl_attr passed on.
  template <class U, class... V>
  Expr apply(std::initializer_list<Expr> in, const V&... values) const {
    return apply_all<U, 1>(std::span<const Expr>(in.begin(), in.size()), values...)[0];
  }
  template <class U, class... V>
  Expr apply(std::span<const Expr> in, const V&... values) const {
    return apply_all<U, 1>(in, values...)[0];
  }
  // The same for an operator with kOutputs visible outputs.
  template <class U, std::size_t kOutputs, class... V>
  std::array<Expr, kOutputs> apply_all(std::initializer_list<Expr> in, const V&... values) const {
    return apply_all<U, kOutputs>(std::span<const Expr>(in.begin(), in.size()), values...);
  }
  template <class U, std::size_t kOutputs, class... V>
  std::array<Expr, kOutputs> apply_all(std::span<const Expr> in, const V&... values) const {
    static_assert(detail::kHasUse<typename Owner::uses, U>, "name the operator in `uses`");
    static_assert(sizeof...(V) == U::n_keys, "one value for each key of Use<...>");
    const std::array<trl_attr, sizeof...(V) + 1> attrs{detail::given(values)..., trl_attr{}};
    std::array<Expr, kOutputs> out;
    check(graph_.apply(call_, self_.ops[detail::use_index<U>], in.data(),
                       static_cast<std::uint32_t>(in.size()), attrs.data(),
                       static_cast<std::uint32_t>(sizeof...(V)), out.data(),
                       static_cast<std::uint32_t>(kOutputs)));
    return out;
  }
  // A tensor filled with a number, in the graph's float type.
  Expr constant(const Dim& dim, double value) const {
    Expr out;
    check(graph_.constant(call_, &dim, 0, value, &out));
    return out;
  }
  // The same in the element type of `like`.
  Expr constant(const Dim& dim, double value, Expr like) const {
    Expr out;
    check(graph_.constant(call_, &dim, dtype(like), value, &out));
    return out;
  }
  Dim shape(Expr e) const {
    Dim dim;
    std::uint16_t dtype = 0;
    check(graph_.shape(call_, e, &dim, &dtype));
    return dim;
  }
  std::uint16_t dtype(Expr e) const {
    Dim dim;
    std::uint16_t dtype = 0;
    check(graph_.shape(call_, e, &dim, &dtype));
    return dtype;
  }

 protected:
  // The host has recorded the text of what it refuses.
  static void check(trl_status status) {
    if (status != TRL_OK) throw Error(status, {});
  }

 private:
  trl_call* call_;
  const detail::Self& self_;
  const trl_graph_api& graph_;
};

template <class Op>
class Expansion : public GraphCall<Op> {
 public:
  explicit Expansion(const trl_expand_args& args) : GraphCall<Op>(args.call), args_(args) {}
  Expr in(std::uint32_t i) const { return args_.in[i]; }
  std::span<const Expr> in() const { return {args_.in, args_.n_in}; }
  std::uint32_t batch() const { return args_.batch; }
  const trl_attr& attr(std::uint32_t i) const { return args_.attrs[i]; }  // to pass on as it is

 private:
  const trl_expand_args& args_;
};

// What expand_grad receives: one node, and the gradients of its outputs. [graph] only.
//
//   struct Square {
//     using Add = Use<"core.add">;
//     using Mul = Use<"core.mul">;
//     using uses = Uses<Add, Mul>;
//     ...
//     static Expr expand_grad(const auto& g) {  // dy * 2 x
//       return g.template apply<Mul>({g.dy(), g.template apply<Add>({g.x(), g.x()})});
//     }
//   };
//
// It returns the gradient of the first input, an array with those of all, or nothing, having given
// them to dx(). A gradient larger than its input where the input was broadcast is summed by the
// host, a smaller one is broadcast; what is not given is zero.
template <class Op>
class Gradient : public GraphCall<Op> {
 public:
  explicit Gradient(const trl_expand_args& args)
      : GraphCall<Op>(args.call), args_(args), outputs_((args.n_in - args.n_out) / 2) {}
  std::uint32_t inputs() const { return args_.n_out; }
  bool has(std::uint32_t i) const { return i < args_.n_out && args_.in[i].node != 0; }
  Expr x(std::uint32_t i = 0) const { return args_.in[i]; }
  Expr y(std::uint32_t i = 0) const { return args_.in[args_.n_out + i]; }
  // The gradient of an output; absent (node 0) where it is zero: only with several outputs.
  Expr dy(std::uint32_t i = 0) const { return args_.in[args_.n_out + outputs_ + i]; }
  bool wants(std::uint32_t i) const { return args_.out[i].output != 0; }
  void dx(std::uint32_t i, Expr gradient) const {
    if (i < args_.n_out && wants(i)) args_.out[i] = gradient;
  }
  std::uint32_t batch() const { return args_.batch; }
  bool training() const { return (args_.flags & TRL_CALL_TRAIN) != 0; }
  const trl_attr& attr(std::uint32_t i) const { return args_.attrs[i]; }  // to pass on as it is

 private:
  const trl_expand_args& args_;
  std::uint32_t outputs_;
};

namespace detail {

template <class Op, class... A>
concept ExpandGradForm = requires(const Gradient<Op>& g, const A&... a) {
  Op::expand_grad(a..., g);
};
template <class Op>
constexpr bool expands_grad() {
  if constexpr (HasAttrs<Op>)
    return ExpandGradForm<Op, typename Op::Attrs>;
  else
    return ExpandGradForm<Op>;
}
template <class Op>
concept ExpandsGrad = expands_grad<Op>();

template <class Op>
void put_gradients(const Gradient<Op>& g, Expr first) {
  g.dx(0, first);
}
template <class Op, std::size_t N>
void put_gradients(const Gradient<Op>& g, const std::array<Expr, N>& all) {
  for (std::uint32_t i = 0; i < N; ++i) g.dx(i, all[i]);
}

template <class Op, class... A>
void call_expand_grad(const Gradient<Op>& g, const A&... a) {
  if constexpr (std::is_void_v<decltype(Op::expand_grad(a..., g))>)
    Op::expand_grad(a..., g);
  else
    put_gradients(g, Op::expand_grad(a..., g));
}

template <class Op>
trl_status expand_grad_of(const trl_expand_args* args) {
  return guard(args->call, Op::spec.name, [args] {
    const Gradient<Op> g(*args);
    if constexpr (HasAttrs<Op>)
      call_expand_grad(g, read_attrs<Op>(args->attrs));
    else
      call_expand_grad(g);
  });
}

template <class Op, class... A>
concept ExpandForm = requires(const Expansion<Op>& g, const A&... a) {
  Op::expand(a..., g);
};
template <class Op>
constexpr bool expands() {
  if constexpr (HasAttrs<Op>)
    return ExpandForm<Op, typename Op::Attrs>;
  else
    return ExpandForm<Op>;
}
template <class Op>
concept Expands = expands<Op>();

template <std::size_t N>
void put_exprs(Expr* out, const std::array<Expr, N>& from) {
  for (std::size_t i = 0; i < N; ++i) out[i] = from[i];
}
inline void put_exprs(Expr* out, Expr from) { *out = from; }

template <class Op>
trl_status expand_of(const trl_expand_args* args) {
  return guard(args->call, Op::spec.name, [args] {
    const Expansion<Op> g(*args);
    if constexpr (HasAttrs<Op>)
      put_exprs(args->out, Op::expand(read_attrs<Op>(args->attrs), g));
    else
      put_exprs(args->out, Op::expand(g));
  });
}

}  // namespace detail
}  // namespace gnu::visibility("hidden")]]v0
}  // namespace trellis::sdk
