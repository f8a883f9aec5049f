// SPDX-License-Identifier: Apache-2.0
//
// The nodes of one graph.
//
//  1 A value is one output of one node: a record of 32 bytes, append-only, so order of ids is
//  topological. A node with k
//    outputs (hidden ones included) is k consecutive values; its id is that of the first.
//  2 A class is an interned (dtype, shape with batch, device, identity of shared storage). Every parameter
//  has its own class. 3 A pattern is an interned (operator, attributes, per-batch size, classes of
//  the inputs). It carries everything shape
//    inference and the batching key say, so a repeated pattern costs one predicted comparison or
//    one look-up. Patterns survive clear(); they are bounded, and flushed only there.
//  4 Per-batch attributes, ids of look-ups and addresses of random streams are the payload of a
//  node: in neither pattern
//    nor key.
// Execution is the engine's business (exec/); this folder only tells it what happened.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <trellis/graph.hpp>
#include <trellis/model.hpp>
#include <type_traits>
#include <vector>

#include "model/records.hpp"
#include "registry/registry.hpp"
#include "runtime/call.hpp"
#include "tensor/arena.hpp"

namespace trellis::detail {

// Why expressions can outlive their graph: they point to a slot that is recycled but never freed,
// and whose stamp only grows.
struct GraphSlot {
  GraphImpl* impl = nullptr;
  uint32_t stamp = 1;
};

enum class Kind : uint8_t {
  op,         // a kernel call
  view,       // the same memory as an input
  copy_view,  // a view whose examples are not contiguous: the host copies rows
  input,
  input_pointer,
  constant,
  parameter,
  const_parameter,
  table,
  const_table,
  lookup,
  const_lookup,
};
inline bool is_leaf(Kind k) { return k >= Kind::input; }

// Where the gradient of a value lies.
enum class GradientPlace : uint8_t {
  mirrored,   // at the same place of its region
  own,        // leaves; views through which no gradient flows
  parameter,  // in the block of gradients
  view,       // within the gradient of its source
};

// How an input reaches a merged call; part of the batching key.
enum class Merge : uint8_t {
  concat,     // as many batch elements as the node
  broadcast,  // one batch element serves the node's batch
  shared,     // a parameter: one for the whole group
};

enum ValueFlags : uint32_t {
  kNeedsGrad = 1u << 0,  // a trainable leaf lies below
  kComputed = 1u << 1,   // data_ is valid
  kSecondary = 1u << 2,  // not the first output: in[0] is the node, in[1] the output's number
  kAlways = 1u << 3,     // leaf whose data needs no execution
  kFreed = 1u << 4,      // was computed, and its memory given back
};

struct Value {
  uint32_t pattern, cls, flags, payload;
  uint32_t in[4];  // more than 4 inputs: in[0] is an offset into the input pool
};
static_assert(sizeof(Value) == 32);

struct ClassInfo {
  Dim dim;
  DType dtype = DType::f32;
  Device device{};
  uint32_t shape = 0;                // interned (dtype, sizes without batch)
  uint32_t shared = 0;               // identity of shared storage; 0: none
  uint64_t elements = 0, bytes = 0;  // of one example; with the batch
};

// Arguments of a call, laid out once; a call patches pointers (and batch sizes, when merged).
struct Frame {
  trl_fwd_args forward{};
  trl_bwd_args backward{};
  std::vector<trl_tensor> tensors;  // in, out, d_out, d_in
  std::vector<trl_attr> attrs;      // operators with per-batch attributes: patched at each call
  trl_tensor *in = nullptr, *out = nullptr, *d_out = nullptr, *d_in = nullptr;
  void* self = nullptr;  // of the plugin that provides the kernel
};

// What nodes that may run together have in common.
struct KeyInfo {
  uint32_t pattern = 0;          // the first one seen
  bool flat = false;             // element-wise: runs of elements, whatever the shapes
  bool mergeable = false;        // false: every node is its own group
  bool defer = false;            // has a shared input whose gradient may wait
  std::vector<Merge> merge;      // by input
  std::unique_ptr<Frame> frame;  // made at the first merged call
};

struct Pattern {
  // the question
  const OpEntry* op = nullptr;
  uint32_t attr = 0, attr_batch = 0, n_in = 0;
  uint32_t in_cls[4] = {};  // more than 4: offset in in_cls[0] into the class pool
  Pattern* next = nullptr;  // prediction: what followed this pattern last time
  uint32_t index = 0;       // of this pattern
  // the answer
  uint32_t key = 0, batch = 1;
  uint16_t n_out = 1, n_visible = 1;
  Kind kind = Kind::op;
  GradientPlace gradient_place = GradientPlace::mirrored;
  bool needs_payload = false, all_inputs_grad = true, any_grad = true;
  // One output, up to 4 inputs, a kernel, nothing per node but its inputs: the short paths.
  bool plain = false;
  bool may_defer = false;    // the key has a shared weight whose gradient may wait
  uint8_t gain_ns = 4;       // what merging this node saves, roughly
  DType dtype = DType::f32;  // of the kernel
  uint32_t out_cls = 0;  // offset of n_out classes in the out-class pool; leaves: the class itself
  uint32_t first_cls = 0;  // class of output 0
  uint64_t out_bytes = 0;  // of output 0
  uint64_t room = 0;       // what the outputs take at most, alignment included
  int32_t view_of = -1;
  uint64_t view_offset = 0;  // elements, per example
  const trl_kernel_desc* kernel = nullptr;
  void* state = nullptr;
  Frame* frame = nullptr;  // made at the first execution
};

// Per-batch attributes of a node, or the ids of a look-up, or what a leaf refers to. Lives in the
// leaf arena.
struct Payload {
  uint32_t stream = 0;   // of a stochastic node: part of its random address, never reused
  uint32_t n_attrs = 0;  // per-batch attributes, in the order of their specs
  trl_attr* attrs = nullptr;
  const uint32_t* ids = nullptr;  // look-ups
  uint32_t n_ids = 0;
  const void* pointer = nullptr;  // input_pointer
  DType pointer_dtype = DType::f32;
  ParamRecord* record = nullptr;  // parameters, tables, look-ups
};

// A node of Graph::custom(). Its payload's only attribute points here.
struct CustomFunctions {
  uint32_t node = 0;
  const char* who = "custom";  // starts error texts
  CustomForward forward;
  CustomBackward backward;
};

// What the graph tells its engine (exec/).
class Engine {
 public:
  virtual ~Engine() = default;
  virtual void cleared() = 0;
  virtual void added(uint32_t node) = 0;  // immediate mode only
};

// Small values are packed closer: a cache line a scalar would cost more than it gives.
inline uint64_t value_alignment(uint64_t bytes) { return bytes < 64 ? 16 : 64; }

// Memory for records: grows by doubling (new memory is zero), never shrinks, never constructs.
template <class T>
class Pool {
 public:
  ~Pool() { std::free(data_); }
  Pool() = default;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  uint32_t size() const { return size_; }
  T* data() { return data_; }
  void resize(uint32_t n) {
    if (n > capacity_) [[unlikely]]
      grow(n);
    size_ = n;
  }
  T* extend(uint32_t n) {
    const uint32_t at = size_;
    resize(at + n);
    return data_ + at;
  }
  void push(const T& v) { *extend(1) = v; }

 private:
  static_assert(std::is_trivially_copyable_v<T>);
  void grow(uint32_t n) {
    size_t c = capacity_ ? size_t(capacity_) * 2 : 256;
    if (c < n) c = n;
    void* p = std::realloc(data_, c * sizeof(T));
    if (!p) fail(ErrorKind::memory, "[graph] out of memory for " + std::to_string(c) + " records");
    data_ = static_cast<T*>(p);
    // Zero, so that a stamp never matches by accident.
    std::memset(static_cast<void*>(data_ + capacity_), 0, (c - capacity_) * sizeof(T));
    capacity_ = static_cast<uint32_t>(c);
  }
  T* data_ = nullptr;
  uint32_t size_ = 0, capacity_ = 0;
};

class GraphImpl : public std::enable_shared_from_this<GraphImpl> {
 public:
  GraphImpl(const Runtime& runtime, const GraphOptions& options);
  ~GraphImpl();

  // ---- building
  // The value that stands for an absent optional input.
  static constexpr uint32_t kAbsent = 0;
  static constexpr uint32_t kMaxValues = 0xFFFFFF00u;

  // While it lives the graph is computing: functions of the user's (hooks, custom nodes) may neither
  // add nodes nor compute, and the graph outlives the last handle on it.
  class Computing {
   public:
    explicit Computing(GraphImpl& graph) : graph_(graph), keep_(graph.weak_from_this().lock()) {
      graph.refuse_computing("computed");
      graph.limit_ = 0;
    }
    ~Computing() { graph_.limit_ = kMaxValues; }
    Computing(const Computing&) = delete;

   private:
    GraphImpl& graph_;
    std::shared_ptr<GraphImpl> keep_;
  };
  bool computing() const { return limit_ != kMaxValues; }
  // Throws Error(state) while it is.
  void refuse_computing(const char* what) const {
    if (computing()) [[unlikely]]
      fail_computing(what);
  }

  // Attributes in the order of op.attrs, defaults filled in; PER_BATCH and VALUE ones as (count,
  // values, offsets), where offsets NULL means one value each and count 0 the default. attr_batch:
  // how many batch elements ragged lists were given for; 0: as many as the inputs have. Returns the
  // id of the first output; outputs follow. Throws, and adds nothing.
  // `where`: the line that asks for it; without one it is that of the LineScope.
  uint32_t apply(const OpEntry& op, std::span<const uint32_t> in, std::span<const trl_attr> attrs,
                 uint32_t attr_batch = 0, SourceLine where = {}) {
    line_ = where.file ? packed(where) : scope_line_;
    if (op.bare && attrs.empty()) return append(op, 0, 0, in, 0);
    return apply_with_attrs(op, in, attrs, attr_batch);
  }
  uint32_t apply(const OpEntry& op, std::span<const uint32_t> in, const Attrs& attrs,
                 SourceLine where = {});  // by name, checked
  // Leaves without a device take the graph's.
  uint32_t constant(const Dim& dim, DType dtype, double value) {
    return constant(dim, dtype, value, options_.device);
  }
  uint32_t constant(const Dim& dim, DType dtype, double value, Device device);
  uint32_t input(const Dim& dim, DType dtype, const void* values, DType values_dtype) {
    return input(dim, dtype, values, values_dtype, options_.device);
  }
  uint32_t input(const Dim& dim, DType dtype, const void* values, DType values_dtype,
                 Device device);
  uint32_t input_pointer(const Dim& dim, const void* values, DType values_dtype);
  uint32_t sparse_input(const Dim& dim, std::span<const uint64_t> ids,
                        std::span<const double> values, double dflt);
  uint32_t parameter(ParamRecord& r, bool constant);  // also whole tables
  uint32_t lookup(ParamRecord& r, std::span<const uint32_t> ids, bool constant,
                  bool by_pointer = false);
  uint32_t custom(std::span<const uint32_t> in, const Dim& dim, CustomForward forward,
                  CustomBackward backward, const char* who = "custom", SourceLine where = {});
  // A leaf on memory that outlives it.
  uint32_t borrow(const TensorView& values, bool needs_grad);
  // A number that nobody reads and a gradient flows to: where it is an input, backward comes by.
  uint32_t anchor(DType dtype);
  // A graph for nodes that are computed apart from this one's (recompute): in this one's mode and
  // empty. Its memory is kept.
  std::shared_ptr<GraphImpl> inner_;
  // Who received gradients in there, in the current backward.
  std::vector<ParamRecord*> inner_records_;
  uint32_t take_stream() { return next_stream_++; }  // a random address, never given twice

  // While it lives, nodes of `node`'s operator have `node`'s random numbers: in expand_grad a mask is
  // applied again by applying the operator again.
  class SameNumbers {
   public:
    SameNumbers(GraphImpl& graph, uint32_t node) : graph_(graph) {
      const Pattern& p = graph.pattern_of(node);
      if (!p.op->stochastic) return;
      graph.same_op_ = p.op;
      graph.same_stream_ = graph.payload(node).stream;
    }
    ~SameNumbers() { graph_.same_op_ = nullptr; }
    SameNumbers(const SameNumbers&) = delete;

   private:
    GraphImpl& graph_;
  };

  // While it lives, nodes that plugins and combinators make are laid to this line.
  class LineScope {
   public:
    LineScope(GraphImpl& graph, SourceLine where) : LineScope(graph, packed(where)) {}
    ~LineScope() { graph_.scope_line_ = before_; }
    LineScope(const LineScope&) = delete;

   private:
    friend class GraphImpl;
    LineScope(GraphImpl& graph, uint64_t line) : graph_(graph), before_(graph.scope_line_) {
      if (line) graph.scope_line_ = line;
    }
    GraphImpl& graph_;
    uint64_t before_;
  };

  void clear(const uint64_t* serial);
  void set_mode(Mode mode);
  // Drops the values from `n` on; their expressions become stale.
  void truncate(uint32_t n);
  struct Mark {
    uint32_t values = 1, payloads = 1, inputs = 0;
    Arena::Mark leaves;
  };
  Mark mark() const {
    return {values_.size(), payloads_.size(), input_pool_.size(), leaf_arena_.mark()};
  }
  void revert(const Mark& m);  // truncate, and give the memory of the leaves back

  // ---- expressions
  Expr expr(uint32_t id) {
    return Expr(slot_, id, id >= segments_.back().first ? slot_->stamp : stamp_of(id));
  }
  uint32_t id_of(const Expr& e) const {  // throws Error(state): stale, empty, or of another graph
    if (e.slot_ == slot_ && e.stamp_ == slot_->stamp) [[likely]]
      return e.id_;
    return id_slow(e);
  }
  uint32_t id_or_absent(const Expr& e) const { return e.slot_ ? id_of(e) : kAbsent; }
  bool alive(const Expr& e) const noexcept;
  static GraphImpl& of(const Expr& e) {  // throws Error(state)
    if (e.slot_ && e.slot_->impl && e.stamp_ == e.slot_->stamp) [[likely]]
      return *e.slot_->impl;
    return of_slow(e);
  }
  trl_expr to_c(uint32_t id) const;
  uint32_t from_c(trl_expr e) const;  // throws Error(state)

  // ---- reading
  uint32_t size() const { return values_.size(); }  // ids are 1 .. size() - 1
  const Value& value(uint32_t id) const { return values_[id]; }
  Value& value(uint32_t id) { return values_[id]; }
  Pattern& pattern(uint32_t i) { return *patterns_[i]; }
  const Pattern& pattern_of(uint32_t id) const { return *patterns_[values_[id].pattern]; }
  const ClassInfo& cls(uint32_t c) const { return classes_[c]; }
  const ClassInfo& cls_of(uint32_t id) const { return classes_[values_[id].cls]; }
  KeyInfo& key(uint32_t k) { return *keys_[k]; }
  uint32_t key_count() const { return static_cast<uint32_t>(keys_.size()); }
  uint32_t node_of(uint32_t id) const {
    return values_[id].flags & kSecondary ? values_[id].in[0] : id;
  }
  std::span<const uint32_t> inputs(uint32_t node) const {
    const Value& v = values_[node];
    const uint32_t n = patterns_[v.pattern]->n_in;
    return {n <= 4 ? v.in : &input_pool_[v.in[0]], n};
  }
  Payload& payload(uint32_t node) { return *payloads_[values_[node].payload]; }
  std::span<const trl_attr> attrs(uint32_t attr_id) const { return attr_sets_[attr_id].attrs; }
  uint32_t out_class(const Pattern& p, uint32_t o) const {
    return o == 0 ? p.first_cls : out_cls_pool_[p.out_cls + o];
  }
  const GraphOptions& options() const { return options_; }
  bool frugal() const {
    return options_.values == KeptValues::requested && options_.mode == Mode::infer;
  }
  const Runtime& runtime() const { return runtime_; }
  RuntimeCore& core() const { return *core_; }
  uint64_t serial() const { return serial_; }
  Call& call() { return call_; }
  Arena& scratch() { return scratch_; }
  const Arena& leaf_memory() const { return leaf_arena_; }
  void shrink();  // gives unused memory back; only when empty
  GradientBlock::Impl& gradients(const ParamRecord& r);
  const uint32_t* input_classes(const Pattern& p) const {
    return p.n_in <= 4 ? p.in_cls : &in_cls_pool_[p.in_cls[0]];
  }
  Frame& new_frame() {  // lives as long as the patterns
    frames_.push_back(std::make_unique<Frame>());
    return *frames_.back();
  }
  uint32_t nodes() const { return nodes_; }
  uint64_t infer_calls() const { return infer_calls_; }

  std::string shapes(uint32_t node) const;  // "{3,4} {4}x2"
  std::string describe(uint32_t id) const;  // node #3 = core.tanh(#2) {4}x2
  // "; ops-core 0.1.0, node #3, forward, inputs {..}, made at tagger.cpp:42"
  std::string context(uint32_t node, const char* phase) const;

  // Pointers to the data of each value; parallel to the values.
  Pool<char*> data_;
  std::unique_ptr<Engine> engine_;

 private:
  struct AttrSet {
    uint32_t op = 0;
    uint64_t hash = 0;
    std::vector<trl_attr> attrs;  // per-batch ones with count 0
    std::unique_ptr<char[]> memory;
  };
  struct Segment {
    uint32_t first, stamp;
  };
  struct ParamSlot {
    uint32_t uid = 0, id = 0, stamp = 0;
  };

  // The hot path: predict, compare, append.
  uint32_t append(const OpEntry& op, uint32_t attr, uint32_t attr_batch,
                  std::span<const uint32_t> in, uint32_t payload) {
    Pattern* p = last_pattern_->next;
    if (!matches(*p, op, attr, attr_batch, in)) [[unlikely]] {
      p = patterns_[find_pattern(op, attr, attr_batch, in)].get();
      if (options_.memo) last_pattern_->next = p;
    }
    const uint32_t id = values_.size();
    if (!p->plain || options_.immediate || id >= limit_) [[unlikely]]
      return append_any(*p, op, attr, in, payload);
    last_pattern_ = p;
    Value& v = *values_.extend(1);
    data_.resize(id + 1);
    v.pattern = p->index;
    v.cls = p->first_cls;
    v.payload = payload;
    uint32_t flags = 0;
    for (size_t i = 0; i < in.size(); ++i) {
      v.in[i] = in[i];
      flags |= values_[in[i]].flags;
    }
    v.flags = p->any_grad ? flags & kNeedsGrad : 0;
    lines_.resize(id + 1);
    lines_[id] = line_;
    ++nodes_;
    return id;
  }
  uint32_t append_any(const Pattern& p, const OpEntry& op, uint32_t attr,
                      std::span<const uint32_t> in, uint32_t payload);
  bool matches(const Pattern& p, const OpEntry& op, uint32_t attr, uint32_t attr_batch,
               std::span<const uint32_t> in) const {
    if (p.op != &op || p.attr != attr || p.attr_batch != attr_batch || p.n_in != in.size())
      return false;
    const uint32_t* c = input_classes(p);
    for (size_t i = 0; i < in.size(); ++i)
      if (values_[in[i]].cls != c[i]) return false;
    return true;
  }
  uint32_t append_values(const Pattern& p, std::span<const uint32_t> in, uint32_t payload);
  uint32_t compute_now(uint32_t id);  // immediate mode; a node that fails is not added
  uint32_t append_leaf(Kind kind, uint32_t cls, uint32_t payload, char* data, bool needs_grad);
  uint32_t apply_with_attrs(const OpEntry& op, std::span<const uint32_t> in,
                            std::span<const trl_attr> attrs, uint32_t attr_batch);
  uint32_t expand(const Pattern& p, const OpEntry& op, uint32_t attr, std::span<const uint32_t> in,
                  uint32_t payload);
  void infer(Pattern& p, std::span<const uint32_t> in, std::vector<trl_dim>& out,
             std::vector<uint16_t>& out_dtype, bool* stops_gradient);
  void choose_view(Pattern& p, std::span<const uint32_t> in, const Dim& out, DType out_dtype);
  void make_key(Pattern& p, uint32_t index, std::span<const uint32_t> in, std::span<const Dim> out);
  [[noreturn]] void refuse(const OpEntry& op, std::span<const uint32_t> in, ErrorKind kind,
                           const std::string& text);
  uint32_t find_pattern(const OpEntry& op, uint32_t attr, uint32_t attr_batch,
                        std::span<const uint32_t> in);
  uint32_t make_pattern(const OpEntry& op, uint32_t attr, uint32_t attr_batch,
                        std::span<const uint32_t> in, uint64_t hash);
  uint32_t leaf_pattern(Kind kind, uint32_t cls);
  uint32_t intern_class(const Dim& dim, DType dtype, uint32_t shared, Device device);
  Device device_of(const OpEntry& op, std::span<const uint32_t> in);
  uint32_t intern_shape(const Dim& dim, DType dtype);
  uint32_t intern_attrs(const OpEntry& op, std::span<const trl_attr> attrs);
  uint32_t intern_key(const std::string& bytes, uint32_t pattern);
  uint32_t make_payload(const OpEntry& op, std::span<const uint32_t> in,
                        std::span<const trl_attr> attrs, uint32_t* attr_batch);
  void check_ids(const OpEntry& op, const AttrSpec& spec, std::span<const uint32_t> in,
                 std::span<const trl_attr> attrs, const trl_attr& a, uint32_t batch) const;
  Payload& new_payload(uint32_t* index);
  void flush_tables();
  [[noreturn]] static void fail_computing(const char* what);
  // The file's address and the line in one word: user addresses have 48 bits at most.
  static uint64_t packed(SourceLine w) {
    return reinterpret_cast<uint64_t>(w.file) << 16 | (w.line < 0xFFFF ? w.line : 0xFFFF);
  }
  static std::string line_text(uint64_t line);  // "tagger.cpp:42"; empty: not known
  uint32_t stamp_of(uint32_t id) const;
  uint32_t id_slow(const Expr& e) const;
  static GraphImpl& of_slow(const Expr& e);
  void hold(ParamRecord& r);
  ParamSlot& param_slot(uint32_t uid);

  Runtime runtime_;
  RuntimeCore* core_;
  GraphOptions options_;
  uint64_t serial_ = 0;
  GraphSlot* slot_ = nullptr;
  std::vector<Segment> segments_;  // ids from `first` on carry `stamp`

  Pool<Value> values_;
  Pool<uint32_t> input_pool_;
  Pool<Payload*> payloads_;
  uint32_t nodes_ = 0, next_stream_ = 1;
  Pool<uint64_t> lines_;                // by node; where it was made, packed
  uint64_t line_ = 0, scope_line_ = 0;  // of the node being made; of those that others make
  uint32_t limit_ = kMaxValues;         // of values; 0: none may be added now
  Pattern* last_pattern_ = nullptr;
  uint64_t infer_calls_ = 0;
  const OpEntry* same_op_ = nullptr;  // see SameNumbers
  uint32_t same_stream_ = 0;

  std::vector<std::unique_ptr<Pattern>> patterns_;  // 0 matches nothing
  std::vector<std::unique_ptr<KeyInfo>> keys_;      // 0: never merged
  std::vector<ClassInfo> classes_;
  std::vector<Dim> shapes_;
  std::vector<AttrSet> attr_sets_;  // 0: no attributes
  Pool<uint32_t> in_cls_pool_, out_cls_pool_;
  std::vector<std::unique_ptr<Frame>> frames_;
  struct Tables;  // hash tables over the above
  std::unique_ptr<Tables> tables_;

  std::vector<ParamSlot> params_;  // open addressing by uid
  uint32_t n_params_ = 0;
  std::vector<std::shared_ptr<ModelRoot>> held_;           // models whose parameters are in use
  std::vector<std::unique_ptr<CustomFunctions>> customs_;  // in order of nodes
  Arena leaf_arena_, scratch_;
  Call call_;
};

}  // namespace trellis::detail
