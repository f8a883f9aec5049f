// SPDX-License-Identifier: Apache-2.0
//
// Folders with plugins in them, and processes that load from there.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <trellis/error.hpp>
#include <utility>
#include <vector>

namespace trellis::test {

namespace fs = std::filesystem;

inline std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  if (!value) throw std::runtime_error(std::string(name) + " is not set: run by meson test");
  return value;
}

inline fs::path fixture(const std::string& id) {
  return fs::path(environment("TRELLIS_FIXTURES")) / (id + ".so");
}

// A folder of its own that is gone with the object.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (fs::temp_directory_path() / "trellis-test-XXXXXX").native();
    if (!::mkdtemp(pattern.data())) throw std::runtime_error("mkdtemp");
    path_ = pattern;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }
  fs::path operator/(const fs::path& p) const { return path_ / p; }

 private:
  fs::path path_;
};

inline void write_file(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// What may differ from the right manifest of a fixture.
struct ManifestText {
  std::string id;
  std::string version = "1.0.0";
  std::string namespaces = "\"test\"";
  std::string abi = "major = 0\nmin_host_minor = 1\n";
  std::string library;  // default: id.so
  std::string cpu = TRL_CPU_LEVEL;
  std::string target = TRL_TARGET;
  std::string more;  // further sections

  std::string text() const {
    return "manifest = 1\n[plugin]\nid = \"" + id + "\"\nversion = \"" + version +
           "\"\nnamespaces = [" + namespaces + "]\n[abi]\n" + abi + "[[library]]\ntarget = \"" +
           target + "\"\ncpu = \"" + cpu + "\"\npath = \"" +
           (library.empty() ? id + ".so" : library) + "\"\n" + more;
  }
};

inline ManifestText named(const std::string& id) {
  ManifestText m;
  m.id = id;
  return m;
}

// Puts a fixture and its manifest into a folder; returns the manifest's path.
inline fs::path install(const fs::path& folder, const ManifestText& m,
                        const std::string& from = {}) {
  fs::create_directories(folder);
  const fs::path manifest = folder / (m.id + ".trellis.toml");
  fs::copy_file(fixture(from.empty() ? m.id : from),
                folder / (m.library.empty() ? m.id + ".so" : m.library),
                fs::copy_options::overwrite_existing);
  write_file(manifest, m.text());
  return manifest;
}

struct Outcome {
  int status = -1;  // exit status, or 1000 + the signal
  std::string out;  // stdout and stderr together

  bool says(const std::string& text) const { return out.find(text) != std::string::npos; }
  size_t count(const std::string& text) const {
    size_t n = 0;
    for (size_t at = out.find(text); at != std::string::npos; at = out.find(text, at + text.size()))
      ++n;
    return n;
  }
};

using Environment = std::map<std::string, std::string>;

// A program in a process of its own, to talk with line by line.
class Child {
 public:
  Child(const std::vector<std::string>& command, const Environment& extra,
        const fs::path& folder = {}) {
    int to[2], from[2];
    if (::pipe2(to, O_CLOEXEC) || ::pipe2(from, O_CLOEXEC)) throw std::runtime_error("pipe");
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(to[0], 0);
      ::dup2(from[1], 1);
      ::dup2(from[1], 2);
      for (const auto& [name, value] : extra) ::setenv(name.c_str(), value.c_str(), 1);
      if (!folder.empty() && ::chdir(folder.c_str())) ::_exit(126);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(to[0]);
    ::close(from[1]);
    to_ = to[1];
    from_ = ::fdopen(from[0], "r");
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) finish();
  }

  void send(const std::string& line) {
    const std::string text = line + "\n";
    if (::write(to_, text.data(), text.size()) < 0) throw std::runtime_error("write");
  }
  // Output up to and with the line that starts with `start`.
  std::string read_to(const std::string& start) {
    std::string all;
    for (std::string line; next_line(line);) {
      all += line;
      if (line.rfind(start, 0) == 0) break;
    }
    return all;
  }
  Outcome finish() {
    ::close(to_);
    Outcome o;
    for (std::string line; next_line(line);) o.out += line;
    std::fclose(from_);
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    o.status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    return o;
  }

 private:
  bool next_line(std::string& line) {
    line.clear();
    for (int c; (c = std::fgetc(from_)) != EOF;) {
      line += static_cast<char>(c);
      if (c == '\n') break;
    }
    return !line.empty();
  }

  pid_t pid_ = -1;
  int to_ = -1;
  std::FILE* from_ = nullptr;
};

// The load driver of tests/fixtures, with no search places but those named.
inline Outcome drive(std::vector<std::string> arguments, Environment extra = {},
                     const fs::path& folder = {}) {
  arguments.insert(arguments.begin(), environment("TRELLIS_LOAD_DRIVER"));
  extra.emplace("TRELLIS_PLUGIN_PATH", "");
  return Child(arguments, extra, folder).finish();
}

// The text of the error that `body` throws; empty: none.
template <class F>
std::string error_of(F&& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace trellis::test
