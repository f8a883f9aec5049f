// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <cmath>

#include "model/records.hpp"

namespace trellis {
namespace {

using detail::ParamRecord;

template <class T>
void set_values(const char* who, const std::string& name, const TensorView& to,
                std::span<const T> v) {
  if (v.size() != to.dim().elements())
    fail(ErrorKind::shape, fmt::format("[{} {}] wrong number of values: {} ({} for {})", who, name,
                                       v.size(), to.dim().elements(), to.dim().to_string()));
  tensor_tools::set_elements(to, v);
}

void check_row(const ParamRecord& r, const char* who, uint32_t i) {
  if (i >= r.rows)
    fail(ErrorKind::range,
         fmt::format("[{} {}] row out of range: {} (0..{})", who, r.name, i, r.rows - 1));
}

Dim row_dim_of(const ParamRecord& r) { return r.dim.deleted(r.dim.rank - 1); }

GradientBlock::Impl& own_block(const ParamRecord& r) { return r.root->gradients.impl(); }

}  // namespace

ParamRecord& Parameter::record() const {
  if (record_ == nullptr)
    fail(ErrorKind::state,
         "[parameter] handle without a parameter: default-made (one made by a model)");
  return *record_;
}

const Dim& Parameter::dim() const { return record().dim; }
DType Parameter::dtype() const { return record().dtype; }
Device Parameter::device() const { return record().device; }
const std::string& Parameter::name() const { return record().name; }
bool Parameter::trainable() const { return record().trainable; }
void Parameter::set_trainable(bool on) { record().trainable = on; }

TensorView Parameter::value() const {
  const ParamRecord& r = record();
  return {r.value, r.dim, r.dtype};
}

TensorView Parameter::gradient() const {
  const ParamRecord& r = record();
  GradientBlock::Impl& block = own_block(r);
  // Looking at a table must not make its next update a dense one.
  char* const data = r.lookup && !block.slot(r).touched ? block.spread(r) : block.fold(r);
  return {data, r.dim, r.dtype};
}

void Parameter::set_value(std::span<const float> v) { set_values("set_value", name(), value(), v); }
void Parameter::set_value(std::span<const double> v) {
  set_values("set_value", name(), value(), v);
}

void Parameter::zero() {
  tensor_tools::fill(value(), 0);
  own_block(*record_).clear(*record_);
}

void Parameter::clip(double lo, double hi) {
  if (!(lo <= hi))
    fail(ErrorKind::argument,
         fmt::format("[clip {}] empty range: {}..{} (lower <= upper)", name(), lo, hi));
  tensor_tools::clip(value(), lo, hi);
}

void Parameter::scale(double s) { tensor_tools::scale(value(), s); }

void Parameter::scale_gradient(double s) {
  const ParamRecord& r = record();
  const detail::GradSlot& g = own_block(r).slot(r);
  if (g.touched) tensor_tools::scale({g.dense, r.dim, r.dtype}, s);
  if (g.sparse != nullptr && !g.sparse->touched().empty()) {
    const auto rows = static_cast<uint32_t>(g.sparse->touched().size());
    tensor_tools::scale({g.sparse->data(), row_dim_of(r).appended(rows), r.dtype}, s);
  }
}

uint32_t LookupParameter::rows() const { return record().rows; }
Dim LookupParameter::row_dim() const { return row_dim_of(record()); }

TensorView LookupParameter::row(uint32_t i) const {
  const ParamRecord& r = record();
  check_row(r, "row", i);
  return {r.value + i * r.row_bytes(), row_dim_of(r), r.dtype};
}

void LookupParameter::set_row(uint32_t i, std::span<const float> v) {
  const ParamRecord& r = record();
  check_row(r, "set_row", i);
  set_values("set_row", r.name, row(i), v);
}

std::span<const uint32_t> LookupParameter::touched_rows() const {
  const ParamRecord& r = record();
  const detail::GradSlot& g = own_block(r).slot(r);
  if (g.sparse == nullptr) return {};
  return g.sparse->touched();
}

TensorView LookupParameter::row_gradient(uint32_t i) const {
  const ParamRecord& r = record();
  check_row(r, "row_gradient", i);
  GradientBlock::Impl& block = own_block(r);
  const detail::GradSlot& g = block.slot(r);
  if (g.touched) return {block.fold(r) + i * r.row_bytes(), row_dim_of(r), r.dtype};
  const char* const data = g.sparse == nullptr ? nullptr : g.sparse->find(i);
  return data == nullptr ? TensorView()
                         : TensorView(const_cast<char*>(data), row_dim_of(r), r.dtype);
}

}  // namespace trellis
