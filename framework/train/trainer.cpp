// SPDX-License-Identifier: Apache-2.0

#include "train/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace trellis {
namespace detail {

TrainerImpl::TrainerImpl(const Model& m, std::string_view id, const Attrs& given)
    : model(m),
      entry(m.root().core->registry->trainer(id)),
      kernel(m.dtype() == DType::f64 ? entry.f64 : entry.f32),
      attrs(entry.id, entry.attrs, given),
      call_(*m.root().core) {
  if (kernel.update == nullptr)
    fail(ErrorKind::dtype,
         fmt::format("[{}] no update kernel for the model's element type: {} ({}; plugin {} {})",
                     entry.id, dtype_name(m.dtype()),
                     dtype_name(m.dtype() == DType::f64 ? DType::f32 : DType::f64),
                     entry.plugin->id, entry.plugin->version));
  call_.scratch = &scratch_;
  call_.plugin_id = entry.plugin->id;
}

double TrainerImpl::learning_rate() const {
  return entry.lr_attr < 0 ? 1.0 : attrs.all()[static_cast<size_t>(entry.lr_attr)].v.f;
}

const std::vector<char*>& TrainerImpl::slots_of(const ParamRecord& r) {
  if (r.index >= slots_.size()) slots_.resize(r.index + 1);
  std::vector<char*>& slots = slots_[r.index];
  if (!slots.empty() || entry.slots.empty()) return slots;
  std::vector<char*> made;
  for (size_t i = 0; i < entry.slots.size(); ++i) {
    if (r.lookup)
      made.push_back(tables_.emplace_back(r.bytes()).data());
    else
      made.push_back(static_cast<char*>(memory_.allocate(r.bytes())));
  }
  slots = std::move(made);
  for (size_t i = 0; i < slots.size(); ++i)
    if (!r.lookup || entry.slots[i].init != 0)
      tensor_tools::fill({slots[i], r.dim, r.dtype}, entry.slots[i].init);
  return slots;
}

void TrainerImpl::restart() {
  // Given back rather than filled: a table's slots cost the touched rows again.
  slots_.clear();
  tables_.clear();
  memory_.rewind();
  step = 0;
}

}  // namespace detail

Trainer::Trainer(const Model& model, std::string_view id, const Attrs& attrs)
    : impl_(std::make_unique<detail::TrainerImpl>(model, id, attrs)) {}
Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;

detail::TrainerImpl& Trainer::impl() const {
  if (!impl_) fail(ErrorKind::state, "[trainer] it was moved from (needs the one it was moved to)");
  return *impl_;
}

void Trainer::update() { impl().update(impl().model.gradients()); }
void Trainer::update(GradientBlock& gradients) { impl().update(gradients); }

void Trainer::set(std::string_view key, const AttrValue& value) {
  impl().attrs.set(impl().entry.id, impl().entry.attrs, key, value);
}

double Trainer::get(std::string_view key) const {
  const auto& specs = impl().entry.attrs;
  const auto it =
      std::find_if(specs.begin(), specs.end(), [&](const auto& spec) { return spec.key == key; });
  if (it == specs.end()) {
    std::vector<std::string> keys;
    for (const auto& spec : specs) keys.push_back(spec.key);
    const std::string near = detail::nearest(key, keys);
    const std::string hint = !near.empty()  ? fmt::format("did you mean '{}'?", near)
                             : keys.empty() ? "it has none"
                                            : fmt::format("{}", fmt::join(keys, ", "));
    fail(ErrorKind::argument,
         fmt::format("[{}] no attribute of this name: '{}' ({})", id(), key, hint));
  }
  const trl_attr& a = impl().attrs.all()[static_cast<size_t>(it - specs.begin())];
  switch (a.type) {
    case TRL_ATTR_F64:
      return a.v.f;
    case TRL_ATTR_I64:
    case TRL_ATTR_BOOL:
      return static_cast<double>(a.v.i);
    default:
      fail(ErrorKind::argument,
           fmt::format("[{}] attribute is no number: '{}' (a number)", id(), key));
  }
}

double Trainer::learning_rate() const { return impl().learning_rate(); }

void Trainer::set_learning_rate(double lr) { set("lr", lr); }

double Trainer::clip_threshold() const { return impl().clip_threshold; }

void Trainer::set_clip_threshold(double threshold) {
  if (!(threshold >= 0))
    fail(ErrorKind::argument,
         fmt::format("[{}] bad clip threshold: {} (a positive number, or 0 for "
                     "no clipping)",
                     id(), threshold));
  impl().clip_threshold = threshold;
}

double Trainer::weight_decay() const { return impl().weight_decay; }

void Trainer::set_weight_decay(double decay) {
  if (!(decay >= 0 && decay < 1))
    fail(ErrorKind::argument,
         fmt::format("[{}] bad weight decay: {} (0 <= decay < 1)", id(), decay));
  impl().weight_decay = decay;
}

bool Trainer::sparse_updates() const { return impl().sparse_updates; }
void Trainer::set_sparse_updates(bool on) { impl().sparse_updates = on; }

void Trainer::restart() { impl().restart(); }

void Trainer::restart(double lr) {
  set_learning_rate(lr);
  restart();
}

uint64_t Trainer::updates() const { return impl().updates; }
uint64_t Trainer::clips() const { return impl().clips; }
double Trainer::gradient_norm() const { return impl().gradient_norm; }

std::string Trainer::status() {
  detail::TrainerImpl& t = impl();
  return fmt::format("[lr={} clips={} updates={}]", learning_rate(),
                     t.clips - std::exchange(t.status_clips, t.clips),
                     t.updates - std::exchange(t.status_updates, t.updates));
}

const std::string& Trainer::id() const { return impl().entry.id; }
const Model& Trainer::model() const { return impl().model; }

}  // namespace trellis
