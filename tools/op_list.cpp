// SPDX-License-Identifier: Apache-2.0
//
// trellis op list: the operators, and on request everything else that plugins provide.

#include <fmt/format.h>

#include "command.hpp"
#include "json.hpp"
#include "table.hpp"

namespace trellis::tools {
namespace {

const std::vector<std::string> kKinds = {"operator",    "builder", "softmax_builder",
                                         "initializer", "trainer", "linalg"};

int list_components(const Global& global, const std::string& kind, bool json) {
  const Runtime runtime(global.runtime);
  Json array = Json::array();
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const auto& c) {
    if (kind != "all" && c.kind != kind) return;
    array.push_back(to_json(c));
    rows.push_back({c.id, c.plugin, c.summary});
    if (kind == "all") rows.back().insert(rows.back().begin() + 1, c.kind);
  };
  for (const OpInfo& op : list_ops(runtime)) add(op);
  for (const ComponentInfo& c : trellis::list_components(runtime)) add(c);
  if (json) {
    print_json(array);
  } else {
    fmt::print("{}", format_table(rows));
  }
  return kOk;
}

}  // namespace

void add_op_list(CLI::App& parent, const Global& global, Action& action) {
  struct Options {
    std::string kind = "operator";
    bool json = false;
  };
  CLI::App& command =
      *parent.add_subcommand("list", "every operator: id, plugin, what it computes");
  auto options = std::make_shared<Options>();
  std::vector<std::string> kinds = kKinds;
  kinds.push_back("all");
  command.add_option("--kind", options->kind, "builders, trainers, .. instead of operators")
      ->capture_default_str()
      ->check(CLI::IsMember(kinds));
  command.add_flag("--json", options->json, "an array of objects");
  command.callback([&global, &action, options] {
    action = [&global, options] { return list_components(global, options->kind, options->json); };
  });
}

}  // namespace trellis::tools
