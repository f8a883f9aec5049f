// SPDX-License-Identifier: Apache-2.0
#include "plugin/dev.hpp"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>
#include <trellis/error.hpp>
#include <trellis/plugin.hpp>
#include <vector>

#include "plugin/file.hpp"
#include "plugin/manifest.hpp"

namespace trellis {
namespace detail {

namespace fs = std::filesystem;

fs::path dev_file() {
  if (const char* config = ::secure_getenv("XDG_CONFIG_HOME"); config && config[0] == '/')
    return fs::path(config) / "trellis/dev-folders";
  if (const char* home = ::secure_getenv("HOME"); home && home[0] == '/')
    return fs::path(home) / ".config/trellis/dev-folders";
  return {};
}

namespace {

constexpr size_t kMaxDevBytes = 64 * 1024;

[[noreturn]] void refuse_write(const fs::path& file, const std::string& reason) {
  fail(ErrorKind::io, "[plugin] cannot write " + quoted(file) + ": " + reason);
}

void write_folders(const std::vector<fs::path>& folders) {
  const fs::path file = dev_file();
  if (file.empty())
    fail(ErrorKind::io,
         "[plugin] no place for the list of dev folders: neither XDG_CONFIG_HOME nor HOME is set");
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error) refuse_write(file, error.message());
  // Renamed into place: another process sees the old list or the new one.
  const fs::path fresh = file.native() + "." + std::to_string(::getpid());
  errno = 0;
  std::ofstream out(fresh, std::ios::binary);
  out << "# Written by `trellis plugin dev`. Plugins in these folders are loaded without being "
         "asked "
         "for.\n";
  for (const fs::path& folder : folders) out << folder.native() << '\n';
  out.close();
  const int reason = errno;
  if (!out) {
    fs::remove(fresh, error);
    refuse_write(file, std::generic_category().message(reason));
  }
  fs::rename(fresh, file, error);
  if (error) refuse_write(file, error.message());
}

bool holds_manifest(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (!manifest_id(at->path()).empty()) return true;
  return false;
}

// As it is kept: absolute, without links, "." or a slash at its end.
fs::path real_folder(const fs::path& folder) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  return error ? fs::absolute(folder).lexically_normal() : real;
}

}  // namespace
}  // namespace detail

using namespace detail;

std::vector<std::filesystem::path> dev_folders() {
  const fs::path file = dev_file();
  struct stat status {};
  if (file.empty() || ::stat(file.c_str(), &status) != 0) return {};
  if ((status.st_mode & S_IWOTH) || (status.st_uid != 0 && status.st_uid != ::geteuid()))
    fail(ErrorKind::trust, "[plugin] cannot trust " + quoted(file) +
                               ": somebody else may write to it (needs it to be yours, chmod o-w)");
  const std::string text = read_small_file(file, kMaxDevBytes);
  std::vector<fs::path> folders;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (line.starts_with('/')) folders.emplace_back(line);
    at = end + 1;
  }
  return folders;
}

bool add_dev_folder(const std::filesystem::path& given) {
  const fs::path folder = real_folder(given);
  std::error_code error;
  if (!fs::is_directory(folder, error))
    fail(ErrorKind::argument, "[plugin] no folder to trust: given " + quoted(given));
  if (folder.native().find('\n') != std::string::npos)
    fail(ErrorKind::argument,
         "[plugin] cannot keep a folder with a line break in its name: given " + quoted(given));
  if (!holds_manifest(folder))
    fail(ErrorKind::argument, "[plugin] no plugin in " + quoted(folder) +
                                  ": given no <id>.trellis.toml (needed the folder in which it is "
                                  "built)");
  std::vector<fs::path> folders = dev_folders();
  if (std::find(folders.begin(), folders.end(), folder) != folders.end()) return false;
  folders.push_back(folder);
  write_folders(folders);
  return true;
}

bool remove_dev_folder(const std::filesystem::path& given) {
  std::vector<fs::path> folders = dev_folders();
  const auto at = std::find(folders.begin(), folders.end(), real_folder(given));
  if (at == folders.end()) return false;
  folders.erase(at);
  write_folders(folders);
  return true;
}

}  // namespace trellis
