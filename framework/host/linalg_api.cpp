// SPDX-License-Identifier: Apache-2.0
#include "host/host.hpp"
#include "linalg/dispatch.hpp"

namespace trellis::detail {
namespace {

template <trl_status (LinalgDispatch::*product)(const trl_mm_args&)>
trl_status multiply(const trl_mm_args* args) noexcept {
  trl_call* const c = args->call;
  const trl_status st =
      require_phase(c, "trl.linalg/1", Phase::exec, Phase::create, Phase::fill, Phase::update);
  if (st != TRL_OK) return st;
  return guard_host(c, [&] { return (as_call(c).core->linalg.get()->*product)(*args); });
}

}  // namespace

const trl_linalg_api kLinalgApi = {sizeof(trl_linalg_api), 0, multiply<&LinalgDispatch::gemm>,
                                   multiply<&LinalgDispatch::gemv>};

}  // namespace trellis::detail
