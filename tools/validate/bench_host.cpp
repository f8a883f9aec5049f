// SPDX-License-Identifier: Apache-2.0
#include "validate/bench_host.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <numeric>
#include <thread>
#include <trellis/registry.hpp>
#include <utility>

#include "validate/allocations.hpp"
#include "validate/test.hpp"

namespace trellis::validate {
namespace {

BenchCall& as_bench(trl_call* call) { return *static_cast<BenchCall*>(call); }

constexpr std::string_view kFault = "[validator] this request fails on purpose";

trl_status record(BenchCall& call, trl_status status, std::string_view text) {
  if (call.status == TRL_OK) {
    call.status = status;
    call.text = text;
  }
  return status;
}

// What the host's side allocates is not the plugin's.
class HostSide {
 public:
  ~HostSide() { heap_allocations = before_; }

 private:
  const uint64_t before_ = heap_allocations;
};

// Runs a body of the host's side: what it throws becomes a status.
template <class F>
trl_status guard_host(trl_call* call, F&& body) noexcept {
  const HostSide host_side;
  try {
    return body(as_bench(call));
  } catch (const Error& e) {
    return record(as_bench(call), TRL_E_INVALID, e.what());
  } catch (const Failure& e) {
    return record(as_bench(call), TRL_E_INTERNAL, e.text);
  } catch (const std::exception& e) {
    return record(as_bench(call), TRL_E_INTERNAL, e.what());
  }
}

// A value as the plugin gave it, for an operator known by its schema.
AttrValue value_of(const trl_attr& a, const AttrInfo& info, uint32_t batch) {
  switch (a.type) {
    case TRL_ATTR_F64:
      return a.v.f;
    case TRL_ATTR_BOOL:
      return a.v.i != 0;
    case TRL_ATTR_CHOICE:
      return info.choices.at(static_cast<size_t>(a.v.i));
    case TRL_ATTR_I64S: {
      if (!a.offsets) return std::vector<int64_t>(a.v.is, a.v.is + a.count);
      AttrValue::Ragged lists;
      for (uint32_t b = 0; b < batch; ++b)
        lists.emplace_back(a.v.is + a.offsets[b], a.v.is + a.offsets[b + 1]);
      return lists;
    }
    case TRL_ATTR_F64S:
      return std::vector<double>(a.v.fs, a.v.fs + a.count);
    default:
      return a.v.i;
  }
}

Attrs attrs_of(const Runtime& runtime, const BenchHost::Handle& handle, const trl_attr* attrs,
               uint32_t n, uint32_t batch) {
  const OpInfo op = describe_op(runtime, handle.op);
  Attrs all;
  for (uint32_t i = 0; i < n && i < handle.keys.size(); ++i)
    for (const AttrInfo& info : op.attrs)
      if (info.key == handle.keys[i] && !(attrs[i].count == 0 && (info.per_batch || info.value)))
        all.push_back({info.key, value_of(attrs[i], info, batch)});
  return all;
}

void multiply(const trl_mm_args& a, auto zero) {
  using T = decltype(zero);
  const bool ta = a.flags & TRL_MM_TRANS_A, tb = a.flags & TRL_MM_TRANS_B;
  const auto *pa = static_cast<const T*>(a.a), *pb = static_cast<const T*>(a.b);
  auto* pc = static_cast<T*>(a.c);
  for (uint64_t g = 0; g < std::max<uint64_t>(a.batch, 1); ++g)
    for (uint64_t j = 0; j < a.n; ++j)
      for (uint64_t i = 0; i < a.m; ++i) {
        double sum = 0;
        for (uint64_t k = 0; k < a.k; ++k)
          sum += double(pa[g * a.stride_a + (ta ? k + i * a.lda : i + k * a.lda)]) *
                 double(pb[g * a.stride_b + (tb ? j + k * a.ldb : k + j * a.ldb)]);
        T& c = pc[g * a.stride_c + i + j * a.ldc];
        c = T(a.alpha * sum + (a.beta == 0 ? 0 : a.beta * double(c)));
      }
}

}  // namespace

// The tables that the plugin sees.
struct BenchApi {
  static trl_status fail(trl_call* call, trl_status status, trl_str text) noexcept {
    const HostSide host_side;
    return record(as_bench(call), status < 0 ? status : TRL_E_INTERNAL, view_of(text));
  }
  static void log(trl_call*, int32_t, trl_str) noexcept {}

  static const void* get_interface(trl_call*, trl_str id_rev, uint32_t* size_out) noexcept;
  static const void* no_interface(trl_call*, trl_str, uint32_t* size_out) noexcept {
    if (size_out) *size_out = 0;
    return nullptr;
  }

  static trl_status resolve(trl_call* c, trl_str op_id, const trl_str* keys, uint32_t n_keys,
                            trl_op_handle* out) noexcept {
    return guard_host(c, [&](BenchCall& call) {
      BenchHost::Handle handle{std::string(view_of(op_id)), {}};
      for (uint32_t i = 0; i < n_keys; ++i) handle.keys.emplace_back(view_of(keys[i]));
      call.bench.handles.push_back(std::move(handle));
      *out = static_cast<trl_op_handle>(call.bench.handles.size());
      return trl_status{TRL_OK};
    });
  }

  static trl_status parallel_for(trl_call* c, int64_t begin, int64_t end, int64_t grain,
                                 trl_status (*fn)(void*, int64_t, int64_t),
                                 void* context) noexcept {
    return guard_host(c, [&](BenchCall& call) -> trl_status {
      if (call.counts.parallel++ == call.faults.parallel)
        return record(call, TRL_E_CANCELLED, kFault);
      if (begin >= end) return TRL_OK;
      if (call.split == Split::whole) return fn(context, begin, end);
      std::vector<std::pair<int64_t, int64_t>> parts;
      for (int64_t at = begin; at < end; at += std::max<int64_t>(grain, 1))
        parts.emplace_back(at, std::min(end, at + std::max<int64_t>(grain, 1)));
      // No part may be smaller than the grain.
      if (parts.size() > 1 && parts.back().second - parts.back().first < grain) {
        parts[parts.size() - 2].second = end;
        parts.pop_back();
      }
      if (call.split == Split::backwards) std::reverse(parts.begin(), parts.end());
      if (call.split != Split::threads) {
        for (const auto& [b, e] : parts)
          if (const trl_status st = fn(context, b, e); st != TRL_OK) return st;
        return TRL_OK;
      }
      std::atomic<size_t> next{0};
      std::atomic<trl_status> first{TRL_OK};
      const auto work = [&] {
        for (size_t i; (i = next++) < parts.size();)
          if (const trl_status st = fn(context, parts[i].first, parts[i].second); st != TRL_OK)
            first = st;
      };
      std::vector<std::thread> threads;
      for (int i = 0; i < 3; ++i) threads.emplace_back(work);
      work();
      for (std::thread& t : threads) t.join();
      return first;
    });
  }

  static void* scratch(trl_call* c, size_t bytes) noexcept {
    void* memory = nullptr;
    guard_host(c, [&](BenchCall& call) {
      if (call.counts.scratch++ == call.faults.scratch) return trl_status{TRL_E_OOM};
      call.counts.scratch_bytes += static_cast<int64_t>(bytes);
      Guarded block(std::max<size_t>(bytes, 1),
                    fmt::format("scratch of {} bytes, request {}", bytes, call.counts.scratch));
      block.fill(call.poison);
      memory = block.data();
      call.scratch_.push_back(std::move(block));
      return trl_status{TRL_OK};
    });
    return memory;
  }

  static trl_status invoke(trl_call* c, trl_op_handle handle, const trl_tensor* in, uint32_t n_in,
                           trl_tensor* out, uint32_t n_out, const trl_attr* attrs, uint32_t n_attrs,
                           const trl_stream*) noexcept {
    return guard_host(c, [&](BenchCall& call) -> trl_status {
      if (call.counts.invoke++ == call.faults.invoke) return record(call, TRL_E_CANCELLED, kFault);
      if (handle == 0 || handle > call.bench.handles.size())
        return record(call, TRL_E_INVALID, "[trl.exec/1] invoke with a handle of nobody");
      const BenchHost::Handle& h = call.bench.handles[handle - 1];
      const Runtime& runtime = call.bench.runtime();
      DType dtype = DType::f32;
      uint32_t batch = 1;
      for (uint32_t i = 0; i < n_in; ++i) {
        if (in[i].data && in[i].dtype == TRL_F64) dtype = DType::f64;
        if (in[i].data) batch = std::max(batch, in[i].dim.batch);
      }
      Graph g(runtime, {.mode = Mode::infer, .dtype = dtype});
      std::vector<Expr> xs;
      for (uint32_t i = 0; i < n_in; ++i)
        xs.push_back(in[i].data ? g.input(Tensor(TensorView(in[i].data, Dim(in[i].dim),
                                                            static_cast<DType>(in[i].dtype))))
                                : Expr());
      const std::vector<Expr> ys = g.apply(h.op, xs, attrs_of(runtime, h, attrs, n_attrs, batch));
      for (uint32_t o = 0; o < n_out && o < ys.size(); ++o) {
        const TensorView v = ys[o].value();
        if (!(v.dim() == Dim(out[o].dim)))
          return record(call, TRL_E_SHAPE,
                        fmt::format("[{}] output {} has room for {} (needs {})", h.op, o,
                                    Dim(out[o].dim).to_string(), v.dim().to_string()));
        std::memcpy(out[o].data, v.data(), v.dim().total() * dtype_size(v.dtype()));
      }
      return TRL_OK;
    });
  }

  static trl_status product(const trl_mm_args* a) noexcept {
    return guard_host(a->call, [&](BenchCall& call) -> trl_status {
      if (call.counts.linalg++ == call.faults.linalg) return record(call, TRL_E_CANCELLED, kFault);
      if (a->dtype == TRL_F32)
        multiply(*a, 0.0f);
      else if (a->dtype == TRL_F64)
        multiply(*a, 0.0);
      else
        return record(call, TRL_E_DTYPE, "[trl.linalg/1] neither f32 nor f64");
      return TRL_OK;
    });
  }
  static trl_status vector_product(const trl_mm_args* a) noexcept {
    trl_mm_args b = *a;
    b.n = 1;
    b.ldb = b.k;
    b.ldc = b.m;
    b.flags &= ~uint32_t(TRL_MM_TRANS_B);
    return product(&b);
  }

  static trl_status apply(trl_call* c, trl_op_handle handle, const trl_expr* in, uint32_t n_in,
                          const trl_attr* attrs, uint32_t n_attrs, trl_expr* out,
                          uint32_t n_out) noexcept {
    return guard_host(c, [&](BenchCall& call) -> trl_status {
      if (call.counts.graph++ == call.faults.graph) return record(call, TRL_E_CANCELLED, kFault);
      if (!call.graph) return record(call, TRL_E_INVALID, "[trl.graph/1] no graph in this call");
      if (handle == 0 || handle > call.bench.handles.size())
        return record(call, TRL_E_INVALID, "[trl.graph/1] apply with a handle of nobody");
      const BenchHost::Handle& h = call.bench.handles[handle - 1];
      std::vector<Expr> xs;
      uint32_t batch = 1;
      for (uint32_t i = 0; i < n_in; ++i) {
        xs.push_back(call.from_c(in[i]));
        if (in[i].node) batch = std::max(batch, xs.back().dim().batch);
      }
      for (uint32_t i = 0; i < n_attrs; ++i)  // lists that are passed on
        if (attrs[i].offsets) batch = std::max(batch, call.attr_batch);
      const std::vector<Expr> ys =
          call.graph->apply(h.op, xs, attrs_of(call.bench.runtime(), h, attrs, n_attrs, batch));
      for (uint32_t o = 0; o < n_out && o < ys.size(); ++o) out[o] = call.to_c(ys[o]);
      return TRL_OK;
    });
  }
  static trl_status constant(trl_call* c, const trl_dim* dim, uint16_t dtype, double value,
                             trl_expr* out) noexcept {
    return guard_host(c, [&](BenchCall& call) -> trl_status {
      if (call.counts.graph++ == call.faults.graph) return record(call, TRL_E_CANCELLED, kFault);
      if (!call.graph) return record(call, TRL_E_INVALID, "[trl.graph/1] no graph in this call");
      const Dim d(*dim);
      if (dtype == 0) {
        *out = call.to_c(call.graph->constant(d, value));
      } else {
        Tensor t(d, static_cast<DType>(dtype));
        tensor_tools::fill(t, value);
        *out = call.to_c(call.graph->input(t));
      }
      return TRL_OK;
    });
  }
  static trl_status shape(trl_call* c, trl_expr e, trl_dim* out, uint16_t* dtype) noexcept {
    return guard_host(c, [&](BenchCall& call) -> trl_status {
      const Expr& x = call.from_c(e);
      if (e.node == 0) return record(call, TRL_E_INVALID, "[trl.graph/1] shape of nothing");
      if (out) *out = x.dim();
      if (dtype) *dtype = static_cast<uint16_t>(x.dtype());
      return TRL_OK;
    });
  }

  static trl_status device_name(trl_call* c, uint8_t device, trl_str* out) noexcept {
    *out = device == TRL_CPU ? trl_str TRL_STR("cpu") : trl_str{nullptr, 0};
    return device == TRL_CPU ? trl_status{TRL_OK}
                             : record(as_bench(c), TRL_E_INVALID, "[trl.devices/1] no such device");
  }
  static trl_status name_of_dtype(trl_call* c, uint16_t dtype, trl_str* out) noexcept {
    *out = {nullptr, 0};
    if (dtype < TRL_F32 || dtype > TRL_BOOL)
      return record(as_bench(c), TRL_E_DTYPE, "[trl.devices/1] no such element type");
    const std::string_view name = dtype_name(static_cast<DType>(dtype));
    *out = {name.data(), name.size()};
    return TRL_OK;
  }
  static void* queue(trl_call*) noexcept { return nullptr; }

  static trl_status option(trl_call*, trl_str, trl_str* out) noexcept {
    *out = {nullptr, 0};
    return TRL_OK;
  }

  static constexpr trl_registry_api kRegistry = {sizeof(trl_registry_api), 0, resolve};
  static constexpr trl_exec_api kExec = {sizeof(trl_exec_api), 0, parallel_for, scratch, invoke};
  static constexpr trl_devices_api kDevices = {sizeof(trl_devices_api), 1, device_name,
                                               name_of_dtype, queue};
  static constexpr trl_graph_api kGraph = {sizeof(trl_graph_api), 0, apply, constant, shape};
  static constexpr trl_linalg_api kLinalg = {sizeof(trl_linalg_api), 0, product, vector_product};
  static constexpr trl_options_api kOptions = {sizeof(trl_options_api), 0, option};
};

const void* BenchApi::get_interface(trl_call*, trl_str id_rev, uint32_t* size_out) noexcept {
  struct Interface {
    std::string_view id;
    const void* table;
    uint32_t size;
  };
  static constexpr Interface kAll[] = {{"trl.registry/1", &kRegistry, sizeof kRegistry},
                                       {"trl.exec/1", &kExec, sizeof kExec},
                                       {"trl.devices/1", &kDevices, sizeof kDevices},
                                       {"trl.graph/1", &kGraph, sizeof kGraph},
                                       {"trl.linalg/1", &kLinalg, sizeof kLinalg},
                                       {"trl.options/1", &kOptions, sizeof kOptions}};
  if (size_out) *size_out = 0;
  for (const Interface& i : kAll) {
    if (i.id != view_of(id_rev)) continue;
    if (size_out) *size_out = i.size;
    return i.table;
  }
  return nullptr;
}

const trl_host* BenchHost::host_table(uint32_t minor, bool offers) {
  // Immutable and for the life of the process, as the contract says.
  static auto* const tables = new std::map<std::pair<uint32_t, bool>, trl_host>;
  trl_host& t = (*tables)[{minor, offers}];
  if (t.struct_size == 0) {
    t.struct_size = sizeof t;
    t.abi_major = TRL_ABI_MAJOR;
    t.abi_minor = minor;
    t.version = {version().data(), version().size()};
    t.fail = BenchApi::fail;
    t.log = BenchApi::log;
    t.get_interface = offers ? BenchApi::get_interface : BenchApi::no_interface;
  }
  return &t;
}

BenchCall::BenchCall(BenchHost& host)
    : trl_call{BenchHost::host_table(), nullptr}, exprs(1), bench(host) {}

void BenchCall::begin() {
  status = TRL_OK;
  text.clear();
  counts = {};
}

trl_status BenchCall::contain(std::string_view what, const std::function<trl_status()>& callback) {
  try {
    const uint64_t before = heap_allocations;
    const trl_status st = callback();
    counts.allocations = heap_allocations - before;
    return st;
  } catch (const Failure&) {
    throw;
  } catch (const std::exception& e) {
    throw Failure{
        fmt::format("an exception left {}: {} (no callback lets one out)", what, e.what())};
  } catch (...) {
    throw Failure{fmt::format("an exception left {} (no callback lets one out)", what)};
  }
}

void BenchCall::end(std::string_view what) {
  std::string damage;
  for (const Guarded& g : scratch_)
    if (damage.empty()) damage = g.damage();
  if (revokes_scratch)
    for (Guarded& g : scratch_) {
      g.revoke();
      revoked_.push_back(std::move(g));
    }
  scratch_.clear();
  if (!damage.empty()) throw Failure{fmt::format("{} writes beside {}", what, damage)};
}

void BenchCall::succeed(std::string_view what, trl_status returned) const {
  if (returned == TRL_OK) {
    if (status != TRL_OK)
      throw Failure{fmt::format("{} returns 0 after it reported: {}", what, text)};
    return;
  }
  throw Failure{fmt::format("{} fails with status {}: {}", what, returned,
                            text.empty() ? "no text given" : text)};
}

trl_expr BenchCall::to_c(const Expr& e) {
  exprs.push_back(e);
  return {static_cast<uint32_t>(exprs.size() - 1), 0, 0};
}

const Expr& BenchCall::from_c(trl_expr e) const {
  if (e.node >= exprs.size())
    throw Failure{fmt::format("[trl.graph/1] expression {} of nobody", e.node)};
  return exprs[e.node];
}

BenchHost::BenchHost(const PluginInfo& plugin, std::function<const Runtime&()> runtime)
    : runtime_(std::move(runtime)) {
  if (plugin.library.empty()) throw Failure{"no library for this machine: " + plugin.reason};
  ::dlerror();
  void* const library = ::dlopen(plugin.library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) throw Failure{fmt::format("cannot be opened: {}", ::dlerror())};
  entry_ = reinterpret_cast<trl_entry_fn>(::dlsym(library, TRL_ENTRY_SYMBOL));
  if (!entry_) throw Failure{"does not export " TRL_ENTRY_SYMBOL};
  BenchCall call(*this);
  tables_.struct_size = sizeof tables_;
  call.must("the entry function", [&] { return entry_(&call, &tables_); });
}

BenchHost::~BenchHost() {
  if (!initialised_ || !tables_.fini) return;
  try {
    BenchCall call(*this);
    call.trl_call::self = self_;
    call.run("fini", [&] {
      tables_.fini(&call);
      return trl_status{TRL_OK};
    });
  } catch (const Failure&) {  // load.init calls it, too, and reports
  }
}

void* BenchHost::self() {
  if (!initialised_ && tables_.init) {
    BenchCall call(*this);
    call.must("init", [&] { return tables_.init(&call, &self_); });
  }
  initialised_ = true;
  return self_;
}

}  // namespace trellis::validate
