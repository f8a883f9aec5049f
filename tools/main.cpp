// SPDX-License-Identifier: Apache-2.0
//
// The command `trellis`. One file a subcommand; this one has the options before all of them and the
// exit codes.

#include <fmt/format.h>
#include <sys/auxv.h>

#include <cstdio>
#include <exception>
#include <new>
#include <set>
#include <system_error>
#include <trellis/plugin.hpp>

#include "command.hpp"
#include "crash.hpp"

namespace trellis::tools {

ExitCode exit_code_of(const Error& e) {
  switch (e.kind()) {
    case ErrorKind::argument:
      return kUsage;
    case ErrorKind::trust:
      return kTrust;
    case ErrorKind::abi:
      return kAbi;
    default:
      return kFindings;
  }
}

namespace {

// Where the running program lies. Not by /proc, which a bare system may lack.
std::filesystem::path program_folder(const char* name) {
  const auto* const started_as = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  std::error_code error;
  return std::filesystem::canonical(started_as != nullptr ? started_as : name, error).parent_path();
}

void add_global_options(CLI::App& app, Global& global) {
  app.add_option("--plugins", global.runtime.plugins_file,
                 "load exactly the plugins of this file (trellis.toml)")
      ->option_text("FILE");
  app.add_option("--plugin", global.runtime.plugins,
                 "load this plugin too: an id, id@range, or the path of a manifest or library")
      ->option_text("ID|PATH")
      ->take_all()
      ->allow_extra_args(false);
  app.add_flag("--no-plugins", global.runtime.no_plugins, "load no plugin");
  app.add_flag("--quiet", global.quiet, "results and errors only");
  app.set_version_flag(
      "--version",
      [] { return fmt::format("trellis {} (plugin ABI {})", version(), abi_version()); },
      "the versions of the product and of the plugin ABI");
}

// "acme@^1.2" and "x/acme.trellis.toml" both mean the plugin acme.
std::string id_of(const std::string& wish) {
  const std::string name = std::filesystem::path(wish).filename().string();
  return name.substr(0, name.find_first_of("@."));
}

// --plugin asks for one more: without an experiment's file, more than those that are shipped or in
// work.
void add_shipped(RuntimeOptions& options) {
  if (options.plugins.empty() || !options.plugins_file.empty() || options.no_plugins) return;
  std::set<std::string> named;
  for (const std::string& wish : options.plugins) named.insert(id_of(wish));
  for (const PluginInfo& p : available_plugins(options)) {
    if ((p.state == "shipped" || p.state == "dev") && named.insert(p.id).second)
      options.plugins.push_back(p.id);
  }
}

// An empty list of plugins is right or a wrong path: say how to find out.
void hint_no_plugins(const Global& global) {
  const RuntimeOptions& options = global.runtime;
  if (global.quiet || options.no_plugins || !available_plugins(options).empty()) return;
  std::fputs(
      "trellis: no plugins found (TRELLIS_PLUGIN_PATH names folders to search, "
      "TRELLIS_PLUGIN_DEBUG=search shows where was looked)\n",
      stderr);
}

CLI::App& add_group(CLI::App& app, const char* name, const char* description) {
  CLI::App& group = *app.add_subcommand(name, description);
  group.require_subcommand(1);
  return group;
}

int complain(const char* text, int code) {
  std::fprintf(stderr, "trellis: %s\n", text);
  return code;
}

int run(int argc, char** argv) {
  Global global;
  Action action;
  global.folder = program_folder(argv[0]);
  CLI::App app("Trellis: dynamic neural networks made of plugins.", "trellis");
  app.require_subcommand(1);
  app.option_defaults()->take_last();
  app.fallthrough();  // options that belong to all may stand behind a subcommand
  add_global_options(app, global);

  CLI::App& plugin = add_group(app, "plugin", "what can be loaded");
  add_plugin_list(plugin, global, action);
  add_plugin_inspect(plugin, global, action);
  add_plugin_check(plugin, global, action);
  add_plugin_new(plugin, global, action);
  add_plugin_dev(plugin, global, action);
  add_plugin_header(plugin, global, action);
  add_plugin_validate(plugin, global, action);
  CLI::App& op = add_group(app, "op", "what is loaded");
  add_op_list(op, global, action);
  add_op_describe(op, global, action);
  CLI::App& train = add_group(app, "train", "train a model");
  add_train_tagger(train, global, action);
  CLI::App& predict = add_group(app, "predict", "use a trained model");
  add_predict_tagger(predict, global, action);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
    return complain(fmt::format("{} (see trellis --help)", e.what()).c_str(), kUsage);
  }
  add_shipped(global.runtime);
  hint_no_plugins(global);
  const int code = action();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return complain("cannot write to standard output", kFindings);
  }
  return code;
}

}  // namespace
}  // namespace trellis::tools

int main(int argc, char** argv) {
  using namespace trellis::tools;
  report_crashes(kCrash);
  try {
    return run(argc, argv);
  } catch (const trellis::Error& e) {
    return complain(e.what(), exit_code_of(e));
  } catch (const std::bad_alloc&) {
    return complain("out of memory", kFindings);
  } catch (const std::filesystem::filesystem_error& e) {
    return complain(e.what(), kFindings);
  } catch (const std::system_error&) {  // what fmt::print throws
    return complain("cannot write to standard output", kFindings);
  } catch (const std::exception& e) {
    return complain(e.what(), kFindings);
  }
}
