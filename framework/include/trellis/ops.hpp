// SPDX-License-Identifier: Apache-2.0
//
// What the typed functions of trellis/ops/*.hpp stand on: an operator by number, attributes in the
// order of its schema. No look-up of names and no allocation.
#pragma once

#include <trellis/abi/attr.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <span>
#include <string_view>
#include <trellis/graph.hpp>
#include <vector>

namespace trellis {

// Process-wide number of a full operator id. Takes a lock; keep the result.
TRELLIS_API uint32_t op_name_id(std::string_view full_id);

// Applies an operator to at least one input; trailing inputs that belong to no graph (Expr()) are
// left out. `attrs` are those of the schema, all of them, in its order, else Error(argument). `out`
// receives as many visible outputs as it has room for. `attr_batch`: how many batch elements lists
// of ids were given for; 0: as many as the inputs have.
TRELLIS_API void apply_ordered(uint32_t name_id, std::span<const Expr> in,
                               std::span<const trl_attr> attrs, std::span<Expr> out,
                               uint32_t attr_batch = 0, SourceLine where = SourceLine::here());
// The same for an operator without inputs.
TRELLIS_API void apply_ordered(uint32_t name_id, const Graph& graph,
                               std::span<const trl_attr> attrs, std::span<Expr> out,
                               uint32_t attr_batch = 0, SourceLine where = SourceLine::here());

namespace detail {

inline trl_attr attr_of(int64_t v) {
  trl_attr a{TRL_ATTR_I64, 1, {}, nullptr};
  a.v.i = v;
  return a;
}
inline trl_attr attr_of(double v) {
  trl_attr a{TRL_ATTR_F64, 1, {}, nullptr};
  a.v.f = v;
  return a;
}
inline trl_attr attr_of(bool v) {
  trl_attr a{TRL_ATTR_BOOL, 1, {}, nullptr};
  a.v.i = v;
  return a;
}
inline trl_attr choice_of(int64_t index) {
  trl_attr a{TRL_ATTR_CHOICE, 1, {}, nullptr};
  a.v.i = index;
  return a;
}
inline trl_attr attr_of(std::span<const int64_t> v) {
  trl_attr a{TRL_ATTR_I64S, static_cast<uint32_t>(v.size()), {}, nullptr};
  a.v.is = v.data();
  return a;
}
inline trl_attr attr_of(std::span<const double> v) {
  trl_attr a{TRL_ATTR_F64S, static_cast<uint32_t>(v.size()), {}, nullptr};
  a.v.fs = v.data();
  return a;
}

// Per-batch ids in the form of the interface: one value per batch element, or a list for each. Up
// to 32 values lie in the object itself.
class IdsAttr {
 public:
  explicit IdsAttr(std::span<const uint32_t> ids) : count_(static_cast<uint32_t>(ids.size())) {
    int64_t* to = reserve(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) to[i] = ids[i];
  }
  explicit IdsAttr(std::span<const std::vector<uint32_t>> lists) {
    size_t n = 0;
    for (const auto& list : lists) n += list.size();
    count_ = static_cast<uint32_t>(n);
    int64_t* to = reserve(n);
    offsets_.push_back(0);
    for (const auto& list : lists) {
      for (uint32_t id : list) *to++ = id;
      offsets_.push_back(offsets_.back() + static_cast<uint32_t>(list.size()));
    }
  }
  IdsAttr(const IdsAttr&) = delete;
  IdsAttr& operator=(const IdsAttr&) = delete;
  operator trl_attr() const {
    trl_attr a{TRL_ATTR_I64S, count_, {}, offsets_.empty() ? nullptr : offsets_.data()};
    a.v.is = large_ ? large_.get() : small_;
    return a;
  }

 private:
  int64_t* reserve(size_t n) {
    if (n <= sizeof small_ / sizeof *small_) return small_;
    large_ = std::make_unique<int64_t[]>(n);
    return large_.get();
  }
  uint32_t count_ = 0;
  int64_t small_[32];
  std::unique_ptr<int64_t[]> large_;
  std::vector<uint32_t> offsets_;
};

// Inputs of an operator that takes some by name and then any number.
class JoinedInputs {
 public:
  JoinedInputs(std::initializer_list<Expr> first, std::span<const Expr> rest)
      : count_(first.size() + rest.size()) {
    Expr* to = small_;
    if (count_ > std::size(small_)) {
      large_.resize(count_);
      to = large_.data();
    }
    for (const Expr& e : first) *to++ = e;
    for (const Expr& e : rest) *to++ = e;
  }
  operator std::span<const Expr>() const {
    return {large_.empty() ? small_ : large_.data(), count_};
  }

 private:
  size_t count_;
  Expr small_[16];
  std::vector<Expr> large_;
};

}  // namespace detail
}  // namespace trellis
