// SPDX-License-Identifier: Apache-2.0
//
// trellis plugin inspect: what manifest, note and library of one plugin say. Loads no plugin.

#include <fmt/format.h>

#include "command.hpp"
#include "json.hpp"
#include "table.hpp"

namespace trellis::tools {
namespace {

void print_plugin(const PluginInfo& p) {
  std::vector<std::vector<std::string>> rows = {
      {"state", p.reason.empty() ? p.state : fmt::format("{} ({})", p.state, p.reason)},
      {"summary", p.summary},
      {"license", p.license},
      {"authors", join(p.authors)},
      {"namespaces", join(p.namespaces)},
      {"requires", join(p.required)},
      {"host ABI", fmt::format("{} or newer, built with {}", p.abi, p.built_with)},
      {"target", fmt::format("{} {} {}", p.target, p.device, p.cpu)},
      {"manifest", p.manifest.string()},
      {"library", p.library.string()},
      {"all libraries", join(p.libraries)},
      {"links", join(p.needed)},
      {"C library", p.glibc.empty() ? "any" : "GLIBC_" + p.glibc},
      {"C++ library", p.glibcxx.empty() ? "none" : "GLIBCXX_" + p.glibcxx},
      {"operators", join(p.ops)},
      {"builders", join(p.builders)},
      {"softmax builders", join(p.softmaxes)},
      {"initializers", join(p.initializers)},
      {"trainers", join(p.trainers)},
      {"linalg", join(p.linalg)},
  };
  for (const std::string& warning : p.warnings) rows.push_back({"warning", warning});
  fmt::print("{} {}\n{}", p.id, p.version, format_table(rows, "  "));
}

int inspect(const Global& global, const std::string& what, bool json) {
  const PluginInfo plugin = inspect_plugin(what, global.runtime);
  if (json) {
    print_json(Json::array({to_json(plugin)}));
  } else {
    print_plugin(plugin);
  }
  return plugin.state == "broken" ? kFindings : kOk;
}

}  // namespace

void add_plugin_inspect(CLI::App& parent, const Global& global, Action& action) {
  struct Options {
    std::string what;
    bool json = false;
  };
  CLI::App& command = *parent.add_subcommand(
      "inspect", "one plugin in detail; runs no plugin; exit code 1 when it would be refused");
  auto options = std::make_shared<Options>();
  command.add_option("plugin", options->what, "an id, or the path of a manifest or library")
      ->option_text("ID|FILE")
      ->required();
  command.add_flag("--json", options->json, "an array with one object");
  command.callback([&global, &action, options] {
    action = [&global, options] { return inspect(global, options->what, options->json); };
  });
}

}  // namespace trellis::tools
