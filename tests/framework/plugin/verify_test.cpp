// SPDX-License-Identifier: Apache-2.0
//
// The refusals themselves are in loader_test.cpp, where nothing of the plugin may run.
#include "plugin/verify.hpp"

#include <trellis/abi/plugin.h>

#include "plugin/cpu.hpp"
#include "support.hpp"

using namespace trellis::detail;
using namespace trellis::test;

TEST_CASE(
    "verify: the highest level that the machine runs is chosen, for this target and the CPU") {
  Manifest m;
  m.file = "/p/a.trellis.toml";
  const std::string target(machine_target());
  m.libraries = {{target, "cpu", "x86-64-v2", "a.so"},
                 {target, "cpu", "x86-64-v4", "a.v4.so"},
                 {target, "cpu", "x86-64-v3", "a.v3.so"},
                 {target, "cuda12", "", "a.cuda12.so"},
                 {"other-linux-gnu", "cpu", "x86-64-v4", "a.other.so"}};
  CHECK(choose_library(m, 2).path == "a.so");
  CHECK(choose_library(m, 3).path == "a.v3.so");
  CHECK(choose_library(m, 4).path == "a.v4.so");
  CHECK(error_of([&] { choose_library(m, 0); }) ==
        "[plugin] cannot load '/p/a.trellis.toml': no library for " + target + " cpu  (has " +
            target + " cpu x86-64-v2, " + target + " cpu x86-64-v4, " + target +
            " cpu x86-64-v3, " + target + " cuda12, other-linux-gnu cpu x86-64-v4)");
  m.libraries.push_back({target, "cpu", "", "a.any.so"});
  CHECK(choose_library(m, 0).path == "a.any.so");
  CHECK(choose_library(m, 2).path == "a.so");
}

TEST_CASE("verify: versions that do not fit name both sides and the way out") {
  CHECK(abi_mismatch(TRL_ABI_MAJOR, TRL_ABI_MINOR).empty());
  CHECK(abi_mismatch(0, 2) ==
        "needs host ABI 0.2, this host has 0.1 (upgrade trellis, or rebuild the plugin with "
        "TRL_TARGET_MINOR=1)");
  CHECK(abi_mismatch(0, 0) ==
        "needs host ABI 0.0, this host has 0.1 (rebuild the plugin with this host's SDK: drafts "
        "fit exactly or not at all)");
  CHECK(abi_mismatch(1, 0) ==
        "needs host ABI 1.0, this host has 0.1 (rebuild the plugin with this host's SDK)");
}

TEST_CASE("verify: a right plugin passes, and its file stays open") {
  const TempFolder folder;
  const Manifest m = read_manifest(install(folder.path(), named("good")));
  const VerifiedLibrary v = verify(m, Trace(""));
  CHECK(v.path == folder / "good.so");
  CHECK(v.file.fd() >= 0);
  CHECK(v.elf.note->id == "good");
}
