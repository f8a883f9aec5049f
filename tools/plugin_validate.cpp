// SPDX-License-Identifier: Apache-2.0
//
// trellis plugin validate: runs a plugin's code to find out whether it keeps its contracts.

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "command.hpp"
#include "json.hpp"
#include "progress.hpp"
#include "table.hpp"
#include "validate/report.hpp"
#include "validate/runner.hpp"
#include "validate/test.hpp"

namespace trellis::tools {
namespace {

using namespace trellis::validate;

struct Options {
  std::string what;
  Selection selection;
  bool json = false, list = false;
  std::string junit;
  std::string child;  // hidden: run one test and report on file 3
  size_t child_from = 0;
};

// The plugin itself and all shipped ones, as somebody who uses it has them.
RuntimeOptions options_for(const Global& global, const PluginInfo& plugin) {
  RuntimeOptions o = global.runtime;
  o.plugins_file.clear();
  o.no_plugins = false;
  o.plugins = {(plugin.manifest.empty() ? plugin.library : plugin.manifest).string()};
  for (const PluginInfo& p : available_plugins(global.runtime))
    if (p.state == "shipped" && p.id != plugin.id) o.plugins.push_back(p.id);
  // Its warnings are findings of the static check; here they would be printed by every test.
  o.log = [](int, std::string_view) {};
  return o;
}

int print_tests(bool json) {
  Json array = Json::array();
  std::vector<std::vector<std::string>> rows = {{"LEVEL", "TEST", "OF", "CONTRACT"}};
  for (const Test& t : all_tests()) {
    array.push_back(
        {{"level", t.level}, {"test", t.name}, {"kind", kind_name(t.kind)}, {"contract", t.what}});
    rows.push_back({std::to_string(t.level), std::string(t.name), std::string(kind_name(t.kind)),
                    std::string(t.what)});
  }
  if (json)
    print_json(array);
  else
    fmt::print("{}", format_table(rows));
  return kOk;
}

void check_selection(const Selection& s) {
  int first = 11;  // the lowest level of what fits
  for (const Test& t : all_tests())
    if (::fnmatch(s.test.c_str(), std::string(t.name).c_str(), 0) == 0)
      first = std::min(first, t.level);
  if (first == 11)
    fail(ErrorKind::argument, fmt::format("[validate] no test is named '{}' (see --list)", s.test));
  if (first > s.level)
    fail(ErrorKind::argument,
         fmt::format("[validate] '{}' is of level {}: --level {} leaves it out", s.test, first,
                     s.level));
}

// What a number may look like, where the conversion would take more.
const CLI::Validator kWhole(
    [](std::string& text) {
      const bool digits = !text.empty() && text.size() < 20 &&
                          text.find_first_not_of("0123456789") == std::string::npos;
      return digits ? std::string() : fmt::format("{} is no whole number from 0", text);
    },
    "");
const CLI::Validator kFinite(
    [](std::string& text) {
      double value = 0;
      const bool fine = CLI::detail::lexical_cast(text, value) && std::isfinite(value);
      return fine ? std::string() : fmt::format("{} is no finite number", text);
    },
    "");

// What kept the loader from taking it, where that says more than any test could: another ABI, a
// file that others may write. Nothing of the plugin runs.
void refuse_unfit(const PluginInfo& plugin, const RuntimeOptions& options) {
  if (plugin.state != "broken") return;
  try {
    RuntimeOptions alone = options;
    alone.plugins.resize(1);
    const Runtime runtime(alone);
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::abi || e.kind() == ErrorKind::trust) throw;
  }
}

int validate_plugin(const Global& global, Options& o) {
  if (o.list) return print_tests(o.json);
  if (o.what.empty())
    fail(ErrorKind::argument, "[validate] no plugin given (needs an id or a file)");
  check_selection(o.selection);
  const PluginInfo plugin = inspect_plugin(o.what, global.runtime);
  if (plugin.library.empty())
    fail(ErrorKind::plugin,
         fmt::format("[validate] '{}' cannot be run: {}", o.what, plugin.reason));
  const RuntimeOptions options = options_for(global, plugin);
  refuse_unfit(plugin, options);
  Session session(plugin, options, o.selection.seed);
  if (!o.child.empty()) return run_child(session, o.selection, o.child, o.child_from);

  Progress progress("validate", 100, global.quiet);
  o.selection.command = {"trellis"};
  if (global.runtime.no_plugins) o.selection.command.push_back("--no-plugins");
  for (const std::string& word :
       {std::string("plugin"), std::string("validate"), o.what,
        fmt::format("--seed={}", o.selection.seed), "--op=" + o.selection.op})
    o.selection.command.push_back(word);
  const Report report =
      run_tests(session, o.selection, [&](size_t done, size_t all, const std::string& what) {
        progress.advance(all ? done * 100 / all : 0, what);
      });
  if (o.selection.op != "*" && report.subjects.size() > 1) {
    bool any = false;
    for (const Subject& s : report.subjects)
      any |= ::fnmatch(o.selection.op.c_str(), s.id.c_str(), 0) == 0;
    if (!any)
      fail(ErrorKind::argument,
           fmt::format("[validate] {} provides nothing named '{}'", plugin.id, o.selection.op));
  }
  const Heading heading{plugin.id, plugin.version, o.what};
  if (!o.junit.empty()) {
    std::ofstream file(o.junit);
    file << junit_report(heading, o.selection, report);
    file.close();
    if (!file) fail(ErrorKind::io, fmt::format("[validate] cannot write '{}'", o.junit));
  }
  if (o.json)
    print_json(json_report(heading, o.selection, report));
  else
    fmt::print("{}", text_report(heading, o.selection, report, global.quiet));
  if (report.has_fatal()) return kCrash;
  return report.count(State::failed) ? kFindings : kOk;
}

}  // namespace

void add_plugin_validate(CLI::App& parent, const Global& global, Action& action) {
  CLI::App& command = *parent.add_subcommand(
      "validate",
      "run a plugin and check that it keeps every contract; exit code 1 when it does not, 5 when "
      "it crashed, hung or ended the process");
  auto o = std::make_shared<Options>();
  Selection& s = o->selection;
  command.add_option("plugin", o->what, "an id, or the path of a manifest or library")
      ->option_text("ID|FILE");
  const CLI::Option* const level =
      command
          .add_option("--level", s.level, "tests up to this level; 8 before publishing, 10 is all")
          ->check(CLI::Range(1, 10))
          ->capture_default_str();
  command.add_option("--seed", s.seed, "of everything that is drawn")
      ->check(kWhole)
      ->capture_default_str();
  command.add_option("--op", s.op, "only what has an id like this (operators, builders, ..)")
      ->option_text("GLOB");
  command.add_option("--test", s.test, "only tests named like this, of any level; see --list")
      ->option_text("GLOB");
  command.add_option("--time-limit", s.time_limit, "seconds for one test of one thing")
      ->check(kFinite)
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  command.add_option("-j,--jobs", s.jobs, "tests that run at the same time")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command.add_flag("--in-process", s.in_process,
                   "everything in this process, for debuggers: the first crash ends it");
  command.add_flag("--json", o->json, "an array with one object");
  command.add_option("--junit", o->junit, "write a JUnit report, too")->option_text("FILE");
  command.add_flag("--list", o->list, "the tests with their levels and contracts; runs nothing");
  command.add_option("--child", o->child)->group("");
  command.add_option("--child-from", o->child_from)->group("");
  command.callback([&global, &action, o, level] {
    if (o->selection.test != "*" && level->count() == 0) o->selection.level = 10;
    action = [&global, o] { return validate_plugin(global, *o); };
  });
}

}  // namespace trellis::tools
