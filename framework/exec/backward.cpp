// SPDX-License-Identifier: Apache-2.0
//
// Gradients: what is reached, where it lies, calls of backward kernels, deferred gradients of
// shared weights.

#include <algorithm>

#include "exec/engine.hpp"
#include "exec/rows.hpp"

namespace trellis::detail {
namespace {

// From this many rows on, the gradient of a shared weight is one product per group; below, one per
// graph.
constexpr uint32_t kDeferBelow = 16;
// A deferred call gathers at most this many rows at a time.
constexpr uint32_t kDeferRows = 8192;

uint64_t aligned(uint64_t n) { return (n + 63) / 64 * 64; }

const trl_in_spec& in_spec(const OpEntry& op, size_t i) {
  return op.in[std::min(i, op.in.size() - 1)];
}

bool overlap(const char* a, uint64_t a_bytes, const char* b, uint64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

}  // namespace

void ExecEngine::backward(uint32_t loss, bool full) {
  g_.refuse_computing("asked for gradients");
  if (infer_mode())
    fail(ErrorKind::state,
         "[backward] the graph is in infer mode and kept nothing for gradients (make it with mode "
         "= train)");
  const uint32_t target[] = {loss};
  compute(target);
  const ClassInfo& c = g_.cls_of(loss);
  if (c.dim.total() != 1)
    fail(ErrorKind::shape, "[backward] needs a scalar: got " + c.dim.to_string() +
                               (c.elements == 1 ? " (reduce the batch first: sum_batches)"
                                                : " (one element, batch 1)"));
  if (!is_float(c.dtype))
    fail(ErrorKind::dtype,
         "[backward] needs a float scalar: got " + std::string(dtype_name(c.dtype)));
  const GraphImpl::Computing computing(g_);
  in_backward_ = true;
  const struct Done {
    bool& flag;
    ~Done() { flag = false; }
  } done{in_backward_};
  loss_ = 0;
  g_.inner_records_.clear();
  backward_.rewind();
  if (++backward_run_ == 0) ++backward_run_;
  try {
    place_gradients(loss, reach(loss, full));
    if (!grad_[loss]) {  // nothing below it wants one
      grad_[loss] = static_cast<char*>(backward_.allocate(c.bytes));
      std::memset(grad_[loss], 0, c.bytes);
    }
    if (c.dtype == DType::f64)
      *reinterpret_cast<double*>(grad_[loss]) = 1;
    else
      *reinterpret_cast<float*>(grad_[loss]) = 1;
    mark_hooks(loss);
    deferred_.resize(1);  // 0: none
    deferred_keys_.resize(0);
    deferred_head_.resize(std::max(deferred_head_.size(), g_.key_count()));
    // A node that was computed again since belongs to a later segment.
    const bool several = segments_.size() > 1;
    for (size_t s = segments_.size(); s-- > 0;) {
      const Segment& seg = segments_[s];
      for (uint32_t i = seg.count; i-- > 0;) {
        if (seg.straight) {
          const uint32_t node = order_[seg.first + i];
          if (!reach_[node] || (several && regions_[region_[node]].segment != s)) continue;
          if (!hooks_.empty()) run_hooks(node);
          backward_node(seg.first + i);
          continue;
        }
        const Group& g = groups_[seg.first + i];
        const auto nodes = nodes_of(g);
        uint32_t reached = 0;
        for (const uint32_t n : nodes) reached += reach_[n] && regions_[region_[n]].segment == s;
        if (reached == 0) continue;
        if (!hooks_.empty())
          for (const uint32_t n : nodes)
            if (regions_[region_[n]].segment == s) run_hooks(n);
        const Kind kind = g_.pattern_of(nodes[0]).kind;
        if (kind == Kind::lookup || kind == Kind::const_lookup) {
          backward_lookup(nodes, uint32_t(s));
        } else if (reached == nodes.size() && reached > 1) {
          backward_group(g);
        } else {
          // One by one: the zero gradient of a node outside the loss must not meet its Inf or NaN.
          for (uint32_t n = g.count; n-- > 0;)
            if (reach_[nodes[n]] && regions_[region_[nodes[n]]].segment == s)
              backward_node(g.first + n);
        }
      }
    }
    run_deferred();
    if (!hooks_.empty()) run_leaf_hooks(loss);
  } catch (...) {
    for (const uint32_t k : std::span(deferred_keys_.data(), deferred_keys_.size()))
      deferred_head_[k] = 0;
    forget_gradients();
    tmp_.rewind();
    throw;
  }
  loss_ = loss;
}

// Marks, from the loss down, what a gradient reaches, and which gradients need not be cleared: those
// that one kernel writes, which can store. Returns the memory that takes.
ExecEngine::GradientBytes ExecEngine::reach(uint32_t loss, bool full) {
  // Groups may hold later nodes, so the marks cover all values.
  reach_.resize(g_.size());
  std::memset(reach_.data(), 0, g_.size());
  reach_[loss] = kWanted | kMany;  // it is set by hand
  if (const uint32_t node = g_.node_of(loss); node != loss) reach_[node] |= kSibling;
  const auto wanted = [&](uint32_t x) {
    return full ? x != GraphImpl::kAbsent && is_float(g_.cls_of(x).dtype)
                : (g_.value(x).flags & kNeedsGrad) != 0;
  };
  GradientBytes bytes;
  for (uint32_t id = loss; id > 0; --id) {
    if (!reach_[id]) continue;
    const Value& v = g_.value(id);
    if (v.flags & kSecondary) {
      reach_[v.in[0]] |= kSibling;
      continue;
    }
    const Pattern& p = g_.pattern(v.pattern);
    if (p.gradient_place == GradientPlace::mirrored) {
      for (uint32_t o = 0; o < p.n_visible; ++o) {  // hidden outputs have no gradient
        Region& r = regions_[region_[id + o]];
        r.used = backward_run_;
        // A merged call reads all of it, also what no gradient reaches.
        if ((reach_[id + o] & (kWanted | kMany)) != kWanted) r.clear = backward_run_;
      }
    } else if (p.gradient_place == GradientPlace::own) {
      bytes.cleared += aligned(g_.cls(v.cls).bytes);
    }
    if (is_leaf(p.kind) || !p.any_grad) continue;
    const auto in = g_.inputs(id);
    const bool stores = p.kind == Kind::op && p.kernel->flags & TRL_KERNEL_CAN_STORE;
    for (size_t i = 0; i < in.size(); ++i) {
      if (!wanted(in[i]) || (!p.all_inputs_grad && in_spec(*p.op, i).flags & TRL_IN_NO_GRAD))
        continue;
      // What is shared by a batch is a sum.
      const bool once =
          stores && !(reach_[in[i]] & kWanted) && (p.batch == 1 || g_.cls_of(in[i]).dim.batch != 1);
      reach_[in[i]] |= once ? uint8_t(kWanted) : uint8_t(kWanted | kMany);
    }
  }
  for (uint32_t r = 0; r < regions_.size(); ++r)
    if (regions_[r].used == backward_run_)
      (regions_[r].clear == backward_run_ ? bytes.cleared : bytes.stored) +=
          aligned(regions_[r].bytes);
  return bytes;
}

// Gradients that are added to are cleared at once. grad_ holds the wanted ones only.
void ExecEngine::place_gradients(uint32_t loss, const GradientBytes& bytes) {
  char* at = static_cast<char*>(backward_.allocate(bytes.cleared));
  char* at_stored = static_cast<char*>(backward_.allocate(bytes.stored));
  std::memset(at, 0, bytes.cleared);
  if (g_.core().check == CheckLevel::full) [[unlikely]]
    std::memset(at_stored, 0xFF, bytes.stored);  // NaN until written
  for (uint32_t r = 0; r < regions_.size(); ++r)
    if (regions_[r].used == backward_run_) {
      char*& to = regions_[r].clear == backward_run_ ? at : at_stored;
      regions_[r].grad = to;
      to += aligned(regions_[r].bytes);
    }
  grad_.resize(g_.size());
  std::memset(grad_.data(), 0, g_.size() * sizeof(char*));
  for (uint32_t id = 1; id <= loss; ++id) {
    if (!(reach_[id] & kWanted)) continue;
    const Value& v = g_.value(id);
    switch (g_.pattern(v.pattern).gradient_place) {
      case GradientPlace::mirrored:
        if (g_.data_[id] && is_float(g_.cls(v.cls).dtype)) {
          const Region& r = regions_[region_[id]];
          grad_[id] = r.grad + (g_.data_[id] - r.data);
          if (r.clear != backward_run_) reach_[id] |= kStore;
        }
        break;
      case GradientPlace::own:
        grad_[id] = at;
        at += aligned(g_.cls(v.cls).bytes);
        break;
      case GradientPlace::view: {
        const uint32_t src = input(id, uint32_t(g_.pattern(v.pattern).view_of));
        if (grad_[src]) grad_[id] = grad_[src] + (g_.data_[id] - g_.data_[src]);
        break;
      }
      case GradientPlace::parameter: {
        ParamRecord& r = *g_.payload(id).record;
        grad_[id] = g_.gradients(r).dense(r);
        break;
      }
    }
  }
}

void ExecEngine::no_backward(const Pattern& p, uint32_t node) {
  fail(ErrorKind::plugin, "[" + p.op->name +
                              "] has no gradient: a parameter lies below it (use stop_gradient, "
                              "or a kernel with backward)" +
                              g_.context(node, "backward"));
}

void ExecEngine::defer(uint32_t key, uint32_t first, uint32_t count) {
  if (deferred_head_[key] == 0) deferred_keys_.push(key);
  deferred_.push({key, first, count, deferred_head_[key]});
  deferred_head_[key] = deferred_.size() - 1;
}

bool ExecEngine::gradients_disjoint(std::span<const uint32_t> values) {
  struct Run {
    const char *begin, *end;
  };
  const Arena::Mark mark = tmp_.mark();
  Run* const runs = tmp_.array<Run>(values.size());
  size_t n = 0;
  for (const uint32_t v : values)
    if (grad_[v]) runs[n++] = {grad_[v], grad_[v] + g_.cls_of(v).bytes};
  std::sort(runs, runs + n, [](const Run& a, const Run& b) { return a.begin < b.begin; });
  bool apart = true;
  for (size_t i = 1; i < n; ++i) apart &= runs[i].begin >= runs[i - 1].end;
  tmp_.rewind(mark);
  return apart;
}

void ExecEngine::backward_node(uint32_t position) {
  const uint32_t node = order_[position];
  const Value& v = g_.value(node);
  Pattern& p = g_.pattern(v.pattern);
  if (p.plain && !(p.may_defer && p.batch < kDeferBelow)) [[likely]] {
    // The short path, unless two inputs share memory (x * x, or views of one value), which must
    // not be added to at the same time.
    Frame& f = frame_of(p);
    bool any = false, apart = true;
    for (uint32_t i = 0; i < p.n_in; ++i) {
      f.in[i].data = g_.data_[v.in[i]];
      char* const d = grad_[v.in[i]];
      f.d_in[i].data = d;
      if (!d) continue;
      f.d_in[i].flags = store_flag(v.in[i]);
      any = true;
      for (uint32_t j = 0; j < i; ++j)
        apart &= !f.d_in[j].data ||
                 !overlap(d, g_.cls_of(v.in[i]).bytes, static_cast<char*>(f.d_in[j].data),
                          g_.cls_of(v.in[j]).bytes);
    }
    if (!any) return;
    if (apart) {
      f.out[0].data = g_.data_[node];
      f.d_out[0].data = grad_[node];
      return call_backward(f, p, node);
    }
  }
  if (p.kind != Kind::op) {
    const uint32_t one[] = {node};
    if (p.kind == Kind::lookup) backward_lookup(one, regions_[region_[node]].segment);
    if (p.kind == Kind::copy_view && grad_[node] && grad_[input(node, uint32_t(p.view_of))])
      copy_rows(node, true);
    return;
  }
  Frame& f = frame_of(p);
  const auto in = g_.inputs(node);
  const bool may_defer = p.may_defer && p.batch < kDeferBelow;
  // Sums take thousands of inputs: pairs of them are too many to compare.
  const bool disjoint = p.n_in > 16 && gradients_disjoint(in);
  bool any = false, deferring = false, temporary = false;
  for (uint32_t i = 0; i < p.n_in; ++i) {
    f.in[i].data = g_.data_[in[i]];
    char* d = grad_[in[i]];
    if (d && !p.all_inputs_grad && in_spec(*p.op, i).flags & TRL_IN_NO_GRAD) d = nullptr;
    if (d && may_defer && g_.key(p.key).merge[i] == Merge::shared &&
        in_spec(*p.op, i).merge == TRL_IN_SHARED) {
      deferring = true;
      d = nullptr;
    }
    if (d) {
      any = true;
      const uint64_t bytes = g_.cls_of(in[i]).bytes;
      for (uint32_t j = 0; j < i && !disjoint; ++j)
        if (f.d_in[j].data &&
            overlap(d, bytes, static_cast<char*>(f.d_in[j].data), g_.cls_of(in[j]).bytes)) {
          d = static_cast<char*>(tmp_.allocate(bytes));
          std::memset(d, 0, bytes);
          temporary = true;
          break;
        }
    }
    f.d_in[i].data = d;
    f.d_in[i].flags = d && d == grad_[in[i]] ? store_flag(in[i]) : 0u;
  }
  if (deferring) defer(p.key, position, 1);
  if (!any) return;
  for (uint32_t o = 0; o < p.n_out; ++o) {
    f.out[o].data = g_.data_[node + o];
    f.d_out[o].data = grad_[node + o];
  }
  const Arena::Mark tmp = tmp_.mark();
  if (p.needs_payload) {
    const uint32_t one[] = {node};
    patch_payload(f, p, one, p.batch);
  }
  call_backward(f, p, node);
  if (temporary) {
    for (uint32_t i = 0; i < p.n_in; ++i)
      if (f.d_in[i].data && f.d_in[i].data != grad_[in[i]]) {
        const ClassInfo& c = g_.cls_of(in[i]);
        add_rows(grad_[in[i]], static_cast<char*>(f.d_in[i].data), c.dim.total(), c.dtype);
      }
    tmp_.rewind();
  } else if (p.needs_payload) {
    tmp_.rewind(tmp);
  }
}

// Adds the rows of a merged call's input gradient to where they belong.
void ExecEngine::scatter(std::span<const uint32_t> nodes, uint32_t input_index, const char* from,
                         bool repeat) {
  for (const uint32_t n : nodes) {
    const uint32_t in = input(n, input_index);
    const ClassInfo& c = g_.cls_of(in);
    for (uint32_t e = repeat ? g_.pattern_of(n).batch : 1; e > 0; --e, from += c.bytes)
      if (grad_[in]) put_rows(in, from, c);
  }
}

// Into the gradient of a value: stored by its only writer, else added.
void ExecEngine::put_rows(uint32_t id, const char* from, const ClassInfo& c) {
  if (reach_[id] & kStore)
    std::memcpy(grad_[id], from, c.bytes);
  else
    add_rows(grad_[id], from, c.dim.total(), c.dtype);
}

// Of one output of all nodes, one after another; null: not reached.
char* ExecEngine::group_gradient(std::span<const uint32_t> nodes, uint32_t output) const {
  for (const uint32_t n : nodes) {
    if (!grad_[n + output]) continue;
    const uint32_t first = nodes[0] + output;
    const Region& r = regions_[region_[first]];
    return r.grad + (g_.data_[first] - r.data);
  }
  return nullptr;
}

void ExecEngine::backward_group(const Group& g) {
  const auto nodes = nodes_of(g);
  const uint32_t first = nodes[0];
  KeyInfo& k = g_.key(g.key);
  const Pattern& p = g_.pattern(k.pattern);
  Frame& f = frame_of(k);
  const bool may_defer = k.defer && g.batch < kDeferBelow;
  const bool can_store = p.kernel->flags & TRL_KERNEL_CAN_STORE;
  const Arena::Mark tmp = tmp_.mark();
  bool any = false, deferring = false;
  std::vector<uint32_t>& temporary = temporary_;
  temporary.clear();
  d_bytes_.resize(std::max(d_bytes_.size(), p.n_in));
  for (uint32_t i = 0; i < p.n_in; ++i) {
    const Slot& s = slots_[g.slots + i];
    const uint32_t in = input(first, i);
    f.in[i].data = s.data;
    set_merged(f.in[i], k.flat, s.mode == kOne, g.batch, g.elements);
    trl_tensor& d = f.d_in[i];
    d.data = nullptr;
    d.flags = 0;
    if (!p.all_inputs_grad && in_spec(*p.op, i).flags & TRL_IN_NO_GRAD) continue;
    set_merged(d, k.flat, s.mode == kOne, g.batch, g.elements);
    bool all = true, some = false, all_stored = true, some_stored = false;
    for (const uint32_t n : nodes) {
      const uint32_t x = input(n, i);
      const bool w = grad_[x] != nullptr, stored = w && reach_[x] & kStore;
      all &= w;
      some |= w;
      all_stored &= stored;
      some_stored |= stored;
    }
    if (!some) continue;
    if (may_defer && k.merge[i] == Merge::shared && in_spec(*p.op, i).merge == TRL_IN_SHARED) {
      deferring = true;
      continue;
    }
    any = true;
    uint64_t bytes = 0;
    if (s.mode == kOne) {
      bytes = g_.cls_of(in).bytes;
      d.data = grad_[in];
    } else {
      bytes = (k.flat ? g.elements : d.batch_stride * g.batch) * dtype_size(g_.cls_of(in).dtype);
      if (all && s.mode == kDirect && all_stored == some_stored && contiguous(nodes, i, grad_)) {
        d.data = grad_[in];
        if (all_stored) d.flags = TRL_TENSOR_STORE;
      }
    }
    for (uint32_t j = 0; d.data && j < i; ++j)
      if (f.d_in[j].data && overlap(static_cast<char*>(d.data), bytes,
                                    static_cast<char*>(f.d_in[j].data), d_bytes_[j]))
        d.data = nullptr;
    d_bytes_[i] = bytes;
    if (!d.data) {
      d.data = tmp_.allocate(bytes);
      d.flags = 0;
      const bool sums = s.mode == kOne && g.batch > 1;
      if (can_store && !sums)
        d.flags = TRL_TENSOR_STORE;
      else
        std::memset(d.data, 0, bytes);
      temporary.push_back(i);
    }
  }
  if (deferring) defer(g.key, g.first, g.count);
  if (any) {
    for (uint32_t o = 0; o < p.n_out; ++o) {
      f.out[o].data = g_.data_[first + o];
      set_merged(f.out[o], k.flat, false, g.batch, g.elements);
      set_merged(f.d_out[o], k.flat, false, g.batch, g.elements);
      f.d_out[o].data = group_gradient(nodes, o);
    }
    f.backward.batch = k.flat ? 1 : g.batch;
    f.backward.flags = call_flags(true);
    if (p.needs_payload) patch_payload(f, p, nodes, g.batch);
    call_backward(f, p, first);
    for (const uint32_t i : temporary) {
      const Slot& s = slots_[g.slots + i];
      if (s.mode == kOne) {
        const ClassInfo& c = g_.cls_of(input(first, i));
        add_rows(grad_[input(first, i)], static_cast<char*>(f.d_in[i].data), c.dim.total(),
                 c.dtype);
      } else {
        scatter(nodes, i, static_cast<char*>(f.d_in[i].data), k.merge[i] == Merge::broadcast);
      }
    }
  }
  tmp_.rewind(tmp);
}

void ExecEngine::backward_lookup(std::span<const uint32_t> nodes, uint32_t segment) {
  for (const uint32_t n : nodes) {
    if (!(g_.value(n).flags & kNeedsGrad) || !grad_[n] || regions_[region_[n]].segment != segment)
      continue;
    const Payload& pay = g_.payload(n);
    ParamRecord& r = *pay.record;
    SparseRows& rows = g_.gradients(r).sparse(r);
    const char* from = grad_[n];
    for (uint32_t i = 0; i < pay.n_ids; ++i, from += r.row_bytes())
      add_rows(rows.row(pay.ids[i]), from, r.row_elements, r.dtype);
  }
}

// One call per shared weight and key over all the groups that waited.
void ExecEngine::run_deferred() {
  for (uint32_t q = 0; q < deferred_keys_.size(); ++q) {
    const uint32_t key = deferred_keys_[q];
    // The list runs from the first group to the last: it was filled backwards.
    stack_.resize(0);
    uint32_t rows = 0;
    for (uint32_t at = deferred_head_[key]; at; at = deferred_[at].next) {
      const Deferred& d = deferred_[at];
      for (uint32_t i = 0; i < d.count; ++i) {
        const uint32_t node = order_[d.first + i];
        const uint32_t batch = g_.pattern_of(node).batch;
        if (rows && rows + batch > kDeferRows) {
          run_deferred(key, {stack_.data(), stack_.size()});
          stack_.resize(0);
          rows = 0;
        }
        stack_.push(node);
        rows += batch;
      }
    }
    if (rows) run_deferred(key, {stack_.data(), stack_.size()});
    deferred_head_[key] = 0;
  }
  deferred_keys_.resize(0);
}

void ExecEngine::run_deferred(uint32_t key, std::span<const uint32_t> nodes) {
  KeyInfo& k = g_.key(key);
  const Pattern& p = g_.pattern(k.pattern);
  Frame& f = frame_of(k);
  const Arena::Mark tmp = tmp_.mark();
  const uint32_t first = nodes[0];
  uint32_t batch = 0;
  for (const uint32_t n : nodes) batch += g_.pattern_of(n).batch;
  for (uint32_t i = 0; i < p.n_in; ++i) {
    const uint32_t in = input(first, i);
    const bool shared = k.merge[i] == Merge::shared;
    trl_tensor &t = f.in[i], &d = f.d_in[i];
    d.data = nullptr;
    d.flags = 0;
    if (shared) {
      t.data = g_.data_[in];
      if (in != GraphImpl::kAbsent && in_spec(*p.op, i).merge == TRL_IN_SHARED &&
          (p.all_inputs_grad || !(in_spec(*p.op, i).flags & TRL_IN_NO_GRAD)))
        d.data = grad_[in];
    } else if (k.merge[i] == Merge::concat && contiguous(nodes, i, g_.data_)) {
      t.data = g_.data_[in];
    } else {
      t.data = gather(nodes, i, k.merge[i] == Merge::broadcast, tmp_);
    }
    if (in != GraphImpl::kAbsent) {
      set_merged(t, false, shared, batch, 0);
      set_merged(d, false, shared, batch, 0);
    }
  }
  for (uint32_t o = 0; o < p.n_out; ++o) {
    set_merged(f.out[o], false, false, batch, 0);
    set_merged(f.d_out[o], false, false, batch, 0);
    bool reached = false, values_run = true, grads_run = true;
    const char *value = g_.data_[first + o], *grad = grad_[first + o];
    uint64_t bytes = 0;
    for (const uint32_t n : nodes) {
      reached |= grad_[n + o] != nullptr;
      values_run &= g_.data_[n + o] == value + bytes;
      grads_run &= grad_[n + o] && grad_[n + o] == grad + bytes;
      bytes += g_.cls_of(n + o).bytes;
    }
    const auto pack = [&](const Pool<char*>& from) {
      char* const start = static_cast<char*>(tmp_.allocate(bytes));
      char* to = start;
      for (const uint32_t n : nodes) {
        const uint64_t b = g_.cls_of(n + o).bytes;
        if (from[n + o])
          std::memcpy(to, from[n + o], b);
        else
          std::memset(to, 0, b);
        to += b;
      }
      return start;
    };
    f.out[o].data = values_run ? g_.data_[first + o] : pack(g_.data_);
    f.d_out[o].data = !reached ? nullptr : grads_run ? grad_[first + o] : pack(grad_);
  }
  f.backward.batch = batch;
  f.backward.flags = call_flags(true);
  call_backward(f, p, first);
  tmp_.rewind(tmp);
}

void ExecEngine::mark_hooks(uint32_t loss) {
  for (const Hook& h : hooks_)
    if (h.id <= loss && wants(h.id)) reach_[g_.node_of(h.id)] |= kHooked;
}

// A node's gradient is complete when its turn comes: everything that uses it ran before.
void ExecEngine::run_hooks(uint32_t node) {
  if (!(reach_[node] & kHooked)) return;
  for (const Hook& h : hooks_)
    if (g_.node_of(h.id) == node && wants(h.id)) h.f(gradient_view(h.id));
}

// Parameters and inputs: when everything ran.
void ExecEngine::run_leaf_hooks(uint32_t loss) {
  for (const Hook& h : hooks_) {
    const Kind kind = g_.pattern_of(h.id).kind;
    if (h.id <= loss && wants(h.id) && is_leaf(kind) && kind != Kind::lookup &&
        kind != Kind::const_lookup)
      h.f(gradient_view(h.id));
  }
}

// After a failure: no gradient of this backward stays behind.
void ExecEngine::forget_gradients() {
  for (ParamRecord* r : g_.inner_records_) g_.gradients(*r).clear(*r);
  for (uint32_t id = 1; id < g_.size(); ++id) {
    const Kind kind = g_.pattern_of(id).kind;
    if (kind != Kind::parameter && kind != Kind::table && kind != Kind::lookup) continue;
    if (id < reach_.size() && reach_[id]) {
      ParamRecord& r = *g_.payload(id).record;
      g_.gradients(r).clear(r);
    }
  }
}

TensorView ExecEngine::gradient_view(uint32_t id) const {
  const ClassInfo& c = g_.cls_of(id);
  return TensorView(grad_[id], c.dim, c.dtype);
}

TensorView ExecEngine::gradient(uint32_t id) {
  if (loss_ == 0)
    fail(ErrorKind::state,
         "[gradient] no backward was run on this graph since it changed (call backward first)");
  if (id > loss_)
    fail(ErrorKind::state, "[gradient] node #" + std::to_string(id) + " was made after node #" +
                               std::to_string(loss_) +
                               ", where backward started (call backward from a later node)");
  const ClassInfo& c = g_.cls_of(id);
  if (!is_float(c.dtype))
    fail(ErrorKind::dtype, "[gradient] " + std::string(dtype_name(c.dtype)) +
                               " values have no gradient: " + g_.describe(id));
  if (!grad_[id]) {  // not reached: zero
    grad_[id] = static_cast<char*>(backward_.allocate(c.bytes));
    std::memset(grad_[id], 0, c.bytes);
  }
  return gradient_view(id);
}

}  // namespace trellis::detail
