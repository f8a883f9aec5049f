// SPDX-License-Identifier: Apache-2.0
//
// Life of a graph: slots and stamps (stale expressions), clear, truncate.

#include "graph/graph_impl.hpp"

#include <algorithm>
#include <mutex>

#include "graph/tables.hpp"

namespace trellis::detail {
namespace {

// Slots are recycled, never freed: an expression may outlive its graph.
struct SlotPool {
  std::mutex mutex;
  std::vector<GraphSlot*> free;

  GraphSlot* take() {
    const std::lock_guard lock(mutex);
    if (free.empty()) return new GraphSlot;
    GraphSlot* s = free.back();
    free.pop_back();
    return s;
  }
  void give(GraphSlot* s) {
    const std::lock_guard lock(mutex);
    free.push_back(s);
  }
};

SlotPool& slots() {
  static SlotPool* pool = new SlotPool;  // leaked on purpose: graphs may die in static destructors
  return *pool;
}

constexpr size_t kMaxPatterns = 1u << 16, kMaxClasses = 1u << 16, kMaxAttrSets = 1u << 14;

}  // namespace

GraphImpl::GraphImpl(const Runtime& runtime, const GraphOptions& options)
    : runtime_(runtime),
      core_(&runtime.core()),
      options_(options),
      tables_(std::make_unique<Tables>()),
      call_(runtime.core()) {
  if (!is_float(options.dtype))
    fail(ErrorKind::dtype,
         "[graph] dtype is " + std::string(dtype_name(options.dtype)) + " (needs f32 or f64)");
  core_->check_device("graph", options.device);
  slot_ = slots().take();
  slot_->impl = this;
  call_.scratch = &scratch_;
  flush_tables();
  clear(options_.serial ? &*options_.serial : nullptr);
}

GraphImpl::~GraphImpl() {
  engine_.reset();
  flush_tables();
  slot_->impl = nullptr;
  ++slot_->stamp;
  slots().give(slot_);
}

void GraphImpl::fail_computing(const char* what) {
  fail(ErrorKind::state, "[graph] it is " + std::string(what) +
                             " while it computes: by a function that it called (do that before or "
                             "after, or with another graph)");
}

void GraphImpl::clear(const uint64_t* serial) {
  refuse_computing("cleared");
  if (engine_) engine_->cleared();
  serial_ = serial ? *serial : core_->next_serial.fetch_add(1, std::memory_order_relaxed);
  ++slot_->stamp;
  segments_.assign(1, {0, slot_->stamp});
  if (patterns_.size() > kMaxPatterns || classes_.size() > kMaxClasses ||
      attr_sets_.size() > kMaxAttrSets)
    flush_tables();
  values_.resize(1);
  values_[0] = Value{};
  lines_.resize(1);
  line_ = scope_line_ = 0;
  data_.resize(1);
  data_[0] = nullptr;
  payloads_.resize(1);
  payloads_[0] = nullptr;
  input_pool_.resize(0);
  leaf_arena_.rewind();
  held_.clear();
  customs_.clear();
  n_params_ = 0;  // their slots carry an old stamp now
  nodes_ = 0;
  last_pattern_ = patterns_[0].get();
  next_stream_ = 1;
  infer_calls_ = 0;
}

void GraphImpl::set_mode(Mode mode) {
  if (nodes_ > 0)
    fail(ErrorKind::state, "[set_mode] the graph has " + std::to_string(nodes_) +
                               " nodes (needs an empty one: call clear first)");
  if (mode == options_.mode) return;
  options_.mode = mode;
  flush_tables();  // inference may look at the mode
  last_pattern_ = patterns_[0].get();
}

void GraphImpl::truncate(uint32_t n) {
  refuse_computing("cut back");
  for (uint32_t i = n; i < values_.size(); ++i) nodes_ -= !(values_[i].flags & kSecondary);
  values_.resize(n);
  data_.resize(n);
  while (!customs_.empty() && customs_.back()->node >= n) customs_.pop_back();
  ++slot_->stamp;
  while (!segments_.empty() && segments_.back().first >= n) segments_.pop_back();
  segments_.push_back({n, slot_->stamp});
}

void GraphImpl::revert(const Mark& m) {
  truncate(m.values);
  payloads_.resize(m.payloads);
  input_pool_.resize(m.inputs);
  leaf_arena_.rewind(m.leaves);
}

void GraphImpl::shrink() {
  leaf_arena_.shrink();
  scratch_.shrink();
  inner_.reset();
}

// Patterns refer to classes, keys and attribute sets, so all go together.
void GraphImpl::flush_tables() {
  for (const auto& p : patterns_)
    if (p->state) p->kernel->destroy(p->state);
  patterns_.clear();
  keys_.clear();
  classes_.clear();
  shapes_.clear();
  attr_sets_.clear();
  frames_.clear();
  in_cls_pool_.resize(0);
  out_cls_pool_.resize(0);
  tables_->clear();
  patterns_.push_back(std::make_unique<Pattern>());
  patterns_[0]->next = last_pattern_ = patterns_[0].get();
  keys_.push_back(std::make_unique<KeyInfo>());
  classes_.emplace_back();  // class 0: absent
  classes_[0].elements = 0;
  classes_[0].bytes = 0;
  shapes_.emplace_back();
  attr_sets_.emplace_back();
}

uint32_t GraphImpl::stamp_of(uint32_t id) const {
  for (size_t i = segments_.size(); i-- > 0;)
    if (segments_[i].first <= id) return segments_[i].stamp;
  return 0;
}

bool GraphImpl::alive(const Expr& e) const noexcept {
  return e.slot_ == slot_ && e.id_ > 0 && e.id_ < values_.size() && stamp_of(e.id_) == e.stamp_;
}

uint32_t GraphImpl::id_slow(const Expr& e) const {
  if (!e.slot_)
    fail(ErrorKind::state,
         "[expression] it is empty: made by no graph (needs one made by this graph)");
  if (e.slot_ != slot_ && e.slot_->impl && e.slot_->impl->alive(e))
    fail(ErrorKind::state,
         "[expression] it belongs to another graph (all inputs of a node must be of one graph)");
  if (!alive(e))
    fail(ErrorKind::state,
         "[expression] expression from an older graph: the graph was cleared, reverted or "
         "destroyed since (make it anew)");
  return e.id_;
}

GraphImpl& GraphImpl::of_slow(const Expr& e) {
  if (e.slot_ && e.slot_->impl) {
    e.slot_->impl->id_of(e);
    return *e.slot_->impl;
  }
  if (!e.slot_)
    fail(ErrorKind::state,
         "[expression] it is empty: made by no graph (needs one made by a graph)");
  fail(ErrorKind::state,
       "[expression] expression from an older graph: the graph was cleared, reverted or destroyed "
       "since (make it anew)");
}

trl_expr GraphImpl::to_c(uint32_t id) const {
  const uint32_t node = node_of(id);
  return {node, static_cast<uint16_t>(id - node), static_cast<uint16_t>(stamp_of(id))};
}

uint32_t GraphImpl::from_c(trl_expr e) const {
  if (e.node == kAbsent) return kAbsent;
  const uint64_t id = uint64_t(e.node) + e.output;
  if (id >= values_.size() || static_cast<uint16_t>(stamp_of(uint32_t(id))) != e.epoch ||
      node_of(uint32_t(id)) != e.node)
    fail(ErrorKind::state, "[graph] a plugin passed an expression of an older graph: node " +
                               std::to_string(e.node) + " (graphs keep nothing for plugins)");
  return uint32_t(id);
}

GradientBlock::Impl& GraphImpl::gradients(const ParamRecord& r) {
  if (options_.gradients && options_.gradients->impl().root == r.root)
    return options_.gradients->impl();
  return r.root->gradients.impl();
}

void GraphImpl::hold(ParamRecord& r) {
  for (const auto& m : held_)
    if (m.get() == r.root) return;
  auto root = r.owner.lock();
  if (!root)
    fail(ErrorKind::state,
         "[parameter] the model of '" + r.name + "' was destroyed (keep the Model alive)");
  if (root->core != core_)
    fail(ErrorKind::state, "[parameter] '" + r.name +
                               "' is of a model of another runtime (needs one of the graph's)");
  held_.push_back(std::move(root));
}

}  // namespace trellis::detail
