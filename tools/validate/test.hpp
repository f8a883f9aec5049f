// SPDX-License-Identifier: Apache-2.0
//
// What a test of the validator is. Each *_tests.cpp has one function that returns its tests; they
// are listed in all_tests() (tests.cpp). A test runs once for each subject of its kind and fails by
// throwing: the first thing that is wrong ends it, so tests try the smallest cases first.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <trellis/plugin.hpp>
#include <trellis/runtime.hpp>
#include <vector>

namespace trellis::validate {

enum class Kind { plugin, op, builder, softmax, initializer, trainer, linalg };
std::string_view kind_name(Kind kind);

// What is tested: one thing that the plugin provides, or the plugin itself (id: the plugin's).
struct Subject {
  Kind kind = Kind::plugin;
  std::string id;
};

// Ends a test: the contract is broken, or cannot be tested here.
struct Failure {
  std::string text;
};
struct Skip {
  std::string reason;
};

class BenchHost;
class Session;

// What a test is given. One for each test and subject; the plugin stays open between subjects.
class Context {
 public:
  Context(Session& session, std::string_view test, const Subject& subject);

  // Static facts; nothing of the plugin has run for them.
  const PluginInfo& info() const;
  // The library opened by an instrumented host: its tables, and calls into it. Made on first use.
  BenchHost& bench();
  // A real runtime with the plugin and all shipped ones. Made on first use.
  const Runtime& runtime();
  RuntimeOptions runtime_options() const;  // to make another one

  // From the run's seed, the test's and the subject's name.
  uint64_t seed() const { return seed_; }

  // "core.tanh({5}) f64: element 3 is 0.1 (needed 0.2)".
  [[noreturn]] void fail(std::string fact);
  [[noreturn]] void skip(std::string reason);
  // A figure that is shown with a passed test: "12 ns a call".
  void note(std::string figure);
  // What is being tried, for the report of a crash or a hang: "core.tanh({5}) f64, forward".
  void at(std::string_view what);

  const std::vector<std::string>& notes() const { return notes_; }
  uint64_t tried() const { return tried_; }  // how often at() was called

 private:
  Session& session_;
  uint64_t seed_;
  uint64_t tried_ = 0;
  std::vector<std::string> notes_;
};

// Several tests may have one name and different kinds.
struct Test {
  std::string_view name;  // "gradient.difference"
  int level;              // 1 to 10
  Kind kind;
  std::string_view what;  // one line: the contract that it checks
  void (*run)(Context&, const Subject&);
};
// In order of level.
const std::vector<Test>& all_tests();

// What a child process owns: the plugin, opened when a test asks for it.
class Session {
 public:
  Session(PluginInfo plugin, RuntimeOptions options, uint64_t run_seed);
  ~Session();

  const PluginInfo plugin;
  const RuntimeOptions options;
  const uint64_t run_seed;
  char* crumb = nullptr;  // shared with the parent; kCrumbSize bytes
  static constexpr size_t kCrumbSize = 1024;

  BenchHost& bench();
  const Runtime& runtime();
  // Everything the library provides, the plugin first.
  std::vector<Subject> subjects();

 private:
  std::unique_ptr<BenchHost> bench_;
  std::unique_ptr<Runtime> runtime_;
};

}  // namespace trellis::validate
