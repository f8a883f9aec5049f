// SPDX-License-Identifier: Apache-2.0
//
// Computes the values and gradients of one graph.
//
//  1 compute() looks only at nodes that are needed and not yet computed, and runs them as one
//  segment: either straight
//    (in order of ids, where merging would not pay) or in groups of nodes with equal batching keys.
//  2 A group's outputs are contiguous, and all groups of one key are adjacent in the order they run
//  (a region), so the
//    next group mostly reads them in place, and the gradient of a shared weight sees one matrix.
//  3 backward() walks segments, and groups within them, in reverse. Gradients mirror regions. The
//  gradient of a shared
//    weight is deferred: one call per weight over all its small groups, after the walk.
// Memory of values and gradients comes from two arenas that are rewound, never freed, between
// examples.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "exec/blocks.hpp"
#include "graph/graph_impl.hpp"

namespace trellis::detail {

class ExecEngine final : public Engine {
 public:
  explicit ExecEngine(GraphImpl& graph);
  ~ExecEngine() override;

  void cleared() override;
  void added(uint32_t node) override;

  void compute(std::span<const uint32_t> targets);
  void compute_all();
  void invalidate(uint32_t from);  // 1: everything
  void backward(uint32_t loss, bool full);
  TensorView value(uint32_t id);     // computed
  TensorView gradient(uint32_t id);  // throws Error(state/range)
  bool has_gradient() const { return loss_ != 0; }
  bool gradient_known(uint32_t id) const {
    return loss_ != 0 && id <= loss_ && grad_[id] != nullptr;
  }
  void add_hook(uint32_t id, std::function<void(const TensorView&)> f) {
    g_.refuse_computing("given a hook");
    hooks_.push_back({id, std::move(f)});
  }
  void keep(uint32_t id);  // where only some values are kept
  void checkpoint();
  void revert();
  void shrink();

  GraphStats stats() const;

 private:
  // Outputs of one key in one segment: data and, after backward, gradient at the same offsets.
  struct Region {
    char* data;
    char* grad;
    uint64_t bytes;
    uint32_t segment;
    uint32_t used;   // stamp of the backward that needs it
    uint32_t clear;  // of the one that adds to it
  };
  struct Group {
    uint32_t key, first, count, batch;  // nodes order_[first ..]; batch: sum
    uint32_t slots;                     // of its inputs, when merged
    uint64_t elements;                  // flat groups
  };
  struct Segment {
    uint32_t straight;
    uint32_t first, count;    // straight: nodes in order_; else groups
    uint32_t order, regions;  // where its part of order_ and regions_ starts
  };
  // One input of a merged call.
  struct Slot {
    char* data;
    uint32_t mode;  // SlotMode
    uint32_t reserved;
  };
  enum SlotMode : uint32_t { kDirect, kGathered, kOne };
  // Of a value in a backward: its gradient is wanted and reached; another output of the node is; it
  // has a hook.
  // More than one writes to its gradient, or one that cannot store; its only writer stores.
  enum ReachBits : uint8_t { kWanted = 1, kSibling = 2, kHooked = 4, kMany = 8, kStore = 16 };
  struct Deferred {
    uint32_t key, first, count;  // nodes in order_
    uint32_t next;
  };
  struct Check {
    GraphImpl::Mark mark;
    Arena::Mark forward;
    uint32_t order, groups, segments, regions, slots;
    bool dirty;  // values were invalidated since
  };

  // plan.cpp
  uint32_t collect(std::span<const uint32_t> targets);
  bool worth_batching(uint32_t n, uint64_t gain) const;
  void run_straight(uint32_t n);
  void run_batched(uint32_t n);
  bool resolve(uint32_t node);  // views and pointers: no call; false: needs a call
  uint64_t visible_bytes(const Pattern& p, uint32_t output) const;
  bool open(uint32_t node) const {  // of this run, not computed before it
    return node != GraphImpl::kAbsent && mark_[node] == run_ && !(g_.value(node).flags & kComputed);
  }
  void make_groups(uint32_t n, uint32_t order, uint32_t first_region);
  void forget_unrun(uint32_t n, uint32_t first_group);
  void begin_run();
  void refuse_freed(uint32_t id) const {
    if (g_.value(id).flags & kFreed) [[unlikely]]
      fail_freed(id);
  }
  [[noreturn]] void fail_freed(uint32_t id) const;

  // frugal.cpp
  void begin_frugal(std::span<const uint32_t> targets, uint32_t n);
  void place_frugal(std::span<const uint32_t> nodes);
  void place_view(uint32_t node);
  void release_inputs(uint32_t node);
  void end_frugal(uint32_t n, bool done);
  void run_straight_frugal(uint32_t n);
  void refuse_nested(std::span<const uint32_t> targets);

  // forward.cpp
  Frame& frame_of(Pattern& p) {
    if (!p.frame) [[unlikely]]
      make_frame(p);
    return *p.frame;
  }
  Frame& frame_of(KeyInfo& k);
  void make_frame(Pattern& p);
  void lay_out(Frame& f, const Pattern& p);
  void patch_payload(Frame& f, const Pattern& p, std::span<const uint32_t> nodes, uint32_t batch);
  void run_node(uint32_t node);
  void run_group(Group& g);
  void call_forward(Frame& f, const Pattern& p, uint32_t node) {
    Call& call = g_.call();
    call.begin(Phase::exec, f.self);
    ++stats_.forward_calls;
    if (g_.core().check == CheckLevel::full) [[unlikely]]
      return call_checked(f, p, node);
    const Arena::Mark scratch = g_.scratch().mark();
    const trl_status st = p.kernel->forward(&f.forward);
    release_scratch(scratch);
    if (st != TRL_OK) [[unlikely]]
      failed(st, p, node, "forward");
  }
  // What a kernel took for the call; most take nothing.
  void release_scratch(const Arena::Mark& before) {
    const Arena::Mark now = g_.scratch().mark();
    if (now.offset != before.offset || now.chunk != before.chunk) g_.scratch().rewind(before);
  }
  // In a handler: throws again what is of our own, names the plugin for the rest.
  [[noreturn]] void rethrow(uint32_t node, const char* phase);
  void call_checked(Frame& f, const Pattern& p, uint32_t node);
  void run_lookup(std::span<const uint32_t> nodes);
  void copy_rows(uint32_t node, bool backward);
  void check_valid(std::span<const uint32_t> nodes);
  bool contiguous(std::span<const uint32_t> nodes, uint32_t input, const Pool<char*>& at) const;
  char* gather(std::span<const uint32_t> nodes, uint32_t input, bool repeat, Arena& into);
  [[noreturn]] void failed(trl_status st, const Pattern& p, uint32_t node, const char* phase);

  // backward.cpp
  struct GradientBytes {
    uint64_t cleared = 0, stored = 0;
  };
  GradientBytes reach(uint32_t loss, bool full);
  void place_gradients(uint32_t loss, const GradientBytes& bytes);
  uint32_t store_flag(uint32_t id) const {
    return reach_[id] & kStore ? uint32_t(TRL_TENSOR_STORE) : 0u;
  }
  char* group_gradient(std::span<const uint32_t> nodes, uint32_t output) const;
  [[noreturn]] void no_backward(const Pattern& p, uint32_t node);
  bool wants(uint32_t id) const { return reach_[id] & kWanted; }
  void backward_node(uint32_t position);  // in order_
  // No two of the values' gradients share memory.
  bool gradients_disjoint(std::span<const uint32_t> values);
  void backward_group(const Group& g);
  void backward_lookup(std::span<const uint32_t> nodes, uint32_t segment);
  void defer(uint32_t key, uint32_t first, uint32_t count);
  void run_deferred();
  void run_deferred(uint32_t key, std::span<const uint32_t> nodes);
  void call_backward(Frame& f, const Pattern& p, uint32_t node) {
    if (!p.kernel->backward) [[unlikely]]
      no_backward(p, node);
    g_.call().begin(Phase::exec, f.self);
    ++stats_.backward_calls;
    const Arena::Mark scratch = g_.scratch().mark();
    trl_status st = TRL_OK;
    try {
      st = p.kernel->backward(&f.backward);
    } catch (...) {
      rethrow(node, "backward");
    }
    release_scratch(scratch);
    if (st != TRL_OK) [[unlikely]]
      failed(st, p, node, "backward");
  }
  void put_rows(uint32_t id, const char* from, const ClassInfo& c);
  void scatter(std::span<const uint32_t> nodes, uint32_t input, const char* from, bool repeat);
  void forget_gradients();
  void mark_hooks(uint32_t loss);
  void run_hooks(uint32_t node);
  TensorView gradient_view(uint32_t id) const;
  void run_leaf_hooks(uint32_t loss);

  std::span<const uint32_t> nodes_of(const Group& g) const { return {&order_[g.first], g.count}; }
  uint32_t input(uint32_t node, uint32_t i) const { return g_.inputs(node)[i]; }
  bool infer_mode() const { return g_.options().mode == Mode::infer; }
  uint32_t call_flags(bool merged) const {
    return (infer_mode() ? uint32_t(TRL_CALL_NO_BACKWARD) : uint32_t(TRL_CALL_TRAIN)) |
           (merged ? uint32_t(TRL_CALL_MERGED) : 0u);
  }

  GraphImpl& g_;
  Arena forward_, backward_, tmp_;

  // Of graphs that keep only what is asked for.
  struct Block {
    char* at;
    uint64_t bytes;
    uint64_t uses;  // by nodes that have no place yet; what is held never reaches 0
  };
  static constexpr uint32_t kHeld = 1u << 30;
  Blocks blocks_{forward_};
  Pool<Block> blocks_in_use_;       // of one run
  Pool<uint32_t> block_of_, uses_;  // by value
  std::vector<uint32_t> kept_;
  bool frugal_run_ = false;
  bool all_ = false;  // every open node is asked for, none by name

  Pool<uint32_t> order_;  // nodes in the order they ran
  Pool<Group> groups_;
  Pool<Slot> slots_;
  Pool<Region> regions_;
  std::vector<Segment> segments_;
  std::vector<Check> checks_;
  Pool<uint32_t> region_;    // by value: where its data lies
  uint32_t first_open_ = 1;  // nodes below are computed

  // of one run, kept for their memory
  const uint32_t* todo_ = nullptr;  // nodes to run, ascending
  Pool<uint32_t> todo_pool_, mark_, local_, height_, indegree_, lkey_, by_height_, fill_, stack_;
  struct Edge {
    uint32_t user, next;  // next edge of the same producer; 0: none
  };
  Pool<Edge> edges_;
  Pool<uint32_t> users_;  // by node of the run: its first edge
  struct KeyState {
    uint32_t key, node, count, head, tail, region, n_out, next_table;
  };
  Pool<KeyState> lkeys_;
  Pool<uint64_t> cursor_;              // by region of the run
  Pool<uint32_t> key_stamp_, key_at_;  // by key: local key of this run
  uint32_t run_ = 0;
  uint64_t gain_ = 0, room_ = 0;  // what merging could save, and the memory needed at most

  // of the last backward
  Pool<char*> grad_;
  Pool<uint8_t> reach_;  // ReachBits
  Pool<Deferred> deferred_;
  Pool<uint32_t> deferred_head_;  // by key
  Pool<uint32_t> deferred_keys_;
  std::vector<uint32_t> temporary_;
  Pool<uint64_t> d_bytes_;
  uint32_t loss_ = 0, backward_run_ = 0;
  bool in_backward_ = false;
  struct Hook {
    uint32_t id;
    std::function<void(const TensorView&)> f;
  };
  std::vector<Hook> hooks_;

  Pool<trl_stream> streams_;
  uint32_t stream_key_[2] = {};
  uint64_t stream_serial_ = ~0ull;
  GraphStats stats_;
};

ExecEngine& engine(GraphImpl& g);

}  // namespace trellis::detail
