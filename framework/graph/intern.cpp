// SPDX-License-Identifier: Apache-2.0
//
// Interning of shapes, classes, attribute sets, leaf patterns and batching keys. Equality is of the
// whole content; hashes only find candidates.

#include "graph/graph_impl.hpp"
#include "graph/tables.hpp"

namespace trellis::detail {
namespace {

uint64_t hash_dim(const Dim& dim, uint64_t h) {
  h = mum(h ^ dim.rank, kMum);
  for (uint32_t i = 0; i < dim.rank; ++i) h = mum(h ^ dim.d[i], kMum + i);
  return h;
}

bool same_sizes(const Dim& a, const Dim& b) {
  return a.rank == b.rank && std::memcmp(a.d, b.d, a.rank * sizeof a.d[0]) == 0;
}

// Size of the values an attribute points to.
size_t pointed_bytes(const trl_attr& a) {
  if (a.type == TRL_ATTR_I64S || a.type == TRL_ATTR_F64S) return size_t(a.count) * 8;
  if (a.type == TRL_ATTR_STR) return a.v.s.n;
  return 0;
}

const void* pointed(const trl_attr& a) {
  return a.type == TRL_ATTR_STR ? static_cast<const void*>(a.v.s.p)
                                : static_cast<const void*>(a.v.is);
}

bool same_attr(const trl_attr& a, const trl_attr& b) {
  if (a.type != b.type || a.count != b.count) return false;
  if (const size_t n = pointed_bytes(a); n || a.type >= TRL_ATTR_I64S)
    return n == pointed_bytes(b) && (n == 0 || std::memcmp(pointed(a), pointed(b), n) == 0);
  return a.v.i == b.v.i;
}

uint64_t hash_bytes(const void* p, size_t n, uint64_t h) {
  const char* c = static_cast<const char*>(p);
  for (; n >= 8; n -= 8, c += 8) {
    uint64_t w;
    std::memcpy(&w, c, 8);
    h = mum(h ^ w, kMum);
  }
  uint64_t w = 0;
  if (n) std::memcpy(&w, c, n);
  return mum(h ^ w ^ n, kMum);
}

}  // namespace

uint32_t GraphImpl::intern_shape(const Dim& dim, DType dtype) {
  const uint64_t h = hash_dim(dim, uint64_t(dtype) << 32);
  const auto equal = [&](uint32_t i) {
    return same_sizes(shapes_[i], dim) && shapes_[i].batch == uint32_t(dtype);
  };
  if (const uint32_t i = tables_->shapes.find(h, equal)) return i;
  Dim s = dim;
  s.batch = uint32_t(dtype);  // the slot of the batch holds the dtype here
  shapes_.push_back(s);
  const auto index = uint32_t(shapes_.size() - 1);
  tables_->shapes.insert(h, index);
  return index;
}

uint32_t GraphImpl::intern_class(const Dim& dim, DType dtype, uint32_t shared, Device device) {
  const auto equal = [&](uint32_t i) {
    const ClassInfo& c = classes_[i];
    return c.shared == shared && c.dtype == dtype && c.dim.batch == dim.batch &&
           c.device == device && same_sizes(c.dim, dim);
  };
  if (tables_->last_class && equal(tables_->last_class)) return tables_->last_class;
  const uint64_t h =
      hash_dim(dim, (uint64_t(dtype) << 32) ^ mum(shared, kMum) ^ (uint64_t(dim.batch) << 40) ^
                        (uint64_t(device.number()) << 36));
  uint32_t i = tables_->classes.find(h, equal);
  if (!i) {
    ClassInfo c;
    c.dim = dim;
    c.dtype = dtype;
    c.shared = shared;
    c.device = device;
    c.elements = dim.elements();
    c.bytes = dim.total() * dtype_size(dtype);
    c.shape = intern_shape(dim, dtype);
    classes_.push_back(c);
    i = uint32_t(classes_.size() - 1);
    tables_->classes.insert(h, i);
  }
  return tables_->last_class = i;
}

uint32_t GraphImpl::leaf_pattern(Kind kind, uint32_t cls) {
  const uint64_t h = mum((uint64_t(kind) << 32) | cls, kMum);
  const auto equal = [&](uint32_t i) {
    return patterns_[i]->kind == kind && patterns_[i]->first_cls == cls;
  };
  if (const uint32_t i = tables_->leaves.find(h, equal)) return i;
  auto p = std::make_unique<Pattern>();
  p->kind = kind;
  p->first_cls = cls;
  p->batch = classes_[cls].dim.batch;
  p->dtype = classes_[cls].dtype;
  p->needs_payload = true;
  p->gradient_place = kind == Kind::parameter || kind == Kind::table ? GradientPlace::parameter
                      : kind == Kind::lookup || kind == Kind::const_lookup ? GradientPlace::mirrored
                                                                           : GradientPlace::own;
  p->gain_ns = kind == Kind::lookup || kind == Kind::const_lookup ? 2 : 0;
  const auto index = uint32_t(patterns_.size());
  p->index = index;
  p->next = patterns_[0].get();
  p->out_bytes = classes_[cls].bytes;
  p->room = p->out_bytes + value_alignment(p->out_bytes);
  patterns_.push_back(std::move(p));
  tables_->leaves.insert(h, index);
  return index;
}

// The per-batch attributes take no part: they come with count 0.
uint32_t GraphImpl::intern_attrs(const OpEntry& op, std::span<const trl_attr> attrs) {
  uint64_t h = mum(op.handle, kMum);
  for (size_t i = 0; i < attrs.size(); ++i) {
    if (op.attrs[i].per_batch()) continue;
    const trl_attr& a = attrs[i];
    h = mum(h ^ a.type ^ (uint64_t(a.count) << 8), kMum);
    h = a.type >= TRL_ATTR_I64S ? hash_bytes(pointed(a), pointed_bytes(a), h)
                                : mum(h ^ uint64_t(a.v.i), kMum);
  }
  const auto equal = [&](uint32_t s) {
    const AttrSet& set = attr_sets_[s];
    if (set.op != op.handle) return false;
    for (size_t i = 0; i < attrs.size(); ++i)
      if (!op.attrs[i].per_batch() && !same_attr(set.attrs[i], attrs[i])) return false;
    return true;
  };
  if (const uint32_t s = tables_->attrs.find(h, equal)) return s;

  // Seen for the first time: ranges and choices hold from here on.
  for (size_t i = 0; i < attrs.size(); ++i)
    if (!op.attrs[i].per_batch()) check_attrs(op.name, {&op.attrs[i], 1}, {&attrs[i], 1});

  AttrSet set;
  set.op = op.handle;
  set.hash = h;
  set.attrs.assign(attrs.begin(), attrs.end());
  size_t bytes = 0;
  for (size_t i = 0; i < attrs.size(); ++i)
    if (!op.attrs[i].per_batch()) bytes += (pointed_bytes(attrs[i]) + 7) & ~size_t(7);
  if (bytes) set.memory = std::make_unique<char[]>(bytes);
  char* at = set.memory.get();
  for (size_t i = 0; i < attrs.size(); ++i) {
    trl_attr& a = set.attrs[i];
    if (op.attrs[i].per_batch()) {
      a = trl_attr{};
      a.type = op.attrs[i].type;
      continue;
    }
    if (const size_t n = pointed_bytes(a)) {
      std::memcpy(at, pointed(a), n);
      if (a.type == TRL_ATTR_STR)
        a.v.s.p = at;
      else
        a.v.is = reinterpret_cast<const int64_t*>(at);
      at += (n + 7) & ~size_t(7);
    }
  }
  attr_sets_.push_back(std::move(set));
  const auto index = uint32_t(attr_sets_.size() - 1);
  tables_->attrs.insert(h, index);
  return index;
}

uint32_t GraphImpl::intern_key(const std::string& bytes, uint32_t pattern) {
  const auto [it, fresh] = tables_->keys.emplace(bytes, uint32_t(keys_.size()));
  if (fresh) {
    keys_.push_back(std::make_unique<KeyInfo>());
    keys_.back()->pattern = pattern;
  }
  return it->second;
}

}  // namespace trellis::detail
