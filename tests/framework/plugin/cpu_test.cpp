// SPDX-License-Identifier: Apache-2.0
#include "plugin/cpu.hpp"

#include <trellis/abi/plugin.h>

#include "support.hpp"

using namespace trellis::detail;
using namespace trellis::test;

TEST_CASE("cpu: names of levels") {
  CHECK(cpu_level_from("") == 0);
  CHECK(cpu_level_from("x86-64-v2") == 2);
  CHECK(cpu_level_from("x86-64-v4") == 4);
  for (const char* bad : {"v3", "x86-64-v1", "x86-64-v5", "x86-64-v33", "x86-64", "armv8"})
    CHECK_MESSAGE(cpu_level_from(bad) == -1, bad);
  for (const int level : {0, 2, 3, 4}) CHECK(cpu_level_from(cpu_level_name(level)) == level);
}

TEST_CASE("cpu: this machine runs what this test was compiled for") {
  CHECK(machine_cpu_level() >= cpu_level_from(TRL_CPU_LEVEL));
  CHECK(machine_target() == TRL_TARGET);
#if defined(__x86_64__)
  CHECK((__builtin_cpu_supports("avx2") != 0) == (machine_cpu_level() >= 3));
  CHECK(machine_cpu_level() <= (__builtin_cpu_supports("avx512f") ? 4 : 3));
#endif
}

TEST_CASE("cpu: TRELLIS_CPU_LEVEL lowers the level and nothing else") {
  const TempFolder folder;
  const fs::path manifest = install(folder.path(), named("good"));
  const auto level = [&](const std::string& value) {
    return drive({"--plugin", manifest},
                 {{"TRELLIS_CPU_LEVEL", value}, {"TRELLIS_PLUGIN_DEBUG", "verify"}});
  };
  CHECK(level("v2").status == 0);
  CHECK(level("x86-64-v4").status == 0);
  const Outcome bad = level("fast");
  CHECK(bad.status == 1);
  CHECK(bad.says("error: [plugin] TRELLIS_CPU_LEVEL is 'fast' (needs v2, v3 or v4)"));
}
