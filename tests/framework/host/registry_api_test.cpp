// SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"

using namespace trellis;
using namespace trellis::detail;
using namespace trellis::test;

TEST_CASE("registry_api: operators are resolved in init, with the keys they will be given") {
  HostCall c(Phase::init);
  trl_op_handle handle = 0;
  CHECK(kRegistryApi.resolve(c, str("test.square"), nullptr, 0, &handle) == TRL_OK);
  CHECK(c.runtime.get().core().loader->handles().find(handle)->op->id == "test.square");
  CHECK(c.runtime.get().core().loader->handles().find(handle)->owner == "caller");
  const trl_str keys[] = {str("start")};
  trl_op_handle other = 0;
  CHECK(kRegistryApi.resolve(c, str("test.part"), keys, 1, &other) == TRL_OK);
  CHECK(other != handle);
}

TEST_CASE("registry_api: what cannot be resolved leaves no handle and a text") {
  HostCall c(Phase::init);
  trl_op_handle handle = 9;
  CHECK(kRegistryApi.resolve(c, str("test.nothing"), nullptr, 0, &handle) == TRL_E_INVALID);
  CHECK(handle == 0);
  CHECK(c.text(TRL_E_INVALID).find("'test.nothing'") != std::string::npos);
  const trl_str keys[] = {str("stop")};
  CHECK(kRegistryApi.resolve(c, str("test.part"), keys, 1, &handle) == TRL_E_INVALID);
  CHECK(c.text(TRL_E_INVALID).find("[test.part] no attribute 'stop'") == 0);
  CHECK(kRegistryApi.resolve(c, str("test.part"), nullptr, 3, &handle) == TRL_E_INVALID);
  CHECK(c.text(TRL_E_INVALID) ==
        "[trl.registry/1] resolve with 3 keys (at most 256, at an address)");
  c.call.begin(Phase::exec, nullptr);
  CHECK(kRegistryApi.resolve(c, str("test.square"), nullptr, 0, &handle) == TRL_E_INVALID);
  CHECK(c.text(TRL_E_INVALID) == "[host] resolve is not allowed in forward and backward");
}
