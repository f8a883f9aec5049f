// SPDX-License-Identifier: Apache-2.0
//
// The public Graph and Expr: handles on a GraphImpl and its engine.

#include <ostream>
#include <trellis/graph.hpp>

#include "exec/engine.hpp"

namespace trellis {

using detail::engine;
using detail::GraphImpl;
using detail::kComputed;
using detail::kSecondary;

Graph::Graph(const Runtime& runtime, const GraphOptions& options)
    : impl_(std::make_shared<GraphImpl>(runtime, options)) {
  impl_->engine_ = std::make_unique<detail::ExecEngine>(*impl_);
}

void Graph::clear() { impl_->clear(nullptr); }
void Graph::clear(uint64_t serial) { impl_->clear(&serial); }
void Graph::set_mode(Mode mode) { impl_->set_mode(mode); }

namespace {

void check_count(const char* who, const Dim& dim, size_t given) {
  if (given != dim.total())
    fail(ErrorKind::shape, "[" + std::string(who) + "] " + std::to_string(given) +
                               " values given for " + dim.to_string() + " (needs " +
                               std::to_string(dim.total()) + ")");
}

// Types for storage become the graph's.
DType leaf_type(const GraphImpl& g, const TensorView& values) {
  const bool stored = values.dtype() == DType::f16 || values.dtype() == DType::bf16;
  return stored ? g.options().dtype : values.dtype();
}

detail::ParamRecord& table_record(const LookupParameter& t) { return t.record(); }

}  // namespace

Expr Graph::input(double value) {
  return impl_->expr(impl_->input(Dim(), impl_->options().dtype, &value, DType::f64));
}
Expr Graph::input(const Dim& dim, std::span<const float> values) {
  check_count("input", dim, values.size());
  return impl_->expr(impl_->input(dim, impl_->options().dtype, values.data(), DType::f32));
}
Expr Graph::input(const Dim& dim, std::span<const double> values) {
  check_count("input", dim, values.size());
  return impl_->expr(impl_->input(dim, impl_->options().dtype, values.data(), DType::f64));
}
Expr Graph::input(const TensorView& values) {
  if (values.empty())
    fail(ErrorKind::argument, "[input] the tensor is empty (needs one with data)");
  return impl_->expr(
      impl_->input(values.dim(), leaf_type(*impl_, values), values.data(), values.dtype()));
}
Expr Graph::input(const Dim& dim, std::span<const float> values, Device device) {
  check_count("input", dim, values.size());
  return impl_->expr(impl_->input(dim, impl_->options().dtype, values.data(), DType::f32, device));
}
Expr Graph::input(const Dim& dim, std::span<const double> values, Device device) {
  check_count("input", dim, values.size());
  return impl_->expr(impl_->input(dim, impl_->options().dtype, values.data(), DType::f64, device));
}
Expr Graph::input(const TensorView& values, Device device) {
  if (values.empty())
    fail(ErrorKind::argument, "[input] the tensor is empty (needs one with data)");
  return impl_->expr(
      impl_->input(values.dim(), leaf_type(*impl_, values), values.data(), values.dtype(), device));
}
Expr Graph::input_pointer(const Dim& dim, const float* values) {
  return impl_->expr(impl_->input_pointer(dim, values, DType::f32));
}
Expr Graph::input_pointer(const Dim& dim, const double* values) {
  return impl_->expr(impl_->input_pointer(dim, values, DType::f64));
}
Expr Graph::sparse_input(const Dim& dim, std::span<const uint64_t> ids,
                         std::span<const double> values, double default_value) {
  return impl_->expr(impl_->sparse_input(dim, ids, values, default_value));
}
Expr Graph::one_hot(uint32_t size, std::span<const uint32_t> ids) {
  if (ids.empty()) fail(ErrorKind::argument, "[one_hot] no ids given (needs at least one)");
  std::vector<uint64_t> flat(ids.size());
  const std::vector<double> ones(ids.size(), 1.0);
  for (size_t b = 0; b < ids.size(); ++b) {
    if (ids[b] >= size)
      fail(ErrorKind::range, "[one_hot] id is out of bounds: " + std::to_string(ids[b]) +
                                 " (needs 0 to " + std::to_string(int64_t(size) - 1) + ")");
    flat[b] = b * uint64_t(size) + ids[b];
  }
  return sparse_input(Dim({size}, uint32_t(ids.size())), flat, ones);
}
Expr Graph::constant(const Dim& dim, double value) {
  return impl_->expr(impl_->constant(dim, impl_->options().dtype, value));
}

Expr Graph::constant(const Dim& dim, double value, Device device) {
  return impl_->expr(impl_->constant(dim, impl_->options().dtype, value, device));
}

Expr Graph::custom(std::span<const Expr> inputs, const Dim& dim, CustomForward forward,
                   CustomBackward backward, SourceLine where) {
  std::vector<uint32_t> in;
  for (const Expr& e : inputs) in.push_back(impl_->id_of(e));
  return impl_->expr(
      impl_->custom(in, dim, std::move(forward), std::move(backward), "custom", where));
}

Expr Graph::parameter(const Parameter& p) {
  return impl_->expr(impl_->parameter(p.record(), false));
}
Expr Graph::const_parameter(const Parameter& p) {
  return impl_->expr(impl_->parameter(p.record(), true));
}
Expr Graph::table(const LookupParameter& t) {
  return impl_->expr(impl_->parameter(table_record(t), false));
}
Expr Graph::const_table(const LookupParameter& t) {
  return impl_->expr(impl_->parameter(table_record(t), true));
}
Expr Graph::lookup(const LookupParameter& t, uint32_t id) {
  return impl_->expr(impl_->lookup(table_record(t), {&id, 1}, false));
}
Expr Graph::lookup(const LookupParameter& t, std::span<const uint32_t> ids) {
  return impl_->expr(impl_->lookup(table_record(t), ids, false));
}
Expr Graph::lookup_pointer(const LookupParameter& t, const uint32_t* ids, uint32_t count) {
  if (!ids)
    fail(ErrorKind::argument,
         "[lookup_pointer] the pointer is null (needs memory that outlives the node)");
  return impl_->expr(impl_->lookup(table_record(t), {ids, count}, false, true));
}
Expr Graph::const_lookup(const LookupParameter& t, std::span<const uint32_t> ids) {
  return impl_->expr(impl_->lookup(table_record(t), ids, true));
}

std::vector<Expr> Graph::apply(std::string_view op, std::span<const Expr> inputs,
                               const Attrs& attrs, SourceLine where) {
  const OpEntry& entry = impl_->runtime().registry().op(op);
  std::vector<uint32_t> in(inputs.size());
  for (size_t i = 0; i < in.size(); ++i) in[i] = impl_->id_or_absent(inputs[i]);
  const uint32_t id = impl_->apply(entry, in, attrs, where);
  std::vector<Expr> out;
  for (uint32_t o = 0; o < entry.n_visible; ++o) out.push_back(impl_->expr(id + o));
  return out;
}
Expr Graph::apply1(std::string_view op, std::initializer_list<Expr> inputs, const Attrs& attrs,
                   SourceLine where) {
  return apply(op, std::span(inputs.begin(), inputs.size()), attrs, where)[0];
}

TensorView Graph::value(const Expr& e) { return engine(*impl_).value(impl_->id_of(e)); }
TensorView Graph::incremental_forward(const Expr& e) { return value(e); }
TensorView Graph::forward(const Expr& e) {
  const uint32_t id = impl_->id_of(e);
  engine(*impl_).invalidate(1);
  return engine(*impl_).value(id);
}
std::vector<TensorView> Graph::forward(std::span<const Expr> es) {
  std::vector<uint32_t> ids;
  for (const Expr& e : es) ids.push_back(impl_->id_of(e));
  engine(*impl_).invalidate(1);
  engine(*impl_).compute(ids);
  std::vector<TensorView> out;
  for (const uint32_t id : ids) out.push_back(engine(*impl_).value(id));
  return out;
}
void Graph::forward_all() { engine(*impl_).compute_all(); }
void Graph::keep(const Expr& e) { engine(*impl_).keep(impl_->id_of(e)); }
void Graph::invalidate() { engine(*impl_).invalidate(1); }
void Graph::invalidate(const Expr& from) {
  engine(*impl_).invalidate(impl_->node_of(impl_->id_of(from)));
}

void Graph::backward(const Expr& loss, bool full) {
  engine(*impl_).backward(impl_->id_of(loss), full);
}
TensorView Graph::gradient(const Expr& e) { return engine(*impl_).gradient(impl_->id_of(e)); }
void Graph::on_gradient(const Expr& e, std::function<void(const TensorView&)> f) {
  if (!f) fail(ErrorKind::argument, "[on_gradient] the function is empty (needs one to call)");
  engine(*impl_).add_hook(impl_->id_of(e), std::move(f));
}

void Graph::checkpoint() { engine(*impl_).checkpoint(); }
void Graph::revert() { engine(*impl_).revert(); }

size_t Graph::size() const { return impl_->nodes(); }
uint64_t Graph::serial() const { return impl_->serial(); }
GraphStats Graph::stats() const {
  GraphStats s = engine(*impl_).stats();
  if (impl_->inner_) s.reserved_bytes += Graph(impl_->inner_).stats().reserved_bytes;
  return s;
}
void Graph::shrink() {
  if (size() > 0)
    fail(ErrorKind::state, "[shrink] the graph has " + std::to_string(size()) +
                               " nodes (needs an empty one: call clear first)");
  engine(*impl_).shrink();
  impl_->shrink();
}
std::string Graph::describe(const Expr& e) const { return impl_->describe(impl_->id_of(e)); }

void Graph::dot(std::ostream& out, bool memory) const {
  out << "digraph G {\n  rankdir=LR;\n  nodesep=.05;\n";
  for (uint32_t id = 1; id < impl_->size(); ++id) {
    if (impl_->value(id).flags & kSecondary) continue;
    std::string label;
    const std::string text = impl_->describe(id);
    for (const char c : text.substr(text.find("= ") + 2)) {
      if (c == '"' || c == '\\') label += '\\';
      label += c;
    }
    out << "  N" << id << " [label=\"v" << id << " = " << label;
    if (memory) out << "\\n" << impl_->cls_of(id).bytes << " bytes";
    out << "\"];\n";
    for (const uint32_t in : impl_->inputs(id))
      if (in) out << "  N" << impl_->node_of(in) << " -> N" << id << ";\n";
  }
  out << "}\n";
}

void Graph::dump(std::ostream& out, bool values, bool gradients, bool nan_check) {
  engine(*impl_).compute_all();
  if (size() == 0) out << "empty graph\n";
  for (uint32_t id = 1; id < impl_->size(); ++id) {
    const detail::Pattern& p = impl_->pattern_of(id);
    if (id - impl_->node_of(id) >= p.n_visible) continue;  // hidden
    out << impl_->describe(id) << "\n";
    const auto part = [&](const char* what, const TensorView& t) {
      if (nan_check)
        out << "  " << what << ": "
            << (!is_float(t.dtype()) || tensor_tools::is_finite(t) ? "valid" : "invalid") << "\n";
      else
        out << "  " << what << ": " << t.to_string() << "\n";
    };
    if (impl_->value(id).flags & detail::kFreed) {
      out << "  value: (given back)\n";
      continue;
    }
    if (values || nan_check) part("value", engine(*impl_).value(id));
    if (!gradients) continue;
    if (engine(*impl_).gradient_known(id))
      part("gradient", engine(*impl_).gradient(id));
    else
      out << "  gradient: (not computed)\n";
  }
}

const Dim& Expr::dim() const {
  const GraphImpl& g = impl();
  return g.cls_of(id_).dim;
}
DType Expr::dtype() const {
  const GraphImpl& g = impl();
  return g.cls_of(id_).dtype;
}
TensorView Expr::value() const { return engine(impl()).value(id_); }
double Expr::scalar() const { return value().as_scalar(); }
TensorView Expr::gradient() const { return engine(impl()).gradient(id_); }
Graph Expr::graph() const { return Graph(impl().shared_from_this()); }
Device Expr::device() const {
  const GraphImpl& g = impl();
  return g.cls_of(id_).device;
}
GraphImpl& Expr::impl() const { return GraphImpl::of(*this); }
bool Expr::alive() const noexcept { return slot_ && slot_->impl && slot_->impl->alive(*this); }

}  // namespace trellis
