// SPDX-License-Identifier: Apache-2.0
#include <trellis/runtime.hpp>

#include "calls.hpp"

using namespace trellis;

TEST_CASE("runtime: a runtime without plugins has a seed and an empty registry") {
  RuntimeOptions options;
  options.no_plugins = true;
  options.seed = 42;
  Runtime runtime(options);
  CHECK(runtime.seed() == 42);
  runtime.set_seed(7);
  CHECK(runtime.seed() == 7);
  CHECK(runtime.registry().plugins().empty());
  CHECK(runtime.core().linalg != nullptr);
}

TEST_CASE("runtime: versions of product and interface") {
  CHECK(version() == TRELLIS_VERSION);
  CHECK(abi_version() == "0.1");
}

TEST_CASE("runtime: a plugin that cannot be had is an error of kind plugin") {
  RuntimeOptions options;
  options.plugins = {"no-such-plugin"};
  try {
    const Runtime runtime(options);
    FAIL("loaded");
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::plugin);
    CHECK(std::string(e.what()).find("[plugin] cannot load 'no-such-plugin': not found in ") == 0);
  }
}
