// SPDX-License-Identifier: Apache-2.0
//
// Operators. A struct becomes one descriptor and two kernels, f32 and f64:
//
//   struct Square {
//     static constexpr OpSpec spec{.name = "square", .summary = "square, element by element",
//                                  .inputs = {"x"}, .batch = Batch::elementwise,
//                                  .keeps = Keep::input};
//     static Dim infer(Dims x) { return x[0]; }
//     static void forward(auto x, auto y) { map(x, y, [](auto v) { return v * v; }); }
//     static void backward(const auto& b) {
//       grad_zip(b.x(0), b.dy(), b.dx(0), [](auto x, auto dy) { return 2 * x * dy; });
//     }
//   };
//   TRL_OPS(square, Square)
//   TRL_PLUGIN("acme-act", "1.4.0", "acme", square)
//
// With attributes (attrs.hpp) every function takes `const Attrs& a` first. The forms:
//   infer(Dims)              returns Dim, Shape (may be a view), or std::array<Dim, outputs>
//   forward(x, y)            lists of typed tensors: x[i], y[i]
//   forward(x, y, Streams)   operators with .random
//   forward(f)               f is a Forward<T>: everything the host handed over
//   backward(b), backward(b, Streams)   b is a Backward<T>; none: the operator has no gradient
//   static State create()    pre-computed once per attributes; read with f.template state<State>()
//   static Expr expand(const auto& g)   a composite (graph.hpp) instead of kernels, or besides them
//   static Expr expand_grad(const auto& g)   the gradient as expressions (graph.hpp), besides
//   backward: gives derivatives of derivatives
// A gradient is written through grad_zip, or added to b.dx_zeroed(i), or the code looks at
// dx.stores().
#pragma once

#include <trellis/abi/op.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <trellis/sdk/attrs.hpp>
#include <trellis/sdk/error.hpp>
#include <trellis/sdk/graph.hpp>
#include <trellis/sdk/map.hpp>
#include <trellis/sdk/plugin.hpp>
#include <trellis/sdk/random.hpp>
#include <trellis/sdk/shape.hpp>
#include <trellis/sdk/tensor.hpp>
#include <type_traits>

namespace trellis::sdk {
inline namespace [[gnu::visibility("hidden")]] v0 {

enum class Batch : std::uint8_t {
  concat,       // the batch elements are independent: nodes merge along the batch
  elementwise,  // right on any reshape, too: nodes of any shapes may run as one
  never         // the operator changes the batch size; infer sets the batch of its outputs
};
enum class Keep : std::uint8_t {
  none = 0,
  input = 1,
  output = 2,
  both = 3
};  // what backward reads
enum class Merge : std::uint8_t {
  concat = TRL_IN_CONCAT,
  shared = TRL_IN_SHARED,
  never = TRL_IN_NEVER
};
enum class Domain : std::uint8_t {
  any = TRL_DOMAIN_ANY,
  positive = TRL_DOMAIN_POSITIVE,
  unit = TRL_DOMAIN_UNIT,
  probability = TRL_DOMAIN_PROBABILITY,
  above_one = TRL_DOMAIN_ABOVE_ONE,
  nonzero = TRL_DOMAIN_NONZERO
};

// An input: {"x"}, or In("w").shared().keep().
struct In {
  std::string_view name, doc;
  std::uint32_t flags = 0;
  std::uint16_t dtype = 0;  // 0: the kernel's
  Merge merge = Merge::concat;
  Domain domain = Domain::any;

  constexpr In() = default;
  constexpr In(const char* input_name) : name(input_name) {}
  constexpr In about(std::string_view text) const {
    In to = *this;
    to.doc = text;
    return to;
  }
  constexpr In shared() const {
    In to = *this;
    to.merge = Merge::shared;
    return to;
  }
  constexpr In keep() const {
    In to = *this;
    to.flags |= TRL_IN_KEEP;
    return to;
  }
  constexpr In optional() const {
    In to = *this;
    to.flags |= TRL_IN_OPTIONAL;
    return to;
  }
  constexpr In variadic() const {
    In to = *this;
    to.flags |= TRL_IN_VARIADIC;
    return to;
  }
  constexpr In no_grad() const {
    In to = *this;
    to.flags |= TRL_IN_NO_GRAD;
    return to;
  }
  constexpr In of(std::uint16_t type) const {
    In to = *this;
    to.dtype = type;
    return to;
  }
  constexpr In in(Domain d) const {
    In to = *this;
    to.domain = d;
    return to;
  }
};

// An output: {"y"}, or Out("mask").hidden(). Hidden ones come after the visible ones.
struct Out {
  std::string_view name, doc;
  std::uint32_t flags = 0;
  std::uint16_t dtype = 0;  // 0: the kernel's

  constexpr Out() = default;
  constexpr Out(const char* output_name) : name(output_name) {}
  constexpr Out about(std::string_view text) const {
    Out to = *this;
    to.doc = text;
    return to;
  }
  constexpr Out hidden() const {
    Out to = *this;
    to.flags |= TRL_OUT_HIDDEN;
    return to;
  }
  constexpr Out keep() const {
    Out to = *this;
    to.flags |= TRL_OUT_KEEP;
    return to;
  }
  constexpr Out no_grad() const {
    Out to = *this;
    to.flags |= TRL_OUT_NO_GRAD;
    return to;
  }
  constexpr Out of(std::uint16_t type) const {
    Out to = *this;
    to.dtype = type;
    return to;
  }
};

struct OpSpec {
  std::string_view name{};  // bare: in the plugin's namespace
  std::string_view summary{}, doc{}, formula{};
  std::string_view examples{};  // "concat({2,3}x4, {2,1}, axis=1); ...", run by the generic checks
  std::string_view role{};
  List<std::string_view, 6> aliases{};  // full ids: "dynet.rectify"
  List<In, 8> inputs{};
  List<Out, 8> outputs{"y"};
  Batch batch = Batch::concat;
  Keep keeps = Keep::none;  // of all inputs and outputs; In::keep and Out::keep choose single ones
  bool random = false;      // receives one stream per batch element
  bool mode = false;        // looks at training()
  bool strided = false;     // takes one pointer per batch element, see Tensor::data(b)
  bool deterministic = true;
  std::uint32_t version = 1,
                since = 1;       // semantic revision; the oldest one it still means the same as
  std::string_view unchecked{};  // which generic check cannot apply, and why
};

// A list of typed tensors; where one is meant, the first.
template <class T>
class Tensors {
 public:
  Tensors(const trl_tensor* first, std::uint32_t n) : first_(first), n_(n) {}
  std::uint32_t size() const { return n_; }
  Tensor<T> operator[](std::uint32_t i) const { return Tensor<T>(first_[i]); }
  Tensor<T> first() const { return (*this)[0]; }

 private:
  const trl_tensor* first_;
  std::uint32_t n_;
};

// What forward and backward calls have in common. Valid during the call.
template <class Args, class T>
class KernelCall {
 public:
  using value_type = T;

  explicit KernelCall(const Args& args) : args_(args) {}

  std::uint32_t batch() const { return args_.batch; }
  std::uint32_t inputs() const { return args_.n_in; }
  bool has(std::uint32_t i) const { return i < args_.n_in && args_.in[i].dtype != 0; }
  Tensor<const T> x(std::uint32_t i = 0) const { return Tensor<const T>(args_.in[i]); }
  Tensors<const T> xs() const { return {args_.in, args_.n_in}; }
  // Inputs of another element type.
  template <class U>
  Tensor<const U> x_as(std::uint32_t i) const {
    return Tensor<const U>(args_.in[i]);
  }

  bool training() const { return (args_.flags & TRL_CALL_TRAIN) != 0; }
  Streams streams() const { return Streams(args_.streams); }
  template <class State>
  const State& state() const {
    return *static_cast<const State*>(args_.state);
  }
  // n elements, uninitialised, 64-byte aligned, gone at return.
  template <class U = T>
  U* scratch(std::uint64_t n) const {
    const trl_exec_api& exec = detail::need(detail::self_of(call()).exec, "trl.exec/1");
    void* p = exec.scratch(call(), n * sizeof(U));
    if (p == nullptr) throw std::bad_alloc();
    return static_cast<U*>(p);
  }
  // f(begin, end) on sub-ranges of at least `grain`, possibly at the same time.
  template <class F>
  void parallel_for(std::int64_t n, std::int64_t grain, F&& f) const {
    if (n <= grain) return f(std::int64_t{0}, n);
    struct Context {
      trl_call* call;
      std::remove_reference_t<F>* f;
    } context{call(), &f};
    const trl_exec_api& exec = detail::need(detail::self_of(call()).exec, "trl.exec/1");
    const trl_status status = exec.parallel_for(
        call(), 0, n, grain,
        [](void* p, std::int64_t begin, std::int64_t end) -> trl_status {
          const Context& c = *static_cast<Context*>(p);
          return guard(c.call, {}, [&] { (*c.f)(begin, end); });
        },
        &context);
    if (status != TRL_OK) throw Error(status, {});
  }

  trl_call* call() const { return args_.call; }
  const Args& args() const { return args_; }

 protected:
  const Args& args_;
};

template <class T>
class Forward : public KernelCall<trl_fwd_args, T> {
  using Base = KernelCall<trl_fwd_args, T>;

 public:
  using Base::Base;

  Tensor<T> y(std::uint32_t i = 0) const { return Tensor<T>(this->args_.out[i]); }
  Tensors<T> ys() const { return {this->args_.out, this->args_.n_out}; }
  template <class U>
  Tensor<U> y_as(std::uint32_t i = 0) const {
    return Tensor<U>(this->args_.out[i]);
  }
};

template <class T>
class Backward : public KernelCall<trl_bwd_args, T> {
  using Base = KernelCall<trl_bwd_args, T>;

 public:
  using Base::Base;

  Tensor<const T> y(std::uint32_t i = 0) const { return Tensor<const T>(this->args_.out[i]); }
  template <class U>
  Tensor<const U> y_as(std::uint32_t i = 0) const {
    return Tensor<const U>(this->args_.out[i]);
  }
  Tensor<const T> dy(std::uint32_t i = 0) const { return Tensor<const T>(this->args_.d_out[i]); }
  template <class U>
  Tensor<const U> dy_as(std::uint32_t i = 0) const {
    return Tensor<const U>(this->args_.d_out[i]);
  }
  // The gradient of input i; false in a condition when it is not wanted. Where its batch is 1 and
  // batch() is not, sum over the batch.
  Tensor<T> dx(std::uint32_t i = 0) const { return Tensor<T>(this->args_.d_in[i]); }
  // The same, filled with zeros where the host asks to store: add to it.
  Tensor<T> dx_zeroed(std::uint32_t i = 0) const {
    const Tensor<T> d = dx(i);
    if (!d || !d.stores()) return d;
    d.fill(T(0));
    return d.adding();
  }
};

namespace detail {

template <class Op>
inline constexpr auto kInputNames = [] {
  std::array<std::string_view, Op::spec.inputs.size() == 0 ? 1 : Op::spec.inputs.size()> names{};
  for (std::size_t i = 0; i < Op::spec.inputs.size(); ++i) names[i] = Op::spec.inputs[i].name;
  return names;
}();

// Calls f with the attributes in front where the operator has some.
template <class Op, class F>
auto with_attrs(const trl_attr* attrs, F&& f) {
  if constexpr (HasAttrs<Op>) {
    const typename Op::Attrs a = read_attrs<Op>(attrs);
    return f(a);
  } else {
    return f();
  }
}

template <class Op, class T, class... A>
void call_forward(const Forward<T>& f, const A&... a) {
  if constexpr (requires { Op::forward(a..., f.xs(), f.ys(), f.streams()); })
    Op::forward(a..., f.xs(), f.ys(), f.streams());
  else if constexpr (requires { Op::forward(a..., f.xs(), f.ys()); })
    Op::forward(a..., f.xs(), f.ys());
  else
    Op::forward(a..., f);
}
template <class Op, class T, class... A>
void call_backward(const Backward<T>& b, const A&... a) {
  if constexpr (requires { Op::backward(a..., b, b.streams()); })
    Op::backward(a..., b, b.streams());
  else
    Op::backward(a..., b);
}

template <class Op, class T, class... A>
concept BackwardForm = requires(const Backward<T>& b, const A&... a) {
  Op::backward(a..., b);
}
|| requires(const Backward<T>& b, const A&... a) { Op::backward(a..., b, b.streams()); };
template <class Op, class T, class... A>
concept ForwardForm = requires(const Forward<T>& f, const A&... a) {
  Op::forward(a..., f);
}
|| requires(const Forward<T>& f, const A&... a) { Op::forward(a..., f.xs(), f.ys()); }
|| requires(const Forward<T>& f, const A&... a) { Op::forward(a..., f.xs(), f.ys(), f.streams()); };
template <class Op, class T>
constexpr bool has_forward() {
  if constexpr (HasAttrs<Op>)
    return ForwardForm<Op, T, typename Op::Attrs>;
  else
    return ForwardForm<Op, T>;
}
template <class Op, class T>
constexpr bool has_backward() {
  if constexpr (HasAttrs<Op>)
    return BackwardForm<Op, T, typename Op::Attrs>;
  else
    return BackwardForm<Op, T>;
}

template <class Op, class T>
trl_status forward_of(const trl_fwd_args* args) {
  return guard(args->call, Op::spec.name, [args] {
    const Forward<T> f(*args);
    with_attrs<Op>(args->attrs, [&](const auto&... a) { call_forward<Op>(f, a...); });
  });
}
template <class Op, class T>
trl_status backward_of(const trl_bwd_args* args) {
  return guard(args->call, Op::spec.name, [args] {
    const Backward<T> b(*args);
    with_attrs<Op>(args->attrs, [&](const auto&... a) { call_backward<Op>(b, a...); });
  });
}

inline void set_output(trl_infer_args& args, std::uint32_t i, const Dim& dim, Batch kind) {
  const std::uint32_t batch = kind == Batch::never ? dim.batch : args.batch;
  args.out[i] = dim;
  args.out[i].batch = batch;
}
inline void set_outputs(trl_infer_args& args, const Dim& dim, Batch kind) {
  set_output(args, 0, dim, kind);
}
inline void set_outputs(trl_infer_args& args, const Shape& shape, Batch kind) {
  set_output(args, 0, shape.dim, kind);
  args.view_of = shape.view_of;
  args.view_offset = shape.view_offset;
  args.view_stops_gradient = shape.stops_gradient ? 1 : 0;
}
template <std::size_t N>
void set_outputs(trl_infer_args& args, const std::array<Dim, N>& dims, Batch kind) {
  for (std::uint32_t i = 0; i < N; ++i) set_output(args, i, dims[i], kind);
}

template <class Op>
trl_status infer_of(trl_infer_args* args) {
  return guard(args->call, Op::spec.name, [args] {
    args->view_of = -1;
    const Dims x(*args, kInputNames<Op>.data(), static_cast<std::uint32_t>(Op::spec.inputs.size()));
    with_attrs<Op>(args->attrs, [&](const auto&... a) {
      set_outputs(*args, Op::infer(a..., x), Op::spec.batch);
      if constexpr (requires { Op::output_dtype(a..., x); })
        args->out_dtype[0] = Op::output_dtype(a..., x);
    });
  });
}

template <class Op>
concept HasState = requires {
  typename Op::State;
};

template <class Op>
trl_status create_of(trl_call* call, const trl_attr* attrs, std::uint32_t, void** ret_state) {
  return guard(call, Op::spec.name, [&] {
    with_attrs<Op>(
        attrs, [&](const auto&... a) { *ret_state = new typename Op::State(Op::create(a...)); });
  });
}
template <class Op>
void destroy_of(void* state) {
  delete static_cast<typename Op::State*>(state);
}

template <class Op, class T>
void add_kernel(Catalog& catalog, trl_str id) {
  trl_kernel_desc k{};
  k.struct_size = sizeof k;
  k.flags = TRL_KERNEL_CAN_STORE;
  k.op_id = id;
  k.device = str("cpu");
  k.dtype = dtype_of<T>();
  if constexpr (HasState<Op>) {
    k.create = &create_of<Op>;
    k.destroy = &destroy_of<Op>;
  }
  k.forward = &forward_of<Op, T>;
  if constexpr (has_backward<Op, T>()) k.backward = &backward_of<Op, T>;
  catalog.kernels.push_back(catalog.keep(k));
}

}  // namespace detail

template <class Op>
void describe(Catalog& catalog, const OpSpec& spec, std::string_view file) {
  using detail::flag, detail::str;
  trl_op_desc to{};
  to.struct_size = sizeof to;
  to.flags = flag(spec.batch == Batch::elementwise, TRL_OP_ELEMENTWISE) |
             flag(spec.random, TRL_OP_STOCHASTIC) | flag(spec.mode, TRL_OP_MODE) |
             flag(spec.strided, TRL_OP_STRIDED) |
             flag(!spec.deterministic, TRL_OP_NONDETERMINISTIC);
  to.id = catalog.id(spec.name);
  to.summary = str(spec.summary);
  to.doc = str(spec.doc);
  to.formula = str(spec.formula);
  to.example = str(spec.examples);
  to.role = str(spec.role);
  to.source = str(file);
  to.unchecked = str(spec.unchecked);
  to.version = spec.version;
  to.since_version = spec.since;
  catalog.aliases(spec.aliases, to.aliases, to.n_aliases);

  const auto keeps = [&](Keep which) {
    return (static_cast<unsigned>(spec.keeps) & static_cast<unsigned>(which)) != 0;
  };
  std::vector<const trl_in_spec*> in;
  for (const In& i : spec.inputs) {
    trl_in_spec s{};
    s.struct_size = sizeof s;
    s.flags = i.flags | flag(keeps(Keep::input), TRL_IN_KEEP);
    s.name = str(i.name);
    s.doc = str(i.doc);
    s.dtype = i.dtype;
    s.merge = static_cast<std::uint8_t>(spec.batch == Batch::never ? Merge::never : i.merge);
    s.domain = static_cast<std::uint8_t>(i.domain);
    in.push_back(catalog.keep(s));
  }
  std::vector<const trl_out_spec*> out;
  for (const Out& o : spec.outputs) {
    trl_out_spec s{};
    s.struct_size = sizeof s;
    s.flags = o.flags | flag(keeps(Keep::output), TRL_OUT_KEEP);
    s.name = str(o.name);
    s.doc = str(o.doc);
    s.dtype = o.dtype;
    out.push_back(catalog.keep(s));
  }
  to.in = catalog.keep(in);
  to.n_in = static_cast<std::uint16_t>(in.size());
  to.out = catalog.keep(out);
  to.n_out = static_cast<std::uint16_t>(out.size());
  catalog.attrs<Op>(to.attrs, to.n_attrs);
  catalog.uses<Op>();

  if constexpr (requires { &Op::infer; } || detail::has_forward<Op, float>())
    to.infer = &detail::infer_of<Op>;
  if constexpr (detail::Expands<Op>) to.expand = &detail::expand_of<Op>;
  if constexpr (detail::ExpandsGrad<Op>) to.expand_grad = &detail::expand_grad_of<Op>;
  if constexpr (detail::has_forward<Op, float>()) {
    detail::add_kernel<Op, float>(catalog, to.id);
    detail::add_kernel<Op, double>(catalog, to.id);
  } else {
    static_assert(detail::Expands<Op>, "an operator needs forward or expand");
  }
  catalog.ops.push_back(catalog.keep(to));
}

}  // namespace gnu::visibility("hidden")]]v0
}  // namespace trellis::sdk

// Inside plugins: operators are written in trellis::ops with the words of the layer at hand.
namespace trellis::ops {
using namespace ::trellis::sdk;  // NOLINT
}
