// SPDX-License-Identifier: Apache-2.0
//
// Applying an operator: find its pattern (or make one through the plugin's shape inference), then
// append values.

#include <algorithm>
#include <bit>

#include "graph/graph_impl.hpp"
#include "graph/tables.hpp"

namespace trellis::detail {
namespace {

std::string plugin_text(const PluginRecord& p) { return p.id + " " + p.version; }

uint64_t hash_pattern(const OpEntry& op, uint32_t attr, uint32_t attr_batch, const uint32_t* cls,
                      size_t n) {
  uint64_t h = mum(op.handle ^ (uint64_t(attr) << 32), kMum);
  h = mum(h ^ attr_batch ^ (uint64_t(n) << 32), kMum);
  for (size_t i = 0; i < n; ++i) h = mum(h ^ cls[i], kMum);
  return h;
}

// The spec of input i: a variadic last one repeats.
const trl_in_spec& in_spec(const OpEntry& op, size_t i) {
  return op.in[std::min(i, op.in.size() - 1)];
}

std::string dtype_text(uint16_t t) { return std::string(dtype_name(static_cast<DType>(t))); }

}  // namespace

void GraphImpl::refuse(const OpEntry& op, std::span<const uint32_t> in, ErrorKind kind,
                       const std::string& text) {
  std::string t = text.starts_with("[") ? text : "[" + op.name + "] " + text;
  t += "; " + plugin_text(*op.plugin);
  if (!in.empty()) {
    t += ", inputs";
    for (size_t i = 0; i < in.size() && i < 8; ++i)
      t += " " + (in[i] ? cls_of(in[i]).dim.to_string() : "-");
    if (in.size() > 8) t += " ..";
  }
  if (line_) t += ", at " + line_text(line_);
  fail(kind, t);
}

uint32_t GraphImpl::append_any(const Pattern& p, const OpEntry& op, uint32_t attr,
                               std::span<const uint32_t> in, uint32_t payload) {
  refuse_computing("given a node");
  if (p.kind == Kind::op && !p.kernel) return expand(p, op, attr, in, payload);
  last_pattern_ = patterns_[p.index].get();
  const uint32_t id = append_values(p, in, payload);
  return options_.immediate ? compute_now(id) : id;
}

uint32_t GraphImpl::append_values(const Pattern& p, std::span<const uint32_t> in,
                                  uint32_t payload) {
  refuse_computing("given a node");
  uint32_t grad = 0;
  if (p.all_inputs_grad) {
    for (const uint32_t i : in) grad |= values_[i].flags;
  } else if (p.any_grad) {
    for (size_t i = 0; i < in.size(); ++i)
      if (!(in_spec(*p.op, i).flags & TRL_IN_NO_GRAD)) grad |= values_[in[i]].flags;
  }
  grad &= p.any_grad ? uint32_t(kNeedsGrad) : 0u;

  const uint32_t id = values_.size();
  if (id + p.n_out < id || id + p.n_out > kMaxValues)
    fail(ErrorKind::memory,
         "[graph] too many nodes: " + std::to_string(nodes_) + " (at most 4 billion values)");
  uint32_t link[4] = {};
  if (in.size() <= 4) {
    for (size_t i = 0; i < in.size(); ++i) link[i] = in[i];
  } else {
    link[0] = input_pool_.size();
    uint32_t* to = input_pool_.extend(uint32_t(in.size()));
    std::memcpy(to, in.data(), in.size_bytes());
  }
  Value* v = values_.extend(p.n_out);
  data_.resize(values_.size());
  v->pattern = p.index;
  v->cls = p.first_cls;
  v->flags = grad;
  v->payload = payload;
  std::memcpy(v->in, link, sizeof link);
  for (uint32_t o = 1; o < p.n_out; ++o)
    v[o] = {p.index, out_class(p, o), grad | kSecondary, payload, {id, o, 0, 0}};
  if (p.op && grad)
    for (uint32_t o = 0; o < p.n_out; ++o)
      if (p.op->out[o].flags & TRL_OUT_NO_GRAD) v[o].flags &= ~uint32_t(kNeedsGrad);
  lines_.resize(values_.size());
  lines_[id] = line_;
  ++nodes_;
  return id;
}

uint32_t GraphImpl::compute_now(uint32_t id) {
  try {
    engine_->added(id);
  } catch (...) {
    truncate(id);
    throw;
  }
  return id;
}

uint32_t GraphImpl::find_pattern(const OpEntry& op, uint32_t attr, uint32_t attr_batch,
                                 std::span<const uint32_t> in) {
  uint32_t small[16];
  std::vector<uint32_t> large;
  uint32_t* cls = small;
  if (in.size() > 16) {
    large.resize(in.size());
    cls = large.data();
  }
  for (size_t i = 0; i < in.size(); ++i) cls[i] = values_[in[i]].cls;
  const uint64_t h = hash_pattern(op, attr, attr_batch, cls, in.size());
  if (options_.memo) {
    const auto equal = [&](uint32_t i) { return matches(*patterns_[i], op, attr, attr_batch, in); };
    if (const uint32_t i = tables_->patterns.find(h, equal)) return i;
  }
  return make_pattern(op, attr, attr_batch, in, h);
}

// Everything that can be wrong is found before anything is added; what is wrong is never
// remembered.
uint32_t GraphImpl::make_pattern(const OpEntry& op, uint32_t attr, uint32_t attr_batch,
                                 std::span<const uint32_t> in, uint64_t hash) {
  refuse_computing("given a node");
  const auto refuse_n = [&](const std::string& text) { refuse(op, in, ErrorKind::argument, text); };

  // number of inputs
  size_t needed = 0;
  for (size_t i = 0; i < op.in.size(); ++i)
    if (!(op.in[i].flags & TRL_IN_OPTIONAL)) needed = i + 1;
  const std::string takes =
      needed == op.in.size() && !op.variadic
          ? std::to_string(needed)
          : (op.variadic ? "at least " + std::to_string(needed)
                         : std::to_string(needed) + " to " + std::to_string(op.in.size()));
  if (in.size() < needed || (!op.variadic && in.size() > op.in.size()))
    refuse_n("takes " + takes + " input" + (takes == "1" ? "" : "s") + ": got " +
             std::to_string(in.size()));

  auto p = std::make_unique<Pattern>();
  p->op = &op;
  p->attr = attr;
  p->attr_batch = attr_batch;
  p->n_in = uint32_t(in.size());

  // dtypes and batch sizes
  uint16_t dtype = 0;
  size_t dtype_input = 0;
  uint32_t batch = std::max(1u, attr_batch);
  bool changes_batch = false;
  for (size_t i = 0; i < in.size(); ++i) {
    const trl_in_spec& spec = in_spec(op, i);
    changes_batch |= spec.merge == TRL_IN_NEVER;
    const std::string name(spec.name.p, spec.name.n);
    if (in[i] == kAbsent) {
      if (!(spec.flags & TRL_IN_OPTIONAL))
        refuse_n("input '" + name + "' is missing: got an empty expression");
      continue;
    }
    const ClassInfo& c = cls_of(in[i]);
    batch = std::max(batch, c.dim.batch);
    if (spec.dtype != 0) {
      if (spec.dtype != uint16_t(c.dtype))
        refuse(op, in, ErrorKind::dtype,
               "input '" + name + "' is " + std::string(dtype_name(c.dtype)) + " (needs " +
                   dtype_text(spec.dtype) + ")");
      continue;
    }
    if (!is_float(c.dtype))
      refuse(op, in, ErrorKind::dtype,
             "input '" + name + "' is " + std::string(dtype_name(c.dtype)) + " (needs f32 or f64)");
    if (dtype == 0) {
      dtype = uint16_t(c.dtype);
      dtype_input = i;
    } else if (dtype != uint16_t(c.dtype)) {
      refuse(op, in, ErrorKind::dtype,
             "float types differ: input " + std::to_string(dtype_input) + " is " +
                 dtype_text(dtype) + ", input " + std::to_string(i) + " is " +
                 std::string(dtype_name(c.dtype)) + " (insert a cast)");
    }
  }
  p->dtype = dtype ? static_cast<DType>(dtype) : options_.dtype;
  p->batch = batch;
  if (!changes_batch) {
    for (size_t i = 0; i < in.size(); ++i)
      if (in[i] && cls_of(in[i]).dim.batch != 1 && cls_of(in[i]).dim.batch != batch)
        refuse(op, in, ErrorKind::shape,
               "batch sizes differ: input " + std::to_string(i) + " is " +
                   cls_of(in[i]).dim.to_string() + " in a batch of " + std::to_string(batch) +
                   " (all must be equal or 1)");
    if (attr_batch > 1 && attr_batch != batch)
      refuse(op, in, ErrorKind::shape,
             "attribute lists are given for " + std::to_string(attr_batch) +
                 " examples in a batch of " + std::to_string(batch));
  }

  p->n_out = uint16_t(op.out.size());
  p->n_visible = op.n_visible;
  p->needs_payload = op.has_per_batch || op.stochastic;
  for (size_t i = 0; i < in.size(); ++i)
    if (in_spec(op, i).flags & TRL_IN_NO_GRAD) p->all_inputs_grad = false;

  const KernelEntry& kernel = op.kernel(p->dtype);
  std::vector<trl_dim> out(p->n_out, trl_dim{0, batch, {1, 1, 1, 1, 1, 1, 1, 1}});
  std::vector<uint16_t> out_dtype(p->n_out);
  std::vector<Dim> dims(p->n_out);
  bool stops_gradient = false;
  if (kernel || !op.desc.expand) infer(*p, in, out, out_dtype, &stops_gradient);
  if (kernel) {
    p->kernel = &kernel.desc;
  } else if (p->view_of < 0) {
    if (!op.desc.expand)
      refuse(op, in, ErrorKind::dtype,
             "no kernel for " + std::string(dtype_name(p->dtype)) + ": provided are " +
                 (op.f32   ? "f32"
                  : op.f64 ? "f64"
                           : "none"));
    if (p->n_visible != 1)
      refuse_n("a composite has " + std::to_string(p->n_visible) + " outputs (needs 1)");
  }
  const bool expands = p->view_of < 0 && !p->kernel;
  if (!expands) {
    for (uint32_t o = 0; o < p->n_out; ++o) {
      try {
        dims[o] = Dim(out[o]);
      } catch (const Error& e) {
        refuse(op, in, ErrorKind::shape,
               "inferred an impossible shape for output " + std::to_string(o) + ": " + e.what());
      }
      if (out_dtype[o] < TRL_F32 || out_dtype[o] > TRL_BOOL)
        refuse(op, in, ErrorKind::dtype,
               "inferred an unknown element type for output " + std::to_string(o) + ": " +
                   std::to_string(out_dtype[o]));
    }
    if (p->view_of >= 0) choose_view(*p, in, dims[0], static_cast<DType>(out_dtype[0]));
    if (!p->kernel && p->kind == Kind::op)
      refuse(op, in, ErrorKind::dtype, "no kernel for " + std::string(dtype_name(p->dtype)));
    p->any_grad = !stops_gradient && (p->kind != Kind::op || p->kernel->backward ||
                                      op.desc.expand_grad || !(op.out[0].flags & TRL_OUT_NO_GRAD));
    p->out_cls = out_cls_pool_.size();
    const Device device = device_of(op, in);
    for (uint32_t o = 0; o < p->n_out; ++o) {
      const uint32_t c = intern_class(dims[o], static_cast<DType>(out_dtype[o]), 0, device);
      out_cls_pool_.push(c);
      if (o == 0) p->first_cls = c;
    }
  }

  const auto index = uint32_t(patterns_.size());
  if (p->kind == Kind::op && p->kernel) {
    make_key(*p, index, in, dims);
    if (p->kernel->create) {
      call_.begin(Phase::create, kernel.plugin->self);
      const trl_status st =
          p->kernel->create(&call_, attrs(attr).data(), uint32_t(attrs(attr).size()), &p->state);
      if (st != TRL_OK) refuse(op, in, kind_of(st), call_.take_text(st));
    }
  }
  if (in.size() <= 4) {
    for (size_t i = 0; i < in.size(); ++i) p->in_cls[i] = values_[in[i]].cls;
  } else {
    p->in_cls[0] = in_cls_pool_.size();
    for (const uint32_t i : in) in_cls_pool_.push(values_[i].cls);
  }
  p->plain = p->kind == Kind::op && p->kernel && p->n_out == 1 && in.size() <= 4 &&
             p->all_inputs_grad && !p->needs_payload && !(op.out[0].flags & TRL_OUT_NO_GRAD);
  if (p->kind == Kind::view)
    p->gradient_place =
        p->any_grad && p->all_inputs_grad ? GradientPlace::view : GradientPlace::own;
  p->index = index;
  p->next = patterns_[0].get();
  for (uint32_t o = 0; !expands && o < p->n_out; ++o) {
    const uint64_t bytes = cls(out_class(*p, o)).bytes;
    if (o == 0) p->out_bytes = bytes;
    p->room += bytes + value_alignment(bytes);
  }
  patterns_.push_back(std::move(p));
  if (options_.memo) tables_->patterns.insert(hash, index);
  return index;
}

void GraphImpl::infer(Pattern& p, std::span<const uint32_t> in, std::vector<trl_dim>& out,
                      std::vector<uint16_t>& out_dtype, bool* stops_gradient) {
  const OpEntry& op = *p.op;
  std::vector<trl_dim> dims(in.size());
  std::vector<uint16_t> dtypes(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    dims[i] = cls_of(in[i]).dim;
    dtypes[i] = in[i] ? uint16_t(cls_of(in[i]).dtype) : 0;
  }
  for (uint32_t o = 0; o < p.n_out; ++o)
    out_dtype[o] = op.out[o].dtype ? op.out[o].dtype : uint16_t(p.dtype);

  trl_infer_args a{};
  a.struct_size = sizeof a;
  a.flags = options_.mode == Mode::train ? uint32_t(TRL_CALL_TRAIN) : 0u;
  a.call = &call_;
  a.attrs = attrs(p.attr).data();
  a.n_attrs = uint32_t(attrs(p.attr).size());
  a.in = dims.data();
  a.in_dtype = dtypes.data();
  a.n_in = uint32_t(in.size());
  a.n_out = p.n_out;
  a.batch = p.batch;
  a.out = out.data();
  a.out_dtype = out_dtype.data();
  a.view_of = -1;
  call_.begin(Phase::infer, op.plugin->self);
  call_.plugin_id = op.plugin->id;
  ++infer_calls_;
  trl_status st = TRL_OK;
  try {
    st = op.desc.infer(&a);
  } catch (...) {
    refuse(op, in, ErrorKind::plugin,
           "[" + op.name + "] an exception left shape inference (a plugin must stop its own)");
  }
  if (st != TRL_OK) refuse(op, in, kind_of(st), call_.take_text(st));
  if (a.view_of >= 0 && (uint32_t(a.view_of) >= in.size() || p.n_out != 1 || !in[a.view_of]))
    refuse(op, in, ErrorKind::plugin,
           "declares a view of input " + std::to_string(a.view_of) + " of an operator with " +
               std::to_string(in.size()) + " inputs and " + std::to_string(p.n_out) +
               " outputs (needs a present input and one output)");
  p.view_of = a.view_of;
  p.view_offset = a.view_offset;
  *stops_gradient = a.view_stops_gradient != 0;
}

void GraphImpl::choose_view(Pattern& p, std::span<const uint32_t> in, const Dim& out,
                            DType out_dtype) {
  const ClassInfo& src = cls_of(in[p.view_of]);
  const bool whole = p.view_offset == 0 && out.total() == src.dim.total();
  const bool part = out.batch == src.dim.batch && p.view_offset + out.elements() <= src.elements;
  if (out_dtype != src.dtype || (!whole && !part))
    refuse(*p.op, in, ErrorKind::plugin,
           "declares a view that does not lie in its input: offset " +
               std::to_string(p.view_offset) + ", " + out.to_string() + " of " +
               src.dim.to_string());
  p.kind = whole || out.batch == 1 ? Kind::view : Kind::copy_view;
  p.kernel = nullptr;
  p.gain_ns = 0;
}

void GraphImpl::make_key(Pattern& p, uint32_t index, std::span<const uint32_t> in,
                         std::span<const Dim> out) {
  const OpEntry& op = *p.op;
  bool mergeable = op.mergeable && !in.empty();
  for (uint32_t o = 0; o < p.n_out; ++o) mergeable &= out[o].batch == p.batch;
  bool flat = op.elementwise && !op.has_per_batch && !op.stochastic && p.n_out == 1;
  std::vector<Merge> merge(in.size());
  bool shared_weight = false;
  uint64_t flops = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    const ClassInfo& c = cls_of(in[i]);
    merge[i] = c.shared                          ? Merge::shared
               : c.dim.batch == 1 && p.batch > 1 ? Merge::broadcast
                                                 : Merge::concat;
    if (in[i] == kAbsent) merge[i] = Merge::shared;
    if (merge[i] != Merge::concat || !(c.dim == out[0])) flat = false;
    if (c.shared && in_spec(op, i).merge == TRL_IN_SHARED) {
      shared_weight = true;
      flops += 2 * c.elements;
    }
  }
  if (shared_weight)
    p.gain_ns = uint8_t(std::min<uint64_t>(255, flops / 110 + 4));  // 55 against 110 flops a ns
  if (!mergeable) return;

  std::string bytes;
  const auto put = [&bytes](uint32_t v) {
    bytes.append(reinterpret_cast<const char*>(&v), sizeof v);
  };
  put(op.handle);
  put(p.attr);
  put(uint32_t(p.dtype) | (flat ? 1u << 16 : 0u) |
      uint32_t(cls(p.first_cls).device.number()) << 24);
  put(uint32_t(in.size()));
  if (!flat) {
    for (size_t i = 0; i < in.size(); ++i) {
      const ClassInfo& c = cls_of(in[i]);
      put(uint32_t(merge[i]));
      put(merge[i] == Merge::shared ? values_[in[i]].cls : c.shape);
    }
    for (uint32_t o = 0; o < p.n_out; ++o) put(intern_shape(out[o], p.dtype));
  }
  p.key = intern_key(bytes, index);
  KeyInfo& k = *keys_[p.key];
  if (k.pattern == index) {
    k.flat = flat;
    k.mergeable = true;
    k.merge = std::move(merge);
    k.defer = shared_weight && !op.stochastic && !op.has_per_batch && p.kernel->backward;
  }
  p.may_defer = k.defer;
}

uint32_t GraphImpl::apply_with_attrs(const OpEntry& op, std::span<const uint32_t> in,
                                     std::span<const trl_attr> attrs, uint32_t attr_batch) {
  if (attrs.size() != op.attrs.size())
    refuse(op, in, ErrorKind::argument,
           "takes " + std::to_string(op.attrs.size()) + " attributes: got " +
               std::to_string(attrs.size()));
  const uint32_t set = attrs.empty() ? 0 : intern_attrs(op, attrs);
  uint32_t payload = 0;
  if (op.has_per_batch || op.stochastic) payload = make_payload(op, in, attrs, &attr_batch);
  return append(op, set, attr_batch > 1 ? attr_batch : 0, in, payload);
}

uint32_t GraphImpl::apply(const OpEntry& op, std::span<const uint32_t> in, const Attrs& attrs,
                          SourceLine where) {
  if (attrs.empty() && op.attrs.empty())
    return apply(op, in, std::span<const trl_attr>(), 0, where);
  const BoundAttrs bound(op.name, op.attrs, attrs);
  return apply(op, in, bound.all(), bound.batch(), where);
}

Payload& GraphImpl::new_payload(uint32_t* index) {
  refuse_computing("given a node");
  auto* p = leaf_arena_.array<Payload>(1);
  *p = Payload{};
  *index = payloads_.size();
  payloads_.push(p);
  return *p;
}

// One list per batch element of the node: a single value is repeated, defaults are filled in, every
// id is checked.
uint32_t GraphImpl::make_payload(const OpEntry& op, std::span<const uint32_t> in,
                                 std::span<const trl_attr> attrs, uint32_t* attr_batch) {
  uint32_t index = 0;
  Payload& p = new_payload(&index);
  if (op.stochastic) p.stream = &op == same_op_ ? same_stream_ : next_stream_++;
  if (!op.has_per_batch) return index;

  uint32_t batch = std::max(1u, *attr_batch);
  for (const uint32_t i : in) batch = std::max(batch, cls_of(i).dim.batch);
  uint32_t n = 0;
  for (size_t i = 0; i < attrs.size(); ++i) {
    if (!op.attrs[i].per_batch()) continue;
    ++n;
    if (!attrs[i].offsets && attrs[i].count > 1) {
      batch = std::max(batch, attrs[i].count);
      *attr_batch = std::max(*attr_batch, attrs[i].count);
    }
  }
  p.n_attrs = n;
  p.attrs = leaf_arena_.array<trl_attr>(n);
  uint32_t at = 0;
  for (size_t i = 0; i < attrs.size(); ++i) {
    const AttrSpec& spec = op.attrs[i];
    if (!spec.per_batch()) continue;
    const trl_attr& given = attrs[i].count || attrs[i].offsets ? attrs[i] : spec.dflt;
    if (spec.required() && attrs[i].count == 0 && !attrs[i].offsets)
      refuse(op, in, ErrorKind::argument,
             "attribute '" + spec.key + "' is missing (it has no default)");
    trl_attr a{};
    a.type = spec.type;
    // a scalar default has its value inline
    const bool scalar = given.type == TRL_ATTR_I64 || given.type == TRL_ATTR_F64;
    const int64_t* values = scalar ? &given.v.i : given.v.is;  // f64 values have the same size
    const uint32_t count = scalar ? 1 : given.count;
    // How many lists were given: ragged ones say so with attr_batch or end where the values end.
    uint32_t lists = given.offsets ? (*attr_batch ? *attr_batch : batch) : count;
    if (given.offsets && given.offsets[0] != 0)
      refuse(op, in, ErrorKind::argument,
             "offsets of '" + spec.key + "' start at " + std::to_string(given.offsets[0]) +
                 " (need 0)");
    if (given.offsets && given.offsets[lists] != count)
      refuse(op, in, ErrorKind::argument,
             "offsets of '" + spec.key + "' end at " + std::to_string(given.offsets[lists]) +
                 " (need the number of values, " + std::to_string(count) + ")");
    if (lists > 1 && lists != batch)
      refuse(op, in, ErrorKind::shape,
             "'" + spec.key + "' has values for " + std::to_string(lists) +
                 " examples in a batch of " + std::to_string(batch) + " (needs 1 or as many)");
    auto* offsets = leaf_arena_.array<uint32_t>(batch + 1);
    offsets[0] = 0;
    for (uint32_t b = 0; b < batch; ++b) {
      const uint32_t from = lists <= 1 ? 0 : b;
      const uint32_t each = lists == 0      ? 0
                            : given.offsets ? given.offsets[from + 1] - given.offsets[from]
                                            : 1;
      if ((given.offsets && given.offsets[from + 1] < given.offsets[from]) ||
          each < spec.min_each || each > spec.max_each)
        refuse(
            op, in, ErrorKind::argument,
            "'" + spec.key + "' has " + std::to_string(each) + " values for batch element " +
                std::to_string(b) + " (needs " +
                (spec.min_each == spec.max_each
                     ? std::to_string(spec.min_each)
                     : "at least " + std::to_string(spec.min_each) +
                           (spec.max_each == ~0u ? ""
                                                 : ", at most " + std::to_string(spec.max_each))) +
                ")");
      offsets[b + 1] = offsets[b] + each;
    }
    auto* copy = leaf_arena_.array<int64_t>(std::max(1u, offsets[batch]));
    for (uint32_t b = 0; b < batch; ++b) {
      const uint32_t from = lists <= 1 ? 0 : b;
      const uint32_t each = offsets[b + 1] - offsets[b];
      if (each)
        std::memcpy(copy + offsets[b], values + (given.offsets ? given.offsets[from] : from),
                    each * 8);
    }
    a.count = offsets[batch];
    a.v.is = copy;
    a.offsets = offsets;
    check_ids(op, spec, in, attrs, a, batch);
    p.attrs[at++] = a;
  }
  return index;
}

void GraphImpl::check_ids(const OpEntry& op, const AttrSpec& spec, std::span<const uint32_t> in,
                          std::span<const trl_attr> attrs, const trl_attr& a,
                          uint32_t batch) const {
  const auto where = [&](uint32_t i) {
    uint32_t b = 0;
    while (b + 1 < batch && a.offsets[b + 1] <= i) ++b;
    return batch > 1 ? ", batch element " + std::to_string(b) : std::string();
  };
  auto& self = const_cast<GraphImpl&>(*this);
  if (spec.lo <= spec.hi)
    for (uint32_t i = 0; i < a.count; ++i) {
      const double v = a.type == TRL_ATTR_I64S ? double(a.v.is[i]) : a.v.fs[i];
      if (!(v >= spec.lo && v <= spec.hi))
        self.refuse(op, in, ErrorKind::range,
                    "'" + spec.key + "' is out of range: " +
                        (a.type == TRL_ATTR_I64S ? std::to_string(a.v.is[i]) : std::to_string(v)) +
                        where(i) + " (needs " + std::to_string(spec.lo) + " to " +
                        std::to_string(spec.hi) + ")");
    }
  if (spec.bound_input < 0 || size_t(spec.bound_input) >= in.size()) return;
  const Dim& dim = cls_of(in[spec.bound_input]).dim;
  int64_t axis = spec.bound_axis;
  if (axis < 0 && spec.bound_axis_attr >= 0) axis = attrs[spec.bound_axis_attr].v.i;
  if (axis < 0) axis += dim.rank;
  const int64_t size = axis >= 0 && axis < int64_t(dim.rank) ? dim.d[axis] : 1;
  const int64_t top = spec.flags & TRL_ATTR_BOUND_CLOSED ? size : size - 1;
  for (uint32_t i = 0; i < a.count; ++i)
    if (a.v.is[i] < 0 || a.v.is[i] > top)
      self.refuse(op, in, ErrorKind::range,
                  "'" + spec.key + "' is out of bounds: " + std::to_string(a.v.is[i]) + where(i) +
                      " (needs 0 to " + std::to_string(top) + ")");
}

// A composite: the plugin adds the nodes it stands for.
uint32_t GraphImpl::expand(const Pattern& p, const OpEntry& op, uint32_t attr,
                           std::span<const uint32_t> in, uint32_t payload) {
  std::vector<trl_attr> all(attrs(attr).begin(), attrs(attr).end());
  if (payload && op.has_per_batch) {
    uint32_t at = 0;
    for (size_t i = 0; i < all.size(); ++i)
      if (op.attrs[i].per_batch()) all[i] = payloads_[payload]->attrs[at++];
  }
  std::vector<trl_expr> inputs(in.size());
  for (size_t i = 0; i < in.size(); ++i) inputs[i] = in[i] ? to_c(in[i]) : trl_expr{};
  trl_expr out{};
  trl_expand_args a{};
  a.struct_size = sizeof a;
  a.flags = options_.mode == Mode::train ? uint32_t(TRL_CALL_TRAIN) : 0u;
  a.attrs = all.data();
  a.n_attrs = uint32_t(all.size());
  a.in = inputs.data();
  a.n_in = uint32_t(in.size());
  a.out = &out;
  a.n_out = 1;
  a.batch = p.batch;

  const LineScope line(*this, line_);
  const uint32_t size = values_.size();
  const std::vector<uint32_t> kept(in.begin(), in.end());  // `in` may lie in a pool that grows
  Call call(*core_);                                       // composites nest
  call.scratch = &scratch_;
  call.graph = this;
  call.plugin_id = op.plugin->id;
  call.depth = call_.depth;
  call.attr_batch = a.batch;
  call.begin(Phase::graph, op.plugin->self);
  a.call = &call;
  trl_status st = TRL_OK;
  try {
    st = op.desc.expand(&a);
    if (st == TRL_OK) {
      const uint32_t id = from_c(out);
      if (id != kAbsent) return id;
      truncate(size);
      refuse(op, kept, ErrorKind::plugin, "its expansion returned no expression");
    }
  } catch (const Error&) {
    truncate(size);
    throw;
  } catch (...) {
    truncate(size);
    refuse(op, kept, ErrorKind::plugin,
           "an exception left its expansion (a plugin must stop its own)");
  }
  const std::string text = call.take_text(st);
  truncate(size);
  refuse(op, kept, kind_of(st), text);
}

}  // namespace trellis::detail
