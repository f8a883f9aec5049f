// SPDX-License-Identifier: Apache-2.0
//
// trellis op describe: the whole schema of one operator, builder, trainer or initializer.

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "command.hpp"
#include "json.hpp"
#include "table.hpp"

namespace trellis::tools {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string range_of(const AttrInfo& a) {
  if (!a.bound.empty()) return a.bound;
  if (!a.choices.empty()) return join(a.choices);
  if (a.type == "bool") return "";
  if (a.lo && a.hi) return fmt::format("{} .. {}", *a.lo, *a.hi);
  if (a.lo) return fmt::format(">= {}", *a.lo);
  if (a.hi) return fmt::format("<= {}", *a.hi);
  return "";
}

std::string default_of(const AttrInfo& a) {
  if (a.required) return "required";
  return a.default_value ? "default " + to_json(*a.default_value).dump() : "default none";
}

// "one for each batch element" matters to who writes the call; the rest is the type.
std::string type_of(const AttrInfo& a) { return a.per_batch ? a.type + " per batch" : a.type; }

void print_section(const char* title, const Rows& rows) {
  if (!rows.empty()) fmt::print("\n{}\n{}", title, format_table(rows, "  "));
}

Rows attr_rows(const ComponentInfo& c) {
  Rows rows;
  for (const AttrInfo& a : c.attrs) {
    rows.push_back({a.key, type_of(a), default_of(a), range_of(a), a.doc});
  }
  return rows;
}

void print_head(const ComponentInfo& c) {
  fmt::print("{} ({}): {}\n", c.id, c.kind, c.summary);
  for (const std::string* text : {&c.formula, &c.doc}) {
    std::istringstream lines(*text);
    if (!text->empty()) fmt::print("\n");
    for (std::string line; std::getline(lines, line);) fmt::print("  {}\n", line);
  }
}

void print_tail(const ComponentInfo& c, Rows rows = {}) {
  rows.push_back({"plugin", fmt::format("{} {}", c.plugin, c.plugin_version)});
  if (!c.source.empty()) rows.push_back({"source", c.source});
  if (c.version > 0) rows.push_back({"version", std::to_string(c.version)});
  if (!c.aliases.empty()) rows.push_back({"aliases", join(c.aliases)});
  print_section("facts", rows);
}

void print_op(const OpInfo& op) {
  print_head(op);
  Rows rows;
  for (const InputInfo& in : op.inputs) {
    std::vector<std::string> facts;
    if (in.variadic) facts.push_back("one or more");
    if (in.optional) facts.push_back("optional");
    if (!in.dtype.empty()) facts.push_back(in.dtype);
    if (!in.gradient) facts.push_back("no gradient");
    if (in.domain != "any") facts.push_back("domain " + in.domain);
    if (in.merge == "shared") facts.push_back("shared when a parameter");
    if (in.merge == "never") facts.push_back("never batched");
    rows.push_back({in.name, join(facts, ""), in.doc});
  }
  print_section("inputs", rows);
  rows.clear();
  for (const OutputInfo& out : op.outputs) {
    std::vector<std::string> facts;
    if (!out.dtype.empty()) facts.push_back(out.dtype);
    if (!out.gradient) facts.push_back("no gradient");
    rows.push_back({out.name, join(facts, ""), out.doc});
  }
  print_section("outputs", rows);
  print_section("attributes", attr_rows(op));
  rows.clear();
  std::istringstream examples(op.example);
  for (std::string example; std::getline(examples, example, ';');) {
    rows.push_back({example.substr(std::min(example.find_first_not_of(' '), example.size()))});
  }
  print_section("examples (shapes of the inputs; xN: batch of N)", rows);
  rows.clear();
  if (!op.role.empty()) rows.push_back({"role", op.role});
  rows.push_back({"element types", join(op.dtypes)});
  rows.push_back({"gradient", !op.differentiable       ? "no"
                              : op.expression_gradient ? "yes, and as an expression"
                                                       : "yes"});
  if (op.elementwise) rows.push_back({"element-wise", "yes"});
  if (op.stochastic) rows.push_back({"random", "yes"});
  if (op.composite) rows.push_back({"composite", "made of other operators"});
  if (!op.unchecked.empty()) rows.push_back({"not checked", op.unchecked});
  print_tail(op, rows);
}

void print_component(const ComponentInfo& c) {
  print_head(c);
  print_section("attributes", attr_rows(c));
  print_tail(c);
}

bool is_called(const ComponentInfo& c, const std::string& name) {
  return c.id == name || c.name == name ||
         std::find(c.aliases.begin(), c.aliases.end(), name) != c.aliases.end();
}

int describe(const Global& global, const std::string& name, bool json) {
  const Runtime runtime(global.runtime);
  try {
    const OpInfo op = describe_op(runtime, name);
    if (json) {
      print_json(Json::array({to_json(op)}));
    } else {
      print_op(op);
    }
    return kOk;
  } catch (const Error&) {
    // Not an operator: a builder, trainer, .. of that name will do.
    Json array = Json::array();
    for (const ComponentInfo& c : list_components(runtime)) {
      if (!is_called(c, name)) continue;
      if (!json) print_component(c);
      array.push_back(to_json(c));
    }
    if (array.empty()) throw;
    if (json) print_json(array);
    return kOk;
  }
}

}  // namespace

void add_op_describe(CLI::App& parent, const Global& global, Action& action) {
  struct Options {
    std::string name;
    bool json = false;
  };
  CLI::App& command = *parent.add_subcommand(
      "describe", "one operator (or builder, trainer, initializer) with all it says of itself");
  auto options = std::make_shared<Options>();
  command.add_option("name", options->name, "an id or a name: core.tanh, tanh")
      ->option_text("NAME")
      ->required();
  command.add_flag("--json", options->json, "an array with one object");
  command.callback([&global, &action, options] {
    action = [&global, options] { return describe(global, options->name, options->json); };
  });
}

}  // namespace trellis::tools
