// SPDX-License-Identifier: Apache-2.0
//
// Calls of forward kernels: a node by itself, or a group of merged nodes.

#include <algorithm>
#include <cmath>

#include "exec/engine.hpp"
#include "exec/rows.hpp"

namespace trellis::detail {
namespace {

// What is certain about the alignment of any value of this type.
uint8_t element_align_log2(DType t) { return dtype_size(t) == 8 ? 3 : dtype_size(t) == 4 ? 2 : 0; }

void set_tensor(trl_tensor& t, const ClassInfo& c, uint32_t node_batch) {
  t.data = nullptr;
  t.dim = c.dim;
  t.dtype = uint16_t(c.dtype);
  t.device = c.device.number();
  t.align_log2 = element_align_log2(c.dtype);
  t.batch_stride = c.dim.batch == 1 && node_batch > 1 ? 0 : c.elements;
  t.flags = 0;
}

}  // namespace

void ExecEngine::lay_out(Frame& f, const Pattern& p) {
  const uint32_t node_inputs = p.n_in;
  f.tensors.assign(2 * (node_inputs + p.n_out), trl_tensor{});
  f.in = f.tensors.data();
  f.out = f.in + node_inputs;
  f.d_out = f.out + p.n_out;
  f.d_in = f.d_out + p.n_out;
  const uint32_t* cls = g_.input_classes(p);
  for (uint32_t i = 0; i < node_inputs; ++i) {
    if (cls[i] == 0) continue;  // absent: rank 0, dtype 0, no data
    set_tensor(f.in[i], g_.cls(cls[i]), p.batch);
    set_tensor(f.d_in[i], g_.cls(cls[i]), p.batch);
  }
  for (uint32_t o = 0; o < p.n_out; ++o) {
    set_tensor(f.out[o], g_.cls(g_.out_class(p, o)), p.batch);
    set_tensor(f.d_out[o], g_.cls(g_.out_class(p, o)), p.batch);
  }
  const auto attrs = g_.attrs(p.attr);
  const trl_attr* attr_data = attrs.data();
  if (p.op->has_per_batch) {
    f.attrs.assign(attrs.begin(), attrs.end());
    attr_data = f.attrs.data();
  }
  f.self = p.op->kernel(p.dtype).plugin->self;
  trl_fwd_args& a = f.forward;
  a.struct_size = sizeof a;
  a.call = &g_.call();
  a.attrs = attr_data;
  a.in = f.in;
  a.out = f.out;
  a.n_attrs = uint32_t(attrs.size());
  a.n_in = p.n_in;
  a.n_out = p.n_out;
  a.batch = p.batch;
  a.state = p.state;
  trl_bwd_args& b = f.backward;
  b.struct_size = sizeof b;
  b.call = &g_.call();
  b.attrs = attr_data;
  b.in = f.in;
  b.out = f.out;
  b.d_out = f.d_out;
  b.d_in = f.d_in;
  b.n_attrs = uint32_t(attrs.size());
  b.n_in = p.n_in;
  b.n_out = p.n_out;
  b.batch = p.batch;
  b.state = p.state;
}

void ExecEngine::make_frame(Pattern& p) {
  Frame& f = g_.new_frame();
  lay_out(f, p);
  f.forward.flags = f.backward.flags = call_flags(false);
  p.frame = &f;
}

Frame& ExecEngine::frame_of(KeyInfo& k) {
  if (!k.frame) {
    k.frame = std::make_unique<Frame>();
    lay_out(*k.frame, g_.pattern(k.pattern));
  }
  return *k.frame;
}

// Per-batch attributes one after another, offsets counted on, and one random stream a batch
// element.
void ExecEngine::patch_payload(Frame& f, const Pattern& p, std::span<const uint32_t> nodes,
                               uint32_t batch) {
  if (p.op->has_per_batch) {
    uint32_t at = 0;
    for (size_t i = 0; i < f.attrs.size(); ++i) {
      if (!p.op->attrs[i].per_batch()) continue;
      if (nodes.size() == 1) {
        f.attrs[i] = g_.payload(nodes[0]).attrs[at++];
        continue;
      }
      uint32_t count = 0;
      for (const uint32_t n : nodes) count += g_.payload(n).attrs[at].count;
      auto* values = tmp_.array<int64_t>(std::max(1u, count));
      auto* offsets = tmp_.array<uint32_t>(batch + 1);
      uint32_t v = 0, b = 0;
      for (const uint32_t n : nodes) {
        const trl_attr& a = g_.payload(n).attrs[at];
        if (a.count) std::memcpy(values + v, a.v.is, size_t(a.count) * 8);
        for (uint32_t e = 0; e < g_.pattern_of(n).batch; ++e) offsets[b++] = v + a.offsets[e];
        v += a.count;
      }
      offsets[b] = v;
      f.attrs[i].count = count;
      f.attrs[i].v.is = values;
      f.attrs[i].offsets = offsets;
      ++at;
    }
  }
  if (p.op->stochastic) {
    streams_.resize(batch);
    uint32_t b = 0;
    for (const uint32_t n : nodes)
      for (uint32_t e = 0; e < g_.pattern_of(n).batch; ++e)
        streams_[b++] = {{stream_key_[0], stream_key_[1]}, {g_.payload(n).stream, e}};
    f.forward.streams = streams_.data();
    f.backward.streams = streams_.data();
  }
}

void ExecEngine::failed(trl_status st, const Pattern& p, uint32_t node, const char* phase) {
  std::string text = g_.call().take_text(st);
  if (!text.starts_with("[")) text = "[" + p.op->name + "] " + text;
  fail(kind_of(st), text + g_.context(node, phase));
}

void ExecEngine::rethrow(uint32_t node, const char* phase) {
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (...) {
    if (!g_.pattern_of(node).op) throw;
    fail(ErrorKind::plugin, "[" + g_.pattern_of(node).op->name + "] an exception left the " +
                                phase + " kernel (a plugin must stop its own)" +
                                g_.context(node, phase));
  }
}

// Into memory of its own between guards, so that a kernel which writes past its output is named,
// not felt later.
void ExecEngine::call_checked(Frame& f, const Pattern& p, uint32_t node) {
  constexpr size_t kGuard = 64;
  constexpr unsigned char kPattern = 0xA5;
  std::vector<std::vector<unsigned char>> boxes(p.n_out);
  std::vector<void*> places(p.n_out);
  for (uint32_t o = 0; o < p.n_out; ++o) {
    trl_tensor& t = f.out[o];
    places[o] = t.data;
    if (!t.data) continue;
    const size_t bytes = Dim(t.dim).total() * dtype_size(static_cast<DType>(t.dtype));
    boxes[o].assign(bytes + 2 * kGuard, kPattern);
    std::memset(boxes[o].data() + kGuard, 0xFF, bytes);  // NaN until written
    t.data = boxes[o].data() + kGuard;
  }
  const Arena::Mark scratch = g_.scratch().mark();
  const trl_status st = p.kernel->forward(&f.forward);
  g_.scratch().rewind(scratch);
  bool intact = true;
  for (uint32_t o = 0; o < p.n_out; ++o) {
    const auto& box = boxes[o];
    if (!places[o]) continue;
    for (size_t i = 0; i < kGuard; ++i)
      intact &= box[i] == kPattern && box[box.size() - 1 - i] == kPattern;
    std::memcpy(places[o], box.data() + kGuard, box.size() - 2 * kGuard);
    f.out[o].data = places[o];
  }
  if (st != TRL_OK) failed(st, p, node, "forward");
  if (!intact)
    fail(ErrorKind::plugin, "[" + p.op->name +
                                "] wrote outside its output: the guard bytes changed (the kernel "
                                "must stay within its shape)" +
                                g_.context(node, "forward"));
}

void ExecEngine::run_node(uint32_t node) {
  Pattern& p = g_.pattern(g_.value(node).pattern);
  if (p.kind != Kind::op) {
    const uint32_t one[] = {node};
    if (p.kind == Kind::copy_view) return copy_rows(node, false);
    return run_lookup(one);
  }
  Frame& f = frame_of(p);
  const auto in = g_.inputs(node);
  for (uint32_t i = 0; i < p.n_in; ++i) f.in[i].data = g_.data_[in[i]];
  for (uint32_t o = 0; o < p.n_out; ++o) f.out[o].data = g_.data_[node + o];
  if (p.needs_payload) {
    const uint32_t one[] = {node};
    patch_payload(f, p, one, p.batch);
  }
  try {
    call_forward(f, p, node);
  } catch (...) {
    rethrow(node, "forward");
  }
  if (g_.options().check_validity) [[unlikely]] {
    const uint32_t one[] = {node};
    check_valid(one);
  }
}

bool ExecEngine::contiguous(std::span<const uint32_t> nodes, uint32_t input_index,
                            const Pool<char*>& at) const {
  const char* expected = at[input(nodes[0], input_index)];
  for (const uint32_t n : nodes) {
    const uint32_t in = input(n, input_index);
    if (at[in] != expected) return false;
    expected += g_.cls_of(in).bytes;
  }
  return true;
}

// The rows of one input of all nodes, one after another; repeat: an input of one batch element,
// once per element of its node.
char* ExecEngine::gather(std::span<const uint32_t> nodes, uint32_t input_index, bool repeat,
                         Arena& into) {
  uint64_t bytes = 0;
  for (const uint32_t n : nodes) {
    const uint64_t b = g_.cls_of(input(n, input_index)).bytes;
    bytes += repeat ? b * g_.pattern_of(n).batch : b;
  }
  char* const start = static_cast<char*>(into.allocate(bytes));
  char* to = start;
  ++stats_.gathers;
  for (const uint32_t n : nodes) {
    const uint32_t in = input(n, input_index);
    const uint64_t b = g_.cls_of(in).bytes;
    for (uint32_t e = repeat ? g_.pattern_of(n).batch : 1; e > 0; --e, to += b)
      std::memcpy(to, g_.data_[in], b);
  }
  return start;
}

void ExecEngine::run_group(Group& g) {
  const auto nodes = nodes_of(g);
  ++stats_.groups;
  const uint32_t first = nodes[0];
  Pattern& lead = g_.pattern(g_.value(first).pattern);
  if (lead.kind == Kind::lookup || lead.kind == Kind::const_lookup) return run_lookup(nodes);
  if (nodes.size() == 1) return run_node(first);

  KeyInfo& k = g_.key(g.key);
  const Pattern& p = g_.pattern(k.pattern);
  Frame& f = frame_of(k);
  const Arena::Mark tmp = tmp_.mark();
  g.slots = slots_.size();
  slots_.extend(p.n_in);
  for (uint32_t i = 0; i < p.n_in; ++i) {
    Slot s{nullptr, kDirect, 0};
    const uint32_t in = input(first, i);
    bool one = k.merge[i] == Merge::shared;
    if (!one && !k.flat && g_.cls_of(in).dim.batch == 1) {
      one = true;
      for (const uint32_t n : nodes) one &= input(n, i) == in;
    }
    if (one) {
      s = {g_.data_[in], kOne, 0};
    } else if (k.merge[i] == Merge::concat && contiguous(nodes, i, g_.data_)) {
      s.data = g_.data_[in];
    } else {
      // Read again by backward, when there will be one.
      s = {gather(nodes, i, k.merge[i] == Merge::broadcast, frugal_run_ ? tmp_ : forward_),
           kGathered, 0};
    }
    slots_[g.slots + i] = s;
    trl_tensor& t = f.in[i];
    t.data = s.data;
    set_merged(t, k.flat, s.mode == kOne, g.batch, g.elements);
  }
  for (uint32_t o = 0; o < p.n_out; ++o) {
    f.out[o].data = g_.data_[first + o];
    set_merged(f.out[o], k.flat, false, g.batch, g.elements);
  }
  f.forward.batch = k.flat ? 1 : g.batch;
  f.forward.flags = call_flags(true);
  if (p.needs_payload) patch_payload(f, p, nodes, g.batch);
  try {
    call_forward(f, p, first);
  } catch (...) {
    rethrow(first, "forward");
  }
  tmp_.rewind(tmp);
  if (g_.options().check_validity) [[unlikely]]
    check_valid(nodes);
}

void ExecEngine::run_lookup(std::span<const uint32_t> nodes) {
  for (const uint32_t n : nodes) {
    const Payload& pay = g_.payload(n);
    const ParamRecord& r = *pay.record;
    const uint64_t bytes = r.row_bytes();
    char* to = g_.data_[n];
    for (uint32_t i = 0; i < pay.n_ids; ++i, to += bytes) {
      if (pay.ids[i] >= r.rows)  // ids by pointer are read now
        fail(ErrorKind::range, "[lookup] id is out of bounds: " + std::to_string(pay.ids[i]) +
                                   " of '" + r.name + "' (needs 0 to " +
                                   std::to_string(r.rows - 1) + ")" + g_.context(n, "forward"));
      std::memcpy(to, r.value + pay.ids[i] * bytes, bytes);
    }
  }
}

// A slice of every example, or its gradient added back.
void ExecEngine::copy_rows(uint32_t node, bool backward) {
  const Pattern& p = g_.pattern_of(node);
  const uint32_t src = input(node, uint32_t(p.view_of));
  const ClassInfo &from = g_.cls_of(src), &to = g_.cls_of(node);
  const uint64_t size = dtype_size(to.dtype), row = to.elements * size, step = from.elements * size;
  const uint64_t offset = p.view_offset * size;
  for (uint32_t b = 0; b < to.dim.batch; ++b) {
    if (backward)
      add_rows(grad_[src] + b * step + offset, grad_[node] + b * row, to.elements, to.dtype);
    else
      std::memcpy(g_.data_[node] + b * row, g_.data_[src] + b * step + offset, row);
  }
}

void ExecEngine::check_valid(std::span<const uint32_t> nodes) {
  for (const uint32_t n : nodes) {
    const Pattern& p = g_.pattern_of(n);
    for (uint32_t o = 0; o < p.n_visible; ++o) {
      const ClassInfo& c = g_.cls_of(n + o);
      if (!is_float(c.dtype) ||
          tensor_tools::is_finite(TensorView(g_.data_[n + o], c.dim, c.dtype)))
        continue;
      fail(ErrorKind::numeric, "[" + p.op->name +
                                   "] NaN or Inf in its value: " + g_.describe(n + o) +
                                   " (check_validity is on)" + g_.context(n, "forward"));
    }
  }
}

TensorView ExecEngine::value(uint32_t id) {
  const uint32_t target[] = {id};
  compute(target);
  const ClassInfo& c = g_.cls_of(id);
  return TensorView(g_.data_[id], c.dim, c.dtype);
}

}  // namespace trellis::detail
