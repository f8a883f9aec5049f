// SPDX-License-Identifier: Apache-2.0
#include "validate/kernel_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "validate/test.hpp"

namespace trellis::validate {

void put_numbers(void* to, DType dtype, const Numbers& numbers) {
  const auto put = [&](auto zero) {
    auto* p = static_cast<decltype(zero)*>(to);
    for (const double x : numbers) *p++ = static_cast<decltype(zero)>(x);
  };
  switch (dtype) {
    case DType::f32:
      return put(float{});
    case DType::f64:
      return put(double{});
    case DType::i32:
      return put(int32_t{});
    case DType::i64:
      return put(int64_t{});
    default:
      return put(uint8_t{});
  }
}

Numbers get_numbers(const void* from, DType dtype, uint64_t n) {
  Numbers numbers(n);
  const auto get = [&](auto zero) {
    const auto* p = static_cast<const decltype(zero)*>(from);
    for (double& x : numbers) x = static_cast<double>(*p++);
  };
  switch (dtype) {
    case DType::f32:
      get(float{});
      break;
    case DType::f64:
      get(double{});
      break;
    case DType::i32:
      get(int32_t{});
      break;
    case DType::i64:
      get(int64_t{});
      break;
    default:
      get(uint8_t{});
  }
  return numbers;
}

namespace {

trl_tensor tensor_of(const Dim& dim, DType dtype, uint32_t node_batch) {
  trl_tensor t{};
  t.dim = dim;
  t.dtype = static_cast<uint16_t>(dtype);
  t.device = TRL_CPU;
  t.batch_stride = dim.batch == 1 && node_batch > 1 ? 0 : dim.elements();
  return t;
}

void set_data(trl_tensor& t, void* data) {
  t.data = data;
  t.align_log2 = 6;
  while (t.align_log2 > 0 && reinterpret_cast<uintptr_t>(data) % (1u << t.align_log2) != 0)
    --t.align_log2;
}

std::string shape_name(const char* what, size_t i, const Dim& dim) {
  return fmt::format("{} {} {}", what, i, dim.to_string());
}

// Views lie anywhere, but elements where their type may lie.
size_t shift_of(size_t shift, DType dtype) {
  const size_t size = dtype_size(dtype);
  return (shift + size - 1) / size * size;
}

}  // namespace

KernelRun::KernelRun(BenchHost& bench, const Case& c, const Values& values,
                     const RunOptions& options)
    : case_(c), values_(values), options_(options), call_(bench) {
  const Op& op = *case_.op;
  kernel_ = op.kernel(options_.dtype);
  if (!kernel_) throw Failure{fmt::format("{}: no kernel", text())};
  call_.poison = options_.poison;
  call_.split = options_.split;
  inferred_ = infer(call_, case_, options_.dtype, options_.flags);
  if (inferred_.status != TRL_OK)
    throw Failure{fmt::format("{}: infer refuses it: {}", text(), inferred_.text)};
  call_.self = bench.self();
  set_attrs();
  if (op.has(TRL_OP_STOCHASTIC)) {
    streams_ = options_.streams;
    for (uint32_t b = static_cast<uint32_t>(streams_.size()); b < case_.batch; ++b)
      streams_.push_back({{static_cast<uint32_t>(options_.stream), 77},
                          {static_cast<uint32_t>(options_.stream >> 32), b}});
  }
  parts_.resize(case_.inputs.size());
  pointers_.resize(case_.inputs.size());
  for (size_t i = 0; i < case_.inputs.size(); ++i) set_input(i);
  for (uint32_t o = 0; o < op.desc().n_out; ++o) {
    Dim dim;
    try {
      dim = Dim(inferred_.out[o]);
    } catch (const Error& e) {
      throw Failure{fmt::format("{}: infer answers an impossible shape for output {}: {}", text(),
                                o, e.what())};
    }
    out_tensors_.push_back(tensor_of(dim, out_dtype(o), case_.batch));
    set_output(o);
  }
}

void KernelRun::set_output(uint32_t o) {
  const bool hidden = o >= n_visible();
  if (hidden && (options_.flags & TRL_CALL_NO_BACKWARD)) {
    out_.emplace_back();
    return;
  }
  out_.emplace_back(out_dim(o).total() * dtype_size(out_dtype(o)),
                    shape_name(hidden ? "hidden output" : "output", o, out_dim(o)),
                    shift_of(options_.shift, out_dtype(o)));
  out_[o].surround(options_.around);
  set_data(out_tensors_[o], out_[o].data());
}

KernelRun::~KernelRun() {
  try {
    destroy();
  } catch (const Failure&) {  // faults.exception calls it, too, and reports
  }
}

void KernelRun::destroy() {
  if (!created_) return;
  created_ = false;
  if (kernel_->create && kernel_->destroy)
    call_.run("destroy", [&] {
      kernel_->destroy(state_);
      return trl_status{TRL_OK};
    });
}

// Lists lie in guarded memory, like tensors: in the host they are part of an arena.
void KernelRun::set_attrs() {
  attrs_.clear();
  interned_.clear();
  for (size_t i = 0; i < case_.attrs.size(); ++i) {
    const CaseAttr& a = case_.attrs[i];
    trl_attr c = a.c();
    const auto place = [&](const void* from, size_t bytes, const char* what) {
      lists_.emplace_back(bytes,
                          fmt::format("{} of attribute {}", what, view_of(case_.op->attr(i).key)));
      std::memcpy(lists_.back().data(), from, bytes);
      return lists_.back().data();
    };
    if (!a.is.empty())
      c.v.is = static_cast<int64_t*>(place(a.is.data(), a.is.size() * 8, "values"));
    if (!a.fs.empty()) c.v.fs = static_cast<double*>(place(a.fs.data(), a.fs.size() * 8, "values"));
    if (!a.offsets.empty())
      c.offsets = static_cast<uint32_t*>(place(a.offsets.data(), a.offsets.size() * 4, "offsets"));
    attrs_.push_back(c);
    interned_.push_back(a.offsets.empty() ? c : trl_attr{a.type, 0, {}, nullptr});
  }
}

void KernelRun::set_input(size_t i) {
  if (!case_.inputs[i]) {
    in_.emplace_back();
    in_tensors_.push_back(trl_tensor{});
    return;
  }
  const Dim& dim = *case_.inputs[i];
  const uint16_t fixed = case_.op->in(i).dtype;
  const DType dtype = fixed ? static_cast<DType>(fixed) : options_.dtype;
  const size_t bytes = dim.total() * dtype_size(dtype);
  in_.emplace_back(bytes, shape_name("input", i, dim), shift_of(options_.shift, dtype));
  in_[i].surround(options_.around);
  put_numbers(in_[i].data(), dtype, values_[i]);
  in_tensors_.push_back(tensor_of(dim, dtype, case_.batch));
  set_data(in_tensors_[i], in_[i].data());
  if (!options_.pointers || dim.batch == 1) return;
  const size_t one = bytes / dim.batch;
  for (uint32_t b = 0; b < dim.batch; ++b) {
    parts_[i].emplace_back(one, shape_name("input", i, dim.single_batch()),
                           shift_of(options_.shift, dtype));
    std::memcpy(parts_[i][b].data(), in_[i].data<char>() + b * one, one);
    pointers_[i].push_back(parts_[i][b].data());
  }
  in_tensors_[i].data = pointers_[i].data();
  in_tensors_[i].flags |= TRL_TENSOR_POINTERS;
}

std::string KernelRun::text() const {
  return fmt::format("{} {}", case_.text(), dtype_name(options_.dtype));
}

void KernelRun::broken(std::string_view what, const std::string& fact) const {
  throw Failure{fmt::format("{}, {}: {}", text(), what, fact)};
}

bool KernelRun::takes_gradient(size_t i) const {
  const trl_in_spec& s = case_.op->in(i);
  return case_.inputs[i] && !(s.flags & TRL_IN_NO_GRAD) &&
         is_float(static_cast<DType>(in_tensors_[i].dtype));
}

void KernelRun::create() {
  if (created_) return;
  if (kernel_->create) {
    try {
      call_.must("create", [&] {
        return kernel_->create(&call_, interned_.data(), static_cast<uint32_t>(interned_.size()),
                               &state_);
      });
    } catch (const Failure& e) {
      throw Failure{text() + ": " + e.text};
    }
  }
  created_ = true;
}

trl_fwd_args KernelRun::forward_args() {
  trl_fwd_args a{};
  a.struct_size = sizeof a;
  a.flags = options_.flags;
  a.call = &call_;
  a.attrs = attrs_.data();
  a.in = in_tensors_.data();
  a.out = out_tensors_.data();
  a.n_attrs = static_cast<uint32_t>(attrs_.size());
  a.n_in = static_cast<uint32_t>(in_tensors_.size());
  a.n_out = static_cast<uint32_t>(out_tensors_.size());
  a.batch = case_.batch;
  a.streams = streams_.empty() ? nullptr : streams_.data();
  a.state = state_;
  return a;
}

trl_bwd_args KernelRun::backward_args() {
  trl_bwd_args a{};
  a.struct_size = sizeof a;
  a.flags = options_.flags & ~uint32_t(TRL_CALL_NO_BACKWARD);
  a.call = &call_;
  a.attrs = attrs_.data();
  a.in = kept_in_.data();
  a.out = kept_out_.data();
  a.d_out = d_out_tensors_.data();
  a.d_in = d_in_tensors_.data();
  a.n_attrs = static_cast<uint32_t>(attrs_.size());
  a.n_in = static_cast<uint32_t>(in_tensors_.size());
  a.n_out = static_cast<uint32_t>(out_tensors_.size());
  a.batch = case_.batch;
  a.streams = streams_.empty() ? nullptr : streams_.data();
  a.state = state_;
  return a;
}

trl_status KernelRun::bare_forward() {
  const trl_fwd_args a = forward_args();
  return call_.run("forward", [&] { return kernel_->forward(&a); });
}

trl_status KernelRun::bare_backward() {
  const trl_bwd_args a = backward_args();
  return call_.run("backward", [&] { return kernel_->backward(&a); });
}

void KernelRun::cycle(bool with_backward) {
  try {
    void* const kept = state_;
    if (kernel_->create)
      call_.must("create", [&] {
        return kernel_->create(&call_, interned_.data(), static_cast<uint32_t>(interned_.size()),
                               &state_);
      });
    call_.succeed("forward", bare_forward());
    if (with_backward) call_.succeed("backward", bare_backward());
    if (kernel_->create && kernel_->destroy) kernel_->destroy(state_);
    state_ = kept;
  } catch (const Failure& e) {
    throw Failure{text() + ": " + e.text};
  }
}

trl_status KernelRun::try_forward() {
  create();
  for (Guarded& g : out_)
    if (g.size()) g.fill(options_.poison);
  // What the plugin gets are copies, so that it cannot redirect anything.
  std::vector<trl_tensor> in = in_tensors_, out = out_tensors_;
  trl_fwd_args a = forward_args();
  a.in = in.data();
  a.out = out.data();
  trl_status st = TRL_OK;
  try {
    st = call_.run("forward", [&] { return kernel_->forward(&a); });
  } catch (const Failure& e) {
    throw Failure{text() + ": " + e.text};
  }
  check_all("forward", false);
  return st;
}

void KernelRun::forward() {
  try {
    call_.succeed("forward", try_forward());
  } catch (const Failure& e) {
    if (e.text.starts_with(text())) throw;
    throw Failure{text() + ": " + e.text};
  }
}

trl_status KernelRun::try_backward(const std::vector<Numbers>& d_out, const Gradients& g) {
  const Op& op = *case_.op;
  d_out_.clear();
  d_in_.clear();
  d_out_tensors_.clear();
  d_in_tensors_.clear();
  std::vector<trl_tensor> in = in_tensors_, out = out_tensors_;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!(op.in(i).flags & TRL_IN_KEEP)) {
      in[i].data = nullptr;
      in[i].flags = 0;
    }
    trl_tensor d = in_tensors_[i];
    d.data = nullptr;
    d.flags = 0;
    if (g.wanted[i] == Wanted::no || !takes_gradient(i)) {
      d_in_.emplace_back();
      d_in_tensors_.push_back(d);
      continue;
    }
    const Dim dim(d.dim);
    const auto dtype = static_cast<DType>(d.dtype);
    d_in_.emplace_back(dim.total() * dtype_size(dtype), shape_name("gradient of input", i, dim),
                       shift_of(options_.shift, dtype));
    d_in_[i].surround(options_.around);
    // A kernel that cannot store is asked to add to zeros, and so is a sum over the batch.
    const bool sums = dim.batch == 1 && case_.batch > 1;
    const bool store =
        g.wanted[i] == Wanted::store && (kernel_->flags & TRL_KERNEL_CAN_STORE) && !sums;
    if (store) {
      d.flags = TRL_TENSOR_STORE;
      d_in_[i].fill(options_.poison);
    } else if (g.wanted[i] == Wanted::add && i < g.start.size() && !g.start[i].empty()) {
      put_numbers(d_in_[i].data(), dtype, g.start[i]);
    } else {
      d_in_[i].fill(0);
    }
    set_data(d, d_in_[i].data());
    d_in_tensors_.push_back(d);
  }
  for (uint32_t o = 0; o < out.size(); ++o) {
    const bool hidden = o >= op.n_visible();
    if (!hidden && !(op.out(o).flags & TRL_OUT_KEEP)) out[o].data = nullptr;
    trl_tensor d = out_tensors_[o];
    d.data = nullptr;
    const bool given =
        !hidden && o < d_out.size() && !d_out[o].empty() && (g.given.empty() || g.given[o]);
    if (given) {
      const Dim dim(d.dim);
      d_out_.emplace_back(dim.total() * dtype_size(out_dtype(o)),
                          shape_name("gradient of output", o, dim),
                          shift_of(options_.shift, out_dtype(o)));
      d_out_[o].surround(options_.around);
      put_numbers(d_out_[o].data(), out_dtype(o), d_out[o]);
      set_data(d, d_out_[o].data());
    } else {
      d_out_.emplace_back();
    }
    d_out_tensors_.push_back(d);
  }
  std::vector<std::vector<char>> kept;  // outputs and gradients of outputs, which must not change
  const auto keep = [&](const Guarded& b) {
    kept.emplace_back(b.data<char>(), b.data<char>() + b.size());
  };
  for (const Guarded& b : out_) keep(b);
  for (const Guarded& b : d_out_) keep(b);

  kept_in_ = in;
  kept_out_ = out;
  std::vector<trl_tensor> d_out_copy = d_out_tensors_, d_in_copy = d_in_tensors_;
  trl_bwd_args a = backward_args();
  a.in = in.data();
  a.out = out.data();
  a.d_out = d_out_copy.data();
  a.d_in = d_in_copy.data();
  trl_status st = TRL_OK;
  try {
    st = call_.run("backward", [&] { return kernel_->backward(&a); });
  } catch (const Failure& e) {
    throw Failure{text() + ": " + e.text};
  }
  check_all("backward", true);
  size_t k = 0;
  const auto same = [&](const Guarded& b) {
    const auto& before = kept[k++];
    if (std::memcmp(before.data(), b.data<char>(), b.size()) != 0)
      broken("backward", b.name() + " was changed");
  };
  for (const Guarded& b : out_)
    if (b.size())
      same(b);
    else
      ++k;
  for (const Guarded& b : d_out_)
    if (b.size())
      same(b);
    else
      ++k;
  return st;
}

void KernelRun::backward(const std::vector<Numbers>& d_out, const Gradients& wanted) {
  const trl_status st = try_backward(d_out, wanted);
  try {
    call_.succeed("backward", st);
  } catch (const Failure& e) {
    throw Failure{text() + ": " + e.text};
  }
}

void KernelRun::check_all(std::string_view what, bool is_backward) {
  const auto intact = [&](const std::vector<Guarded>& buffers) {
    for (const Guarded& b : buffers)
      if (b.size())
        if (const std::string damage = b.damage(); !damage.empty()) broken(what, damage);
  };
  intact(in_);
  intact(out_);
  for (const auto& parts : parts_) intact(parts);
  if (is_backward) {
    intact(d_out_);
    intact(d_in_);
  }
  for (size_t i = 0; i < in_.size(); ++i) {
    if (!in_[i].size()) continue;
    const auto dtype = static_cast<DType>(in_tensors_[i].dtype);
    std::vector<char> before(in_[i].size());
    put_numbers(before.data(), dtype, values_[i]);
    if (std::memcmp(before.data(), in_[i].data<char>(), before.size()) != 0)
      broken(what, in_[i].name() + " was changed (inputs are read only)");
    const size_t one = parts_[i].empty() ? 0 : before.size() / parts_[i].size();
    for (size_t b = 0; b < parts_[i].size(); ++b)
      if (std::memcmp(before.data() + b * one, parts_[i][b].data<char>(), one) != 0)
        broken(what, in_[i].name() + " was changed (inputs are read only)");
  }
  intact(lists_);
  for (size_t i = 0; i < attrs_.size(); ++i) {
    const CaseAttr& a = case_.attrs[i];
    const trl_attr& now = attrs_[i];
    const auto same = [](const void* x, const auto& list) {
      return list.empty() || std::memcmp(x, list.data(), list.size() * sizeof list[0]) == 0;
    };
    if (!same(now.v.is, a.is) || !same(now.v.fs, a.fs) || !same(now.offsets, a.offsets))
      broken(what, fmt::format("attribute '{}' was changed", view_of(case_.op->attr(i).key)));
  }
}

Numbers KernelRun::output(uint32_t o) const {
  return get_numbers(out_[o].data(), out_dtype(o), out_dim(o).total());
}

std::vector<Numbers> KernelRun::outputs() const {
  std::vector<Numbers> all;
  for (uint32_t o = 0; o < n_visible(); ++o) all.push_back(output(o));
  return all;
}

Numbers KernelRun::gradient(size_t i) const {
  if (i >= d_in_.size() || !d_in_[i].size()) return {};
  return get_numbers(d_in_[i].data(), static_cast<DType>(d_in_tensors_[i].dtype),
                     Dim(d_in_tensors_[i].dim).total());
}

std::vector<Numbers> KernelRun::gradients() const {
  std::vector<Numbers> all;
  for (size_t i = 0; i < case_.inputs.size(); ++i) all.push_back(gradient(i));
  return all;
}

std::vector<std::string> KernelRun::unwritten() const {
  std::vector<std::string> all;
  for (uint32_t o = 0; o < out_.size(); ++o) {
    const Guarded& b = out_[o];
    const size_t size = b.size() ? dtype_size(out_dtype(o)) : 1;
    for (size_t e = 0; e + size <= b.size(); e += size) {
      const auto* p = b.data<unsigned char>() + e;
      if (std::all_of(p, p + size, [this](unsigned char c) { return c == options_.poison; }))
        all.push_back(fmt::format("{} element {}", b.name(), e / size));
    }
  }
  return all;
}

void KernelRun::move_memory() {
  std::vector<std::string> contents;  // of the outputs
  for (const Guarded& b : out_) contents.emplace_back(b.data<char>(), b.size());
  const auto leave = [this](std::vector<Guarded>& buffers) {
    for (Guarded& b : buffers) {
      if (!b.size()) continue;
      b.revoke();
      revoked_.push_back(std::move(b));
    }
    buffers.clear();
  };
  for (auto* buffers : {&lists_, &in_, &out_, &d_out_, &d_in_}) leave(*buffers);
  for (auto& parts : parts_) leave(parts);
  for (auto& p : pointers_) p.clear();
  set_attrs();
  in_tensors_.clear();
  for (size_t i = 0; i < case_.inputs.size(); ++i) set_input(i);
  for (uint32_t o = 0; o < out_tensors_.size(); ++o) {
    set_output(o);
    if (out_[o].size()) std::memcpy(out_[o].data(), contents[o].data(), contents[o].size());
  }
  call_.revokes_scratch = true;
}

std::vector<Numbers> draw_gradients(const KernelRun& run, uint64_t seed) {
  RandomEngine r(seed, 2);
  std::vector<Numbers> all;
  for (uint32_t o = 0; o < run.n_visible(); ++o) {
    const bool none =
        !is_float(run.out_dtype(o)) || (run.get_case().op->out(o).flags & TRL_OUT_NO_GRAD);
    Numbers v(none ? 0 : run.out_dim(o).total());
    for (double& x : v) x = 2 * r.uniform() - 1;
    all.push_back(std::move(v));
  }
  return all;
}

Gradients all_wanted(const KernelRun& run, Wanted how) {
  Gradients g;
  for (size_t i = 0; i < run.get_case().inputs.size(); ++i)
    g.wanted.push_back(run.takes_gradient(i) ? how : Wanted::no);
  return g;
}

bool is_differentiable(const Op& op, const KernelRun& run) {
  bool out = false, in = false;
  for (uint32_t o = 0; o < run.n_visible(); ++o)
    out |= is_float(run.out_dtype(o)) && !(op.out(o).flags & TRL_OUT_NO_GRAD);
  for (size_t i = 0; i < run.get_case().inputs.size(); ++i) in |= run.takes_gradient(i);
  return out && in;
}

namespace {

std::string different_bytes(const Guarded& a, const Guarded& b, DType dtype) {
  if (!a.size() || !b.size()) return {};
  if (a.size() != b.size()) return fmt::format("{} has two sizes", a.name());
  const size_t size = dtype_size(dtype);
  for (size_t at = 0; at < a.size(); at += size)
    if (std::memcmp(a.data<char>() + at, b.data<char>() + at, size) != 0) {
      const double x = get_numbers(a.data<char>() + at, dtype, 1)[0];
      const double y = get_numbers(b.data<char>() + at, dtype, 1)[0];
      // Which of the many NaNs it is, is nobody's business.
      if (std::isnan(x) && std::isnan(y)) continue;
      return fmt::format("{} element {} is {} and then {}", a.name(), at / size, x, y);
    }
  return {};
}

}  // namespace

std::string different_bits(const KernelRun& a, const KernelRun& b) {
  for (uint32_t o = 0; o < a.n_out(); ++o)
    if (std::string d = different_bytes(a.out_bytes(o), b.out_bytes(o), a.out_dtype(o)); !d.empty())
      return d;
  return {};
}

std::string different_gradient_bits(const KernelRun& a, const KernelRun& b) {
  for (size_t i = 0; i < a.get_case().inputs.size(); ++i)
    if (std::string d = different_bytes(a.gradient_bytes(i), b.gradient_bytes(i), a.in_dtype(i));
        !d.empty())
      return d;
  return {};
}

std::string difference(std::string_view what, const std::vector<Numbers>& got,
                       const std::vector<Numbers>& needed, double tolerance) {
  if (got.size() != needed.size())
    return fmt::format("{} {}s (needed {})", got.size(), what, needed.size());
  for (size_t k = 0; k < got.size(); ++k) {
    if (got[k].size() != needed[k].size())
      return fmt::format("{} {} has {} elements (needed {})", what, k, got[k].size(),
                         needed[k].size());
    for (size_t e = 0; e < got[k].size(); ++e) {
      const double a = got[k][e], b = needed[k][e];
      if (std::isnan(a) && std::isnan(b)) continue;
      if (a == b && (tolerance > 0 || std::signbit(a) == std::signbit(b))) continue;
      if (std::abs(a - b) <= tolerance * std::max({1.0, std::abs(a), std::abs(b)})) continue;
      return fmt::format("{} {} element {} is {} (needed {})", what, k, e, a, b);
    }
  }
  return {};
}

}  // namespace trellis::validate
