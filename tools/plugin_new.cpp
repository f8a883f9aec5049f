// SPDX-License-Identifier: Apache-2.0
//
// trellis plugin new: a project that builds a plugin and passes validation as it stands.

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>
#include <system_error>
#include <trellis/plugin.hpp>
#include <utility>

#include "command.hpp"
#include "template.hpp"

namespace trellis::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWho = "[plugin new]";
constexpr size_t kMaxName = 40;
// Namespaces of what is shipped, and of the kernel's own operators.
constexpr std::string_view kReserved[] = {"core", "dynet", "kernel", "trellis"};

struct Kind {
  std::string_view name;
  bool in_c;                 // whether there is a template in C
  std::string_view summary;  // of the manifest, and what the README starts with
  std::string_view required;
  std::string_view provides;  // the placeholder of the manifest's list
  std::string_view use;
};
constexpr std::string_view kBuildingBlocks =
    R"({ id = "ops-core", version = "^0.1" }, { id = "initializers", version = "^0.1" })";
constexpr Kind kKinds[] = {
    {"operator", true, "an operator that bends its input softly towards a bound", "", "OPS",
     "trellis train tagger --plugins trellis.toml --activation @NAMESPACE@.@NAME@"},
    {"builder", false, "a simple recurrent network", kBuildingBlocks, "BUILDERS",
     "trellis train tagger --plugins trellis.toml --builder @NAMESPACE@.@NAME@"},
    {"softmax", false, "an output layer over all classes", kBuildingBlocks, "SOFTMAXES",
     "trellis op describe @NAMESPACE@.@NAME@ --plugins trellis.toml"},
    {"trainer", true, "gradient descent with momentum", "", "TRAINERS",
     "trellis train tagger --plugins trellis.toml --trainer @NAMESPACE@.@NAME@"},
    {"initializer", false, "an initializer that is scaled by the number of inputs", "",
     "INITIALIZERS", "trellis op describe @NAMESPACE@.@NAME@ --plugins trellis.toml"},
};

struct Options {
  std::string name, kind = "operator", language = "c++";
  std::string folder;
};

using Words = std::map<std::string, std::string, std::less<>>;

std::vector<std::string> words_of(const std::string& id) {
  std::vector<std::string> words(1);
  for (const char c : id) {
    if (c == '-')
      words.emplace_back();
    else
      words.back() += c;
  }
  return words;
}

bool is_word(const std::string& word) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return !word.empty() && is_letter(word[0]) && std::all_of(word.begin(), word.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9');
  });
}

// "acme-soft-clip": the plugin's id; its namespace is acme, what it provides acme.soft_clip.
Words placeholders(const std::string& id) {
  const std::vector<std::string> words = words_of(id);
  if (id.size() > kMaxName || !std::all_of(words.begin(), words.end(), is_word))
    fail(ErrorKind::argument,
         fmt::format("{} no name for a plugin: given '{}' (needed lower case words that start with "
                     "a letter, with dashes between, at most {} bytes: acme-soft-clip)",
                     kWho, id, kMaxName));
  if (std::find(std::begin(kReserved), std::end(kReserved), words[0]) != std::end(kReserved))
    fail(ErrorKind::argument,
         fmt::format("{} a reserved namespace: given '{}' (needed another first word than {})",
                     kWho, words[0], fmt::join(kReserved, ", ")));
  std::string name, type;
  for (size_t i = words.size() > 1 ? 1 : 0; i < words.size(); ++i) {
    name += (name.empty() ? "" : "_") + words[i];
    type += static_cast<char>(words[i][0] - 'a' + 'A') + words[i].substr(1);
  }
  return {{"ID", id}, {"NAMESPACE", words[0]}, {"NAME", name}, {"TYPE", type}};
}

// Others than those given stay: the project's own meson.build replaces some.
std::string replaced(std::string_view text, const Words& words) {
  std::string out;
  while (!text.empty()) {
    const size_t at = text.find('@');
    out += text.substr(0, at);
    if (at == text.npos) break;
    text.remove_prefix(at + 1);
    const auto word = words.find(text.substr(0, text.find('@')));
    if (word == words.end()) {
      out += '@';
      continue;
    }
    out += word->second;
    text.remove_prefix(word->first.size() + 1);
  }
  return out;
}

// "NAME.cpp" is named after the thing, "ID.trellis.toml.in" after the plugin.
std::string file_name(std::string_view name, const Words& words) {
  const std::string_view stem = name.substr(0, name.find('.'));
  if (stem != "NAME" && stem != "ID") return std::string(name);
  return words.find(stem)->second + std::string(name.substr(stem.size()));
}

const Kind& kind_of(const Options& options) {
  const Kind& kind = *std::find_if(std::begin(kKinds), std::end(kKinds),
                                   [&](const Kind& k) { return k.name == options.kind; });
  if (options.language == "c" && !kind.in_c)
    fail(ErrorKind::argument,
         fmt::format("{} no template for a {} in C: given --lang c (needed c++; in C there are "
                     "operator and trainer, whose tables are short)",
                     kWho, kind.name));
  return kind;
}

void refuse_known(const std::string& id, const Global& global) {
  for (const PluginInfo& p : available_plugins(global.runtime))
    if (p.id == id && p.state == "shipped")
      fail(ErrorKind::argument,
           fmt::format("{} the id of a shipped plugin: given '{}' (needed one of your own)", kWho,
                       id));
}

[[noreturn]] void fail_io(const fs::path& path, const std::string& fact) {
  fail(ErrorKind::io, fmt::format("{} cannot write '{}': {}", kWho, path.string(), fact));
}

void refuse_full(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(folder, error))) return;
  if (!fs::is_directory(folder, error)) fail_io(folder, "it is there already and no folder");
  if (!fs::is_empty(folder, error))
    fail_io(folder, "it is there already, with files in it (needed a new or an empty folder)");
}

void write_file(const fs::path& path, const std::string& text) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) fail_io(path.parent_path(), error.message());
  errno = 0;
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) fail_io(path, std::generic_category().message(errno));
}

int make_project(const Global& global, const Options& options) {
  Words words = placeholders(options.name);
  const Kind& kind = kind_of(options);
  refuse_known(options.name, global);
  const fs::path folder = options.folder.empty() ? options.name : options.folder;
  refuse_full(folder);

  const std::string kind_and_language = fmt::format("{}-{}", kind.name, options.language);
  std::vector<const TemplateFile*> files;
  words["SOURCE"] = words["NAME"] + (options.language == "c" ? ".c" : ".cpp");
  words["TESTS"] = "";
  for (const TemplateFile& file : template_files()) {
    if (file.layer != "common" && file.layer != kind.name && file.layer != kind_and_language)
      continue;
    files.push_back(&file);
    if (file.name.starts_with("tests/"))
      words["TESTS"] = "| `tests/` | a few values that must come out |\n";
  }
  words["SUMMARY"] = kind.summary;
  words["REQUIRES"] = kind.required;
  for (const Kind& k : kKinds) words[std::string(k.provides)] = "";
  words[std::string(kind.provides)] = fmt::format("\"{}.{}@1\"", words["NAMESPACE"], words["NAME"]);
  words["USE"] = replaced(kind.use, words);
  words["ABOUT"] = fmt::format("A plugin for Trellis: {}.", kind.summary);

  for (const TemplateFile* file : files)
    write_file(folder / file_name(file->name, words), replaced(file->text, words));
  if (!global.quiet)
    fmt::print("{}: {} files in {}\n\n  cd {}\n  meson setup build && meson test -C build\n",
               options.name, files.size(), folder.string(), folder.string());
  return kOk;
}

}  // namespace

void add_plugin_new(CLI::App& parent, const Global& global, Action& action) {
  CLI::App& command = *parent.add_subcommand(
      "new", "a project for a plugin of your own, which builds and passes validation as it stands");
  auto options = std::make_shared<Options>();
  std::vector<std::string> kinds;
  for (const Kind& kind : kKinds) kinds.emplace_back(kind.name);
  command
      .add_option("name", options->name,
                  "id of the plugin; its first word is the namespace: acme-soft-clip provides "
                  "acme.soft_clip")
      ->option_text("NAME")
      ->required();
  command.add_option("--kind", options->kind, "what it provides")
      ->check(CLI::IsMember(kinds))
      ->capture_default_str();
  command
      .add_option("--lang", options->language,
                  "c++, or c (operator and trainer only, whose tables are short)")
      ->check(CLI::IsMember({"c++", "c"}))
      ->capture_default_str();
  command
      .add_option("--dir", options->folder, "where to write it: a new or an empty folder (NAME)")
      ->option_text("PATH");
  command.callback([&global, &action, options] {
    action = [&global, options] { return make_project(global, *options); };
  });
}

}  // namespace trellis::tools
