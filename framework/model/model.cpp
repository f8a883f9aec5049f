// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <trellis/random.hpp>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "model/norm.hpp"
#include "model/records.hpp"
#include "registry/registry.hpp"
#include "runtime/call.hpp"

namespace trellis {
namespace detail {

struct ModelRoot::Counters {
  std::unordered_map<std::string, uint32_t> next;     // by the name without suffix
  std::unordered_set<std::string> subs;               // full names, with the '/' at the end
  std::unordered_map<std::string, uint32_t> records;  // full name to index
};

ModelRoot::ModelRoot(bool shared)
    : owner_process(shared ? getpid() : 0), values(shared), counters(std::make_unique<Counters>()) {
  gradients.impl_ = std::make_unique<GradientBlock::Impl>(*this);
}
ModelRoot::~ModelRoot() = default;

const ParamRecord* ModelRoot::find(const std::string& full_name) const {
  const auto it = counters->records.find(full_name);
  return it == counters->records.end() ? nullptr : records[it->second].get();
}

trl_tensor tensor_like(const ParamRecord& r, char* data) {
  trl_tensor t{};
  t.data = data;
  t.batch_stride = r.dim.elements();
  t.dim = r.dim;
  t.dtype = static_cast<uint16_t>(r.dtype);
  t.align_log2 = 6;
  return t;
}

namespace {

void check_name(const char* who, std::string_view name) {
  const auto plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' ||
           c == '-';
  };
  const bool good =
      !name.empty() && name.front() != '_' && name.back() != '_' &&
      std::all_of(name.begin(), name.end(), [&](char c) { return c == '_' || plain(c); });
  if (!good)
    fail(ErrorKind::argument,
         fmt::format("[{}] bad name: '{}' (letters, digits, '.', '-', and '_' inside)", who, name));
}

// The first of stem, stem_1, stem_2, .. that `taken` does not know, and the counter's value after
// it.
struct Claim {
  std::string full;
  uint32_t next;
};
template <class Taken>
Claim claim(uint32_t next, const std::string& stem, const char* end, const Taken& taken) {
  for (;; ++next) {
    std::string full = next == 0 ? stem + end : fmt::format("{}_{}{}", stem, next, end);
    if (!taken.contains(full)) return {std::move(full), next + 1};
  }
}

uint32_t next_uid() {
  static std::atomic<uint32_t> last{0};
  const uint32_t uid = last.fetch_add(1, std::memory_order_relaxed) + 1;
  if (uid == std::numeric_limits<uint32_t>::max()) {
    last.fetch_sub(1, std::memory_order_relaxed);
    fail(ErrorKind::internal,
         "[model] this process has made 2^32 - 2 parameters and cannot make more");
  }
  return uid;
}

// FNV-1a: the same on every machine, unlike std::hash.
uint64_t hash_name(std::string_view name) {
  uint64_t h = 0xcbf29ce484222325u;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return h;
}

trl_stream stream_of(uint64_t seed, std::string_view name) {
  const uint64_t hash = hash_name(name);
  const uint64_t key = mix64(seed, hash);
  return {{static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)},
          {static_cast<uint32_t>(hash), static_cast<uint32_t>(hash >> 32)}};
}

// Matrix {out, in}; vector {n}: n, n; rank 3: {out, rest}; from rank 4 a filter {.., in, out},
// whose inputs and outputs each see the whole receptive field.
std::pair<uint64_t, uint64_t> fans(const trl_dim& d, uint32_t rank) {
  if (rank == 0) return {1, 1};
  if (rank == 1) return {d.d[0], d.d[0]};
  uint64_t elements = 1;
  for (uint32_t i = 0; i < rank; ++i) elements *= d.d[i];
  if (rank >= 4) return {elements / d.d[rank - 1], elements / d.d[rank - 2]};
  return {elements / d.d[0], d.d[0]};
}

void fill_parameter(ModelRoot& root, ParamRecord& r, const Init& init) {
  const TensorView value(r.value, r.dim, r.dtype);
  if (!init.values.empty()) {
    if (init.values.size() != r.dim.elements())
      fail(ErrorKind::shape, fmt::format("[init {}] wrong number of values: {} ({} for {})", r.name,
                                         init.values.size(), r.dim.elements(), r.dim.to_string()));
    tensor_tools::set_elements(value, init.values);
    return;
  }
  RuntimeCore& core = *root.core;
  const InitializerEntry& entry =
      init.id.empty() ? core.registry->default_initializer() : core.registry->initializer(init.id);
  const BoundAttrs attrs(fmt::format("{} for {}", entry.id, r.name), entry.attrs, init.attrs);
  Arena scratch;
  Call call(core);
  call.begin(Phase::fill, entry.plugin->self);
  call.scratch = &scratch;
  call.plugin_id = entry.plugin->id;
  trl_tensor tensor = tensor_like(r, r.value);
  trl_fill_args args{};
  args.struct_size = sizeof args;
  args.call = &call;
  args.attrs = attrs.all().data();
  args.n_attrs = static_cast<uint32_t>(attrs.all().size());
  args.value = &tensor;
  args.stream = stream_of(core.seed.load(std::memory_order_relaxed), r.name);
  args.lookup = r.lookup;
  std::tie(args.fan_in, args.fan_out) = fans(r.dim, r.lookup ? r.dim.rank - 1 : r.dim.rank);
  const trl_status status = entry.desc.fill(&args);
  if (status != TRL_OK)
    fail(kind_of(status),
         fmt::format("[{} for {}] {} (plugin {} {})", entry.id, r.name, call.take_text(status),
                     entry.plugin->id, entry.plugin->version));
}

// Adds a parameter, or leaves the model as it was.
std::shared_ptr<ParamRecord> add_record(ModelRoot& root, const std::string& path,
                                        std::string_view name, const Dim& dim, uint32_t rows,
                                        const Init& init, Device device) {
  const char* const who = rows == 0 ? "add_parameter" : "add_lookup";
  root.core->check_device(fmt::format("{} {}{}", who, path, name), device);
  if (root.owner_process != 0 && root.owner_process != getpid())
    fail(ErrorKind::state,
         fmt::format("[{} {}{}] another process made this shared model: {}, this is {} (add "
                     "parameters there, before the fork)",
                     who, path, name, root.owner_process, getpid()));
  const std::lock_guard lock(root.mutex);
  const std::string stem = path + std::string(name);
  uint32_t& next = root.counters->next[stem];
  const Claim name_claim = claim(next, stem, "", root.counters->records);
  auto record = std::make_shared<ParamRecord>();
  record->uid = next_uid();
  record->index = static_cast<uint32_t>(root.records.size());
  record->name = name_claim.full;
  record->dim = dim;
  record->dtype = root.dtype;
  record->device = device;
  record->lookup = rows != 0;
  record->rows = rows;
  record->row_elements = rows == 0 ? 0 : dim.elements() / rows;
  record->root = &root;
  record->owner = root.weak_from_this();
  const Arena::Mark mark = root.values.mark();
  try {
    record->value = static_cast<char*>(root.values.allocate(record->bytes()));
    fill_parameter(root, *record, init);
    root.counters->records.emplace(record->name, record->index);
    root.records.push_back(record);
  } catch (...) {
    root.counters->records.erase(record->name);
    root.values.rewind(mark);
    throw;
  }
  next = name_claim.next;
  return root.handle(static_cast<uint32_t>(root.records.size() - 1));
}

}  // namespace
}  // namespace detail

namespace {

using detail::ModelRoot;
using detail::ParamRecord;

// Calls f(record) for the subtree under `path`, in order of creation.
template <class F>
void each(const ModelRoot& root, const std::string& path, F&& f) {
  for (const auto& r : root.records)
    if (r->name.starts_with(path)) f(*r);
}

const ParamRecord& find(const ModelRoot& root, const std::string& path, std::string_view name,
                        bool lookup) {
  const char* const who = lookup ? "lookup" : "parameter";
  const std::string full = name.starts_with('/') ? std::string(name) : path + std::string(name);
  const ParamRecord* const r = full.starts_with(path) ? root.find(full) : nullptr;
  if (r != nullptr && r->lookup == lookup) return *r;
  if (r != nullptr)
    fail(ErrorKind::argument, fmt::format("[{}] {} is a {}: '{}' (a {})", who, r->name,
                                          lookup ? "parameter" : "lookup table", name,
                                          lookup ? "lookup table" : "parameter"));
  std::vector<std::string> names;
  each(root, path, [&](const ParamRecord& p) {
    if (p.lookup == lookup) names.push_back(p.name);
  });
  std::string hint = detail::nearest(full, names);
  if (!hint.empty())
    hint = fmt::format("did you mean '{}'?", hint);
  else if (names.empty())
    hint = lookup ? "it has no lookup tables" : "it has no parameters";
  else
    hint = fmt::format("one of its {}, the first is '{}'", names.size(), names.front());
  fail(ErrorKind::argument,
       fmt::format("[{}] no such name under '{}': '{}' ({})", who, path, name, hint));
}

}  // namespace

Model::Model(const Runtime& runtime, DType dtype) : Model(runtime, ModelOptions{.dtype = dtype}) {}

Model::Model(const Runtime& runtime, const ModelOptions& options)
    : root_(std::make_shared<ModelRoot>(options.shared)),
      path_(std::make_shared<const std::string>("/")) {
  if (!is_float(options.dtype))
    fail(ErrorKind::dtype, fmt::format("[model] element type of parameters: {} (f32 or f64)",
                                       dtype_name(options.dtype)));
  runtime.core().check_device("model", options.device);
  root_->core = &runtime.core();
  root_->runtime = runtime;
  root_->dtype = options.dtype;
  root_->device = options.device;
}

Model Model::sub(std::string_view name) {
  detail::check_name("sub", name);
  const std::lock_guard lock(root_->mutex);
  ModelRoot::Counters& counters = *root_->counters;
  const std::string stem = *path_ + std::string(name);
  uint32_t& next = counters.next[stem + "/"];
  detail::Claim claimed = detail::claim(next, stem, "/", counters.subs);
  next = claimed.next;
  counters.subs.insert(claimed.full);
  return Model(root_, std::make_shared<const std::string>(std::move(claimed.full)));
}

Parameter Model::add_parameter(std::string_view name, const Dim& dim, const Init& init) {
  return add_parameter(name, dim, init, root_->device);
}

LookupParameter Model::add_lookup(std::string_view name, uint32_t rows, const Dim& row_dim,
                                  const Init& init) {
  return add_lookup(name, rows, row_dim, init, root_->device);
}

Parameter Model::add_parameter(std::string_view name, const Dim& dim, const Init& init,
                               Device device) {
  detail::check_name("add_parameter", name);
  if (dim.batch != 1)
    fail(ErrorKind::shape,
         fmt::format("[add_parameter {}{}] parameters have no batch: {} (batch 1)", *path_, name,
                     dim.to_string()));
  return Parameter(detail::add_record(*root_, *path_, name, dim, 0, init, device));
}

LookupParameter Model::add_lookup(std::string_view name, uint32_t rows, const Dim& row_dim,
                                  const Init& init, Device device) {
  detail::check_name("add_lookup", name);
  const auto refuse = [&](const std::string& fact) {
    fail(ErrorKind::shape, fmt::format("[add_lookup {}{}] {}", *path_, name, fact));
  };
  if (row_dim.batch != 1)
    refuse(fmt::format("rows have no batch: {} (batch 1)", row_dim.to_string()));
  if (rows == 0) refuse("too few rows: 0 (at least 1)");
  if (row_dim.rank == Dim::kMaxRank)
    refuse(fmt::format("too many dimensions of a row: {} (at most {})", row_dim.rank,
                       Dim::kMaxRank - 1));
  return LookupParameter(
      detail::add_record(*root_, *path_, name, row_dim.appended(rows), rows, init, device));
}

const std::string& Model::name() const { return *path_; }

std::vector<Parameter> Model::parameters() const {
  std::vector<Parameter> out;
  each(*root_, *path_, [&](const ParamRecord& r) {
    if (!r.lookup) out.emplace_back(root_->handle(r.index));
  });
  return out;
}

std::vector<LookupParameter> Model::lookups() const {
  std::vector<LookupParameter> out;
  each(*root_, *path_, [&](const ParamRecord& r) {
    if (r.lookup) out.emplace_back(root_->handle(r.index));
  });
  return out;
}

Parameter Model::parameter(std::string_view name) const {
  return Parameter(root_->handle(find(*root_, *path_, name, false).index));
}

LookupParameter Model::lookup(std::string_view name) const {
  return LookupParameter(root_->handle(find(*root_, *path_, name, true).index));
}

uint64_t Model::size() const {
  uint64_t n = 0;
  each(*root_, *path_, [&](const ParamRecord&) { ++n; });
  return n;
}

uint64_t Model::element_count() const {
  uint64_t n = 0;
  each(*root_, *path_, [&](const ParamRecord& r) { n += r.dim.elements(); });
  return n;
}

uint64_t Model::trainable_element_count() const {
  uint64_t n = 0;
  each(*root_, *path_, [&](const ParamRecord& r) {
    if (r.trainable) n += r.dim.elements();
  });
  return n;
}

void Model::reset_gradient() {
  each(*root_, *path_, [&](const ParamRecord& r) { root_->gradients.impl().clear(r); });
}

double Model::gradient_norm() const {
  GradientBlock::Impl& block = root_->gradients.impl();
  detail::NormSum norm;
  bool finite = true;
  each(*root_, *path_, [&](const ParamRecord& r) {
    if (r.trainable) finite &= block.add_norm(r, norm);
  });
  return finite ? norm.value() : std::numeric_limits<double>::quiet_NaN();
}

double Model::value_norm() const {
  detail::NormSum norm;
  bool finite = true;
  each(*root_, *path_,
       [&](const ParamRecord& r) { finite &= norm.add(r.value, r.dim.elements(), r.dtype); });
  return finite ? norm.value() : std::numeric_limits<double>::quiet_NaN();
}

const Runtime& Model::runtime() const { return *root_->runtime; }
DType Model::dtype() const { return root_->dtype; }
bool Model::shared() const { return root_->owner_process != 0; }
GradientBlock& Model::gradients() const { return root_->gradients; }

}  // namespace trellis
