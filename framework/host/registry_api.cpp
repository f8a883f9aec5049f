// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "host/host.hpp"
#include "plugin/loader.hpp"
#include "registry/registry.hpp"

namespace trellis::detail {
namespace {

constexpr uint32_t kMaxKeys = 256;

trl_status resolve(trl_call* c, trl_str op_id, const trl_str* keys, uint32_t n_keys,
                   trl_op_handle* out) noexcept {
  *out = 0;
  if (const trl_status st = require_phase(c, "resolve", Phase::init); st != TRL_OK) return st;
  return guard_host(c, [&] {
    Call& call = as_call(c);
    if (n_keys > kMaxKeys || (n_keys > 0 && !keys))
      return record(c, TRL_E_INVALID,
                    "[trl.registry/1] resolve with " + std::to_string(n_keys) + " keys (at most " +
                        std::to_string(kMaxKeys) + ", at an address)");
    std::vector<std::string> names;
    for (uint32_t i = 0; i < n_keys; ++i) names.emplace_back(view_of(keys[i]));
    *out = call.core->loader->handles().resolve(*call.core->registry, std::string(call.plugin_id),
                                                std::string(view_of(op_id)), std::move(names));
    return trl_status{TRL_OK};
  });
}

}  // namespace

const trl_registry_api kRegistryApi = {sizeof(trl_registry_api), 0, resolve};

}  // namespace trellis::detail
