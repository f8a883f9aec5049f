// SPDX-License-Identifier: Apache-2.0
#include "validate/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "table.hpp"

namespace trellis::validate {
namespace {

// A word of a command line as a shell reads it.
std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/@%+=:,";
  if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) return word;
  std::string to = "'";
  for (const char c : word) to += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return to + "'";
}

std::string indented(const std::string& text, const std::string& by) {
  std::string to;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    to += by + text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return to;
}

// Text as XML: markup escaped, what XML cannot hold replaced.
std::string xml(const std::string& text) {
  std::string to;
  for (const char c : text) {
    switch (c) {
      case '&':
        to += "&amp;";
        break;
      case '<':
        to += "&lt;";
        break;
      case '>':
        to += "&gt;";
        break;
      case '"':
        to += "&quot;";
        break;
      case '\n':
        to += "&#10;";
        break;
      default:
        to += static_cast<unsigned char>(c) < 0x20 && c != '\t' ? '?' : c;
    }
  }
  return to;
}

const char* word_of(State state) {
  switch (state) {
    case State::passed:
      return "passed";
    case State::failed:
      return "failed";
    case State::skipped:
      return "skipped";
  }
  return "";
}

std::vector<const Outcome*> of_subject(const Report& report, const Subject& subject) {
  std::vector<const Outcome*> all;
  for (const Outcome& o : report.outcomes)
    if (o.subject.kind == subject.kind && o.subject.id == subject.id) all.push_back(&o);
  return all;
}

std::string counts_of(size_t passed, size_t failed, size_t skipped) {
  std::string text = fmt::format("{} passed", passed);
  if (failed) text += fmt::format(", {} failed", failed);
  if (skipped) text += fmt::format(", {} skipped", skipped);
  return text;
}

}  // namespace

std::string reproduce(const Heading& heading, const Selection& selection, const Outcome& o) {
  std::string line = "trellis plugin validate " + quoted(heading.given) + " --test " + o.test;
  if (o.level > Selection{}.level) line += fmt::format(" --level {}", o.level);
  if (o.subject.kind != Kind::plugin) line += " --op " + quoted(o.subject.id);
  return line + fmt::format(" --seed {}", selection.seed);
}

std::string text_report(const Heading& heading, const Selection& selection, const Report& report,
                        bool quiet) {
  std::string text;
  if (!quiet)
    text += fmt::format("{} {}: level {}, seed {}\n", heading.plugin, heading.version,
                        selection.level, selection.seed);
  size_t width = 0;
  for (const Subject& s : report.subjects) width = std::max(width, s.id.size());
  for (const Subject& subject : report.subjects) {
    const auto outcomes = of_subject(report, subject);
    if (outcomes.empty()) continue;
    std::map<State, size_t> n;
    std::vector<std::pair<std::string, std::string>> skips;  // reason, tests
    for (const Outcome* o : outcomes) {
      ++n[o->state];
      if (o->state != State::skipped) continue;
      const auto known =
          std::find_if(skips.begin(), skips.end(), [&](auto& s) { return s.first == o->text; });
      if (known != skips.end())
        known->second += ", " + o->test;
      else
        skips.emplace_back(o->text, o->test);
    }
    if (quiet && n[State::failed] == 0) continue;
    text += fmt::format("{:<{}}  {:<15} {}\n", subject.id, width, kind_name(subject.kind),
                        counts_of(n[State::passed], n[State::failed], n[State::skipped]));
    for (const Outcome* o : outcomes) {
      if (o->state == State::failed) {
        text += fmt::format("  FAILED {}: {}\n", o->test, o->text);
        if (!o->output.empty()) text += "    it printed:\n" + indented(o->output, "      ");
        text += fmt::format("    reproduce: {}\n", reproduce(heading, selection, *o));
      }
      if (quiet) continue;
      for (const std::string& note : o->notes) text += fmt::format("  {}: {}\n", o->test, note);
    }
    if (quiet) continue;
    for (const auto& [reason, tests] : skips)
      text += fmt::format("  skipped {}: {}\n", tests, reason);
  }
  text += fmt::format("{} passed, {} failed, {} skipped in {:.1f} s\n", report.count(State::passed),
                      report.count(State::failed), report.count(State::skipped), report.seconds);
  return text;
}

tools::Json json_report(const Heading& heading, const Selection& selection, const Report& report) {
  tools::Json tests = tools::Json::array();
  for (const Outcome& o : report.outcomes) {
    tools::Json t = {
        {"test", o.test},          {"level", o.level},          {"kind", kind_name(o.subject.kind)},
        {"subject", o.subject.id}, {"state", word_of(o.state)}, {"text", o.text},
        {"notes", o.notes},        {"seconds", o.seconds}};
    if (o.state == State::failed) {
      t["crashed"] = o.is_fatal;
      t["output"] = o.output;
      t["reproduce"] = reproduce(heading, selection, o);
    }
    tests.push_back(std::move(t));
  }
  return tools::Json::array({{{"plugin", heading.plugin},
                              {"version", heading.version},
                              {"level", selection.level},
                              {"seed", selection.seed},
                              {"passed", report.count(State::passed)},
                              {"failed", report.count(State::failed)},
                              {"skipped", report.count(State::skipped)},
                              {"seconds", report.seconds},
                              {"tests", tests}}});
}

std::string junit_report(const Heading& heading, const Selection& selection, const Report& report) {
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n";
  text += fmt::format(
      "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" time=\"{:.3f}\">\n",
      xml(heading.plugin + " " + heading.version), report.outcomes.size(),
      report.count(State::failed), report.count(State::skipped), report.seconds);
  for (const Outcome& o : report.outcomes) {
    text += fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\"",
                        xml(o.subject.id), xml(o.test), o.seconds);
    if (o.state == State::passed) {
      text += "/>\n";
    } else if (o.state == State::skipped) {
      text += fmt::format("><skipped message=\"{}\"/></testcase>\n", xml(o.text));
    } else {
      text += fmt::format("><failure message=\"{}\">{}</failure>", xml(o.text),
                          xml(reproduce(heading, selection, o)));
      if (!o.output.empty()) text += fmt::format("<system-out>{}</system-out>", xml(o.output));
      text += "</testcase>\n";
    }
  }
  return text + "  </testsuite>\n</testsuites>\n";
}

}  // namespace trellis::validate
