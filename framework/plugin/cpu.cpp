// SPDX-License-Identifier: Apache-2.0
#include "plugin/cpu.hpp"

#include <stdlib.h>
#include <trellis/abi/plugin.h>

#include <algorithm>
#include <cstdint>
#include <trellis/error.hpp>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace trellis::detail {
namespace {

constexpr std::string_view kPrefix = "x86-64-";

#if defined(__x86_64__)
constexpr uint32_t bit(int n) { return 1u << n; }

// Which register states the operating system saves.
uint32_t saved_states() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

// The definitions of the levels are those of the x86-64 psABI.
int detect() {
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
  const uint32_t basic = c;
  uint32_t extended = 0;
  if (__get_cpuid(0x80000001, &a, &b, &c, &d)) extended = c;
  uint32_t seven = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) seven = b;

  // SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; LAHF
  constexpr uint32_t kV2 = bit(0) | bit(9) | bit(13) | bit(19) | bit(20) | bit(23);
  if ((basic & kV2) != kV2 || !(extended & bit(0))) return 0;
  // FMA, MOVBE, OSXSAVE, AVX, F16C; LZCNT; BMI1, AVX2, BMI2
  constexpr uint32_t kV3 = bit(12) | bit(22) | bit(27) | bit(28) | bit(29);
  constexpr uint32_t kV3Seven = bit(3) | bit(5) | bit(8);
  if ((basic & kV3) != kV3 || !(extended & bit(5)) || (seven & kV3Seven) != kV3Seven) return 2;
  constexpr uint32_t kAvxStates = 0x6;
  if ((saved_states() & kAvxStates) != kAvxStates) return 2;
  // AVX-512 F, DQ, CD, BW, VL
  constexpr uint32_t kV4 = bit(16) | bit(17) | bit(28) | bit(30) | bit(31);
  constexpr uint32_t kAvx512States = 0xe6;
  if ((seven & kV4) != kV4 || (saved_states() & kAvx512States) != kAvx512States) return 3;
  return 4;
}
#else
int detect() { return 0; }
#endif

int usable() {
  const int present = machine_cpu_level();
  const char* const wish = ::secure_getenv("TRELLIS_CPU_LEVEL");
  if (!wish || !*wish) return present;
  std::string name = wish;
  if (!name.starts_with(kPrefix)) name.insert(0, kPrefix);
  const int level = cpu_level_from(name);
  if (level < 0)
    fail(ErrorKind::argument,
         "[plugin] TRELLIS_CPU_LEVEL is '" + std::string(wish) + "' (needs v2, v3 or v4)");
  return std::min(level, present);
}

}  // namespace

int cpu_level_from(std::string_view name) {
  if (name.empty()) return 0;
  if (name.size() != kPrefix.size() + 2 || !name.starts_with(kPrefix) ||
      name[kPrefix.size()] != 'v')
    return -1;
  const int level = name.back() - '0';
  return level >= 2 && level <= 4 ? level : -1;
}

std::string cpu_level_name(int level) {
  return level == 0 ? std::string() : std::string(kPrefix) + "v" + std::to_string(level);
}

int machine_cpu_level() {
  static const int level = detect();
  return level;
}

int usable_cpu_level() {
  static const int level = usable();
  return level;
}

std::string_view machine_target() { return TRL_TARGET; }

}  // namespace trellis::detail
