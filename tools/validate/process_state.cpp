// SPDX-License-Identifier: Apache-2.0
#include "validate/process_state.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <malloc.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <clocale>
#include <cstdlib>
#include <fstream>
#include <memory>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "validate/allocations.hpp"

extern "C" char** environ;

namespace trellis::validate {
namespace {

// The numbers in a folder of /proc, without that of the descriptor that reads it.
std::vector<int> numbers_in(const char* folder) {
  std::vector<int> numbers;
  DIR* const open = ::opendir(folder);
  if (!open) return numbers;
  while (const dirent* entry = ::readdir(open))
    if (entry->d_name[0] != '.' && std::atoi(entry->d_name) != ::dirfd(open))
      numbers.push_back(std::atoi(entry->d_name));
  ::closedir(open);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::string link_of(const std::string& path) {
  char to[512];
  const ssize_t n = ::readlink(path.c_str(), to, sizeof to);
  return n > 0 ? std::string(to, static_cast<size_t>(n)) : std::string();
}

}  // namespace

ProcessState ProcessState::now() {
  ProcessState s;
  s.locale = std::setlocale(LC_ALL, nullptr);
  s.folder = link_of("/proc/self/cwd");
  for (char** e = environ; *e; ++e) s.environment.emplace_back(*e);
  std::sort(s.environment.begin(), s.environment.end());
  for (const int fd : numbers_in("/proc/self/fd"))
    s.files.emplace_back(fd, link_of(fmt::format("/proc/self/fd/{}", fd)));
  s.threads = numbers_in("/proc/self/task");
  sigset_t blocked;
  ::sigprocmask(SIG_BLOCK, nullptr, &blocked);
  for (int n = 1; n < 65; ++n) {
    struct sigaction action {};
    if (::sigaction(n, nullptr, &action) == 0)
      s.handlers.emplace_back(n, reinterpret_cast<uintptr_t>(action.sa_handler));
    if (::sigismember(&blocked, n) == 1) s.blocked.push_back(n);
  }
#if defined(__x86_64__)
  unsigned short x87 = 0;
  __asm__ volatile("fnstcw %0" : "=m"(x87));
  s.rounding = x87;
  s.sse = _mm_getcsr() & ~0x3Fu;
#else
  s.rounding = static_cast<unsigned>(std::fegetround());
#endif
  s.mask = ::umask(0);
  ::umask(s.mask);
  return s;
}

std::string difference(const ProcessState& a, const ProcessState& b) {
  if (a.sse != b.sse)
    return fmt::format(
        "the floating-point mode was changed: MXCSR is {:#x} (needed {:#x}: rounding, denormal "
        "numbers, exceptions)",
        b.sse, a.sse);
  if (a.rounding != b.rounding)
    return fmt::format("the floating-point mode was changed: control word {:#x} (needed {:#x})",
                       b.rounding, a.rounding);
  if (a.locale != b.locale)
    return fmt::format("the locale was changed: '{}' (needed '{}')", b.locale, a.locale);
  if (a.folder != b.folder)
    return fmt::format("the working folder was changed: '{}' (needed '{}')", b.folder, a.folder);
  for (const std::string& e : b.environment)
    if (!std::binary_search(a.environment.begin(), a.environment.end(), e))
      return fmt::format("the environment was changed: {}", e);
  if (a.environment != b.environment) return "the environment was changed: a variable is gone";
  if (a.threads.size() < b.threads.size())
    return fmt::format("a thread was started: {} (needed {})", b.threads.size(), a.threads.size());
  for (const auto& f : b.files)
    if (std::find(a.files.begin(), a.files.end(), f) == a.files.end())
      return fmt::format("file descriptor {} was left open: {}", f.first, f.second);
  if (a.files.size() > b.files.size()) return "a file descriptor of the program was closed";
  for (size_t i = 0; i < a.handlers.size() && i < b.handlers.size(); ++i)
    if (a.handlers[i] != b.handlers[i])
      return fmt::format("the handler of SIG{} was changed", ::sigabbrev_np(a.handlers[i].first));
  if (a.blocked != b.blocked) return "the mask of signals was changed";
  if (a.mask != b.mask) return fmt::format("umask was changed: {:o} (needed {:o})", b.mask, a.mask);
  return {};
}

size_t open_files() { return numbers_in("/proc/self/fd").size(); }
size_t running_threads() { return numbers_in("/proc/self/task").size(); }

uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

uint64_t heap_bytes() {
  if (!kCountsAllocations) return 0;
  const struct mallinfo2 m = ::mallinfo2();
  return m.uordblks + m.hblkhd;
}

}  // namespace trellis::validate
