// SPDX-License-Identifier: Apache-2.0
#include "plugin/handles.hpp"

#include <algorithm>
#include <trellis/error.hpp>
#include <utility>

namespace trellis::detail {
namespace {

void bind(OpHandle& h, const Registry& registry) {
  const OpEntry& op = registry.op(h.op_id);
  std::vector<uint16_t> places;
  std::vector<std::string> known;
  for (const AttrSpec& spec : op.attrs) known.push_back(spec.key);
  for (const std::string& key : h.keys) {
    const auto at = std::find(known.begin(), known.end(), key);
    if (at == known.end()) {
      const std::string near = nearest(key, known);
      fail(ErrorKind::argument, "[" + op.id + "] no attribute '" + key + "'" +
                                    (near.empty() ? "" : " (did you mean '" + near + "'?)"));
    }
    const auto place = static_cast<uint16_t>(at - known.begin());
    if (std::find(places.begin(), places.end(), place) != places.end())
      fail(ErrorKind::argument, "[" + op.id + "] attribute '" + key + "' is named twice");
    places.push_back(place);
  }
  std::vector<trl_attr> defaults;
  for (size_t i = 0; i < op.attrs.size(); ++i) {
    // Per-batch attributes without values take their default where they are laid out for a batch.
    defaults.push_back(op.attrs[i].per_batch() ? trl_attr{op.attrs[i].type, 0, {}, nullptr}
                                               : op.attrs[i].dflt);
    if (op.attrs[i].required() &&
        std::find(places.begin(), places.end(), static_cast<uint16_t>(i)) == places.end())
      fail(ErrorKind::argument, "[" + op.id + "] attribute '" + op.attrs[i].key +
                                    "' is missing (needs it among the keys)");
  }
  h.op = &op;
  h.places = std::move(places);
  h.defaults = std::move(defaults);
}

}  // namespace

trl_op_handle OpHandles::resolve(const Registry& registry, std::string owner, std::string op_id,
                                 std::vector<std::string> keys) {
  OpHandle h;
  h.op_id = std::move(op_id);
  h.keys = std::move(keys);
  h.owner = std::move(owner);
  bind(h, registry);
  handles_.push_back(std::move(h));
  return static_cast<trl_op_handle>(handles_.size());
}

void OpHandles::arrange(const OpHandle& h, std::span<const trl_attr> given, trl_attr* out) {
  if (given.size() != h.places.size())
    fail(ErrorKind::argument, "[" + h.op->id + "] " + std::to_string(given.size()) +
                                  " attribute values (needs " + std::to_string(h.places.size()) +
                                  ", one for each key it was resolved with)");
  std::copy(h.defaults.begin(), h.defaults.end(), out);
  for (size_t i = 0; i < given.size(); ++i) {
    check_attrs(h.op->id, {&h.op->attrs[h.places[i]], 1}, given.subspan(i, 1));
    out[h.places[i]] = given[i];
  }
}

std::vector<std::string> OpHandles::rebind(const Registry& registry) {
  std::vector<std::string> owners;
  for (OpHandle& h : handles_) {
    if (!h.op) continue;
    try {
      bind(h, registry);
    } catch (const Error&) {
      owners.push_back(h.owner);
    }
  }
  return owners;
}

void OpHandles::drop_owner(const std::string& plugin_id) {
  for (OpHandle& h : handles_)
    if (h.owner == plugin_id) h.op = nullptr;
}

}  // namespace trellis::detail
