// SPDX-License-Identifier: Apache-2.0
//
// trellis plugin check: what can be said against a plugin without running any of it.

#include <fmt/format.h>

#include "command.hpp"
#include "json.hpp"

namespace trellis::tools {
namespace {

const char* severity_name(Severity s) { return s == Severity::error ? "error" : "warning"; }

std::string plural(size_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

Json to_json(const PluginCheck& check) {
  Json findings = Json::array(), libraries = Json::array();
  for (const auto& path : check.libraries) libraries.push_back(path.string());
  for (const CheckFinding& f : check.findings)
    findings.push_back(
        {{"severity", severity_name(f.severity)}, {"check", f.name}, {"fact", f.fact}});
  return {{"id", check.id},
          {"version", check.version},
          {"manifest", check.manifest.string()},
          {"libraries", libraries},
          {"errors", check.errors()},
          {"warnings", check.findings.size() - check.errors()},
          {"findings", findings}};
}

void print_check(const PluginCheck& check, bool quiet) {
  for (const CheckFinding& f : check.findings)
    fmt::print("{} {}: {}\n", severity_name(f.severity), f.name, f.fact);
  if (quiet) return;
  const size_t errors = check.errors();
  fmt::print("{} {}: {}, {}, {} read\n", check.id.empty() ? "no plugin" : check.id,
             check.version.empty() ? "?" : check.version, plural(errors, "error"),
             plural(check.findings.size() - errors, "warning"),
             check.libraries.size() == 1 ? "1 library"
                                         : fmt::format("{} libraries", check.libraries.size()));
}

int check(const Global& global, const std::string& what, bool json) {
  const PluginCheck result = check_plugin(what, global.runtime);
  if (json)
    print_json(Json::array({to_json(result)}));
  else
    print_check(result, global.quiet);
  return result.errors() > 0 ? kFindings : kOk;
}

}  // namespace

void add_plugin_check(CLI::App& parent, const Global& global, Action& action) {
  struct Options {
    std::string what;
    bool json = false;
  };
  CLI::App& command = *parent.add_subcommand(
      "check",
      "manifest, note and linking of all libraries of a plugin; runs no plugin; exit code 1 when "
      "something is wrong, 0 when there are warnings at most");
  auto options = std::make_shared<Options>();
  command.add_option("plugin", options->what, "an id, or the path of a manifest or library")
      ->option_text("ID|FILE")
      ->required();
  command.add_flag("--json", options->json, "an array with one object");
  command.callback([&global, &action, options] {
    action = [&global, options] { return check(global, options->what, options->json); };
  });
}

}  // namespace trellis::tools
