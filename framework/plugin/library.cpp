// SPDX-License-Identifier: Apache-2.0
#include "plugin/library.hpp"

#include <dlfcn.h>

// Boost.DLL 1.74 does not compile alone with std::filesystem: vector and string come first.
#include <boost/dll/shared_library.hpp>
#include <map>
#include <string>
#include <trellis/error.hpp>
#include <utility>
#include <vector>

namespace trellis::detail {
namespace {

namespace fs = std::filesystem;

struct Opened {
  boost::dll::shared_library handle;
  trl_entry_fn entry = nullptr;
  struct timespec modified {};
  off_t size = 0;
};

struct Libraries {
  std::map<std::pair<dev_t, ino_t>, Opened> by_file;
  std::map<std::string, int> openings;  // how often a path was handed to the dynamic linker
};

// Leaked on purpose: closing libraries from a static destructor pulls code away under its own
// destructors.
Libraries& libraries() {
  static auto* const all = new Libraries;
  return *all;
}

// The dynamic linker takes an equal path for the same library without looking at the file. A file
// that replaced one that is open is therefore opened under another spelling of its path.
fs::path fresh_spelling(const fs::path& path) {
  fs::path spelled = path.parent_path();
  for (int i = libraries().openings[path.native()]++; i > 0; --i) spelled /= ".";
  return spelled / path.filename();
}

boost::dll::shared_library open(const fs::path& path) {
  constexpr auto kMode =
      static_cast<boost::dll::load_mode::type>(RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  boost::dll::shared_library library;
  boost::dll::fs::error_code error;
  ::dlerror();
  library.load(fresh_spelling(path), kMode, error);
  if (error) {
    const char* const text = ::dlerror();
    fail(ErrorKind::plugin, refusal(path) + ": " + (text ? text : error.message()));
  }
  return library;
}

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_ctim.tv_sec == b.st_ctim.tv_sec && a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

}  // namespace

trl_entry_fn open_library(const VerifiedLibrary& v) {
  auto& by_file = libraries().by_file;
  const std::pair key(v.status.st_dev, v.status.st_ino);
  if (const auto known = by_file.find(key); known != by_file.end()) {
    const Opened& o = known->second;
    if (o.size != v.status.st_size || o.modified.tv_sec != v.status.st_mtim.tv_sec ||
        o.modified.tv_nsec != v.status.st_mtim.tv_nsec)
      fail(ErrorKind::plugin,
           refusal(v.path) +
               ": written over while this process has it open (start a new process; "
               "install by renaming)");
    return o.entry;
  }
  Opened o;
  o.handle = open(v.path);
  struct stat now;
  if (::stat(v.path.c_str(), &now) != 0 || !is_same(now, v.status))
    fail(ErrorKind::plugin, refusal(v.path) + ": the file changed while it was loaded");
  if (!o.handle.has(TRL_ENTRY_SYMBOL))
    fail(ErrorKind::plugin, refusal(v.path) + ": does not export " TRL_ENTRY_SYMBOL
                                              " (needs TRL_PLUGIN of the SDK, or the function)");
  o.entry = o.handle.get<trl_status(trl_call*, trl_plugin*)>(TRL_ENTRY_SYMBOL);
  o.modified = v.status.st_mtim;
  o.size = v.status.st_size;
  return by_file.emplace(key, std::move(o)).first->second.entry;
}

}  // namespace trellis::detail
