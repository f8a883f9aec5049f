// SPDX-License-Identifier: Apache-2.0
//
// What the subcommands share: the options before all of them, exit codes, and how each is added.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <string>
#include <trellis/error.hpp>
#include <trellis/runtime.hpp>
#include <vector>

namespace trellis::tools {

enum ExitCode : int {
  kOk = 0,
  kFindings = 1,  // it ran and found something wrong, or a file could not be read or written
  kUsage = 2,     // the command line is wrong
  kTrust = 3,     // a plugin is not trusted
  kAbi = 4,       // a plugin does not fit this host
  kCrash = 5,     // a plugin crashed
};
ExitCode exit_code_of(const Error& e);

struct Global {
  RuntimeOptions runtime;
  bool quiet = false;
  std::filesystem::path folder;  // of the executable
};

// A subcommand does its work here and returns its exit code; it throws Error.
using Action = std::function<int()>;

// Each adds one subcommand to `parent` and sets `action` when it is chosen.
void add_plugin_list(CLI::App& parent, const Global& global, Action& action);
void add_plugin_inspect(CLI::App& parent, const Global& global, Action& action);
void add_plugin_check(CLI::App& parent, const Global& global, Action& action);
void add_plugin_new(CLI::App& parent, const Global& global, Action& action);
void add_plugin_dev(CLI::App& parent, const Global& global, Action& action);
void add_plugin_header(CLI::App& parent, const Global& global, Action& action);
void add_plugin_validate(CLI::App& parent, const Global& global, Action& action);
void add_op_list(CLI::App& parent, const Global& global, Action& action);
void add_op_describe(CLI::App& parent, const Global& global, Action& action);
void add_train_tagger(CLI::App& parent, const Global& global, Action& action);
void add_predict_tagger(CLI::App& parent, const Global& global, Action& action);

}  // namespace trellis::tools
