// SPDX-License-Identifier: Apache-2.0
//
// trellis plugin header: typed C++ functions for the operators of a plugin. trellis-schema and
// generate.py of the SDK make it, as they make the headers of the shipped plugins; the plugin runs in
// a process of its own.

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>
#include <trellis/plugin.hpp>
#include <vector>

#include "command.hpp"
#include "table.hpp"

extern char** environ;

namespace trellis::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWho = "[plugin header]";

struct Options {
  std::string what, name_space, output;
};

// A folder of its own that is gone with the object.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (fs::temp_directory_path() / "trellis-header-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr)
      fail(ErrorKind::io, fmt::format("{} cannot make '{}': {}", kWho, pattern,
                                      std::generic_category().message(errno)));
    path_ = pattern;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// Beside the program in a build folder, else where it is installed.
fs::path part_of_sdk(const Global& global, const char* name) {
  for (const fs::path& folder : {global.folder, global.folder / TRELLIS_DATA_FROM_BIN}) {
    std::error_code error;
    if (fs::exists(folder / name, error)) return (folder / name).lexically_normal();
  }
  fail(ErrorKind::io,
       fmt::format("{} '{}' is not installed (needed beside '{}' or in '{}')", kWho, name,
                   (global.folder / "trellis").string(),
                   (global.folder / TRELLIS_DATA_FROM_BIN).lexically_normal().string()));
}

// Runs a program with its output in a file; its errors go where ours go. Throws unless it ends well.
void run_into(const fs::path& output, std::vector<std::string> command) {
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    fail(ErrorKind::io, fmt::format("{} cannot run '{}': {}", kWho, command[0],
                                    std::generic_category().message(error)));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status))
    fail(ErrorKind::plugin,
         fmt::format("{} '{}' crashed: {}", kWho, command[0], ::sigdescr_np(WTERMSIG(status))));
  if (WEXITSTATUS(status) != 0)
    fail(ErrorKind::plugin,
         fmt::format("{} '{}' failed with exit code {}", kWho, command[0], WEXITSTATUS(status)));
}

std::string name_space_of(const PluginInfo& plugin, const std::string& given) {
  const auto& all = plugin.namespaces;
  if (given.empty() && all.size() == 1) return all[0];
  if (std::find(all.begin(), all.end(), given) != all.end()) return given;
  fail(
      ErrorKind::argument,
      fmt::format("{} {} has no single namespace to write: given '{}' (needed --namespace with one "
                  "of {})",
                  kWho, plugin.id, given, join(all)));
}

int write_header(const Global& global, const Options& o) {
  const PluginInfo plugin = inspect_plugin(o.what, global.runtime);
  if (plugin.state == "broken") fail(ErrorKind::plugin, plugin.reason);
  const std::string name_space = name_space_of(plugin, o.name_space);
  const std::string schema = part_of_sdk(global, "trellis-schema").string();
  const std::string generate = part_of_sdk(global, "generate.py").string();
  const TempFolder work;
  const fs::path json = work.path() / "schema.json", header = work.path() / "header.hpp";
  run_into(json, {schema, plugin.library.string()});
  run_into(work.path() / "log", {"python3", generate, "header", "--namespace", name_space,
                                 "--output", header.string(), json.string()});
  std::ifstream in(header, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  if (o.output.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return kOk;
  }
  errno = 0;
  std::ofstream out(o.output, std::ios::binary);
  out << text;
  out.close();
  if (!out)
    fail(ErrorKind::io, fmt::format("{} cannot write '{}': {}", kWho, o.output,
                                    std::generic_category().message(errno)));
  return kOk;
}

}  // namespace

void add_plugin_header(CLI::App& parent, const Global& global, Action& action) {
  CLI::App& command = *parent.add_subcommand(
      "header", "typed C++ functions for the operators of a plugin (needs python3)");
  auto options = std::make_shared<Options>();
  command.add_option("plugin", options->what, "an id, or the path of a manifest or library")
      ->option_text("ID|FILE")
      ->required();
  command.add_option("--namespace", options->name_space,
                     "of a plugin that has several: which one to write");
  command.add_option("-o,--output", options->output, "where to write it; else standard output")
      ->option_text("FILE");
  command.callback([&global, &action, options] {
    action = [&global, options] { return write_header(global, *options); };
  });
}

}  // namespace trellis::tools
