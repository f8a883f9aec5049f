// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <cmath>

#include "model/norm.hpp"
#include "train/trainer.hpp"

namespace trellis::detail {
namespace {

template <class T>
void decay_values(const ParamRecord& r, double decay) {
  T* const w = reinterpret_cast<T*>(r.value);
  const T keep = static_cast<T>(1 - decay);
  for (uint64_t i = 0, n = r.dim.elements(); i < n; ++i) w[i] *= keep;
}

// The first of n elements that is NaN or Inf.
uint64_t first_bad(const char* data, uint64_t n, DType dtype) {
  uint64_t i = 0;
  if (dtype == DType::f32)
    while (i < n && std::isfinite(reinterpret_cast<const float*>(data)[i])) ++i;
  else
    while (i < n && std::isfinite(reinterpret_cast<const double*>(data)[i])) ++i;
  return i;
}

}  // namespace

// `gradient` holds a NaN or Inf; a table's rows are not folded then.
void TrainerImpl::refuse(const ParamRecord& r, const GradSlot& gradient) const {
  const char* const data = gradient.touched ? gradient.dense : gradient.sparse->data();
  const uint64_t n = gradient.touched ? r.dim.elements() : gradient.sparse->elements();
  const uint64_t i = first_bad(data, n, r.dtype);
  const double value = r.dtype == DType::f32
                           ? static_cast<double>(reinterpret_cast<const float*>(data)[i])
                           : reinterpret_cast<const double*>(data)[i];
  const std::string place =
      gradient.touched
          ? fmt::format("element {}", i)
          : fmt::format("row {} element {}", gradient.sparse->touched()[i / r.row_elements],
                        i % r.row_elements);
  fail(ErrorKind::numeric,
       fmt::format("[{}] bad gradient of {} {}: {} at {} (finite numbers; nothing was updated, "
                   "gradients are cleared)",
                   entry.id, r.name, r.dim.to_string(), value, place));
}

void TrainerImpl::update(GradientBlock& gradients) {
  ModelRoot& root = model.root();
  GradientBlock::Impl& block = gradients.impl();
  if (block.root != &root)
    fail(ErrorKind::argument, fmt::format("[{}] gradients of another model: a block of it (a block "
                                          "of the trainer's model)",
                                          entry.id));
  const std::lock_guard lock(root.mutex);
  std::vector<const ParamRecord*> all, trained;
  for (const auto& r : root.records) {
    if (!r->name.starts_with(model.path())) continue;
    all.push_back(r.get());
    if (r->trainable) trained.push_back(r.get());
  }
  struct Clear {
    GradientBlock::Impl& block;
    const std::vector<const ParamRecord*>& records;
    ~Clear() {
      for (const ParamRecord* r : records) block.clear(*r);
    }
  } const clear{block, all};

  NormSum norm;
  for (const ParamRecord* r : trained)
    if (!block.add_norm(*r, norm)) refuse(*r, block.slot(*r));
  const bool clipped = clip_threshold > 0 && norm.exceeds(clip_threshold);
  const double grad_scale = clipped ? norm.factor(clip_threshold) : 1.0;

  // Everything that may run out of memory, before anything changes.
  for (const ParamRecord* r : trained) {
    const GradSlot& g = block.slot(*r);
    const bool by_rows = r->lookup && sparse_updates && !g.touched;
    if (!by_rows) block.fold(*r);
    if (!by_rows || g.sparse != nullptr) slots_of(*r);
  }

  const auto check = [&](trl_status status, const std::string& what) {
    if (status != TRL_OK)
      fail(kind_of(status),
           fmt::format("[{}] {}: {} (plugin {} {})", entry.id, what, call_.take_text(status),
                       entry.plugin->id, entry.plugin->version));
  };
  call_.begin(Phase::update, entry.plugin->self);
  const std::span<const trl_attr> values = attrs.all();
  if (entry.desc.begin_step != nullptr)
    check(entry.desc.begin_step(&call_, values.data(), static_cast<uint32_t>(values.size()),
                                step + 1),
          fmt::format("start of step {} failed", step + 1));

  trl_update_args args{};
  args.struct_size = sizeof args;
  args.call = &call_;
  args.attrs = values.data();
  args.n_attrs = static_cast<uint32_t>(values.size());
  args.n_slots = static_cast<uint32_t>(entry.slots.size());
  args.lr = learning_rate();
  args.grad_scale = grad_scale;
  args.step = step + 1;
  for (const ParamRecord* r : trained) {
    const GradSlot& g = block.slot(*r);
    trl_tensor value = tensor_like(*r, r->value);
    trl_tensor gradient = tensor_like(*r, g.dense);
    args.rows = nullptr;
    args.n_rows = 0;
    bool wanted = true;
    if (!g.touched) {  // a table, by rows
      wanted = g.sparse != nullptr && !g.sparse->touched().empty();
      if (wanted) {
        args.rows = g.sparse->touched().data();
        args.n_rows = static_cast<uint32_t>(g.sparse->touched().size());
        gradient.data = g.sparse->data();
        gradient.dim.d[gradient.dim.rank - 1] = args.n_rows;
        gradient.batch_stride = g.sparse->elements();
      }
    }
    if (wanted) {
      slot_views_.clear();
      for (char* const data : slots_of(*r)) slot_views_.push_back(tensor_like(*r, data));
      args.value = &value;
      args.grad = &gradient;
      args.slots = slot_views_.data();
      const trl_status status = kernel.update(&args);
      scratch_.rewind();
      check(status, fmt::format("update of {} failed", r->name));
    }
    if (weight_decay > 0)
      r->dtype == DType::f32 ? decay_values<float>(*r, weight_decay)
                             : decay_values<double>(*r, weight_decay);
  }
  gradient_norm = norm.value();
  ++step;
  ++updates;
  if (clipped) ++clips;
}

}  // namespace trellis::detail
