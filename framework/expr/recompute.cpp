// SPDX-License-Identifier: Apache-2.0
//
// Parts of a graph whose values are computed twice instead of kept. A part is one node of the outer
// graph, whose functions make the part's nodes in an inner graph, compute them there, and clear it.
// The inner graph is one and the same for all parts of an outer one, so their values share memory.

#include <trellis/expr.hpp>
#include <trellis/random.hpp>

#include "graph/graph_impl.hpp"

namespace trellis {
namespace {

using detail::GraphImpl;
using detail::Kind;
using detail::kNeedsGrad;

// The inner graph while one part is in it.
class Inside {
 public:
  Inside(GraphImpl& outer, uint32_t address) : graph_(inner(outer)) {
    if (graph_.size() > 0)
      fail(ErrorKind::state,
           "[recompute] used on the outer graph from inside a part (needs the graph that is handed "
           "in)");
    graph_.clear(mix64(outer.serial(), address));
    graph_.set_mode(outer.options().mode);
  }
  ~Inside() { graph_.clear(); }
  Inside(const Inside&) = delete;

  Graph& graph() { return graph_; }
  GraphImpl& impl() { return graph_.impl(); }
  void add_input(uint32_t id) { inputs_.push_back(impl().expr(id)); }
  const Expr& input(size_t i) const { return inputs_[i]; }

  // Throws unless the result belongs in here.
  Expr build(const Part& part) {
    const Expr e = part(graph_, inputs_);
    impl().id_of(e);
    return e;
  }
  // Parameters that a gradient may have reached.
  template <class F>
  void each_trained(F&& f) {
    for (uint32_t id = 1; id < impl().size(); ++id) {
      const Kind kind = impl().pattern_of(id).kind;
      if ((kind == Kind::parameter || kind == Kind::table || kind == Kind::lookup) &&
          impl().value(id).flags & kNeedsGrad)
        f(*impl().payload(id).record);
    }
    for (detail::ParamRecord* r : impl().inner_records_) f(*r);
  }

 private:
  static Graph inner(GraphImpl& outer) {
    if (!outer.inner_) {
      GraphOptions o = outer.options();
      o.immediate = false;
      outer.inner_ = Graph(outer.runtime(), o).impl().shared_from_this();
    }
    return Graph(outer.inner_);
  }

  Graph graph_;
  std::vector<Expr> inputs_;
};

void check_result(const Expr& e, const Dim& dim, DType dtype) {
  if (e.dtype() != dtype)
    fail(ErrorKind::dtype, "[recompute] the part made " + std::string(dtype_name(e.dtype())) +
                               " of inputs of " + std::string(dtype_name(dtype)) +
                               " (needs one float type)");
  if (!(e.dim() == dim))
    fail(ErrorKind::shape, "[recompute] the part made " + e.dim().to_string() + " now, " +
                               dim.to_string() + " before (needs the same nodes each time)");
}

}  // namespace

Expr recompute(std::span<const Expr> inputs, Part build, SourceLine where) {
  if (inputs.empty()) fail(ErrorKind::argument, "[recompute] no inputs: 0 (at least 1)");
  GraphImpl& outer = GraphImpl::of(inputs[0]);
  std::vector<uint32_t> ids;
  for (const Expr& x : inputs) ids.push_back(outer.id_of(x));
  const size_t n = ids.size();
  const uint32_t address = outer.take_stream();
  const DType dtype = outer.cls_of(ids[0]).dtype;
  Dim dim;
  bool trains = false;
  {
    Inside in(outer, address);
    for (const uint32_t id : ids)
      in.add_input(in.impl().constant(outer.cls_of(id).dim, outer.cls_of(id).dtype, 0));
    const Expr y = in.build(build);
    dim = y.dim();
    check_result(y, dim, dtype);
    trains = in.impl().value(y.id()).flags & kNeedsGrad;
  }
  // Parameters inside are no inputs of the node, so without this backward might pass it by.
  if (trains) ids.push_back(outer.anchor(dtype));

  GraphImpl* const graph = &outer;
  const auto open = [build, n, dim, dtype](Inside& in, std::span<const TensorView> x,
                                           std::span<const TensorView> dx) {
    for (size_t i = 0; i < n; ++i)
      in.add_input(in.impl().borrow(x[i], !dx.empty() && !dx[i].empty()));
    const Expr y = in.build(build);
    check_result(y, dim, dtype);
    return y;
  };
  CustomForward forward = [graph, address, open](std::span<const TensorView> x,
                                                 const TensorView& y) {
    Inside in(*graph, address);
    tensor_tools::copy(y, open(in, x, {}).value());
  };
  CustomBackward backward = [graph, address, open, n](std::span<const TensorView> x,
                                                      const TensorView&, const TensorView& dy,
                                                      std::span<const TensorView> dx) {
    Inside in(*graph, address);
    const Expr y = open(in, x, dx);
    // A scalar whose gradient with respect to y is dy.
    const Expr loss = in.graph().custom(
        {y}, Dim(),
        [](std::span<const TensorView>, const TensorView& zero) { tensor_tools::fill(zero, 0); },
        [&dy](std::span<const TensorView>, const TensorView&, const TensorView&,
              std::span<const TensorView> d) {
          if (!d[0].empty()) tensor_tools::accumulate(d[0], dy);
        });
    in.graph().backward(loss);
    in.each_trained([&](detail::ParamRecord& r) { graph->inner_records_.push_back(&r); });
    for (size_t i = 0; i < n; ++i)
      if (!dx[i].empty()) tensor_tools::accumulate(dx[i], in.graph().gradient(in.input(i)));
  };
  return outer.expr(
      outer.custom(ids, dim, std::move(forward), std::move(backward), "recompute", where));
}

Expr recompute(const Expr& input, std::function<Expr(Graph& graph, const Expr& input)> build,
               SourceLine where) {
  return recompute(
      std::span<const Expr>(&input, 1),
      [build = std::move(build)](Graph& g, std::span<const Expr> x) { return build(g, x[0]); },
      where);
}

}  // namespace trellis
