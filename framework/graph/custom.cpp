// SPDX-License-Identifier: Apache-2.0
//
// Nodes that the program's own functions compute. To the executor they are ordinary nodes of two
// operators of the kernel's, one with a gradient and one without, that are never merged; shape and
// batch are interned attributes, and the functions travel as an attribute that is part of neither
// pattern nor key, so that patterns stay few.

#include <exception>

#include "graph/graph_impl.hpp"

namespace trellis::detail {
namespace {

enum : size_t { kShape, kBatch, kFunctions };  // attributes

TensorView view_of(const trl_tensor& t) {
  return TensorView(t.data, Dim(t.dim), static_cast<DType>(t.dtype));
}

std::vector<TensorView> views_of(const trl_tensor* t, uint32_t n) {
  std::vector<TensorView> views;
  for (uint32_t i = 0; i < n; ++i) views.push_back(view_of(t[i]));
  return views;
}

const CustomFunctions& functions_of(const trl_attr* attrs) {
  return *reinterpret_cast<const CustomFunctions*>(attrs[kFunctions].v.is[0]);
}

// What user code throws stops here, with its text.
template <class F>
trl_status guarded(trl_call* c, const trl_attr* attrs, const char* which, F&& f) {
  Call& call = as_call(c);
  const CustomFunctions& functions = functions_of(attrs);
  const std::string start =
      "[" + std::string(functions.who) + "] the " + which + " function threw ";
  try {
    f(functions);
    return TRL_OK;
  } catch (const std::exception& e) {
    call.text = start.substr(0, start.size() - 1) + ": " + e.what();
  } catch (...) {
    call.text = start + "what is no std::exception";
  }
  return call.status = TRL_E_INVALID;
}

trl_status infer(trl_infer_args* a) {
  const trl_attr& shape = a->attrs[kShape];
  a->view_of = -1;
  a->out[0].rank = shape.count;
  for (uint32_t i = 0; i < shape.count; ++i) a->out[0].d[i] = static_cast<uint32_t>(shape.v.is[i]);
  a->out[0].batch = static_cast<uint32_t>(a->attrs[kBatch].v.i);
  return TRL_OK;
}

trl_status forward(const trl_fwd_args* a) {
  return guarded(a->call, a->attrs, "forward", [a](const CustomFunctions& f) {
    f.forward(views_of(a->in, a->n_in), view_of(a->out[0]));
  });
}

trl_status backward(const trl_bwd_args* a) {
  return guarded(a->call, a->attrs, "backward", [a](const CustomFunctions& f) {
    f.backward(views_of(a->in, a->n_in), view_of(a->out[0]), view_of(a->d_out[0]),
               views_of(a->d_in, a->n_in));
  });
}

trl_str text(std::string_view s) { return {s.data(), s.size()}; }

// An operator that no plugin registered: it is in no registry, so nobody can name it.
OpEntry make_entry(bool gradient) {
  static const PluginRecord kernel = [] {
    PluginRecord p;
    p.id = "kernel";
    p.version = version();
    return p;
  }();
  OpEntry op;
  op.handle = gradient ? ~0u : ~0u - 1;  // registered ones count from 1
  constexpr std::string_view kId = "kernel.custom";
  op.id = kId;
  op.name = "custom";
  op.plugin = &kernel;
  op.desc.struct_size = sizeof op.desc;
  op.desc.id = text(kId);
  op.desc.infer = infer;
  trl_in_spec in{};
  in.struct_size = sizeof in;
  in.flags = TRL_IN_VARIADIC | (gradient ? TRL_IN_KEEP : TRL_IN_NO_GRAD);
  in.name = text("x");
  in.merge = TRL_IN_NEVER;
  op.in = {in};
  trl_out_spec out{};
  out.struct_size = sizeof out;
  out.flags = gradient ? uint32_t(TRL_OUT_KEEP) : 0u;
  out.name = text("y");
  op.out = {out};
  op.attrs.resize(3);
  op.attrs[kShape].key = "shape";
  op.attrs[kShape].type = TRL_ATTR_I64S;
  op.attrs[kBatch].key = "batch";
  op.attrs[kBatch].type = TRL_ATTR_I64;
  op.attrs[kFunctions].key = "functions";
  op.attrs[kFunctions].type = TRL_ATTR_I64S;
  op.attrs[kFunctions].flags = TRL_ATTR_PER_BATCH;
  op.n_visible = 1;
  op.variadic = true;
  op.mergeable = false;
  op.has_per_batch = true;
  for (KernelEntry* k : {&op.f32, &op.f64}) {
    k->desc.struct_size = sizeof k->desc;
    k->desc.op_id = text(kId);
    k->desc.device = text("cpu");
    k->desc.dtype = k == &op.f32 ? TRL_F32 : TRL_F64;
    k->desc.forward = forward;
    k->desc.backward = gradient ? backward : nullptr;
    k->plugin = &kernel;
  }
  return op;
}

const OpEntry& entry(bool gradient) {
  static const OpEntry with = make_entry(true), without = make_entry(false);
  return gradient ? with : without;
}

}  // namespace

uint32_t GraphImpl::custom(std::span<const uint32_t> in, const Dim& dim, CustomForward forward,
                           CustomBackward backward, const char* who, SourceLine where) {
  if (in.empty())
    fail(ErrorKind::argument, "[custom] no inputs: 0 (at least 1; numbers alone are an input())");
  if (!forward)
    fail(ErrorKind::argument, "[custom] the forward function is empty (needs one to call)");
  const OpEntry& op = entry(backward != nullptr);
  int64_t sizes[Dim::kMaxRank];
  for (uint32_t i = 0; i < dim.rank; ++i) sizes[i] = dim.d[i];
  const size_t known = customs_.size();
  customs_.push_back(std::make_unique<CustomFunctions>(
      CustomFunctions{size(), who, std::move(forward), std::move(backward)}));
  const auto pointer = reinterpret_cast<int64_t>(customs_.back().get());
  trl_attr attrs[3] = {};
  attrs[kShape].type = TRL_ATTR_I64S;
  attrs[kShape].count = dim.rank;
  attrs[kShape].v.is = sizes;
  attrs[kBatch].type = TRL_ATTR_I64;
  attrs[kBatch].count = 1;
  attrs[kBatch].v.i = dim.batch;
  attrs[kFunctions].type = TRL_ATTR_I64S;
  attrs[kFunctions].count = 1;
  attrs[kFunctions].v.is = &pointer;
  try {
    return apply(op, in, std::span<const trl_attr>(attrs), 0, where);
  } catch (...) {
    if (customs_.size() > known) customs_.resize(known);
    throw;
  }
}

uint32_t GraphImpl::borrow(const TensorView& values, bool needs_grad) {
  const uint32_t cls = intern_class(values.dim(), values.dtype(), 0, options_.device);
  return append_leaf(Kind::input, cls, 0, static_cast<char*>(values.data()), needs_grad);
}

uint32_t GraphImpl::anchor(DType dtype) {
  const uint32_t id = constant(Dim(), dtype, 0);
  values_[id].flags |= kNeedsGrad;
  return id;
}

}  // namespace trellis::detail
