// SPDX-License-Identifier: Apache-2.0
#include <trellis/tensor.hpp>

#include "host/host.hpp"

namespace trellis::detail {
namespace {

constexpr uint32_t kDevices = 1;  // the CPU

trl_status device_name(trl_call* c, uint8_t device, trl_str* out) noexcept {
  if (device == TRL_CPU) {
    *out = TRL_STR("cpu");
    return TRL_OK;
  }
  *out = {nullptr, 0};
  return guard_host(c, [&] {
    return record(c, TRL_E_INVALID,
                  "[trl.devices/1] no device " + std::to_string(device) + " (has 0: cpu)");
  });
}

trl_status name_of_dtype(trl_call* c, uint16_t dtype, trl_str* out) noexcept {
  *out = {nullptr, 0};
  return guard_host(c, [&] {
    if (dtype < TRL_F32 || dtype > TRL_BOOL)
      return record(c, TRL_E_DTYPE, "[trl.devices/1] no element type " + std::to_string(dtype));
    const std::string_view name = dtype_name(static_cast<DType>(dtype));
    *out = {name.data(), name.size()};
    return trl_status{TRL_OK};
  });
}

void* queue(trl_call*) noexcept { return nullptr; }

}  // namespace

const trl_devices_api kDevicesApi = {sizeof(trl_devices_api), kDevices, device_name, name_of_dtype,
                                     queue};

}  // namespace trellis::detail
