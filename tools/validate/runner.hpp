// SPDX-License-Identifier: Apache-2.0
//
// Runs tests: each in a process of its own, over all its subjects. A subject during which the
// process crashes, hangs or ends is a failure; the test goes on behind it in a new process.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "validate/test.hpp"

namespace trellis::validate {

enum class State { passed, failed, skipped };

struct Outcome {
  std::string test;
  int level = 0;
  Subject subject;
  State state = State::passed;
  std::string text;                // of a failure, or why it was skipped
  std::vector<std::string> notes;  // figures
  double seconds = 0;
  bool is_fatal = false;  // crashed, hung or ended the process
  std::string output;     // the end of what the plugin printed, where it failed
};

struct Selection {
  int level = 6;
  uint64_t seed = 1;
  std::string op = "*", test = "*";  // globs: id of a subject, name of a test
  double time_limit = 45;            // seconds, for each subject
  unsigned jobs = 1;
  bool in_process = false;
  // The command that runs one test: the program's own, with the options that it was given.
  std::vector<std::string> command;
};

struct Report {
  std::vector<Subject> subjects;  // those selected, in the order of the tables
  std::vector<Outcome> outcomes;
  double seconds = 0;
  size_t count(State state) const;
  bool has_fatal() const;
};

// `progress` is called with what is running, now and then.
Report run_tests(
    Session& session, const Selection& selection,
    const std::function<void(size_t done, size_t all, const std::string& what)>& progress);

// The other side: runs the tests of one name over the selected subjects from number `from` on and
// says so on file 3; the name ":subjects" lists the subjects. Returns an exit code.
int run_child(Session& session, const Selection& selection, const std::string& test, size_t from);

}  // namespace trellis::validate
