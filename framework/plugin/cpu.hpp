// SPDX-License-Identifier: Apache-2.0
//
// The CPU level of this machine, and names of levels.
#pragma once

#include <string>
#include <string_view>

namespace trellis::detail {

// 0: none named or known to be present, 2, 3, 4: x86-64-v2, -v3, -v4.
int cpu_level_from(std::string_view name);  // "x86-64-v3"; "": 0; unknown names: -1
std::string cpu_level_name(int level);      // "x86-64-v3"; 0: ""

// What the processor and the operating system offer.
int machine_cpu_level();

// The same, lowered by TRELLIS_CPU_LEVEL (v2, v3, v4, or the full name), for tests and benchmarks.
// Read once a process, so that one level is in use in it. Throws Error(argument) for other values.
int usable_cpu_level();

// The target of this build, as manifests write it.
std::string_view machine_target();

}  // namespace trellis::detail
