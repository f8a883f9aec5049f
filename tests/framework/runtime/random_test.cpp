// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <set>
#include <trellis/error.hpp>
#include <trellis/random.hpp>
#include <vector>

using namespace trellis;

TEST_CASE("philox: the known answers of its authors") {
  struct Case {
    uint32_t counter[4], key[2], expected[4];
  };
  const Case cases[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const Case& c : cases) {
    uint32_t out[4];
    philox4x32_10(c.counter, c.key, out);
    for (int i = 0; i < 4; ++i) CHECK(out[i] == c.expected[i]);
  }
}

TEST_CASE("random engine: numbers are those of the blocks, in order") {
  const uint64_t seed = 0x299f31d0a4093822, stream = 0x0370734413198a2e;
  RandomEngine r(seed, stream);
  const uint32_t key[2] = {0xa4093822, 0x299f31d0};
  for (uint32_t block = 0; block < 3; ++block) {
    const uint32_t counter[4] = {block, 0, 0x13198a2e, 0x03707344};
    uint32_t expected[4];
    philox4x32_10(counter, key, expected);
    for (const uint32_t e : expected) CHECK(r.next_u32() == e);
  }
  CHECK(r.position() == 12);
}

TEST_CASE("random engine: a restored position continues the same numbers") {
  RandomEngine r(7);
  for (int used = 0; used < 9; ++used) {
    const uint64_t position = r.position();
    RandomEngine copy(7);
    copy.restore(position);
    RandomEngine original = r;
    for (int i = 0; i < 6; ++i) CHECK(copy.normal() == original.normal());
    r.next_u32();
  }
}

TEST_CASE("random engine: seeds and streams give different numbers") {
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 10; ++seed)
    for (uint64_t stream = 0; stream < 10; ++stream)
      seen.insert(RandomEngine(seed, stream).next_u64());
  CHECK(seen.size() == 100);
}

TEST_CASE("random engine: uniform and normal have the right moments") {
  RandomEngine r(1);
  const int n = 200000;
  double sum = 0, squares = 0, least = 1, most = 0;
  for (int i = 0; i < n; ++i) {
    const double u = r.uniform();
    least = std::fmin(least, u);
    most = std::fmax(most, u);
    sum += u;
    squares += u * u;
  }
  CHECK(least >= 0);
  CHECK(most < 1);
  CHECK(std::fabs(sum / n - 0.5) < 0.003);
  CHECK(std::fabs(squares / n - 1.0 / 3) < 0.003);
  double mean = 0, second = 0, fourth = 0;
  for (int i = 0; i < n; ++i) {
    const double z = r.normal();
    REQUIRE(std::isfinite(z));
    mean += z / n;
    second += z * z / n;
    fourth += z * z * z * z / n;
  }
  CHECK(std::fabs(mean) < 0.01);
  CHECK(std::fabs(second - 1) < 0.02);
  CHECK(std::fabs(fourth - 3) < 0.15);
}

TEST_CASE("random engine: below is even and stays below") {
  RandomEngine r(3);
  int counts[6] = {};
  for (int i = 0; i < 60000; ++i) {
    const uint64_t v = r.below(6);
    REQUIRE(v < 6);
    ++counts[v];
  }
  for (const int count : counts) CHECK(std::abs(count - 10000) < 500);
  CHECK(r.below(1) == 0);
  const uint64_t large = (uint64_t{1} << 63) + 1;
  for (int i = 0; i < 100; ++i) CHECK(r.below(large) < large);
  CHECK_THROWS_WITH_AS(r.below(0), "[RandomEngine::below] empty range: n is 0 (needed at least 1)",
                       Error);
}

TEST_CASE("mix64: order matters and single bits spread") {
  CHECK(mix64(1, 2) != mix64(2, 1));
  CHECK(mix64(0, 0) != 0);
  for (int bit = 0; bit < 64; ++bit) {
    const int flipped = __builtin_popcountll(mix64(5, 9) ^ mix64(5, 9 ^ (uint64_t{1} << bit)));
    CHECK(flipped > 10);
    CHECK(flipped < 54);
  }
}
