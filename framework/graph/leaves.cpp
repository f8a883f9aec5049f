// SPDX-License-Identifier: Apache-2.0
//
// Leaves: inputs, constants, parameters, look-ups. They belong to the kernel; no plugin computes
// them.

#include "graph/graph_impl.hpp"
#include "graph/tables.hpp"
#include "tensor/element.hpp"

namespace trellis::detail {
namespace {

template <class T>
void fill(char* to, uint64_t n, double v) {
  T* t = reinterpret_cast<T*>(to);
  for (uint64_t i = 0; i < n; ++i) t[i] = static_cast<T>(v);
}

void fill_any(char* to, DType dtype, uint64_t n, double v) {
  switch (dtype) {
    case DType::f32:
      return fill<float>(to, n, v);
    case DType::f64:
      return fill<double>(to, n, v);
    case DType::i32:
      return fill<int32_t>(to, n, v);
    case DType::i64:
      return fill<int64_t>(to, n, v);
    case DType::f16:
    case DType::bf16:
      for (uint64_t i = 0; i < n; ++i) store_element(to, dtype, i, v);
      return;
    case DType::u8:
    case DType::boolean:
      return fill<uint8_t>(to, n, v);
  }
}

}  // namespace

uint32_t GraphImpl::append_leaf(Kind kind, uint32_t cls, uint32_t payload, char* data,
                                bool needs_grad) {
  const uint32_t pattern = leaf_pattern(kind, cls);
  line_ = 0;
  const uint32_t id = append_values(*patterns_[pattern], {}, payload);
  data_[id] = data;
  values_[id].flags =
      (needs_grad ? uint32_t(kNeedsGrad) : 0u) | (data ? uint32_t(kComputed | kAlways) : 0u);
  return options_.immediate && !data ? compute_now(id) : id;
}

uint32_t GraphImpl::constant(const Dim& dim, DType dtype, double value, Device device) {
  core_->check_device("constant", device);
  const uint32_t cls = intern_class(dim, dtype, 0, device);
  auto* data = static_cast<char*>(leaf_arena_.allocate(classes_[cls].bytes));
  fill_any(data, dtype, dim.total(), value);
  return append_leaf(Kind::constant, cls, 0, data, false);
}

uint32_t GraphImpl::input(const Dim& dim, DType dtype, const void* values, DType values_dtype,
                          Device device) {
  core_->check_device("input", device);
  const uint32_t cls = intern_class(dim, dtype, 0, device);
  auto* data = static_cast<char*>(leaf_arena_.allocate(classes_[cls].bytes));
  if (dtype == values_dtype)
    std::memcpy(data, values, classes_[cls].bytes);
  else
    tensor_tools::copy(TensorView(data, dim, dtype),
                       TensorView(const_cast<void*>(values), dim, values_dtype));
  return append_leaf(Kind::input, cls, 0, data, false);
}

uint32_t GraphImpl::input_pointer(const Dim& dim, const void* values, DType values_dtype) {
  if (!values)
    fail(ErrorKind::argument,
         "[input_pointer] the pointer is null (needs memory that outlives the node)");
  const uint32_t cls = intern_class(dim, options_.dtype, 0, options_.device);
  uint32_t payload = 0;
  Payload& p = new_payload(&payload);
  p.pointer = values;
  p.pointer_dtype = values_dtype;
  // Not computed until a forward reads it.
  return append_leaf(Kind::input_pointer, cls, payload, nullptr, false);
}

uint32_t GraphImpl::sparse_input(const Dim& dim, std::span<const uint64_t> ids,
                                 std::span<const double> values, double dflt) {
  if (ids.size() != values.size())
    fail(ErrorKind::argument,
         "[sparse_input] numbers of ids and values differ: " + std::to_string(ids.size()) +
             " ids, " + std::to_string(values.size()) + " values (must be equal)");
  const uint64_t total = dim.total();
  for (const uint64_t i : ids)
    if (i >= total)
      fail(ErrorKind::range, "[sparse_input] id is out of bounds: " + std::to_string(i) + " in " +
                                 dim.to_string() + " (needs 0 to " + std::to_string(total - 1) +
                                 ")");
  const uint32_t id = constant(dim, options_.dtype, dflt);
  const TensorView view(data_[id], dim, options_.dtype);
  for (size_t i = 0; i < ids.size(); ++i) view.set(ids[i], values[i]);
  return id;
}

GraphImpl::ParamSlot& GraphImpl::param_slot(uint32_t uid) {
  if (params_.empty() || n_params_ * 2 >= params_.size()) {
    std::vector<ParamSlot> old = std::move(params_);
    params_.assign(old.empty() ? 64 : old.size() * 2, {});
    const std::vector<ParamSlot> live = std::move(old);
    for (const ParamSlot& s : live)
      if (s.stamp == segments_.front().stamp) {
        size_t i = mum(s.uid, kMum) & (params_.size() - 1);
        while (params_[i].uid) i = (i + 1) & (params_.size() - 1);
        params_[i] = s;
      }
  }
  const uint32_t stamp = segments_.front().stamp;  // changes with clear() only
  size_t i = mum(uid, kMum) & (params_.size() - 1);
  while (params_[i].stamp == stamp && params_[i].uid != uid) i = (i + 1) & (params_.size() - 1);
  if (params_[i].stamp != stamp) {
    params_[i] = {uid, 0, stamp};
    ++n_params_;
  }
  return params_[i];
}

// One node a parameter and graph; asking again returns it.
uint32_t GraphImpl::parameter(ParamRecord& r, bool constant) {
  const uint32_t identity = r.uid * 2 + (constant ? 1 : 0);
  const uint32_t known = param_slot(identity).id;
  if (known && known < values_.size() && is_leaf(pattern_of(known).kind) &&
      values_[known].payload && payloads_[values_[known].payload]->record == &r &&
      cls_of(known).shared == identity)
    return known;
  hold(r);
  uint32_t payload = 0;
  new_payload(&payload).record = &r;
  const Kind kind = r.lookup ? (constant ? Kind::const_table : Kind::table)
                             : (constant ? Kind::const_parameter : Kind::parameter);
  const uint32_t id = append_leaf(kind, intern_class(r.dim, r.dtype, identity, r.device), payload,
                                  r.value, !constant && r.trainable);
  param_slot(identity).id = id;
  return id;
}

uint32_t GraphImpl::lookup(ParamRecord& r, std::span<const uint32_t> ids, bool constant,
                           bool by_pointer) {
  if (ids.empty())
    fail(ErrorKind::argument, "[lookup] no ids given for '" + r.name + "' (needs at least one)");
  if (!by_pointer)
    for (size_t i = 0; i < ids.size(); ++i)
      if (ids[i] >= r.rows)
        fail(ErrorKind::range, "[lookup] id is out of bounds: " + std::to_string(ids[i]) +
                                   (ids.size() > 1 ? ", batch element " + std::to_string(i) : "") +
                                   " of '" + r.name + "' (needs 0 to " +
                                   std::to_string(r.rows - 1) + ")");
  hold(r);
  Dim dim = r.dim;
  dim.rank -= 1;
  dim.d[dim.rank] = 1;
  dim.batch = uint32_t(ids.size());
  uint32_t payload = 0;
  Payload& p = new_payload(&payload);
  p.record = &r;
  p.n_ids = uint32_t(ids.size());
  p.ids = ids.data();
  if (!by_pointer) {
    auto* copy = leaf_arena_.array<uint32_t>(ids.size());
    std::memcpy(copy, ids.data(), ids.size_bytes());
    p.ids = copy;
  }
  return append_leaf(constant ? Kind::const_lookup : Kind::lookup,
                     intern_class(dim, r.dtype, 0, r.device), payload, nullptr,
                     !constant && r.trainable);
}

}  // namespace trellis::detail
