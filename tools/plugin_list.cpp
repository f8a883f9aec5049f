// SPDX-License-Identifier: Apache-2.0
//
// trellis plugin list: everything the search places hold. Loads no plugin.

#include <fmt/format.h>

#include "command.hpp"
#include "json.hpp"
#include "table.hpp"

namespace trellis::tools {
namespace {

// "42 operators, 3 trainers".
std::string provides(const PluginInfo& p) {
  const std::pair<size_t, const char*> counts[] = {{p.ops.size(), "operator"},
                                                   {p.builders.size(), "builder"},
                                                   {p.softmaxes.size(), "softmax builder"},
                                                   {p.initializers.size(), "initializer"},
                                                   {p.trainers.size(), "trainer"},
                                                   {p.linalg.size(), "linalg provider"}};
  std::vector<std::string> words;
  for (const auto& [n, what] : counts) {
    if (n > 0) words.push_back(fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"));
  }
  return join(words, "nothing");
}

int list_plugins(const Global& global, bool json) {
  const std::vector<PluginInfo> plugins = available_plugins(global.runtime);
  if (json) {
    Json array = Json::array();
    for (const PluginInfo& p : plugins) array.push_back(to_json(p));
    print_json(array);
    return kOk;
  }
  std::vector<std::vector<std::string>> rows;
  if (!global.quiet) rows.push_back({"ID", "VERSION", "ABI", "STATE", "PROVIDES", "PATH"});
  for (const PluginInfo& p : plugins) {
    const std::string path = (p.library.empty() ? p.manifest : p.library).string();
    rows.push_back({p.id, p.version, p.abi, p.state, provides(p), path});
    if (p.state != "shipped" && p.state != "unsigned" && p.state != "dev")
      rows.back().back() += ": " + p.reason;
  }
  fmt::print("{}", format_table(rows));
  return kOk;
}

}  // namespace

void add_plugin_list(CLI::App& parent, const Global& global, Action& action) {
  CLI::App& command = *parent.add_subcommand(
      "list", "every plugin in the search places, with its state; runs no plugin");
  auto json = std::make_shared<bool>(false);
  command.add_flag("--json", *json, "an array of objects");
  command.callback([&global, &action, json] {
    action = [&global, json] { return list_plugins(global, *json); };
  });
}

}  // namespace trellis::tools
