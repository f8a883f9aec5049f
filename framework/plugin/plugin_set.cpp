// SPDX-License-Identifier: Apache-2.0
#include "plugin/plugin_set.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <system_error>
#include <trellis/error.hpp>
#include <utility>

#include "plugin/verify.hpp"

namespace trellis::detail {
namespace {

namespace fs = std::filesystem;

std::string wished(const std::string& id, const VersionRange& range) {
  return range.text() == "*" ? id : id + " " + range.text();
}

class Chooser {
 public:
  Chooser(const RuntimeOptions& options, const Places& places, const Trace& trace)
      : places_(places), trace_(trace) {
    read_wishes(options);
  }

  PluginSet choose() {
    for (const PluginWish& wish : wishes_) choose_wish(wish);
    // Requirements may bring requirements: by index, the vector grows.
    for (size_t i = 0; i < items_.size(); ++i)
      if (items_[i]->failure.empty()) choose_required(i);
    order();
    if (set_.named) {
      std::string texts;
      for (const auto& item : items_)
        if (!item->failure.empty()) texts += (texts.empty() ? "" : "\n") + item->failure;
      if (!texts.empty()) fail(ErrorKind::plugin, texts);
      check_overrides();
    } else {
      for (const auto& item : items_)
        if (!item->failure.empty() && !item->is_off) set_.left_out.push_back(item->failure);
    }
    return std::move(set_);
  }

 private:
  enum class Visit { no, open, done };

  struct Item {
    std::string id;
    ChosenPlugin chosen;
    std::string failure;  // empty: can be loaded, as far as is known
    size_t rank = 0;      // position in search order
    bool is_read = false, is_off = false;
    Visit visit = Visit::no;
  };

  void read_wishes(const RuntimeOptions& options) {
    set_.named = !options.plugins_file.empty() || !options.plugins.empty();
    if (!options.plugins_file.empty()) {
      Experiment e = read_experiment(options.plugins_file);
      is_closed_ = true;
      experiment_ = quoted(options.plugins_file);
      wishes_ = std::move(e.plugins);
      set_.overrides = std::move(e.overrides);
      set_.allow_core_override = e.allow_core_override;
      set_.warnings = std::move(e.warnings);
    }
    for (const std::string& text : options.plugins) wishes_.push_back(parse_wish(text));
    if (set_.named) {
      // Paths settle where an id comes from, whoever else asks for it.
      std::stable_partition(wishes_.begin(), wishes_.end(),
                            [](const PluginWish& w) { return !w.path.empty(); });
      return;
    }
    for (const FoundManifest& found : places_.manifests()) {
      if (!found.place->is_trusted()) continue;
      if (const std::string off = disabled_by(found.id); !off.empty()) {
        trace_.line(TraceTopic::resolve, found.id + ": off, " + off);
        continue;
      }
      PluginWish wish;
      wish.id = found.id;
      wish.origin = place_name(found.place->kind);
      wishes_.push_back(std::move(wish));
    }
  }

  Item* find(std::string_view id) {
    const auto at = std::find_if(items_.begin(), items_.end(),
                                 [id](const auto& item) { return item->id == id; });
    return at == items_.end() ? nullptr : at->get();
  }

  Item& add(const std::string& id) {
    items_.push_back(std::make_unique<Item>());
    items_.back()->id = id;
    return *items_.back();
  }

  void choose_wish(const PluginWish& wish) {
    if (Item* known = find(wish.id); known && !wish.id.empty()) return again(*known, wish);
    if (wish.path.empty()) {
      Item& item = add(wish.id);
      by_id(item, wish.range, " (asked for by " + wish.origin + ")", "asked for by " + wish.origin,
            !set_.named);
      item.chosen.options = wish.options;
      return;
    }
    std::optional<Manifest> manifest;
    std::string failure;
    try {
      manifest = read_manifest(manifest_at(wish.path));
      if (!wish.id.empty() && manifest->id != wish.id)
        failure = refusal(manifest->file) + ": its id is '" + manifest->id + "', " + wish.origin +
                  " asks for '" + wish.id + "'";
      else if (!wish.range.contains(manifest->version))
        failure = refusal(manifest->file) + ": it has version " + manifest->version.to_string() +
                  ", " + wish.origin + " asks for " + wish.range.text();
    } catch (const Error& e) {
      failure = e.what();
    }
    if (manifest && wish.id.empty())
      if (Item* known = find(manifest->id)) {
        same_file(*known, manifest->file, wish.origin);
        return;
      }
    Item& item = add(manifest ? manifest->id : wish.id);
    item.failure = failure;
    if (!manifest) return;
    item.chosen.options = wish.options;
    take(item, std::move(*manifest), "asked for by " + wish.origin + ", by path", nullptr);
    for (const FoundManifest& found : places_.manifests()) {
      std::error_code error;
      if (found.place->shipped && found.id == item.id &&
          fs::equivalent(found.file, item.chosen.manifest.file, error))
        item.chosen.shipped = true;
    }
    if (item.failure.empty()) check_enabled(item, " (asked for by " + wish.origin + ")");
  }

  // The same id once more: by path it must be the same file, by range the version must fit.
  void again(Item& item, const PluginWish& wish) {
    if (!item.failure.empty()) return;
    const Manifest& m = item.chosen.manifest;
    if (!wish.path.empty()) {
      try {
        same_file(item, manifest_at(wish.path), wish.origin);
      } catch (const Error& e) {
        item.failure = e.what();
      }
    }
    if (item.failure.empty() && !wish.range.contains(m.version))
      item.failure = refusal(m.file) + ": it has version " + m.version.to_string() + ", " +
                     wish.origin + " asks for " + wish.range.text();
    item.chosen.options.insert(wish.options.begin(), wish.options.end());
  }

  void same_file(Item& item, const fs::path& file, const std::string& origin) {
    std::error_code error;
    if (item.failure.empty() && !fs::equivalent(item.chosen.manifest.file, file, error))
      item.failure = "[plugin] cannot load '" + item.id +
                     "' from two places: " + quoted(item.chosen.manifest.file) + " and " +
                     quoted(file) + " (asked for by " + origin + ")";
  }

  void take(Item& item, Manifest manifest, std::string why, const FoundManifest* found) {
    item.chosen.manifest = std::move(manifest);
    item.is_read = true;
    item.chosen.shipped = found && found->place->shipped;
    item.chosen.why = std::move(why);
    if (found) {
      item.chosen.why += "; found in " + std::string(place_name(found->place->kind));
      item.rank = 1 + static_cast<size_t>(found - places_.manifests().data());
    }
    if (found && found->place->kind == PlaceKind::dev)
      set_.warnings.push_back(
          "[plugin] " + item.id + " " + item.chosen.manifest.version.to_string() +
          " is work in progress, from the dev folder " + quoted(found->place->folder) +
          " (trellis plugin dev --remove takes it out)");
    trace_.line(TraceTopic::resolve, item.id + " " + item.chosen.manifest.version.to_string() +
                                         ": " + quoted(item.chosen.manifest.file) + ", " +
                                         item.chosen.why);
  }

  void check_enabled(Item& item, const std::string& asked) {
    const std::string off = disabled_by(item.id, item.chosen.manifest.disable_variable);
    if (off.empty()) return;
    item.is_off = true;
    trace_.line(TraceTopic::resolve, item.id + ": off, " + off);
    item.failure = "[plugin] cannot load '" + item.id + "': disabled by " + off + asked;
  }

  // The first place that has a version in the range; the highest one within a place.
  void by_id(Item& item, const VersionRange& range, const std::string& asked, std::string why,
             bool trusted_only = false) {
    const FoundManifest* best = nullptr;
    std::optional<Manifest> manifest;
    std::string others, broken;
    for (const FoundManifest& found : places_.manifests()) {
      if (found.id != item.id || (trusted_only && !found.place->is_trusted())) continue;
      if (best && found.place != best->place) {
        trace_.line(TraceTopic::resolve,
                    item.id + ": " + quoted(found.file) + " shadowed by " + quoted(best->file));
        continue;
      }
      try {
        Manifest candidate = read_manifest(found.file);
        const std::string version = candidate.version.to_string();
        if (!range.contains(candidate.version)) {
          others += (others.empty() ? "" : ", ") + version + " in " + quoted(found.file);
          trace_.line(TraceTopic::resolve, item.id + ": " + version + " in " + quoted(found.file) +
                                               " does not fit " + range.text());
          continue;
        }
        if (best && candidate.version == manifest->version) {
          item.failure = "[plugin] cannot load '" + item.id + "': " + version + " lies in " +
                         quoted(best->file) + " and in " + quoted(found.file) + asked;
          return;
        }
        if (best && candidate.version < manifest->version) continue;
        best = &found;
        manifest = std::move(candidate);
      } catch (const Error& e) {
        if (broken.empty()) broken = e.what();
        trace_.line(TraceTopic::resolve, item.id + ": " + e.what());
      }
    }
    if (best) {
      take(item, std::move(*manifest), std::move(why), best);
      check_enabled(item, asked);
    } else if (!others.empty()) {
      item.failure =
          "[plugin] cannot load '" + wished(item.id, range) + "': found " + others + asked;
    } else if (!broken.empty()) {
      item.failure = broken;
    } else {
      item.failure = "[plugin] cannot load '" + wished(item.id, range) + "': not found in " +
                     places_.text() + asked;
    }
  }

  void choose_required(size_t index) {
    const Manifest& m = items_[index]->chosen.manifest;
    for (const Requirement& r : m.required) {
      const std::string lead = refusal(m.file) + ": requires '" + wished(r.id, r.range) + "'";
      Item* known = find(r.id);
      if (!known && is_closed_) {
        items_[index]->failure = lead + ", which " + experiment_ + " does not list";
        return;
      }
      if (!known) {
        known = &add(r.id);
        by_id(*known, r.range, {}, "required by " + m.id);
        is_only_required_.push_back(known);
      }
      if (known->is_read && !r.range.contains(known->chosen.manifest.version)) {
        items_[index]->failure = lead + ", found " + known->chosen.manifest.version.to_string() +
                                 " in " + quoted(known->chosen.manifest.file);
        return;
      }
    }
  }

  void order() {
    std::vector<Item*> sorted;
    for (const auto& item : items_) sorted.push_back(item.get());
    std::stable_sort(sorted.begin(), sorted.end(), [](const Item* a, const Item* b) {
      return a->rank != b->rank ? a->rank < b->rank : a->id < b->id;
    });
    std::vector<Item*> chain;
    for (Item* item : sorted) visit(*item, chain);
    // A requirement that failed is told by those that require it.
    items_.erase(std::remove_if(items_.begin(), items_.end(),
                                [&](const auto& item) {
                                  return !item->failure.empty() &&
                                         std::find(is_only_required_.begin(),
                                                   is_only_required_.end(),
                                                   item.get()) != is_only_required_.end();
                                }),
                 items_.end());
  }

  void visit(Item& item, std::vector<Item*>& chain) {
    if (item.visit == Visit::done) return;
    if (item.visit == Visit::open) return fail_circle(item, chain);
    item.visit = Visit::open;
    chain.push_back(&item);
    for (const Requirement& r : item.chosen.manifest.required) {
      Item* needed = find(r.id);
      if (!needed) continue;  // already told
      visit(*needed, chain);
      if (!needed->failure.empty() && item.failure.empty())
        item.failure = refusal(item.chosen.manifest.file) + ": requires '" + wished(r.id, r.range) +
                       "', which cannot be loaded: " + needed->failure;
    }
    chain.pop_back();
    item.visit = Visit::done;
    if (item.failure.empty()) set_.plugins.push_back(std::move(item.chosen));
  }

  void fail_circle(Item& item, const std::vector<Item*>& chain) {
    std::string circle;
    const auto start = std::find(chain.begin(), chain.end(), &item);
    for (auto at = start; at != chain.end(); ++at) circle += (*at)->id + " -> ";
    for (auto at = start; at != chain.end(); ++at)
      if ((*at)->failure.empty())
        (*at)->failure = refusal((*at)->chosen.manifest.file) +
                         ": plugins require each other in a circle: " + circle + item.id;
  }

  void check_overrides() const {
    for (const Override& o : set_.overrides) {
      const auto at = std::find_if(set_.plugins.begin(), set_.plugins.end(),
                                   [&](const ChosenPlugin& p) { return p.manifest.id == o.id; });
      if (at != set_.plugins.end() && !o.range.contains(at->manifest.version))
        fail(ErrorKind::plugin,
             "[plugin] override of '" + o.target + "' asks for '" + wished(o.id, o.range) +
                 "': " + at->manifest.version.to_string() + " is loaded (" + o.origin + ")");
    }
  }

  const Places& places_;
  const Trace& trace_;
  std::vector<PluginWish> wishes_;
  std::vector<std::unique_ptr<Item>> items_;
  std::vector<const Item*> is_only_required_;
  bool is_closed_ = false;  // an experiment's file names the set
  std::string experiment_;
  PluginSet set_;
};

}  // namespace

fs::path manifest_at(const fs::path& path) {
  if (!manifest_id(path).empty()) return path;
  if (path.extension() == ".so") {
    const fs::path beside = manifest_beside(path);
    std::error_code error;
    if (fs::exists(beside, error)) return beside;
    fail(ErrorKind::plugin, refusal(path) + ": no manifest " + quoted(beside) + " beside it");
  }
  fail(ErrorKind::plugin, refusal(path) + ": neither a manifest (<id>.trellis.toml) nor a library");
}

PluginSet choose_plugins(const RuntimeOptions& options, const Places& places, const Trace& trace) {
  if (options.no_plugins) return {};
  return Chooser(options, places, trace).choose();
}

}  // namespace trellis::detail
