// SPDX-License-Identifier: Apache-2.0
//
// What a validation prints: text for people, JSON and JUnit for machines.
#pragma once

#include <string>

#include "json.hpp"
#include "validate/runner.hpp"

namespace trellis::validate {

struct Heading {
  std::string plugin, version, given;  // given: what the user typed
};

// One block a subject; every failure with how to see it again, every skip with its reason; last
// line: "612 passed, 1 failed, 5 skipped in 3.2 s".
std::string text_report(const Heading& heading, const Selection& selection, const Report& report,
                        bool quiet);
// An array with one object.
tools::Json json_report(const Heading& heading, const Selection& selection, const Report& report);
// A <testsuites> with one suite; a case is named by its test, its class is the subject.
std::string junit_report(const Heading& heading, const Selection& selection, const Report& report);

// "trellis plugin validate acme --test gradient.difference --op acme.square --seed 1".
std::string reproduce(const Heading& heading, const Selection& selection, const Outcome& outcome);

}  // namespace trellis::validate
