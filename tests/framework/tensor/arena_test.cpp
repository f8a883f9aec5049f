// SPDX-License-Identifier: Apache-2.0
#include "tensor/arena.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <trellis/error.hpp>

using trellis::Error;
using trellis::ErrorKind;
using trellis::detail::Arena;

namespace {
constexpr size_t kMiB = size_t{1} << 20;
}

TEST_CASE("arena: nothing is reserved before the first request") {
  Arena arena;
  CHECK(arena.reserved() == 0);
  CHECK(arena.used() == 0);
  CHECK(arena.allocate(0) != nullptr);
  CHECK(arena.reserved() == kMiB);
}

TEST_CASE("arena: memory is aligned and does not overlap") {
  Arena arena;
  char* last = static_cast<char*>(arena.allocate(1, 1));
  for (size_t alignment = 1; alignment <= 64; alignment *= 2) {
    char* p = static_cast<char*>(arena.allocate(3, alignment));
    CHECK(reinterpret_cast<uintptr_t>(p) % alignment == 0);
    CHECK(p > last);
    last = p + 2;
  }
  CHECK(reinterpret_cast<uintptr_t>(arena.array<double>(3)) % 16 == 0);
}

TEST_CASE("arena: growing moves nothing and doubles the reserve") {
  Arena arena;
  char* first = static_cast<char*>(arena.allocate(kMiB / 2));
  std::memset(first, 'x', kMiB / 2);
  size_t reserved = arena.reserved();
  for (int i = 0; i < 40; ++i) {
    std::memset(arena.allocate(kMiB), i, kMiB);
    if (arena.reserved() != reserved) {
      CHECK(arena.reserved() >= 2 * reserved);
      reserved = arena.reserved();
    }
  }
  for (size_t i = 0; i < kMiB / 2; ++i) REQUIRE(first[i] == 'x');
  CHECK(arena.used() == 40 * kMiB + kMiB / 2);
}

TEST_CASE("arena: a request larger than all before gets its own chunk") {
  Arena arena;
  arena.allocate(10);
  char* p = static_cast<char*>(arena.allocate(100 * kMiB));
  p[0] = p[100 * kMiB - 1] = 1;
  CHECK(arena.reserved() >= 101 * kMiB);
  CHECK(arena.reserved() < 105 * kMiB);
}

TEST_CASE("arena: rewinding keeps memory and hands the same out again") {
  Arena arena;
  void* first = arena.allocate(100);
  const Arena::Mark mark = arena.mark();
  const size_t used = arena.used();
  void* second = arena.allocate(100);
  for (int i = 0; i < 10; ++i) arena.allocate(kMiB);
  const size_t reserved = arena.reserved();
  for (int round = 0; round < 1000; ++round) {
    arena.rewind(mark);
    CHECK(arena.used() == used);
    CHECK(arena.allocate(100) == second);
    for (int i = 0; i < 10; ++i) arena.allocate(kMiB);
    REQUIRE(arena.reserved() == reserved);
  }
  CHECK(first != second);
}

TEST_CASE("arena: rewinding a single chunk to its start hands the same memory out again") {
  Arena arena;
  void* first = arena.allocate(100);
  arena.rewind();
  CHECK(arena.used() == 0);
  CHECK(arena.allocate(100) == first);
}

TEST_CASE("arena: chunks become one when all of it is free, and stay one") {
  Arena arena;
  char* old = nullptr;
  for (int i = 0; i < 10; ++i) old = static_cast<char*>(arena.allocate(kMiB));
  old[0] = 'x';
  const size_t reserved = arena.reserved();
  arena.rewind();
  CHECK(arena.reserved() == 0);
  CHECK(old[0] == 0);  // still mapped, without pages
  char* first = static_cast<char*>(arena.allocate(kMiB));
  for (int i = 1; i < 10; ++i) CHECK(arena.allocate(kMiB) == first + static_cast<size_t>(i) * kMiB);
  CHECK(arena.reserved() == reserved);
  arena.rewind();
  CHECK(arena.allocate(kMiB) == first);
}

TEST_CASE("arena: a chunk passed over once is used after the next rewind") {
  Arena arena;
  arena.allocate(10);
  const Arena::Mark mark = arena.mark();
  void* small = arena.allocate(100);
  void* large = arena.allocate(5 * kMiB);
  arena.rewind(mark);
  CHECK(arena.allocate(5 * kMiB) == large);
  arena.rewind(mark);
  CHECK(arena.allocate(100) == small);
}

TEST_CASE("arena: shrink returns what holds nothing") {
  Arena arena;
  char* kept = static_cast<char*>(arena.allocate(100));
  kept[99] = 7;
  arena.allocate(50 * kMiB);
  const Arena::Mark mark{0, 128};
  arena.rewind(mark);
  arena.shrink();
  CHECK(arena.reserved() == kMiB);
  CHECK(kept[99] == 7);
  CHECK(arena.allocate(100) == kept + 128);
  arena.rewind();
  arena.shrink();
  CHECK(arena.reserved() == 0);
  CHECK(arena.allocate(1) != nullptr);
}

TEST_CASE("arena: a request that cannot be met is an error and changes nothing") {
  Arena arena;
  void* first = arena.allocate(100);
  const size_t used = arena.used();
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX - 4095, size_t{1} << 62, size_t{1} << 50}) {
    try {
      arena.allocate(bytes);
      FAIL("no error");
    } catch (const Error& e) {
      CHECK(e.kind() == ErrorKind::memory);
      const std::string text = e.what();
      CHECK(text.find("[memory] cannot reserve " + std::to_string(bytes) +
                      " bytes: 1048576 bytes are reserved here already, the machine has ") == 0);
    }
  }
  CHECK_THROWS_AS(arena.array<double>(SIZE_MAX / 4), Error);
  CHECK(arena.used() == used);
  CHECK(arena.allocate(28, 4) == static_cast<char*>(first) + 100);
}
