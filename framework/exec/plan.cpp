// SPDX-License-Identifier: Apache-2.0
//
// What to run, and in which groups. Linear in nodes and edges: highest level first over intrusive
// ready lists, no heap, no scan over keys. A node's height is the longest path to something asked
// for; the key of the highest ready node runs next, with everything of that key that is ready.

#include <algorithm>
#include <trellis/random.hpp>

#include "exec/engine.hpp"

namespace trellis::detail {
namespace {

// Below this average saving a node, planning costs more than merging gives.
constexpr uint64_t kGainPerNode = 13;
// Chains have nothing to merge: average width of the graph below which it runs straight.
constexpr double kMinWidth = 1.2;

uint64_t aligned(uint64_t bytes, uint64_t to) { return (bytes + to - 1) & ~(to - 1); }

}  // namespace

ExecEngine::ExecEngine(GraphImpl& graph) : g_(graph) { cleared(); }
ExecEngine::~ExecEngine() = default;

ExecEngine& engine(GraphImpl& g) { return static_cast<ExecEngine&>(*g.engine_); }

void ExecEngine::cleared() {
  forward_.rewind();
  backward_.rewind();
  order_.resize(0);
  groups_.resize(0);
  slots_.resize(0);
  regions_.resize(0);
  segments_.clear();
  checks_.clear();
  hooks_.clear();
  blocks_.forget();
  kept_.clear();
  first_open_ = 1;
  loss_ = 0;
  stats_ = {};
}

void ExecEngine::added(uint32_t node) {
  const uint32_t target[] = {node};
  compute(target);
}

void ExecEngine::compute(std::span<const uint32_t> targets) {
  if (g_.computing()) [[unlikely]]
    return refuse_nested(targets);
  const uint32_t n = collect(targets);
  if (n == 0) return;
  const GraphImpl::Computing computing(g_);
  begin_run();
  const bool batched = g_.options().batching && worth_batching(n, gain_);
  if (!g_.frugal()) return batched ? run_batched(n) : run_straight(n);
  try {
    begin_frugal(targets, n);
    batched ? run_batched(n) : run_straight_frugal(n);
  } catch (...) {
    end_frugal(n, false);
    throw;
  }
  end_frugal(n, true);
}

// Asked by a function that the graph called. In forward, nodes are marked before they are computed;
// in backward everything that is marked holds its value.
void ExecEngine::refuse_nested(std::span<const uint32_t> targets) {
  for (const uint32_t t : targets)
    if (!in_backward_ || !(g_.value(g_.node_of(t)).flags & kComputed))
      g_.refuse_computing("asked for a value");
}

void ExecEngine::compute_all() {
  g_.refuse_computing("asked for every value");
  stack_.resize(0);
  for (uint32_t id = first_open_; id < g_.size(); ++id)
    if (!(g_.value(id).flags & (kComputed | kSecondary))) stack_.push(id);
  all_ = true;
  const struct Done {
    bool& flag;
    ~Done() { flag = false; }
  } done{all_};
  compute({stack_.data(), stack_.size()});  // the list is used again only after it was read
  first_open_ = g_.size();
}

// Lists in todo_ (ascending) the nodes that are needed and not computed, and sums what merging them
// could save and the memory they take.
uint32_t ExecEngine::collect(std::span<const uint32_t> targets) {
  uint32_t top = 0, count = 0;
  mark_.resize(g_.size());
  if (++run_ == 0) ++run_;
  for (const uint32_t t : targets) {
    const uint32_t node = g_.node_of(t);
    if (g_.value(node).flags & kComputed) refuse_freed(t);
    if (g_.value(node).flags & kComputed || mark_[node] == run_) continue;
    mark_[node] = run_;
    top = std::max(top, node);
    ++count;
  }
  gain_ = room_ = 0;
  if (count == 0) return 0;
  todo_pool_.resize(top + 1);
  uint32_t at = top + 1;
  for (uint32_t id = top; count > 0; --id) {
    if (mark_[id] != run_) continue;
    --count;
    todo_pool_[--at] = id;
    const Pattern& p = g_.pattern_of(id);
    gain_ += p.gain_ns;
    room_ += p.room;
    for (uint32_t in : g_.inputs(id)) {
      if (g_.value(in).flags & kFreed) [[unlikely]]
        fail_freed(in);
      in = g_.node_of(in);
      if (in == GraphImpl::kAbsent || g_.value(in).flags & kComputed || mark_[in] == run_) continue;
      mark_[in] = run_;
      ++count;
    }
  }
  todo_ = todo_pool_.data() + at;
  return top + 1 - at;
}

bool ExecEngine::worth_batching(uint32_t n, uint64_t gain) const {
  return g_.options().always_group || (n > 1 && gain >= kGainPerNode * n);
}

void ExecEngine::begin_run() {
  region_.resize(g_.size());
  tmp_.rewind();
  g_.scratch().rewind();
  if (stream_serial_ != g_.serial()) {
    const uint64_t key = mix64(g_.runtime().seed(), g_.serial());
    stream_key_[0] = uint32_t(key);
    stream_key_[1] = uint32_t(key >> 32);
    stream_serial_ = g_.serial();
  }
}

// Bytes of one output; 0: not kept because nobody will ask for gradients.
uint64_t ExecEngine::visible_bytes(const Pattern& p, uint32_t output) const {
  if (output == 0) return p.out_bytes;
  if (output >= p.n_visible && infer_mode()) return 0;
  return g_.cls(g_.out_class(p, output)).bytes;
}

// Nodes that cost no call. Their inputs are computed or placed.
bool ExecEngine::resolve(uint32_t node) {
  const Pattern& p = g_.pattern_of(node);
  if (p.kind == Kind::view) {
    const uint32_t src = input(node, uint32_t(p.view_of));
    g_.data_[node] = g_.data_[src] + p.view_offset * dtype_size(g_.cls_of(src).dtype);
    return true;
  }
  if (p.kind == Kind::input_pointer) {
    const Payload& pay = g_.payload(node);
    const ClassInfo& c = g_.cls_of(node);
    if (pay.pointer_dtype == c.dtype) {
      g_.data_[node] = static_cast<char*>(const_cast<void*>(pay.pointer));
    } else {
      g_.data_[node] = static_cast<char*>(forward_.allocate(c.bytes));
      tensor_tools::copy(TensorView(g_.data_[node], c.dim, c.dtype),
                         TensorView(const_cast<void*>(pay.pointer), c.dim, pay.pointer_dtype));
    }
    return true;
  }
  return false;
}

void ExecEngine::run_straight(uint32_t n) {
  const uint32_t region = regions_.size(), first = order_.size();
  char* const memory = static_cast<char*>(forward_.allocate(room_));
  regions_.push({memory, nullptr, 0, uint32_t(segments_.size()), 0, 0});
  segments_.push_back({1, first, 0, first, region});
  order_.resize(first + n);
  const bool checked = g_.options().check_validity || g_.core().check == CheckLevel::full;
  uint32_t done = 0;
  uint64_t offset = 0;
  const auto close = [&] {
    segments_.back().count = done;
    regions_[region].bytes = offset;
  };
  try {
    for (; done < n; ++done) {
      const uint32_t node = todo_[done];
      Value& v = g_.value(node);
      Pattern& p = g_.pattern(v.pattern);
      order_[first + done] = node;
      region_[node] = region;
      if (p.plain && !checked) [[likely]] {
        offset = aligned(offset, value_alignment(p.out_bytes));
        Frame& f = frame_of(p);
        for (uint32_t i = 0; i < p.n_in; ++i) f.in[i].data = g_.data_[v.in[i]];
        f.out[0].data = g_.data_[node] = memory + offset;
        offset += p.out_bytes;
        call_forward(f, p, node);
        v.flags |= kComputed;
        continue;
      }
      if (!resolve(node)) {
        for (uint32_t o = 0; o < p.n_out; ++o) {
          const uint64_t b = visible_bytes(p, o);
          offset = b ? aligned(offset, value_alignment(b)) : offset;
          g_.data_[node + o] = b ? memory + offset : nullptr;
          region_[node + o] = region;
          offset += b;
        }
        run_node(node);
      }
      for (uint32_t o = 0; o < p.n_out; ++o) g_.value(node + o).flags |= kComputed;
    }
  } catch (...) {
    close();
    rethrow(todo_[done], "forward");
  }
  close();
}

void ExecEngine::run_batched(uint32_t n) {
  local_.resize(g_.size());
  height_.resize(n);
  indegree_.resize(n);
  lkey_.resize(n);
  users_.resize(n);
  key_stamp_.resize(std::max(key_stamp_.size(), g_.key_count()));
  key_at_.resize(key_stamp_.size());
  for (uint32_t i = 0; i < n; ++i) {
    local_[todo_[i]] = i;
    height_[i] = users_[i] = 0;
  }

  // heights, in-degrees, edges: all users of a node have a higher id
  uint32_t top = 0;
  edges_.resize(1);
  for (uint32_t i = n; i-- > 0;) {
    const uint32_t node = todo_[i];
    const uint32_t height = height_[i] + (g_.pattern_of(node).kind == Kind::view ? 0 : 1);
    uint32_t degree = 0;
    for (uint32_t in : g_.inputs(node)) {
      in = g_.node_of(in);
      if (!open(in)) continue;
      const uint32_t j = local_[in];
      height_[j] = std::max(height_[j], height);
      edges_.push({i, users_[j]});
      users_[j] = edges_.size() - 1;
      ++degree;
    }
    indegree_[i] = degree;
    top = std::max(top, height_[i]);
  }
  if (!g_.options().always_group && n < kMinWidth * (top + 1))
    return frugal_run_ ? run_straight_frugal(n) : run_straight(n);

  // Local keys, dense and counted, each with its regions: for every output one run of memory.
  // And the nodes of each height.
  const uint32_t first_region = regions_.size();
  const auto segment = uint32_t(segments_.size());
  lkeys_.resize(0);
  fill_.resize(top + 2);
  for (uint32_t h = 0; h <= top + 1; ++h) fill_[h] = 0;
  uint32_t first_table = ~0u;
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t node = todo_[i];
    const Pattern& p = g_.pattern_of(node);
    ++fill_[top - height_[i] + 1];
    if (p.kind == Kind::view || p.kind == Kind::input_pointer) {
      lkey_[i] = ~0u;
      continue;
    }
    uint32_t k = ~0u;
    uint32_t next_table = 0;
    if (p.key && key_stamp_[p.key] == run_) {
      k = key_at_[p.key];
    } else if (p.kind == Kind::lookup || p.kind == Kind::const_lookup) {
      // few tables: a list of them
      const ParamRecord* r = g_.payload(node).record;
      for (k = first_table; k != ~0u; k = lkeys_[k].next_table)
        if (g_.payload(lkeys_[k].node).record == r && g_.pattern_of(lkeys_[k].node).kind == p.kind)
          break;
      if (k == ~0u) {
        next_table = first_table;
        first_table = lkeys_.size();
      }
    }
    if (k == ~0u) {
      k = lkeys_.size();
      lkeys_.push({p.key, node, 0, 0, 0, regions_.size(), p.n_out, next_table});
      for (uint32_t o = 0; o < p.n_out; ++o) regions_.push({nullptr, nullptr, 0, segment, 0, 0});
      if (p.key) {
        key_stamp_[p.key] = run_;
        key_at_[p.key] = k;
      }
    }
    lkey_[i] = k;
    KeyState& s = lkeys_[k];
    ++s.count;
    for (uint32_t o = 0; o < s.n_out; ++o) regions_[s.region + o].bytes += visible_bytes(p, o);
  }
  uint64_t bytes = 0;
  for (uint32_t r = first_region; r < regions_.size(); ++r) bytes += aligned(regions_[r].bytes, 64);
  char* memory = static_cast<char*>(forward_.allocate(frugal_run_ ? 0 : bytes));
  cursor_.resize(regions_.size() - first_region);
  for (uint32_t r = first_region; r < regions_.size(); ++r) {
    regions_[r].data = memory;
    memory += aligned(regions_[r].bytes, 64);
    cursor_[r - first_region] = 0;
  }
  uint32_t n_slots = 0;
  for (uint32_t k = 0; k < lkeys_.size(); ++k) {
    lkeys_[k].head = lkeys_[k].tail = n_slots;
    n_slots += lkeys_[k].count;
  }
  by_height_.resize(n);
  for (uint32_t h = 1; h <= top + 1; ++h) fill_[h] += fill_[h - 1];
  for (uint32_t i = 0; i < n; ++i) by_height_[fill_[top - height_[i]]++] = i;

  const uint32_t order = order_.size(), first_group = groups_.size();
  order_.resize(order + n_slots);
  segments_.push_back({0, first_group, 0, order, first_region});
  uint32_t ran = 0;
  try {
    make_groups(n, order, first_region);
    for (; ran < groups_.size() - first_group; ++ran) run_group(groups_[first_group + ran]);
  } catch (...) {
    segments_.back().count = ran;
    forget_unrun(n, first_group + ran);
    throw;
  }
  segments_.back().count = ran;
}

// Highest level first. Ready lists are one array, a contiguous part for each key, which stays as
// the record of what ran. Nodes are placed when their group is formed, in the order of its list.
void ExecEngine::make_groups(uint32_t n, uint32_t order, uint32_t first_region) {
  constexpr uint32_t kDone = ~0u, kPlaced = ~0u - 1;  // instead of an in-degree
  stack_.resize(0);
  const auto ready = [&](uint32_t i) {
    stack_.push(i);
    while (stack_.size() > 0) {
      const uint32_t x = stack_[stack_.size() - 1];
      stack_.resize(stack_.size() - 1);
      const uint32_t node = todo_[x];
      if (lkey_[x] != ~0u) {
        order_[order + lkeys_[lkey_[x]].tail++] = node;
        indegree_[x] = kPlaced;
        continue;
      }
      resolve(node);
      if (frugal_run_ && g_.pattern_of(node).kind == Kind::view) {
        place_view(node);
        release_inputs(node);
      }
      g_.value(node).flags |= kComputed;
      indegree_[x] = kDone;
      for (uint32_t e = users_[x]; e; e = edges_[e].next)
        if (--indegree_[edges_[e].user] == 0) stack_.push(edges_[e].user);
    }
  };
  for (uint32_t i = 0; i < n; ++i)
    if (indegree_[by_height_[i]] == 0) ready(by_height_[i]);
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t x = by_height_[i];
    if (indegree_[x] == kDone) continue;
    KeyState& s = lkeys_[lkey_[x]];
    Group g{s.key, order + s.head, s.tail - s.head, 0, 0, 0};
    if (frugal_run_) place_frugal(nodes_of(g));
    for (uint32_t j = s.head; j < s.tail; ++j) {
      const uint32_t node = order_[order + j];
      const Pattern& p = g_.pattern_of(node);
      for (uint32_t o = 0; o < s.n_out; ++o) {
        const uint32_t r = s.region + o;
        uint64_t& cursor = cursor_[r - first_region];
        const uint64_t b = visible_bytes(p, o);
        if (!frugal_run_) g_.data_[node + o] = b ? regions_[r].data + cursor : nullptr;
        region_[node + o] = r;
        cursor += b;
        g_.value(node + o).flags |= kComputed;
      }
      g.batch += p.batch;
      g.elements += g_.cls(p.first_cls).dim.total();
      indegree_[local_[node]] = kDone;
    }
    const uint32_t from = s.head, to = s.tail;
    s.head = s.tail;
    groups_.push(g);
    if (g.elements > 0xFFFFFFFFu)
      fail(ErrorKind::memory,
           "[graph] a group of merged nodes has " + std::to_string(g.elements) +
               " elements (at most 4294967295: compute values in smaller parts)");
    if (frugal_run_)
      for (uint32_t j = from; j < to; ++j) release_inputs(order_[order + j]);
    for (uint32_t j = from; j < to; ++j)
      for (uint32_t e = users_[local_[order_[order + j]]]; e; e = edges_[e].next)
        if (--indegree_[edges_[e].user] == 0) ready(edges_[e].user);
  }
}

// Nodes were marked as computed, and views resolved, when the groups were laid out; those of the
// groups that did not run hold nothing.
void ExecEngine::forget_unrun(uint32_t n, uint32_t first_group) {
  for (uint32_t i = first_group; i < groups_.size(); ++i)
    for (const uint32_t node : nodes_of(groups_[i]))
      for (uint32_t o = 0; o < g_.pattern_of(node).n_out; ++o)
        g_.value(node + o).flags &= ~uint32_t(kComputed);
  for (uint32_t t = 0; t < n; ++t) {  // sources come before their views
    const Pattern& p = g_.pattern_of(todo_[t]);
    if (p.kind == Kind::view && !(g_.value(input(todo_[t], uint32_t(p.view_of))).flags & kComputed))
      g_.value(todo_[t]).flags &= ~uint32_t(kComputed);
  }
}

void ExecEngine::invalidate(uint32_t from) {
  g_.refuse_computing("invalidated");
  for (uint32_t id = from; id < g_.size(); ++id)
    if (!(g_.value(id).flags & kAlways)) g_.value(id).flags &= ~uint32_t(kComputed | kFreed);
  first_open_ = std::min(first_open_, from);
  if (loss_ >= from) loss_ = 0;
  for (Check& c : checks_) c.dirty = true;
  if (from <= 1 && checks_.empty()) {
    forward_.rewind();
    order_.resize(0);
    groups_.resize(0);
    slots_.resize(0);
    regions_.resize(0);
    segments_.clear();
    blocks_.forget();
  }
}

void ExecEngine::checkpoint() {
  compute_all();
  blocks_.forget();
  checks_.push_back({g_.mark(), forward_.mark(), order_.size(), groups_.size(),
                     uint32_t(segments_.size()), regions_.size(), slots_.size(), false});
}

void ExecEngine::revert() {
  g_.refuse_computing("reverted");
  if (checks_.empty())
    fail(ErrorKind::state, "[revert] no checkpoint is set (call checkpoint first)");
  const Check c = checks_.back();
  checks_.pop_back();
  g_.revert(c.mark);
  forward_.rewind(c.forward);
  order_.resize(c.order);
  groups_.resize(c.groups);
  segments_.resize(c.segments);
  regions_.resize(c.regions);
  slots_.resize(c.slots);
  first_open_ = std::min(first_open_, g_.size());
  blocks_.forget();
  std::erase_if(kept_, [&](uint32_t id) { return id >= g_.size(); });
  std::erase_if(hooks_, [&](const Hook& h) { return h.id >= g_.size(); });
  if (loss_ >= g_.size()) loss_ = 0;
  if (c.dirty)
    invalidate(1);  // kept nodes may have been computed again in the memory just given back
}

void ExecEngine::shrink() {
  forward_.shrink();
  backward_.shrink();
  tmp_.shrink();
}

GraphStats ExecEngine::stats() const {
  GraphStats s = stats_;
  s.nodes = g_.nodes();
  s.infer_calls = g_.infer_calls();
  s.forward_bytes = forward_.used();
  s.backward_bytes = backward_.used();
  s.reserved_bytes =
      forward_.reserved() + backward_.reserved() + tmp_.reserved() + g_.leaf_memory().reserved();
  return s;
}

}  // namespace trellis::detail
