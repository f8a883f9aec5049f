// SPDX-License-Identifier: Apache-2.0
//
// A graph holds the nodes of one computation: cheap to make, made anew (or cleared) for every
// example, confined to one thread. Nothing is computed until a value is asked for; then nodes that
// may run together are batched.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <trellis/attrs.hpp>
#include <trellis/runtime.hpp>
#include <trellis/tensor.hpp>
#include <vector>

namespace trellis {

class Graph;
class Parameter;
class LookupParameter;
class GradientBlock;
namespace detail {
class GraphImpl;
struct GraphSlot;
}  // namespace detail

// One output of one node. A handle of 16 bytes; using it after its graph was cleared, reverted past
// it or destroyed throws Error(state) "expression from an older graph".
class TRELLIS_API Expr {
 public:
  Expr() = default;  // belongs to no graph; using it throws

  const Dim& dim() const;
  DType dtype() const;
  TensorView value()
      const;              // computes what is needed; valid until the graph is cleared or reverted
  double scalar() const;  // value().as_scalar()
  TensorView gradient() const;  // of the last backward; throws Error(state) before one
  Graph graph() const;          // a second handle on the graph
  Device device() const;        // where its value lies: a leaf's own, else that of the inputs
  // Entry i of the first axis, without that axis; negative counts from the end. Throws
  // Error(range).
  Expr operator[](int64_t i) const;

  detail::GraphImpl& impl() const;  // checks that the expression is alive
  uint32_t id() const { return id_; }
  bool alive() const noexcept;
  bool empty() const noexcept { return slot_ == nullptr; }  // belongs to no graph

 private:
  friend class detail::GraphImpl;
  Expr(detail::GraphSlot* slot, uint32_t id, uint32_t stamp)
      : slot_(slot), id_(id), stamp_(stamp) {}
  detail::GraphSlot* slot_ = nullptr;
  uint32_t id_ = 0, stamp_ = 0;
};

enum class Mode { train, infer };

// Which values a graph holds until it is cleared. Train mode holds all, for gradients.
//   all        every one that was computed
//   requested  in infer mode only those that were asked for by value(), forward() or keep(), those
//              that a node not yet computed reads, and those that no node reads so far; the memory
//              of others serves later ones. Asking for one that was given back, also as the input of
//              a new node, throws Error(state).
enum class KeptValues { all, requested };

struct GraphOptions {
  Mode mode = Mode::train;    // dropout and other stochastic operators act in train mode
  DType dtype = DType::f32;   // of inputs and constants that name none
  bool batching = true;       // false: the sequential oracle
  bool always_group = false;  // group nodes even where merging would not pay (for tests)
  bool immediate = false;     // compute every node when it is made
  KeptValues values = KeptValues::all;
  bool check_validity = false;  // throw Error(numeric) at the first NaN or Inf, naming the node
  bool memo = true;             // false: run every shape inference again (for tests)
  // Part of the address of random masks. Unset: taken from the runtime's counter. In data-parallel
  // training give it, so that masks do not depend on threads.
  std::optional<uint64_t> serial{};
  GradientBlock* gradients = nullptr;  // where parameter gradients go; null: the model's own block
  Device device{};  // of inputs and constants that name none; throws Error(argument) when not there
};

// What a node of Graph::custom() runs. The views are valid during the call; the functions must not
// use the graph, and what they keep alive should not be the graph itself.
//   forward   writes every element of the output
//   backward  adds to each gradient of d_inputs that is not empty (empty: not wanted)
using CustomForward =
    std::function<void(std::span<const TensorView> inputs, const TensorView& output)>;
using CustomBackward =
    std::function<void(std::span<const TensorView> inputs, const TensorView& output,
                       const TensorView& d_output, std::span<const TensorView> d_inputs)>;

// Counts of the work done since the last clear().
struct GraphStats {
  uint64_t nodes = 0, groups = 0, forward_calls = 0, backward_calls = 0, infer_calls = 0,
           gathers = 0;
  uint64_t forward_bytes = 0, backward_bytes = 0, reserved_bytes = 0;
};

// A handle; copies refer to the same graph, and moving copies. Destroying the last one frees it.
class TRELLIS_API Graph {
 public:
  explicit Graph(const Runtime& runtime, const GraphOptions& options = {});
  Graph(const Graph&) = default;
  Graph& operator=(const Graph&) = default;
  explicit Graph(std::shared_ptr<detail::GraphImpl> impl) : impl_(std::move(impl)) {}

  // Forgets all nodes and keeps the memory; every expression becomes stale. New serial for random
  // masks.
  void clear();
  void clear(uint64_t serial);
  void set_mode(Mode mode);  // only when empty; throws Error(state)

  // Leaves. Data is copied when the node is made. Throws Error(shape) when counts differ.
  Expr input(double value);
  Expr input(const Dim& dim, std::span<const float> values);
  Expr input(const Dim& dim, std::span<const double> values);
  Expr input(const TensorView& values);  // any dtype
  // On a device; throws Error(argument) when it is not there.
  Expr input(const Dim& dim, std::span<const float> values, Device device);
  Expr input(const Dim& dim, std::span<const double> values, Device device);
  Expr input(const TensorView& values, Device device);
  // Re-read at every forward(): build once, run again with new numbers. The memory must outlive the
  // graph's nodes.
  Expr input_pointer(const Dim& dim, const float* values);
  Expr input_pointer(const Dim& dim, const double* values);
  // default_value everywhere, values[i] at flat index ids[i] (batch outermost). Throws on counts
  // and ranges.
  Expr sparse_input(const Dim& dim, std::span<const uint64_t> ids, std::span<const double> values,
                    double default_value = 0);
  Expr one_hot(uint32_t size, std::span<const uint32_t> ids);  // {size} x ids.size()
  Expr constant(const Dim& dim, double value);
  Expr constant(const Dim& dim, double value, Device device);
  Expr zeros(const Dim& dim) { return constant(dim, 0); }
  Expr ones(const Dim& dim) { return constant(dim, 1); }
  Expr parameter(const Parameter& p);
  Expr const_parameter(const Parameter& p);  // no gradient
  Expr lookup(const LookupParameter& table, uint32_t id);
  Expr lookup(const LookupParameter& table, std::span<const uint32_t> ids);  // batch = ids.size()
  // Ids re-read at every forward().
  Expr lookup_pointer(const LookupParameter& table, const uint32_t* ids, uint32_t count = 1);
  Expr const_lookup(const LookupParameter& table, std::span<const uint32_t> ids);
  Expr table(
      const LookupParameter& table);  // the whole table: row shape with the number of rows appended
  Expr const_table(const LookupParameter& table);

  // Applies an operator by name ("core.tanh", "tanh", an alias). Returns its visible outputs. A
  // refused node is not added and the graph is usable.
  std::vector<Expr> apply(std::string_view op, std::span<const Expr> inputs,
                          const Attrs& attrs = {}, SourceLine where = SourceLine::here());
  Expr apply1(std::string_view op, std::initializer_list<Expr> inputs, const Attrs& attrs = {},
              SourceLine where = SourceLine::here());  // first output

  // A node that the program's own functions compute, for what no operator does. Inputs are floats of
  // one type, which is the result's; `dim` says its shape and batch, whatever the inputs'. It is
  // never merged with others, and forgotten with clear() and revert() like all nodes. Without
  // `backward` the result is a constant for gradients. What a function throws becomes
  // Error(argument) "[custom] the forward function threw: ..", and the graph is usable up to there.
  //
  //   const Expr y = g.custom({x}, x.dim(), [](auto in, auto& out) { .. });
  //
  // Throws Error(argument) for no inputs or an empty `forward`.
  Expr custom(std::span<const Expr> inputs, const Dim& dim, CustomForward forward,
              CustomBackward backward = {}, SourceLine where = SourceLine::here());
  Expr custom(std::initializer_list<Expr> inputs, const Dim& dim, CustomForward forward,
              CustomBackward backward = {}, SourceLine where = SourceLine::here()) {
    return custom(std::span<const Expr>(inputs.begin(), inputs.size()), dim, std::move(forward),
                  std::move(backward), where);
  }

  // Evaluation. Values already computed are kept.
  TensorView value(const Expr& e);
  TensorView forward(const Expr& e);  // forgets values first, then computes what e needs
  std::vector<TensorView> forward(std::span<const Expr> es);
  TensorView incremental_forward(const Expr& e);  // = value()
  void forward_all();                             // every node not yet computed
  // Holds a value that other nodes read, where the graph holds only some (KeptValues). Throws
  // Error(state) when it was given back already.
  void keep(const Expr& e);
  void invalidate();                  // forgets all values; the next value() computes again
  void invalidate(const Expr& from);  // forgets the values of this node and later ones

  // Gradients of a scalar (one element, batch 1; else Error(shape) with the hint `sum_batches`).
  // Gradients of parameters accumulate over calls and graphs until the trainer's update or
  // Model::reset_gradient. full: also nodes that no parameter depends on.
  void backward(const Expr& loss, bool full = false);
  TensorView gradient(const Expr& e);  // of the last backward
  // Calls f with the gradient of e in every backward that reaches it, once it is complete and
  // before it flows on. f may change it in place (clip, reverse, record). Gone with clear(). What f
  // throws leaves backward, and no gradient stays.
  void on_gradient(const Expr& e, std::function<void(const TensorView& gradient)> f);

  // A stack of marks for beam search. checkpoint() computes all nodes made so far; revert() drops
  // the nodes made since and their memory; their expressions become stale. revert() without a
  // checkpoint throws Error(state).
  void checkpoint();
  void revert();

  size_t size() const;  // nodes
  uint64_t serial() const;
  GraphStats stats() const;
  void shrink();  // gives unused memory back to the system; only when empty
  void dot(std::ostream& out, bool memory = false) const;  // Graphviz; memory adds bytes a node
  // One block a node: text, value, gradient, or with nan_check only whether they are finite.
  void dump(std::ostream& out, bool values = true, bool gradients = false, bool nan_check = false);
  std::string describe(const Expr& e) const;  // node #3 "h" = core.tanh(#2) {4}x2

  detail::GraphImpl& impl() const { return *impl_; }

 private:
  std::shared_ptr<detail::GraphImpl> impl_;
};

}  // namespace trellis
