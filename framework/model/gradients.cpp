// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "model/norm.hpp"
#include "model/records.hpp"

namespace trellis {
namespace detail {
namespace {

template <class T>
void add_elements(char* to, const char* from, uint64_t n) {
  auto* t = reinterpret_cast<T*>(to);
  const auto* f = reinterpret_cast<const T*>(from);
  for (uint64_t i = 0; i < n; ++i) t[i] += f[i];
}

void add_elements(DType dtype, char* to, const char* from, uint64_t n) {
  dtype == DType::f32 ? add_elements<float>(to, from, n) : add_elements<double>(to, from, n);
}

void add_rows(const ParamRecord& r, char* table, const SparseRows& rows) {
  const std::vector<uint32_t>& touched = rows.touched();
  for (size_t i = 0; i < touched.size(); ++i)
    add_elements(r.dtype, table + touched[i] * r.row_bytes(), rows.data() + i * r.row_bytes(),
                 r.row_elements);
}

}  // namespace

SparseRows::SparseRows(const ParamRecord& record)
    : row_elements_(record.row_elements),
      row_bytes_(record.row_bytes()),
      rows_(record.rows),
      slots_(record.rows * sizeof(uint32_t)) {}

char* SparseRows::row(uint32_t r) {
  uint32_t& slot = slots()[r];
  if (slot != 0) return data_.data() + (slot - 1) * row_bytes_;
  const size_t n = touched_.size();
  if ((n + 1) * row_bytes_ > data_.size()) {
    constexpr size_t kFirstBytes = 1 << 16;
    data_.resize(std::max({(n + 1) * row_bytes_, 2 * data_.size(), kFirstBytes}));
  }
  touched_.push_back(r);
  slot = static_cast<uint32_t>(n + 1);
  return static_cast<char*>(std::memset(data_.data() + n * row_bytes_, 0, row_bytes_));
}

const char* SparseRows::find(uint32_t r) const {
  const uint32_t slot = r < rows_ ? slots()[r] : 0;
  return slot == 0 ? nullptr : data_.data() + (slot - 1) * row_bytes_;
}

void SparseRows::clear() {
  for (const uint32_t r : touched_) slots()[r] = 0;
  touched_.clear();
}

}  // namespace detail

char* GradientBlock::Impl::dense(const detail::ParamRecord& r) {
  detail::GradSlot& s = slot(r);
  if (s.dense == nullptr) s.dense = static_cast<char*>(memory.allocate(r.bytes()));
  if (!s.touched) {
    std::memset(s.dense, 0, r.bytes());
    s.touched = true;
  }
  return s.dense;
}

detail::SparseRows& GradientBlock::Impl::sparse(const detail::ParamRecord& r) {
  detail::GradSlot& s = slot(r);
  if (s.sparse == nullptr) s.sparse = std::make_unique<detail::SparseRows>(r);
  return *s.sparse;
}

char* GradientBlock::Impl::fold(const detail::ParamRecord& r) {
  char* const table = dense(r);
  detail::GradSlot& s = slot(r);
  if (s.sparse != nullptr) {
    detail::add_rows(r, table, *s.sparse);
    s.sparse->clear();
  }
  return table;
}

char* GradientBlock::Impl::spread(const detail::ParamRecord& r) {
  char* const table = dense(r);
  detail::GradSlot& s = slot(r);
  s.touched = false;
  if (s.sparse != nullptr) detail::add_rows(r, table, *s.sparse);
  return table;
}

void GradientBlock::Impl::clear(const detail::ParamRecord& r) {
  if (r.index >= slots.size()) return;
  detail::GradSlot& s = slots[r.index];
  s.touched = false;
  if (s.sparse != nullptr) s.sparse->clear();
}

bool GradientBlock::Impl::add_norm(const detail::ParamRecord& r, detail::NormSum& norm) {
  if (r.index >= slots.size()) return true;
  const detail::GradSlot& s = slots[r.index];
  if (s.touched) return norm.add(fold(r), r.dim.elements(), r.dtype);
  return s.sparse == nullptr || norm.add(s.sparse->data(), s.sparse->elements(), r.dtype);
}

GradientBlock::GradientBlock(const Model& model) : impl_(std::make_unique<Impl>(model.root())) {
  impl_->keep = model.root().shared_from_this();
}
GradientBlock::~GradientBlock() = default;
GradientBlock::GradientBlock(GradientBlock&&) noexcept = default;
GradientBlock& GradientBlock::operator=(GradientBlock&&) noexcept = default;

GradientBlock::Impl& GradientBlock::impl() const {
  if (!impl_)
    fail(ErrorKind::state, "[gradients] the block was moved from (needs the one it was moved to)");
  return *impl_;
}

void GradientBlock::clear() {
  Impl& own = impl();
  for (const auto& r : own.root->records) own.clear(*r);
}

void GradientBlock::add(const GradientBlock& other) {
  Impl& to = impl();
  const Impl& from = other.impl();
  if (from.root != to.root)
    fail(ErrorKind::argument,
         "[gradient block] blocks of two models cannot be added: another model (the same model)");
  if (&other == this)
    fail(ErrorKind::argument,
         "[gradient block] a block cannot be added to itself: "
         "itself (another block of the same model)");
  for (size_t i = 0; i < from.slots.size(); ++i) {
    const detail::GradSlot& s = from.slots[i];
    const detail::ParamRecord& r = *to.root->records[i];
    if (s.touched) detail::add_elements(r.dtype, to.dense(r), s.dense, r.dim.elements());
    if (s.sparse == nullptr) continue;
    const std::vector<uint32_t>& touched = s.sparse->touched();
    if (touched.empty()) continue;
    detail::SparseRows& rows = to.sparse(r);
    for (size_t k = 0; k < touched.size(); ++k)
      detail::add_elements(r.dtype, rows.row(touched[k]), s.sparse->data() + k * r.row_bytes(),
                           r.row_elements);
  }
}

}  // namespace trellis
