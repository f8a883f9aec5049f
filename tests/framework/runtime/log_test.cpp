// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core.hpp"

using namespace trellis::detail;

namespace {

// What f writes to the standard error stream.
template <class F>
std::string captured(F&& f) {
  std::fflush(stderr);
  std::FILE* file = std::tmpfile();
  const int saved = dup(2);
  dup2(fileno(file), 2);
  f();
  std::fflush(stderr);
  dup2(saved, 2);
  close(saved);
  std::string text(static_cast<size_t>(std::ftell(file)) + 4096, '\0');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

}  // namespace

TEST_CASE("log: a sink receives every message with its level") {
  RuntimeCore core;
  std::vector<std::pair<int, std::string>> seen;
  core.log_sink = [&](int level, std::string_view text) { seen.emplace_back(level, text); };
  const std::string text = captured([&] {
    core.log(0, "a");
    core.log(4, "b {}");
  });
  CHECK(text.empty());
  REQUIRE(seen.size() == 2);
  CHECK(seen[0] == std::pair<int, std::string>(0, "a"));
  CHECK(seen[1] == std::pair<int, std::string>(4, "b {}"));
}

TEST_CASE("log: without a sink warnings and errors go to stderr") {
  RuntimeCore core;
  CHECK(captured([&] { core.log(2, "hidden"); }).empty());
  CHECK(captured([&] { core.log(3, "old {} format"); }) == "trellis: warning: old {} format\n");
  CHECK(captured([&] { core.log(4, "broken"); }) == "trellis: error: broken\n");
  CHECK(captured([&] { core.log(99, "far"); }) == "trellis: error: far\n");
  core.log_level = 1;
  CHECK(captured([&] { core.log(1, "shown"); }) == "trellis: debug: shown\n");
  CHECK(captured([&] { core.log(0, "hidden"); }).empty());
}

TEST_CASE("log: a sink that throws does not disturb the caller") {
  RuntimeCore core;
  core.log_sink = [](int, std::string_view) { throw std::runtime_error("full"); };
  CHECK_NOTHROW(core.log(4, "x"));
  CHECK_NOTHROW(core.log(4, "the lock is free again"));
}
