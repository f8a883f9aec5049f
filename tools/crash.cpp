// SPDX-License-Identifier: Apache-2.0
#include "crash.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

#include <cstring>

namespace trellis::tools {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr int kMaxFrames = 64;
int exit_code = 1;

// A library with its manifest beside it: "x/acme.v3.so" and "x/acme.trellis.toml".
bool is_plugin(const char* library) {
  const char* slash = std::strrchr(library, '/');
  const char* name = slash != nullptr ? slash + 1 : library;
  const char* dot = std::strchr(name, '.');
  if (dot == nullptr) return false;
  char manifest[4096];
  const char kSuffix[] = ".trellis.toml";
  const auto stem = static_cast<size_t>(dot - library);
  if (stem + sizeof kSuffix > sizeof manifest) return false;
  std::memcpy(manifest, library, stem);
  std::memcpy(manifest + stem, kSuffix, sizeof kSuffix);
  return ::access(manifest, F_OK) == 0;
}

void say(const char* text) {
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) ::_exit(exit_code);
}

// The innermost plugin among the callers. The process is dying: dladdr() and backtrace() may be
// called, for nothing is done after them but to write a line.
void on_signal(int signal) {
  void* frames[kMaxFrames];
  const int n = ::backtrace(frames, kMaxFrames);
  for (int i = 0; i < n; ++i) {
    Dl_info info{};
    if (::dladdr(frames[i], &info) == 0 || info.dli_fname == nullptr) continue;
    if (!is_plugin(info.dli_fname)) continue;
    say("trellis: [plugin] '");
    say(info.dli_fname);
    say("' crashed: ");
    say(::sigdescr_np(signal));
    say(" (run with TRELLIS_PLUGIN_DEBUG=load to see what it was doing)\n");
    ::_exit(exit_code);
  }
  ::raise(signal);  // the default action was restored when the handler was entered
}

}  // namespace

void report_crashes(int code) {
  exit_code = code;
  void* frame[1];
  ::backtrace(frame, 1);  // loads what it needs now, not inside a handler
  // A stack of its own: the usual one may be used up.
  alignas(16) static char stack[64 * 1024];
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  ::sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK | SA_RESETHAND;
  for (const int signal : kSignals) ::sigaction(signal, &action, nullptr);
}

}  // namespace trellis::tools
