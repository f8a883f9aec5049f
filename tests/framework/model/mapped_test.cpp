// SPDX-License-Identifier: Apache-2.0

#include "model/mapped.hpp"

#include <doctest/doctest.h>

#include <utility>

#include "framework/model/fake_plugin.hpp"

using trellis::detail::Mapped;

TEST_CASE("mapped: grows with its contents kept and the rest zero") {
  Mapped m(100);
  m.data()[99] = 7;
  m.resize(10'000'000);
  CHECK(m.size() == 10'000'000);
  CHECK(m.data()[99] == 7);
  CHECK(m.data()[9'999'999] == 0);
  m.resize(0);
  CHECK(m.data() == nullptr);
  m.resize(50);
  CHECK(m.data()[49] == 0);
}

TEST_CASE("mapped: moves without moving the memory") {
  Mapped m(100);
  const char* const at = m.data();
  Mapped other = std::move(m);
  CHECK(other.data() == at);
  CHECK(m.data() == nullptr);
  m = std::move(other);
  CHECK(m.data() == at);
}

TEST_CASE("mapped: too much memory is refused with the request and what is held") {
  Mapped m(4096);
  CHECK(fake::error_text(trellis::ErrorKind::memory, [&] { m.resize(size_t{1} << 62); }) ==
        "[model] out of memory: 4611686018427387904 bytes asked, 4096 held by this block");
  CHECK(m.size() == 4096);
  m.data()[4095] = 1;
}
