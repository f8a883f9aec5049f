// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

#include "graph/graph_impl.hpp"
#include "host/host.hpp"
#include "plugin/handles.hpp"
#include "plugin/loader.hpp"
#include "registry/registry.hpp"
#include "tensor/arena.hpp"

namespace trellis::detail {
namespace {

constexpr uint32_t kMaxDepth = 8;
constexpr uint32_t kMaxTensors = 1u << 16;

trl_status require_exec(trl_call* c, std::string_view what) noexcept {
  return require_phase(c, what, Phase::exec, Phase::fill, Phase::update);
}

// One thread: callers may run many graphs at once, and nobody has asked for more.
trl_status parallel_for(trl_call* c, int64_t begin, int64_t end, int64_t grain,
                        trl_status (*fn)(void*, int64_t, int64_t), void* context) noexcept {
  if (const trl_status st = require_exec(c, "parallel_for"); st != TRL_OK) return st;
  return guard_host(c, [&] {
    if (!fn || grain < 1 || end < begin)
      return record(c, TRL_E_INVALID,
                    "[trl.exec/1] parallel_for over " + std::to_string(begin) + " to " +
                        std::to_string(end) + " in grains of " + std::to_string(grain) +
                        " (needs a function, begin <= end, grain >= 1)");
    return begin == end ? trl_status{TRL_OK} : fn(context, begin, end);
  });
}

void* scratch(trl_call* c, size_t bytes) noexcept {
  if (require_exec(c, "scratch") != TRL_OK) return nullptr;
  void* memory = nullptr;
  guard_host(c, [&] {
    Arena* const arena = as_call(c).scratch;
    if (!arena) return wrong_phase(c, "scratch");
    memory = arena->allocate(std::max<size_t>(bytes, 1));
    return trl_status{TRL_OK};
  });
  return memory;
}

// One invoke of one operator, from the arguments to the kernel's return.
class Invocation {
 public:
  Invocation(Call& outer, const OpHandle& handle)
      : outer_(outer), op_(*handle.op), call_(*outer.core) {
    call_.depth = outer.depth + 1;
    call_.scratch = outer.scratch;
    call_.graph = outer.graph;
    call_.plugin_id = op_.plugin->id;
  }

  trl_status run(const OpHandle& handle, std::span<const trl_tensor> in, std::span<trl_tensor> out,
                 std::span<const trl_attr> attrs, const trl_stream* streams) {
    take_tensors(in, out);
    choose_kernel();
    if (op_.stochastic && !streams)
      refuse(ErrorKind::argument, "invoked without streams (needs one for each batch element)");
    attrs_.resize(handle.defaults.size());
    OpHandles::arrange(handle, attrs, attrs_.data());
    interned_ = attrs_;
    for (size_t i = 0; i < interned_.size(); ++i)
      if (op_.attrs[i].per_batch()) interned_[i] = trl_attr{op_.attrs[i].type, 0, {}, nullptr};
    if (const trl_status st = infer(); st != TRL_OK) return st;
    check_outputs(out);
    if (view_of_ >= 0) return copy_view(out[0]);
    for (size_t i = 0; i < attrs_.size(); ++i)
      if (op_.attrs[i].per_batch()) lay_out(op_.attrs[i], attrs_[i]);
    return forward(streams);
  }

 private:
  [[noreturn]] void refuse(ErrorKind kind, const std::string& fact) const {
    fail(kind, "[" + op_.id + "] " + fact);
  }

  void take_tensors(std::span<const trl_tensor> in, std::span<trl_tensor> out) {
    const size_t least = op_.in.size();
    if (op_.variadic ? in.size() < least : in.size() != least)
      refuse(ErrorKind::argument, "invoked with " + std::to_string(in.size()) + " inputs (needs " +
                                      (op_.variadic ? "at least " : "") + std::to_string(least) +
                                      ")");
    if (out.size() != op_.n_visible)
      refuse(ErrorKind::argument, "invoked with " + std::to_string(out.size()) +
                                      " outputs (needs " + std::to_string(op_.n_visible) + ")");
    in_.assign(in.begin(), in.end());
    for (const trl_tensor& t : in_)
      if (t.data) batch_ = std::max(batch_, t.dim.batch);
    for (size_t i = 0; i < in_.size(); ++i) check_input(i);
  }

  void check_input(size_t i) {
    const trl_in_spec& spec = op_.in[std::min(i, op_.in.size() - 1)];
    trl_tensor& t = in_[i];
    const std::string who = "input " + std::to_string(i);
    if (!t.data) {
      if (!(spec.flags & TRL_IN_OPTIONAL)) refuse(ErrorKind::argument, who + " is absent");
      t = trl_tensor{};
      return;
    }
    const Dim dim(t.dim);
    if (t.device != TRL_CPU || (t.flags & TRL_TENSOR_POINTERS))
      refuse(ErrorKind::argument, who + " is not a plain tensor of the CPU");
    if (spec.merge != TRL_IN_NEVER && dim.batch != 1 && dim.batch != batch_)
      refuse(ErrorKind::shape, who + " has a batch of " + std::to_string(dim.batch) +
                                   " (needs 1 or " + std::to_string(batch_) + ")");
    if (dim.batch == 1)
      t.batch_stride = 0;
    else if (t.batch_stride != dim.elements())
      refuse(ErrorKind::shape, who + " has a batch stride of " + std::to_string(t.batch_stride) +
                                   " (needs " + std::to_string(dim.elements()) + ", packed)");
    t.dim = dim;
  }

  void choose_kernel() {
    uint16_t dtype = op_.in.empty() ? uint16_t{TRL_F32} : uint16_t{0};
    for (size_t i = 0; i < in_.size(); ++i)
      if (in_[i].data && op_.in[std::min(i, op_.in.size() - 1)].dtype == 0 && dtype == 0)
        dtype = in_[i].dtype;
    if (dtype != TRL_F64) dtype = TRL_F32;
    dtype_ = static_cast<DType>(dtype);
    for (size_t i = 0; i < in_.size(); ++i) {
      const uint16_t wanted = op_.in[std::min(i, op_.in.size() - 1)].dtype;
      if (in_[i].data && in_[i].dtype != (wanted ? wanted : dtype))
        refuse(ErrorKind::dtype,
               "input " + std::to_string(i) + " has element type " + std::to_string(in_[i].dtype) +
                   " (needs " +
                   std::string(dtype_name(static_cast<DType>(wanted ? wanted : dtype))) + ")");
    }
    kernel_ = &op_.kernel(dtype_);
  }

  trl_status infer() {
    const size_t n = op_.out.size();
    for (size_t i = 0; i < in_.size(); ++i) {
      in_dims_.push_back(in_[i].dim);
      in_dtypes_.push_back(in_[i].data ? in_[i].dtype : uint16_t{0});
    }
    for (size_t o = 0; o < n; ++o) {
      out_dims_.push_back(Dim().with_batch(batch_));
      out_dtypes_.push_back(op_.out[o].dtype ? op_.out[o].dtype : static_cast<uint16_t>(dtype_));
    }
    if (!op_.desc.infer) refuse(ErrorKind::argument, "cannot be invoked: it stands for a graph");
    trl_infer_args a{};
    a.struct_size = sizeof a;
    a.flags = mode();
    a.call = &call_;
    a.attrs = interned_.data();
    a.in = in_dims_.data();
    a.in_dtype = in_dtypes_.data();
    a.n_attrs = static_cast<uint32_t>(attrs_.size());
    a.n_in = static_cast<uint32_t>(in_.size());
    a.n_out = static_cast<uint32_t>(n);
    a.batch = batch_;
    a.out = out_dims_.data();
    a.out_dtype = out_dtypes_.data();
    a.view_of = -1;
    call_.begin(Phase::infer, op_.plugin->self);
    if (const trl_status st = op_.desc.infer(&a); st != TRL_OK) return pass_on(st);
    view_of_ = a.view_of;
    view_offset_ = a.view_offset;
    return TRL_OK;
  }

  void check_outputs(std::span<const trl_tensor> out) {
    for (size_t o = 0; o < op_.out.size(); ++o) {
      const Dim dim(out_dims_[o]);
      trl_tensor t{};
      if (o < out.size()) {
        t = out[o];
        if (!t.data || !(Dim(t.dim) == dim) || t.dtype != out_dtypes_[o])
          refuse(ErrorKind::shape, "output " + std::to_string(o) + " has room for " +
                                       Dim(t.dim).to_string() + " of element type " +
                                       std::to_string(t.dtype) + " (needs " + dim.to_string() +
                                       ", " + std::to_string(out_dtypes_[o]) + ")");
      }
      t.dim = dim;
      t.dtype = out_dtypes_[o];
      t.batch_stride = dim.batch == 1 ? 0 : dim.elements();
      out_.push_back(t);
    }
  }

  trl_status copy_view(trl_tensor& out) {
    const Dim dim(out.dim);
    if (static_cast<size_t>(view_of_) >= in_.size() || !in_[view_of_].data ||
        in_[view_of_].dtype != out.dtype)
      refuse(ErrorKind::plugin, "declares a view of input " + std::to_string(view_of_));
    const trl_tensor& in = in_[view_of_];
    const size_t size = dtype_size(static_cast<DType>(out.dtype));
    const uint64_t stride = Dim(in.dim).elements();
    const bool whole = view_offset_ == 0 && Dim(in.dim).total() == dim.total();
    if (!whole && (in.dim.batch != dim.batch || view_offset_ + dim.elements() > stride))
      refuse(ErrorKind::plugin, "declares a view that does not lie in its input");
    const char* from = static_cast<const char*>(in.data);
    char* to = static_cast<char*>(out.data);
    if (whole) {
      std::memcpy(to, from, dim.total() * size);
      return TRL_OK;
    }
    for (uint32_t b = 0; b < dim.batch; ++b)
      std::memcpy(to + b * dim.elements() * size, from + (b * stride + view_offset_) * size,
                  dim.elements() * size);
    return TRL_OK;
  }

  // A per-batch attribute as kernels get it: values of every batch element, with offsets, within
  // bounds.
  void lay_out(const AttrSpec& spec, trl_attr& a) {
    if (a.count == 0 && !a.offsets) a = spec.dflt;
    const bool is_scalar = a.type == TRL_ATTR_I64 || a.type == TRL_ATTR_F64;
    const uint32_t count = is_scalar ? 1 : a.count;
    const std::string who = "attribute '" + spec.key + "'";
    if (!a.offsets && count != 1 && count != batch_)
      refuse(ErrorKind::argument, who + " has " + std::to_string(count) + " values (needs 1 or " +
                                      std::to_string(batch_) + ")");
    auto* offsets = call_.scratch->array<uint32_t>(batch_ + 1);
    if (a.offsets)
      std::copy_n(a.offsets, batch_ + 1, offsets);
    else
      std::iota(offsets, offsets + batch_ + 1, 0u);
    for (uint32_t b = 0; b < batch_; ++b)
      if (offsets[b + 1] < offsets[b] || offsets[b + 1] - offsets[b] < spec.min_each ||
          offsets[b + 1] - offsets[b] > spec.max_each)
        refuse(ErrorKind::argument,
               who + " has a wrong number of values for batch element " + std::to_string(b));
    if (offsets[0] != 0 || (a.offsets && offsets[batch_] != count))
      refuse(ErrorKind::argument, who + " has offsets that do not span its values");
    const int64_t* given = is_scalar ? &a.v.i : a.v.is;  // f64 values have the same size
    auto* values = call_.scratch->array<int64_t>(std::max(1u, offsets[batch_]));
    for (uint32_t i = 0; i < offsets[batch_]; ++i) values[i] = given[count == 1 ? 0 : i];
    a.type = spec.type;
    a.count = offsets[batch_];
    a.v.is = values;
    a.offsets = offsets;
    if (spec.bound_input < 0 || a.type != TRL_ATTR_I64S) return;
    const trl_dim& dim = in_[spec.bound_input].dim;
    int64_t axis = spec.bound_axis < 0 && spec.bound_axis_attr >= 0
                       ? attrs_[spec.bound_axis_attr].v.i
                       : spec.bound_axis;
    if (axis < 0) axis += dim.rank;
    const int64_t size = axis >= 0 && axis < static_cast<int64_t>(dim.rank) ? dim.d[axis] : 1;
    const int64_t top = spec.flags & TRL_ATTR_BOUND_CLOSED ? size : size - 1;
    for (uint32_t i = 0; i < a.count; ++i)
      if (values[i] < 0 || values[i] > top)
        refuse(ErrorKind::range, who + " is out of bounds: " + std::to_string(values[i]) +
                                     " (needs 0 to " + std::to_string(top) + ")");
  }

  trl_status forward(const trl_stream* streams) {
    if (!*kernel_) refuse(ErrorKind::dtype, "has no kernel for " + std::string(dtype_name(dtype_)));
    const trl_kernel_desc& kernel = kernel_->desc;
    void* const self = kernel_->plugin->self;
    trl_fwd_args a{};
    a.struct_size = sizeof a;
    a.flags = mode() | TRL_CALL_NO_BACKWARD;
    a.call = &call_;
    a.attrs = attrs_.data();
    a.in = in_.data();
    a.out = out_.data();
    a.n_attrs = static_cast<uint32_t>(attrs_.size());
    a.n_in = static_cast<uint32_t>(in_.size());
    a.n_out = static_cast<uint32_t>(out_.size());
    a.batch = batch_;
    a.streams = op_.stochastic ? streams : nullptr;
    if (kernel.create) {
      call_.begin(Phase::create, self);
      const trl_status st = kernel.create(&call_, interned_.data(), a.n_attrs, &a.state);
      if (st != TRL_OK) return pass_on(st);
    }
    call_.begin(Phase::exec, self);
    const trl_status st = kernel.forward(&a);
    if (kernel.destroy) kernel.destroy(a.state);
    return st == TRL_OK ? st : pass_on(st);
  }

  trl_status pass_on(trl_status st) { return record(&outer_, st, call_.take_text(st)); }

  uint32_t mode() const {
    return call_.graph && call_.graph->options().mode == Mode::train ? uint32_t{TRL_CALL_TRAIN}
                                                                     : 0u;
  }

  Call& outer_;
  const OpEntry& op_;
  Call call_;
  const KernelEntry* kernel_ = nullptr;
  DType dtype_ = DType::f32;
  uint32_t batch_ = 1;
  int32_t view_of_ = -1;
  uint64_t view_offset_ = 0;
  std::vector<trl_tensor> in_, out_;
  std::vector<trl_attr> attrs_, interned_;  // the second without per-batch values
  std::vector<trl_dim> in_dims_, out_dims_;
  std::vector<uint16_t> in_dtypes_, out_dtypes_;
};

trl_status invoke(trl_call* c, trl_op_handle handle, const trl_tensor* in, uint32_t n_in,
                  trl_tensor* out, uint32_t n_out, const trl_attr* attrs, uint32_t n_attrs,
                  const trl_stream* streams) noexcept {
  if (const trl_status st = require_exec(c, "invoke"); st != TRL_OK) return st;
  return guard_host(c, [&] {
    Call& call = as_call(c);
    const OpHandle* h = call.core->loader->handles().find(handle);
    if (!h || !h->op || n_in > kMaxTensors || n_out > kMaxTensors || (n_in > 0 && !in) ||
        (n_out > 0 && !out) || !call.scratch)
      return record(c, TRL_E_INVALID,
                    "[trl.exec/1] invoke with handle " + std::to_string(handle) +
                        " (needs one that resolve returned, and tensors)");
    if (call.depth >= kMaxDepth)
      return record(c, TRL_E_INVALID,
                    "[" + h->op->id + "] invoked " + std::to_string(call.depth + 1) +
                        " deep (at most " + std::to_string(kMaxDepth) + ")");
    return Invocation(call, *h).run(*h, {in, n_in}, {out, n_out}, {attrs, n_attrs}, streams);
  });
}

}  // namespace

const trl_exec_api kExecApi = {sizeof(trl_exec_api), 0, parallel_for, scratch, invoke};

}  // namespace trellis::detail
