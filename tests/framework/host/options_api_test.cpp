// SPDX-License-Identifier: Apache-2.0
//
// Options that are set go through a whole process in plugin/loader_test.cpp.
#include "calls.hpp"

using namespace trellis;
using namespace trellis::detail;
using namespace trellis::test;

TEST_CASE("options_api: what is not set is null and no error") {
  HostCall c(Phase::init);
  trl_str value = str("before");
  CHECK(kOptionsApi.get(c, str("size"), &value) == TRL_OK);
  CHECK(value.p == nullptr);
}

TEST_CASE("options_api: options are read in init") {
  HostCall c(Phase::infer);
  trl_str value{};
  CHECK(kOptionsApi.get(c, str("size"), &value) == TRL_E_INVALID);
  CHECK(c.text(TRL_E_INVALID) == "[host] reading options is not allowed in infer");
}
