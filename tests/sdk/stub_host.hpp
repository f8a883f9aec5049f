// SPDX-License-Identifier: Apache-2.0
//
// The smallest host: opens one plugin, offers the interfaces a kernel needs and calls descriptors
// directly. It shows what the border alone promises, without the framework.
#pragma once

#include <dlfcn.h>
#include <trellis/abi/plugin.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace stub {

inline std::string text(trl_str s) { return {s.p, s.n}; }
inline uint64_t elements(const trl_dim& d) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < d.rank; ++i) n *= d.d[i];
  return n;
}

// A tensor of numbers, whatever the element type on the other side. batch 0: shared by every batch
// element.
struct Value {
  trl_dim dim{};
  bool shared = false;
  std::vector<double> data;

  Value() = default;
  Value(std::vector<uint32_t> sizes, std::vector<double> numbers, uint32_t batch = 1)
      : data(std::move(numbers)) {
    dim.rank = static_cast<uint32_t>(sizes.size());
    dim.batch = batch;
    for (uint32_t i = 0; i < dim.rank; ++i) dim.d[i] = sizes[i];
    if (data.size() == 1) data.assign(elements(dim) * batch, data[0]);
  }
};

// The same memory in the element type of a kernel, with guards that show writes outside.
class Buffer {
 public:
  Buffer(const Value& v, uint16_t dtype, uint32_t flags = 0) : n_(v.data.size()), dtype_(dtype) {
    bytes_.assign((n_ + 2 * kGuard) * 8, 0x5A);
    for (size_t i = 0; i < n_; ++i) set(i, v.data[i]);
    t_ = trl_tensor{};
    t_.data = at(0);
    t_.dim = v.dim;
    t_.batch_stride = v.shared ? 0 : elements(v.dim);
    t_.dtype = dtype;
    t_.flags = flags;
  }
  const trl_tensor& tensor() const { return t_; }
  std::vector<double> values() const {
    std::vector<double> to(n_);
    for (size_t i = 0; i < n_; ++i) to[i] = get(i);
    return to;
  }
  bool intact() const {
    const size_t size = width();
    for (size_t i = 0; i < kGuard * size; ++i)
      if (bytes_[kGuard * 8 - 1 - i] != 0x5A || bytes_[kGuard * 8 + n_ * size + i] != 0x5A)
        return false;
    return true;
  }

 private:
  static constexpr size_t kGuard = 16;
  size_t width() const { return dtype_ == TRL_F32 || dtype_ == TRL_I32 ? 4 : 8; }
  void* at(size_t i) { return bytes_.data() + kGuard * 8 + i * width(); }
  void set(size_t i, double v) {
    if (dtype_ == TRL_F32) {
      const float f = static_cast<float>(v);
      std::memcpy(at(i), &f, 4);
    } else if (dtype_ == TRL_I64) {
      const auto k = static_cast<int64_t>(v);
      std::memcpy(at(i), &k, 8);
    } else
      std::memcpy(at(i), &v, 8);
  }
  double get(size_t i) const {
    const unsigned char* p = bytes_.data() + kGuard * 8 + i * width();
    if (dtype_ == TRL_F32) {
      float f;
      std::memcpy(&f, p, 4);
      return f;
    }
    if (dtype_ == TRL_I64) {
      int64_t k;
      std::memcpy(&k, p, 8);
      return static_cast<double>(k);
    }
    double d;
    std::memcpy(&d, p, 8);
    return d;
  }

  size_t n_;
  uint16_t dtype_;
  trl_tensor t_;
  std::vector<unsigned char> bytes_;
};

using Ragged = std::vector<std::vector<int64_t>>;
using AttrValue = std::variant<double, std::string, std::vector<double>, Ragged>;
using Attrs = std::map<std::string, AttrValue>;

class Host;
struct Call {
  trl_call call;
  Host* host;
};

class Host {
 public:
  explicit Host(const std::string& path, uint32_t minor = TRL_ABI_MINOR) {
    table_.struct_size = sizeof table_;
    table_.abi_major = TRL_ABI_MAJOR;
    table_.abi_minor = minor;
    table_.version = TRL_STR("stub");
    table_.fail = [](trl_call* c, trl_status status, trl_str s) -> trl_status {
      Host& h = of(c);
      if (h.error.empty()) h.error = text(s);
      return status;
    };
    table_.log = [](trl_call*, int32_t, trl_str) {};
    table_.get_interface = [](trl_call*, trl_str id, uint32_t* size) -> const void* {
      const std::string_view name(id.p, id.n);
      if (name == "trl.exec/1") return *size = sizeof(trl_exec_api), &exec();
      if (name == "trl.linalg/1") return *size = sizeof(trl_linalg_api), &linalg();
      if (name == "trl.registry/1") return *size = sizeof(trl_registry_api), &registry();
      return nullptr;
    };
    call_ = {{&table_, nullptr}, this};
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle_ == nullptr) throw std::runtime_error(dlerror());
    entry_ = reinterpret_cast<trl_entry_fn>(dlsym(handle_, TRL_ENTRY_SYMBOL));
    if (entry_ == nullptr) throw std::runtime_error("no entry in " + path);
  }
  ~Host() {
    if (call_.call.self != nullptr && plugin.fini != nullptr) plugin.fini(&call_.call);
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  trl_status entry(trl_plugin* out) { return error.clear(), entry_(&call_.call, out); }
  // Entry and init; throws what the plugin says.
  void load() {
    plugin = trl_plugin{};
    plugin.struct_size = sizeof plugin;
    check(entry(&plugin));
    if (plugin.init != nullptr) check(plugin.init(&call_.call, &call_.call.self));
  }
  const trl_op_desc& op(std::string_view id) const {
    for (uint32_t i = 0; i < plugin.n_ops; ++i)
      if (text(plugin.ops[i]->id) == id) return *plugin.ops[i];
    throw std::runtime_error("no operator " + std::string(id));
  }
  const trl_kernel_desc& kernel(std::string_view id, uint16_t dtype) const {
    for (uint32_t i = 0; i < plugin.n_kernels; ++i)
      if (text(plugin.kernels[i]->op_id) == id && plugin.kernels[i]->dtype == dtype)
        return *plugin.kernels[i];
    throw std::runtime_error("no kernel for " + std::string(id));
  }
  void check(trl_status status) const {
    if (status != TRL_OK) throw std::runtime_error(error);
  }
  trl_call* call() { return error.clear(), scratch_.clear(), &call_.call; }

  trl_plugin plugin{};
  std::string error;
  unsigned gemms = 0;  // products asked for

 private:
  static Host& of(trl_call* c) { return *reinterpret_cast<Call*>(c)->host; }
  static const trl_exec_api& exec() {
    static const trl_exec_api api{sizeof(trl_exec_api), 0,
                                  [](trl_call*, int64_t begin, int64_t end, int64_t,
                                     trl_status (*fn)(void*, int64_t, int64_t), void* context) {
                                    const int64_t middle = begin + (end - begin) / 2;
                                    const trl_status first = fn(context, begin, middle);
                                    return first != TRL_OK ? first : fn(context, middle, end);
                                  },
                                  [](trl_call* c, size_t bytes) -> void* {
                                    Host& h = of(c);
                                    h.scratch_.push_back(std::make_unique<unsigned char[]>(bytes));
                                    std::memset(h.scratch_.back().get(), 0x5A, bytes);
                                    return h.scratch_.back().get();
                                  },
                                  nullptr};
    return api;
  }
  template <class T>
  static void product(const trl_mm_args& a) {
    for (uint64_t s = 0; s < a.batch; ++s) {
      const T* pa = static_cast<const T*>(a.a) + s * a.stride_a;
      const T* pb = static_cast<const T*>(a.b) + s * a.stride_b;
      T* pc = static_cast<T*>(a.c) + s * a.stride_c;
      for (uint64_t j = 0; j < a.n; ++j)
        for (uint64_t i = 0; i < a.m; ++i) {
          double sum = 0;
          for (uint64_t k = 0; k < a.k; ++k)
            sum += double((a.flags & TRL_MM_TRANS_A) ? pa[k + i * a.lda] : pa[i + k * a.lda]) *
                   double((a.flags & TRL_MM_TRANS_B) ? pb[j + k * a.ldb] : pb[k + j * a.ldb]);
          T& c = pc[i + j * a.ldc];
          c = static_cast<T>(a.alpha * sum + (a.beta == 0 ? 0 : a.beta * double(c)));
        }
    }
  }
  static trl_status multiply(const trl_mm_args* a) {
    ++of(a->call).gemms;
    if (a->dtype == TRL_F32)
      product<float>(*a);
    else
      product<double>(*a);
    return TRL_OK;
  }
  static const trl_linalg_api& linalg() {
    static const trl_linalg_api api{sizeof(trl_linalg_api), 0, &multiply, &multiply};
    return api;
  }
  static const trl_registry_api& registry() {
    static const trl_registry_api api{
        sizeof(trl_registry_api), 0,
        [](trl_call*, trl_str, const trl_str*, uint32_t, trl_op_handle* out) -> trl_status {
          return *out = 1, TRL_OK;
        }};
    return api;
  }

  trl_host table_{};
  Call call_{};
  void* handle_ = nullptr;
  trl_entry_fn entry_ = nullptr;
  std::vector<std::unique_ptr<unsigned char[]>> scratch_;
};

// One application of an operator.
class Application {
 public:
  Application(Host& host, std::string_view id, std::vector<Value> in, const Attrs& attrs = {},
              uint16_t dtype = TRL_F64, bool train = true)
      : host_(host),
        op_(host.op(id)),
        kernel_(host.kernel(id, dtype)),
        in_(std::move(in)),
        dtype_(dtype),
        flags_(train ? uint32_t(TRL_CALL_TRAIN) : 0u) {
    for (const Value& v : in_)
      if (v.dim.batch > batch_) batch_ = v.dim.batch;
    for (const auto& [key, value] : attrs)
      if (const auto* lists = std::get_if<Ragged>(&value);
          lists != nullptr && lists->size() > batch_)
        batch_ = static_cast<uint32_t>(lists->size());
    for (uint32_t i = 0; i < op_.n_attrs; ++i) set_attr(*op_.attrs[i], attrs);
    for (uint32_t b = 0; b < batch_; ++b) streams_.push_back({{17, 4}, {b + 1, 99}});
  }
  // The batch of one call that stands for several nodes.
  void set_batch(uint32_t batch) { batch_ = batch; }
  void set_streams(std::vector<trl_stream> streams) { streams_ = std::move(streams); }

  uint32_t batch() const { return batch_; }
  const trl_op_desc& op() const { return op_; }
  const std::vector<Value>& in() const { return in_; }
  std::vector<Value>& in() { return in_; }
  const std::vector<trl_dim>& out_dims() const { return out_dims_; }
  int32_t view_of() const { return view_of_; }
  uint32_t n_visible() const {
    uint32_t n = 0;
    for (uint32_t i = 0; i < op_.n_out; ++i) n += (op_.out[i]->flags & TRL_OUT_HIDDEN) == 0;
    return n;
  }
  uint32_t in_flags(size_t i) const {
    return op_.in[i < op_.n_in ? i : size_t(op_.n_in) - 1u]->flags;
  }
  uint16_t in_dtype(size_t i) const {
    const uint16_t t = op_.in[i < op_.n_in ? i : size_t(op_.n_in) - 1u]->dtype;
    return t ? t : dtype_;
  }
  uint16_t out_dtype(size_t i) const { return out_dtypes_[i]; }

  // Shapes of the outputs; throws the refusal.
  void infer() {
    std::vector<trl_dim> dims;
    std::vector<uint16_t> dtypes;
    for (size_t i = 0; i < in_.size(); ++i)
      dims.push_back(in_[i].dim), dtypes.push_back(in_dtype(i));
    std::vector<trl_attr> attrs = attrs_;
    for (uint32_t i = 0; i < op_.n_attrs; ++i)
      if (op_.attrs[i]->flags & (TRL_ATTR_PER_BATCH | TRL_ATTR_VALUE)) attrs[i].count = 0;
    out_dims_.assign(op_.n_out, trl_dim{0, batch_, {}});
    out_dtypes_.clear();
    for (uint32_t i = 0; i < op_.n_out; ++i)
      out_dtypes_.push_back(op_.out[i]->dtype ? op_.out[i]->dtype : dtype_);
    trl_infer_args a{};
    a.struct_size = sizeof a;
    a.flags = flags_;
    a.call = host_.call();
    a.attrs = attrs.data();
    a.in = dims.data();
    a.in_dtype = dtypes.data();
    a.n_attrs = op_.n_attrs;
    a.n_in = static_cast<uint32_t>(in_.size());
    a.n_out = op_.n_out;
    a.batch = batch_;
    a.out = out_dims_.data();
    a.out_dtype = out_dtypes_.data();
    a.view_of = -1;
    host_.check(op_.infer(&a));
    view_of_ = a.view_of;
  }

  // All outputs, hidden ones too; throws the error.
  std::vector<Value> forward(uint32_t extra_flags = 0) {
    infer();
    std::vector<std::unique_ptr<Buffer>> keep;
    const std::vector<trl_tensor> in = tensors(in_, keep);
    const size_t first_out = keep.size();
    std::vector<trl_tensor> out;
    for (uint32_t i = 0; i < op_.n_out; ++i) {
      Value v;
      v.dim = out_dims_[i];
      v.data.assign(elements(v.dim) * v.dim.batch, -77);
      keep.push_back(std::make_unique<Buffer>(v, out_dtypes_[i]));
      out.push_back(keep.back()->tensor());
      if ((op_.out[i]->flags & TRL_OUT_HIDDEN) && (extra_flags & TRL_CALL_NO_BACKWARD))
        out.back().data = nullptr;
    }
    void* state = make_state();
    trl_fwd_args a{};
    a.struct_size = sizeof a;
    a.flags = flags_ | extra_flags;
    a.call = host_.call();
    a.attrs = attrs_.data();
    a.in = in.data();
    a.out = out.data();
    a.n_attrs = op_.n_attrs;
    a.n_in = static_cast<uint32_t>(in.size());
    a.n_out = op_.n_out;
    a.batch = batch_;
    a.streams = streams();
    a.state = state;
    const trl_status status = kernel_.forward(&a);
    if (kernel_.destroy != nullptr) kernel_.destroy(state);
    host_.check(status);
    out_.clear();
    for (uint32_t i = 0; i < op_.n_out; ++i) {
      const Buffer& b = *keep[first_out + i];
      if (!b.intact())
        throw std::runtime_error("forward wrote outside output " + std::to_string(i));
      Value v;
      v.dim = out_dims_[i];
      v.data = b.values();
      out_.push_back(std::move(v));
    }
    return out_;
  }

  // Gradients of the wanted inputs after forward(); `before` is what lies there where the call is
  // asked to add.
  std::vector<Value> backward(const std::vector<Value>& d_out, const std::vector<bool>& wanted,
                              bool store, double before = 0) {
    std::vector<std::unique_ptr<Buffer>> keep;
    std::vector<trl_tensor> in = tensors(in_, keep), out = tensors(out_, keep, true),
                            d_o = tensors(d_out, keep, true), d_in;
    for (size_t i = 0; i < in.size(); ++i)
      if (!(in_flags(i) & TRL_IN_KEEP)) in[i].data = nullptr;
    for (uint32_t i = 0; i < op_.n_out; ++i) {
      if (!(op_.out[i]->flags & (TRL_OUT_KEEP | TRL_OUT_HIDDEN))) out[i].data = nullptr;
      if (op_.out[i]->flags & (TRL_OUT_HIDDEN | TRL_OUT_NO_GRAD)) d_o[i].data = nullptr;
    }
    const size_t first = keep.size();
    for (size_t i = 0; i < in_.size(); ++i) {
      Value v = in_[i];
      // A kernel that cannot store is asked to add to zeros.
      const bool stores = store && !v.shared && (kernel_.flags & TRL_KERNEL_CAN_STORE);
      v.data.assign(v.data.size(), stores ? NAN : store ? 0 : before);
      keep.push_back(
          std::make_unique<Buffer>(v, in_dtype(i), stores ? uint32_t(TRL_TENSOR_STORE) : 0u));
      d_in.push_back(keep.back()->tensor());
      if (!wanted[i]) d_in.back().data = nullptr;
    }
    void* state = make_state();
    trl_bwd_args a{};
    a.struct_size = sizeof a;
    a.flags = flags_;
    a.call = host_.call();
    a.attrs = attrs_.data();
    a.in = in.data();
    a.out = out.data();
    a.d_out = d_o.data();
    a.d_in = d_in.data();
    a.n_attrs = op_.n_attrs;
    a.n_in = static_cast<uint32_t>(in.size());
    a.n_out = op_.n_out;
    a.batch = batch_;
    a.streams = streams();
    a.state = state;
    const trl_status status = kernel_.backward(&a);
    if (kernel_.destroy != nullptr) kernel_.destroy(state);
    host_.check(status);
    std::vector<Value> result;
    for (size_t i = 0; i < in_.size(); ++i) {
      if (!keep[first + i]->intact())
        throw std::runtime_error("backward wrote outside gradient " + std::to_string(i));
      Value v = in_[i];
      v.data = keep[first + i]->values();
      result.push_back(std::move(v));
    }
    return result;
  }
  bool has_backward() const { return kernel_.backward != nullptr; }

 private:
  void set_attr(const trl_attr_spec& spec, const Attrs& given) {
    const auto at = given.find(text(spec.key));
    trl_attr a = spec.dflt;
    a.type = spec.type;
    if (at != given.end()) {
      a.count = 1;
      if (spec.type == TRL_ATTR_CHOICE) {
        for (uint32_t k = 0; k < spec.n_choices; ++k)
          if (text(spec.choices[k]) == std::get<std::string>(at->second)) a.v.i = k;
      } else if (spec.type == TRL_ATTR_F64) {
        a.v.f = std::get<double>(at->second);
      } else if (spec.type == TRL_ATTR_I64 || spec.type == TRL_ATTR_BOOL) {
        a.v.i = static_cast<int64_t>(std::get<double>(at->second));
      } else if (spec.flags & TRL_ATTR_PER_BATCH) {
        ints_.emplace_back(std::make_unique<std::vector<int64_t>>());
        offsets_.emplace_back(std::make_unique<std::vector<uint32_t>>(1, 0u));
        const Ragged& lists = std::get<Ragged>(at->second);
        for (uint32_t b = 0; b < batch_; ++b) {
          const auto& list = lists[lists.size() == 1 ? 0 : b];
          ints_.back()->insert(ints_.back()->end(), list.begin(), list.end());
          offsets_.back()->push_back(static_cast<uint32_t>(ints_.back()->size()));
        }
        a.count = static_cast<uint32_t>(ints_.back()->size());
        a.v.is = ints_.back()->data();
        a.offsets = offsets_.back()->data();
      } else if (spec.type == TRL_ATTR_I64S) {
        const auto& list = std::get<std::vector<double>>(at->second);
        ints_.emplace_back(std::make_unique<std::vector<int64_t>>(list.begin(), list.end()));
        a.count = static_cast<uint32_t>(list.size());
        a.v.is = ints_.back()->data();
      }
    }
    if (spec.flags & TRL_ATTR_VALUE) {
      double v = spec.dflt.v.fs[0];
      if (at != given.end()) v = std::get<double>(at->second);
      doubles_.emplace_back(std::make_unique<std::vector<double>>(batch_, v));
      offsets_.emplace_back(std::make_unique<std::vector<uint32_t>>());
      for (uint32_t b = 0; b <= batch_; ++b) offsets_.back()->push_back(b);
      a.count = batch_;
      a.v.fs = doubles_.back()->data();
      a.offsets = offsets_.back()->data();
    }
    attrs_.push_back(a);
  }
  std::vector<trl_tensor> tensors(const std::vector<Value>& values,
                                  std::vector<std::unique_ptr<Buffer>>& keep,
                                  bool outputs = false) {
    std::vector<trl_tensor> to;
    for (size_t i = 0; i < values.size(); ++i) {
      keep.push_back(std::make_unique<Buffer>(values[i], outputs ? out_dtypes_[i] : in_dtype(i)));
      to.push_back(keep.back()->tensor());
    }
    return to;
  }
  void* make_state() {
    void* state = nullptr;
    if (kernel_.create != nullptr)
      host_.check(kernel_.create(host_.call(), attrs_.data(), op_.n_attrs, &state));
    return state;
  }
  const trl_stream* streams() const {
    return op_.flags & TRL_OP_STOCHASTIC ? streams_.data() : nullptr;
  }

  Host& host_;
  const trl_op_desc& op_;
  const trl_kernel_desc& kernel_;
  std::vector<Value> in_, out_;
  uint16_t dtype_;
  uint32_t flags_, batch_ = 1;
  std::vector<trl_attr> attrs_;
  std::vector<trl_stream> streams_;
  std::vector<trl_dim> out_dims_;
  std::vector<uint16_t> out_dtypes_;
  int32_t view_of_ = -1;
  std::vector<std::unique_ptr<std::vector<int64_t>>> ints_;
  std::vector<std::unique_ptr<std::vector<double>>> doubles_;
  std::vector<std::unique_ptr<std::vector<uint32_t>>> offsets_;
};

}  // namespace stub
