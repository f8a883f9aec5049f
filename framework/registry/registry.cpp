// SPDX-License-Identifier: Apache-2.0
#include "registry/registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <mutex>

#include "registry/checks.hpp"
#include "registry/names.hpp"

namespace trellis {

using detail::check_kernel;
using detail::place;
using detail::refuse_plugin;
using detail::view;

namespace {

// The numbers of names given out in this process.
struct NameTable {
  std::mutex mutex;
  detail::TextMap<uint32_t> numbers;
  std::deque<std::string> names;
};
NameTable& name_table() {
  static auto* const table =
      new NameTable;  // typed calls may come from destructors of static objects
  return *table;
}

constexpr std::string_view kDefaultInitializer = "role:initializer";

}  // namespace

struct Registry::Names {
  detail::Index<OpEntry> ops;
  detail::Index<BuilderEntry> builders;
  detail::Index<SoftmaxEntry> softmaxes;
  detail::Index<InitializerEntry> initializers;
  detail::Index<TrainerEntry> trainers;
  std::array<std::vector<const OpEntry*>, static_cast<size_t>(Role::kCount)> roles;
  // By process-wide number of the name; filled when first asked for. Higher numbers are looked up
  // each time.
  static constexpr uint32_t kNumbered = 4096;
  std::unique_ptr<std::atomic<const OpEntry*>[]> numbered {
    new std::atomic<const OpEntry*>[ kNumbered ]()
  };
};

struct Registry::Undo {
  const PluginRecord* plugin = nullptr;
  size_t ops = 0, builders = 0, softmaxes = 0, initializers = 0, trainers = 0, linalgs = 0;
  template <class Entry>
  using Replaced = std::vector<std::pair<size_t, std::unique_ptr<Entry>>>;
  Replaced<OpEntry> replaced_ops;
  Replaced<BuilderEntry> replaced_builders;
  Replaced<SoftmaxEntry> replaced_softmaxes;
  Replaced<InitializerEntry> replaced_initializers;
  Replaced<TrainerEntry> replaced_trainers;
  struct Kernels {
    OpEntry* op;
    KernelEntry f32, f64;
    std::vector<KernelEntry> all;
  };
  std::vector<Kernels> kernels;  // of operators that were there before
  struct Updates {
    TrainerEntry* trainer;
    trl_update_desc f32, f64;
    std::vector<UpdateEntry> all;
  };
  std::vector<Updates> updates;
};

namespace {

// Decides between the entries of a plugin and registered ones of the same id. Entries that an
// override gives to the other plugin leave `entries` and go to `dropped`; the places of registered
// ones that are replaced are returned, npos: new.
template <class Entry>
std::vector<size_t> settle(const char* kind, const PluginRecord& plugin,
                           std::vector<std::unique_ptr<Entry>>& entries,
                           std::span<const std::unique_ptr<Entry>> registered,
                           const detail::Overrides& overrides, std::vector<std::string>* dropped) {
  std::vector<size_t> places;
  std::vector<std::unique_ptr<Entry>> kept;
  const auto taken = [&](const std::string& id) -> const Entry* {
    for (const auto& other : registered) {
      if (other->id == id) return other.get();
      if (std::find(other->aliases.begin(), other->aliases.end(), id) != other->aliases.end())
        return other.get();
    }
    return nullptr;
  };
  for (auto& entry : entries) {
    size_t at = std::string::npos;
    if (const Entry* other = taken(entry->id)) {
      const auto override = overrides.find(entry->id);
      const std::string what =
          fmt::format("{} '{}' is also in '{}'", kind, entry->id, detail::origin(*other->plugin));
      if (other->id != entry->id)
        refuse_plugin(plugin, fmt::format("{} '{}' is an alias of '{}' in '{}'", kind, entry->id,
                                          other->id, detail::origin(*other->plugin)));
      if (override == overrides.end())
        refuse_plugin(
            plugin, fmt::format("{} (settle it in trellis.toml: [override] \"{}\" = \"{}\")", what,
                                entry->id, plugin.id));
      if (override->second == other->plugin->id) {
        if (dropped != nullptr) dropped->push_back(entry->id);
        continue;
      }
      if (override->second != plugin.id)
        refuse_plugin(plugin, fmt::format("{}, and the override names '{}', which is neither", what,
                                          override->second));
      at = static_cast<size_t>(std::find_if(registered.begin(), registered.end(),
                                            [&](const auto& r) { return r.get() == other; }) -
                               registered.begin());
    }
    for (const std::string& alias : entry->aliases) {
      const Entry* other = taken(alias);
      if (other != nullptr && other->id != entry->id)
        refuse_plugin(plugin,
                      fmt::format("{} '{}': the alias '{}' means '{}' of '{}' already", kind,
                                  entry->id, alias, other->id, detail::origin(*other->plugin)));
    }
    places.push_back(at);
    kept.push_back(std::move(entry));
  }
  entries = std::move(kept);
  return places;
}

template <class Entry>
void place_all(std::vector<std::unique_ptr<Entry>>& to, std::vector<std::unique_ptr<Entry>>& from,
               const std::vector<size_t>& places,
               std::vector<std::pair<size_t, std::unique_ptr<Entry>>>& replaced) {
  for (size_t i = 0; i < from.size(); ++i) {
    if (places[i] == std::string::npos) {
      to.push_back(std::move(from[i]));
    } else {
      replaced.emplace_back(places[i], std::move(to[places[i]]));
      to[places[i]] = std::move(from[i]);
    }
  }
}

template <class Entry>
void take_back(std::vector<std::unique_ptr<Entry>>& from, size_t size,
               std::vector<std::pair<size_t, std::unique_ptr<Entry>>>& replaced) {
  from.resize(size);
  for (auto& [at, entry] : replaced) from[at] = std::move(entry);
}

// Room for what will be added, so that nothing can fail half-way.
template <class Entry>
void make_room(std::vector<std::unique_ptr<Entry>>& to,
               const std::vector<std::unique_ptr<Entry>>& from,
               std::vector<std::pair<size_t, std::unique_ptr<Entry>>>& replaced) {
  to.reserve(to.size() + from.size());
  replaced.reserve(from.size());
}

bool same_place(const trl_kernel_desc& a, const trl_kernel_desc& b) {
  return view(a.device) == view(b.device) && a.dtype == b.dtype;
}

}  // namespace

Registry::Registry() : names_(std::make_unique<Names>()) {}
Registry::~Registry() = default;

void Registry::set_override(std::string target, std::string plugin_id) {
  overrides_[std::move(target)] = std::move(plugin_id);
}

PluginRecord& Registry::add(PluginRecord record, const trl_plugin& table) {
  record.index = static_cast<uint32_t>(plugins_.size());
  if (const PluginRecord* other = plugin(record.id))
    refuse_plugin(record, fmt::format("plugin '{}' is registered already, from '{}'", record.id,
                                      detail::origin(*other)));
  detail::Provided p = detail::read_tables(std::move(record), table, overrides_);
  const PluginRecord& plugin = *p.plugin;

  std::vector<std::string> lost_ops, lost_trainers;
  const auto op_places = settle<OpEntry>("operator", plugin, p.ops, ops_, overrides_, &lost_ops);
  const auto builder_places =
      settle<BuilderEntry>("builder", plugin, p.builders, builders_, overrides_, nullptr);
  const auto softmax_places =
      settle<SoftmaxEntry>("softmax builder", plugin, p.softmaxes, softmaxes_, overrides_, nullptr);
  const auto initializer_places = settle<InitializerEntry>("initializer", plugin, p.initializers,
                                                           initializers_, overrides_, nullptr);
  const auto trainer_places =
      settle<TrainerEntry>("trainer", plugin, p.trainers, trainers_, overrides_, &lost_trainers);
  for (size_t i = 0; i < p.linalgs.size(); ++i) {
    const LinalgEntry& entry = *p.linalgs[i];
    const auto same = [&](const LinalgEntry& other) {
      return other.id == entry.id && view(other.desc.device) == view(entry.desc.device) &&
             other.desc.dtype == entry.desc.dtype;
    };
    for (size_t j = 0; j < i; ++j)
      if (same(*p.linalgs[j]))
        refuse_plugin(plugin, fmt::format("linalg provider '{}' for {} is there twice", entry.id,
                                          place(view(entry.desc.device), entry.desc.dtype, 0)));
    for (const auto& other : linalgs_)
      if (same(*other))
        refuse_plugin(plugin, fmt::format("linalg provider '{}' for {} is also in '{}'", entry.id,
                                          place(view(entry.desc.device), entry.desc.dtype, 0),
                                          detail::origin(*other->plugin)));
  }

  auto undo = std::make_unique<Undo>();
  undo->plugin = &plugin;
  undo->ops = ops_.size();
  undo->builders = builders_.size();
  undo->softmaxes = softmaxes_.size();
  undo->initializers = initializers_.size();
  undo->trainers = trainers_.size();
  undo->linalgs = linalgs_.size();

  // Kernels and updates go to the plugin's own things, or extend those of others; the latter change
  // at the commit only.
  for (const trl_kernel_desc& kernel : p.kernels) {
    const std::string_view id = view(kernel.op_id);
    if (std::find(lost_ops.begin(), lost_ops.end(), id) != lost_ops.end()) continue;
    std::vector<KernelEntry>* all = nullptr;
    const OpEntry* op = nullptr;
    for (const auto& own : p.ops)
      if (own->id == id) op = own.get(), all = &own->all_kernels;
    if (op == nullptr) {
      const auto at =
          std::find_if(ops_.begin(), ops_.end(), [&](const auto& o) { return o->id == id; });
      if (at == ops_.end())
        refuse_plugin(plugin,
                      fmt::format("kernel for {} of an unknown operator '{}'",
                                  place(view(kernel.device), kernel.dtype, kernel.rank), id));
      op = at->get();
      auto extended = std::find_if(undo->kernels.begin(), undo->kernels.end(),
                                   [&](const auto& k) { return k.op == op; });
      if (extended == undo->kernels.end())
        extended = undo->kernels.insert(undo->kernels.end(), {at->get(), {}, {}, op->all_kernels});
      all = &extended->all;
    }
    check_kernel(plugin, *op, kernel);
    for (const KernelEntry& other : *all) {
      if (!same_place(other.desc, kernel)) continue;
      const std::string what = fmt::format("operator '{}': its kernel for {}", id,
                                           place(view(kernel.device), kernel.dtype, kernel.rank));
      if (other.desc.rank == kernel.rank)
        refuse_plugin(plugin, other.plugin == &plugin ? fmt::format("{} is there twice", what)
                                                      : fmt::format("{} is also in '{}'", what,
                                                                    detail::origin(*other.plugin)));
      if (other.plugin != &plugin && detail::is_reserved(id) && !plugin.shipped &&
          !plugin.allow_core_override)
        refuse_plugin(plugin,
                      fmt::format("{} competes with '{}' (set allow_core_override in trellis.toml)",
                                  what, detail::origin(*other.plugin)));
    }
    all->push_back({kernel, &plugin});
  }
  for (const trl_update_desc& update : p.updates) {
    const std::string_view id = view(update.trainer_id);
    if (std::find(lost_trainers.begin(), lost_trainers.end(), id) != lost_trainers.end()) continue;
    std::vector<UpdateEntry>* all = nullptr;
    for (const auto& own : p.trainers)
      if (own->id == id) all = &own->all_updates;
    if (all == nullptr) {
      const auto at = std::find_if(trainers_.begin(), trainers_.end(),
                                   [&](const auto& t) { return t->id == id; });
      if (at == trainers_.end())
        refuse_plugin(plugin,
                      fmt::format("update for {} of an unknown trainer '{}'",
                                  place(view(update.device), update.dtype, update.rank), id));
      auto extended = std::find_if(undo->updates.begin(), undo->updates.end(),
                                   [&](const auto& u) { return u.trainer == at->get(); });
      if (extended == undo->updates.end())
        extended =
            undo->updates.insert(undo->updates.end(), {at->get(), {}, {}, (*at)->all_updates});
      all = &extended->all;
    }
    for (const UpdateEntry& other : *all) {
      if (view(other.desc.device) != view(update.device) || other.desc.dtype != update.dtype ||
          other.desc.rank != update.rank)
        continue;
      const std::string what = fmt::format("trainer '{}': its update for {}", id,
                                           place(view(update.device), update.dtype, update.rank));
      refuse_plugin(plugin, other.plugin == &plugin ? fmt::format("{} is there twice", what)
                                                    : fmt::format("{} is also in '{}'", what,
                                                                  detail::origin(*other.plugin)));
    }
    all->push_back({update, &plugin});
  }

  // Everything is decided; from here on nothing throws until the tables are made anew.
  make_room(ops_, p.ops, undo->replaced_ops);
  make_room(builders_, p.builders, undo->replaced_builders);
  make_room(softmaxes_, p.softmaxes, undo->replaced_softmaxes);
  make_room(initializers_, p.initializers, undo->replaced_initializers);
  make_room(trainers_, p.trainers, undo->replaced_trainers);
  linalgs_.reserve(linalgs_.size() + p.linalgs.size());
  plugins_.reserve(plugins_.size() + 1);
  for (auto& k : undo->kernels) {
    k.f32 = k.op->f32;
    k.f64 = k.op->f64;
    k.op->all_kernels.swap(k.all);
    choose_kernels(*k.op);
  }
  for (auto& u : undo->updates) {
    u.f32 = u.trainer->f32;
    u.f64 = u.trainer->f64;
    u.trainer->all_updates.swap(u.all);
    choose_updates(*u.trainer);
  }
  for (const auto& op : p.ops) choose_kernels(*op);
  for (const auto& trainer : p.trainers) choose_updates(*trainer);
  place_all(ops_, p.ops, op_places, undo->replaced_ops);
  place_all(builders_, p.builders, builder_places, undo->replaced_builders);
  place_all(softmaxes_, p.softmaxes, softmax_places, undo->replaced_softmaxes);
  place_all(initializers_, p.initializers, initializer_places, undo->replaced_initializers);
  place_all(trainers_, p.trainers, trainer_places, undo->replaced_trainers);
  for (auto& entry : p.linalgs) linalgs_.push_back(std::move(entry));
  plugins_.push_back(std::move(p.plugin));
  undo_ = std::move(undo);
  try {
    index();
  } catch (...) {
    remove_last(*plugins_.back());
    throw;
  }
  return *plugins_.back();
}

void Registry::remove_last(const PluginRecord& record) {
  if (undo_ == nullptr || undo_->plugin != &record)
    fail(ErrorKind::internal,
         fmt::format("[registry] cannot remove '{}': not the newest plugin", record.id));
  const std::unique_ptr<Undo> undo = std::move(undo_);
  for (auto& k : undo->kernels) {
    k.op->all_kernels.swap(k.all);
    k.op->f32 = k.f32;
    k.op->f64 = k.f64;
  }
  for (auto& u : undo->updates) {
    u.trainer->all_updates.swap(u.all);
    u.trainer->f32 = u.f32;
    u.trainer->f64 = u.f64;
  }
  take_back(ops_, undo->ops, undo->replaced_ops);
  take_back(builders_, undo->builders, undo->replaced_builders);
  take_back(softmaxes_, undo->softmaxes, undo->replaced_softmaxes);
  take_back(initializers_, undo->initializers, undo->replaced_initializers);
  take_back(trainers_, undo->trainers, undo->replaced_trainers);
  linalgs_.resize(undo->linalgs);
  plugins_.pop_back();
  index();
}

void Registry::index() {
  auto names = std::make_unique<Names>();
  names->ops = detail::Index<OpEntry>(ops_);
  names->builders = detail::Index<BuilderEntry>(builders_);
  names->softmaxes = detail::Index<SoftmaxEntry>(softmaxes_);
  names->initializers = detail::Index<InitializerEntry>(initializers_);
  names->trainers = detail::Index<TrainerEntry>(trainers_);
  for (size_t i = 0; i < ops_.size(); ++i) {
    ops_[i]->handle = static_cast<uint32_t>(i + 1);
    if (const auto role = role_from(view(ops_[i]->desc.role)))
      names->roles[static_cast<size_t>(*role)].push_back(ops_[i].get());
  }
  for (size_t r = 0; r < names->roles.size(); ++r) {
    const auto override = overrides_.find(fmt::format("role:{}", role_name(static_cast<Role>(r))));
    if (override == overrides_.end()) continue;
    auto& ops = names->roles[r];
    const auto chosen = std::find_if(ops.begin(), ops.end(), [&](const OpEntry* op) {
      return op->plugin->id == override->second;
    });
    if (chosen != ops.end()) ops.assign(1, *chosen);
  }
  names_ = std::move(names);
}

void Registry::choose_kernels(OpEntry& op) {
  op.f32 = op.f64 = {};
  for (const KernelEntry& kernel : op.all_kernels) {
    if (view(kernel.desc.device) != "cpu") continue;
    if (kernel.desc.dtype != TRL_F32 && kernel.desc.dtype != TRL_F64) continue;
    KernelEntry& best = kernel.desc.dtype == TRL_F64 ? op.f64 : op.f32;
    if (!best || kernel.desc.rank > best.desc.rank) best = kernel;
  }
}

void Registry::choose_updates(TrainerEntry& trainer) {
  trainer.f32 = trainer.f64 = {};
  for (const UpdateEntry& update : trainer.all_updates) {
    if (view(update.desc.device) != "cpu") continue;
    if (update.desc.dtype != TRL_F32 && update.desc.dtype != TRL_F64) continue;
    trl_update_desc& best = update.desc.dtype == TRL_F64 ? trainer.f64 : trainer.f32;
    if (best.update == nullptr || update.desc.rank > best.rank) best = update.desc;
  }
}

std::string Registry::loaded() const {
  std::vector<std::string_view> ids;
  for (const auto& plugin : plugins_) ids.push_back(plugin->id);
  return ids.empty() ? "no plugins" : fmt::format("{}", fmt::join(ids, ", "));
}

template <class Index>
const auto& Registry::find(const Index& index, std::string_view kind, std::string_view name) const {
  if (const auto* entry = index.find(kind, name)) return *entry;
  const std::string near = detail::nearest(name, index.all());
  fail(ErrorKind::argument,
       fmt::format("[registry] no {} '{}' ({}loaded: {})", kind, name,
                   near.empty() ? "" : fmt::format("did you mean '{}'? ", near), loaded()));
}

const OpEntry* Registry::find_op(std::string_view name) const {
  return names_->ops.find("operator", name);
}
const OpEntry& Registry::op(std::string_view name) const {
  return find(names_->ops, "operator", name);
}
const BuilderEntry& Registry::builder(std::string_view name) const {
  return find(names_->builders, "builder", name);
}
const SoftmaxEntry& Registry::softmax(std::string_view name) const {
  return find(names_->softmaxes, "softmax builder", name);
}
const InitializerEntry& Registry::initializer(std::string_view name) const {
  return find(names_->initializers, "initializer", name);
}
const TrainerEntry& Registry::trainer(std::string_view name) const {
  return find(names_->trainers, "trainer", name);
}

const OpEntry& Registry::role(Role r) const {
  const auto& ops = names_->roles[static_cast<size_t>(r)];
  if (ops.size() == 1) [[likely]]
    return *ops.front();
  if (ops.empty())
    fail(ErrorKind::plugin,
         fmt::format("[role] no operator plays '{}' (load a plugin with one; loaded: {})",
                     role_name(r), loaded()));
  std::vector<std::string> providers;
  for (const OpEntry* op : ops)
    providers.push_back(fmt::format("'{}' of {}", op->id, op->plugin->id));
  fail(ErrorKind::plugin,
       fmt::format("[role] more than one operator plays '{0}': {1} (settle it in trellis.toml: "
                   "[override] \"role:{0}\" "
                   "= \"{2}\")",
                   role_name(r), fmt::join(providers, ", "), ops.front()->plugin->id));
}

const InitializerEntry& Registry::default_initializer() const {
  std::vector<const InitializerEntry*> found;
  const auto override = overrides_.find(kDefaultInitializer);
  for (const auto& entry : initializers_) {
    if (!(entry->desc.flags & TRL_INIT_DEFAULT)) continue;
    if (override != overrides_.end() && override->second == entry->plugin->id) return *entry;
    found.push_back(entry.get());
  }
  if (found.size() == 1) return *found.front();
  if (found.empty())
    fail(ErrorKind::plugin, fmt::format("[registry] no default initializer (load a plugin with "
                                        "one, or name the initializer; loaded: {})",
                                        loaded()));
  std::vector<std::string> providers;
  for (const InitializerEntry* entry : found)
    providers.push_back(fmt::format("'{}' of {}", entry->id, entry->plugin->id));
  fail(ErrorKind::plugin,
       fmt::format("[registry] more than one default initializer: {} (settle it in trellis.toml: "
                   "[override] \"{}\" = "
                   "\"{}\")",
                   fmt::join(providers, ", "), kDefaultInitializer, found.front()->plugin->id));
}

const PluginRecord* Registry::plugin(std::string_view id) const {
  for (const auto& plugin : plugins_)
    if (plugin->id == id) return plugin.get();
  return nullptr;
}

uint32_t Registry::name_id(std::string_view full_op_id) {
  NameTable& table = name_table();
  const std::lock_guard lock(table.mutex);
  const auto at = table.numbers.find(full_op_id);
  if (at != table.numbers.end()) return at->second;
  const auto number = static_cast<uint32_t>(table.names.size());
  table.names.emplace_back(full_op_id);
  table.numbers.emplace(full_op_id, number);
  return number;
}

std::string Registry::name_of(uint32_t id) {
  NameTable& table = name_table();
  const std::lock_guard lock(table.mutex);
  if (id >= table.names.size())
    fail(ErrorKind::internal, fmt::format("[registry] no name has the number {}", id));
  return table.names[id];
}

const OpEntry& Registry::op_by_name_id(uint32_t id) const {
  if (id < Names::kNumbered) [[likely]] {
    if (const OpEntry* known = names_->numbered[id].load(std::memory_order_acquire)) [[likely]]
      return *known;
  }
  return op_by_new_name_id(id);
}

const OpEntry& Registry::op_by_new_name_id(uint32_t id) const {
  const OpEntry& found = op(name_of(id));
  if (id < Names::kNumbered) names_->numbered[id].store(&found, std::memory_order_release);
  return found;
}

}  // namespace trellis
