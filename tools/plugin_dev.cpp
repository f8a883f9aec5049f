// SPDX-License-Identifier: Apache-2.0
//
// trellis plugin dev: folders of work in progress, whose plugins are loaded because their author
// says so.

#include <fmt/format.h>

#include <system_error>
#include <trellis/plugin.hpp>

#include "command.hpp"
#include "json.hpp"

namespace trellis::tools {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string folder;
  bool remove = false, list = false, json = false;
};

int list_folders(bool json) {
  Json array = Json::array();
  for (const fs::path& folder : dev_folders()) {
    std::error_code error;
    const bool is_there = fs::is_directory(folder, error);
    if (json)
      array.push_back({{"folder", folder.string()}, {"present", is_there}});
    else
      fmt::print("{}{}\n", folder.string(), is_there ? "" : " (gone)");
  }
  if (json) print_json(array);
  return kOk;
}

int change(const Global& global, const Options& o) {
  if (o.list || o.folder.empty()) {
    if (o.remove) fail(ErrorKind::argument, "[plugin dev] no folder given (needed with --remove)");
    return list_folders(o.json);
  }
  const bool changed = o.remove ? remove_dev_folder(o.folder) : add_dev_folder(o.folder);
  if (o.remove && !changed)
    fail(ErrorKind::argument,
         fmt::format("[plugin dev] no dev folder: given '{}' (see trellis plugin dev --list)",
                     o.folder));
  if (global.quiet) return kOk;
  const std::string path = fs::weakly_canonical(o.folder).string();
  if (o.remove)
    fmt::print("{}: its plugins are not loaded any more\n", path);
  else
    fmt::print("{}: its plugins are loaded from now on{}\n", path, changed ? "" : ", as before");
  return kOk;
}

}  // namespace

void add_plugin_dev(CLI::App& parent, const Global& global, Action& action) {
  CLI::App& command = *parent.add_subcommand(
      "dev",
      "load what is built in a folder, from now on, with a notice at every start; without a folder "
      "list them");
  auto options = std::make_shared<Options>();
  command.add_option("folder", options->folder, "where a plugin and its manifest are built")
      ->option_text("DIR");
  command.add_flag("--remove", options->remove, "load nothing from this folder any more");
  command.add_flag("--list", options->list, "the dev folders");
  command.add_flag("--json", options->json, "with --list: an array of objects");
  command.callback([&global, &action, options] {
    action = [&global, options] { return change(global, *options); };
  });
}

}  // namespace trellis::tools
