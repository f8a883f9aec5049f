// SPDX-License-Identifier: Apache-2.0
#include "plugin/dev.hpp"

#include <trellis/abi/plugin.h>

#include <trellis/plugin.hpp>

#include "support.hpp"

using namespace trellis;
using namespace trellis::detail;
using namespace trellis::test;

namespace {

// XDG_CONFIG_HOME of this process, for a while.
class Config {
 public:
  explicit Config(const fs::path& folder) : old_(environment("XDG_CONFIG_HOME")) {
    ::setenv("XDG_CONFIG_HOME", folder.c_str(), 1);
  }
  ~Config() { ::setenv("XDG_CONFIG_HOME", old_.c_str(), 1); }

 private:
  std::string old_;
};

PluginInfo available(const std::string& id) {
  for (const PluginInfo& p : available_plugins())
    if (p.id == id) return p;
  return {};
}

std::vector<std::string> loaded(const RuntimeOptions& options) {
  std::vector<std::string> ids;
  for (const PluginInfo& p : loaded_plugins(Runtime(options))) ids.push_back(p.id);
  return ids;
}

}  // namespace

TEST_CASE("dev: folders are kept, absolute and once, until they are taken out") {
  const TempFolder config, work;
  const Config here(config.path());
  install(work / "build", named("good"));
  install(work / "other", named("good-too"));
  CHECK(dev_folders().empty());
  CHECK(add_dev_folder(work / "other/../build/"));
  CHECK_FALSE(add_dev_folder(work / "build"));
  CHECK(add_dev_folder(work / "other"));
  CHECK(dev_folders() == std::vector<fs::path>{work / "build", work / "other"});
  CHECK(dev_file() == config / "trellis/dev-folders");
  CHECK(remove_dev_folder(work / "build"));
  CHECK_FALSE(remove_dev_folder(work / "build"));
  CHECK(dev_folders() == std::vector<fs::path>{work / "other"});
  // One that has gone can be taken out, too.
  fs::remove_all(work / "other");
  CHECK(available("good-too").id.empty());
  CHECK(remove_dev_folder(work / "other"));
  CHECK(dev_folders().empty());
}

TEST_CASE("dev: what is built there is loaded with the shipped plugins, and that is said") {
  const TempFolder config, work;
  const Config here(config.path());
  install(work.path(), named("good"));
  add_dev_folder(work.path());
  CHECK(available("good").state == "dev");
  CHECK(available("good").reason == "found in dev folder '" + work.path().native() + "'");
  std::string log;
  RuntimeOptions options;
  options.log = [&](int level, std::string_view text) {
    if (level == 3) log += std::string(text) + "\n";
  };
  const auto all = loaded(options);
  CHECK(std::count(all.begin(), all.end(), "good") == 1);
  CHECK(std::count(all.begin(), all.end(), "ops-core") == 1);
  const std::string notice = "[plugin] good 1.0.0 is work in progress, from the dev folder '" +
                             work.path().native() +
                             "' (trellis plugin dev --remove takes it out)\n";
  CHECK(log == notice);
  // Whoever names plugins gets those, and can name this one by its id.
  options.plugins = {"ops-core"};
  CHECK(loaded(options) == std::vector<std::string>{"ops-core"});
  options.plugins = {"good"};
  log.clear();
  CHECK(loaded(options) == std::vector<std::string>{"good"});
  CHECK(log == notice);
  remove_dev_folder(work.path());
  CHECK(available("good").id.empty());
}

TEST_CASE("dev: what cannot be trusted") {
  const TempFolder config, work;
  const Config here(config.path());
  const std::string at = "'" + work.path().native() + "'";
  CHECK(error_of([&] { add_dev_folder(work / "none"); }) ==
        "[plugin] no folder to trust: given '" + (work / "none").native() + "'");
  CHECK(error_of([&] { add_dev_folder(work.path()); }) ==
        "[plugin] no plugin in " + at +
            ": given no <id>.trellis.toml (needed the folder in which it is built)");
  install(work / "a\nb", named("good"));
  CHECK(error_of([&] { add_dev_folder(work / "a\nb"); }) ==
        "[plugin] cannot keep a folder with a line break in its name: given '" +
            work.path().native() + "/a\\x0ab'");
  install(work.path(), named("good"));
  CHECK(add_dev_folder(work.path()));
  fs::permissions(dev_file(), fs::perms::others_write, fs::perm_options::add);
  CHECK(error_of([&] { dev_folders(); }) ==
        "[plugin] cannot trust '" + dev_file().native() +
            "': somebody else may write to it (needs it to be yours, chmod o-w)");
  CHECK(available("good").id.empty());
  CHECK(available("ops-core").state == "shipped");
  fs::remove(dev_file());
  fs::create_directory(dev_file());
  write_file(dev_file() / "x", "");
  CHECK(contains(error_of([&] { dev_folders(); }), "not a regular file"));
  fs::remove_all(config / "trellis");
  write_file(config / "trellis", "no folder");
  CHECK(contains(error_of([&] { add_dev_folder(work.path()); }),
                 "[plugin] cannot write '" + dev_file().native() + "': "));
}

TEST_CASE("dev: no place for the list") {
  const TempFolder work;
  const Config here("relative");
  const std::string home = std::getenv("HOME") ? std::getenv("HOME") : "";
  ::setenv("HOME", "", 1);
  install(work.path(), named("good"));
  CHECK(dev_file().empty());
  CHECK(dev_folders().empty());
  CHECK(error_of([&] { add_dev_folder(work.path()); }) ==
        "[plugin] no place for the list of dev folders: neither XDG_CONFIG_HOME nor HOME is set");
  ::setenv("HOME", home.c_str(), 1);
}
