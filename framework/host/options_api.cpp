// SPDX-License-Identifier: Apache-2.0
#include "host/host.hpp"
#include "plugin/loader.hpp"

namespace trellis::detail {
namespace {

trl_status get(trl_call* c, trl_str key, trl_str* out) noexcept {
  *out = {nullptr, 0};
  if (const trl_status st = require_phase(c, "reading options", Phase::init); st != TRL_OK)
    return st;
  return guard_host(c, [&] {
    Call& call = as_call(c);
    if (const std::string* value = call.core->loader->option(call.plugin_id, view_of(key)))
      *out = {value->data(), value->size()};
    return trl_status{TRL_OK};
  });
}

}  // namespace

const trl_options_api kOptionsApi = {sizeof(trl_options_api), 0, get};

}  // namespace trellis::detail
