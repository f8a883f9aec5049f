// SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"

using namespace trellis;
using namespace trellis::detail;
using namespace trellis::test;

TEST_CASE("devices_api: one device, the CPU, without a queue") {
  HostCall c(Phase::exec);
  trl_str name{};
  CHECK(kDevicesApi.n_devices == 1);
  CHECK(kDevicesApi.device_name(c, TRL_CPU, &name) == TRL_OK);
  CHECK(view_of(name) == "cpu");
  CHECK(kDevicesApi.queue(c) == nullptr);
  CHECK(kDevicesApi.device_name(c, 1, &name) == TRL_E_INVALID);
  CHECK(name.p == nullptr);
  CHECK(c.text(TRL_E_INVALID) == "[trl.devices/1] no device 1 (has 0: cpu)");
}

TEST_CASE("devices_api: names of element types") {
  HostCall c(Phase::init);
  trl_str name{};
  CHECK(kDevicesApi.dtype_name(c, TRL_F32, &name) == TRL_OK);
  CHECK(view_of(name) == "f32");
  CHECK(kDevicesApi.dtype_name(c, TRL_I64, &name) == TRL_OK);
  CHECK(view_of(name) == "i64");
  CHECK(kDevicesApi.dtype_name(c, 99, &name) == TRL_E_DTYPE);
  CHECK(c.text(TRL_E_DTYPE) == "[trl.devices/1] no element type 99");
}
