// SPDX-License-Identifier: Apache-2.0
//
// Graphs that keep only what is asked for: a value's memory is given to a later group once its last
// user in the run has its place. Places are given out in the order in which groups will run, so
// memory that is free when a group gets its place is free when it runs.

#include "exec/engine.hpp"

namespace trellis::detail {

// Counts the users of each node to run, and holds what must stay: the values asked for, those the
// user wants kept, those that nodes outside the run read, and those that nothing reads yet.
void ExecEngine::begin_frugal(std::span<const uint32_t> targets, uint32_t n) {
  frugal_run_ = true;
  block_of_.resize(g_.size());  // outside a run these hold zeros
  uses_.resize(g_.size());
  blocks_in_use_.resize(1);         // 0: memory that is not ours
  for (uint32_t i = n; i-- > 0;) {  // users come before what they use
    const uint32_t node = todo_[i], n_visible = g_.pattern_of(node).n_visible;
    for (uint32_t o = 0; o < n_visible; ++o)  // read by nobody, as far as anyone knows
      if (uses_[node + o] == 0) uses_[node + o] = kHeld;
    for (const uint32_t in : g_.inputs(node))
      if (in != GraphImpl::kAbsent && mark_[g_.node_of(in)] == run_) ++uses_[in];
  }
  const auto hold = [&](uint32_t id) {
    if (mark_[g_.node_of(id)] == run_) uses_[id] = kHeld;
  };
  if (!all_) {
    for (const uint32_t t : targets) hold(t);
    while (first_open_ < g_.size() && g_.value(g_.node_of(first_open_)).flags & kComputed)
      ++first_open_;
    for (uint32_t id = first_open_; id < g_.size(); ++id)
      if (!(g_.value(id).flags & (kComputed | kSecondary)) && mark_[id] != run_)
        for (const uint32_t in : g_.inputs(id))
          if (in != GraphImpl::kAbsent) hold(in);
  }
  for (const uint32_t id : kept_) hold(id);
}

// The outputs of nodes that run together, one run of memory for each output.
void ExecEngine::place_frugal(std::span<const uint32_t> nodes) {
  const uint32_t n_out = g_.pattern_of(nodes[0]).n_out;
  for (uint32_t o = 0; o < n_out; ++o) {
    uint64_t bytes = 0;
    for (const uint32_t node : nodes) bytes += visible_bytes(g_.pattern_of(node), o);
    const uint32_t block = blocks_in_use_.size();
    char* at = bytes ? blocks_.take(bytes) : nullptr;
    blocks_in_use_.push({at, bytes, 0});
    uint64_t uses = 0;
    for (const uint32_t node : nodes) {
      g_.data_[node + o] = at;
      if (!at) continue;
      at += visible_bytes(g_.pattern_of(node), o);
      block_of_[node + o] = block;
      uses += uses_[node + o];
    }
    blocks_in_use_[block].uses = uses;
  }
}

// A view reads the memory of its source for as long as it has users.
void ExecEngine::place_view(uint32_t node) {
  const uint32_t src = input(node, uint32_t(g_.pattern_of(node).view_of));
  const uint32_t block = block_of_[node] = block_of_[src];
  if (block) blocks_in_use_[block].uses += uses_[node];
}

// The node's inputs have one user less.
void ExecEngine::release_inputs(uint32_t node) {
  for (const uint32_t in : g_.inputs(node)) {
    const uint32_t block = block_of_[in];
    if (block == 0 || --blocks_in_use_[block].uses > 0) continue;
    blocks_.give(blocks_in_use_[block].at, blocks_in_use_[block].bytes);
  }
}

// Marks what the run gave back. After a failure nothing of it counts as computed, and no memory is
// given out twice.
void ExecEngine::end_frugal(uint32_t n, bool done) {
  frugal_run_ = false;
  if (!done) blocks_.forget();
  for (uint32_t i = 0; i < n; ++i)
    for (uint32_t id = todo_[i], end = id + g_.pattern_of(id).n_out; id < end; ++id) {
      uint32_t& flags = g_.value(id).flags;
      if (!done)
        flags &= ~uint32_t(kComputed);
      else if (const uint32_t block = block_of_[id]; block && blocks_in_use_[block].uses == 0)
        flags |= kFreed;
      block_of_[id] = uses_[id] = 0;
    }
}

// In order of ids, each node in a block of its own.
void ExecEngine::run_straight_frugal(uint32_t n) {
  const uint32_t region = regions_.size(), first = order_.size();
  regions_.push({nullptr, nullptr, 0, uint32_t(segments_.size()), 0, 0});
  segments_.push_back({1, first, 0, first, region});
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t node = todo_[i];
    try {
      if (resolve(node)) {
        if (g_.pattern_of(node).kind == Kind::view) place_view(node);
      } else {
        place_frugal({&node, 1});
        run_node(node);
      }
    } catch (...) {
      rethrow(node, "forward");
    }
    for (uint32_t o = 0; o < g_.pattern_of(node).n_out; ++o) g_.value(node + o).flags |= kComputed;
    release_inputs(node);
  }
}

void ExecEngine::keep(uint32_t id) {
  if (!g_.frugal()) return;
  refuse_freed(id);
  kept_.push_back(id);
}

void ExecEngine::fail_freed(uint32_t id) const {
  fail(ErrorKind::state, "[graph] the value of " + g_.describe(id) +
                             " was given back: the graph keeps only what is asked for (ask for it "
                             "with the others, call keep() on it before, or make the graph with "
                             "values = all)");
}

}  // namespace trellis::detail
