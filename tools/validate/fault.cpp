// SPDX-License-Identifier: Apache-2.0
#include "validate/fault.hpp"

#include <signal.h>
#include <ucontext.h>

#include <cstdio>
#include <cstring>

#include "validate/guarded.hpp"

namespace trellis::validate {
namespace {

char* explanation = nullptr;
std::size_t explanation_room = 0;

const char* verb(const void* context) {
#if defined(__x86_64__)
  const auto* c = static_cast<const ucontext_t*>(context);
  return c->uc_mcontext.gregs[REG_ERR] & 2 ? "writing " : "reading ";
#else
  static_cast<void>(context);
  return "accessing ";
#endif
}

void on_signal(int signal, siginfo_t* info, void* context) {
  if (signal == SIGSEGV && info->si_code == SI_KERNEL) {
    // The processor's own refusal, without an address.
    std::snprintf(explanation, explanation_room,
                  "at an address less aligned than an instruction needs (views lie anywhere: read "
                  "align_log2), or far outside the address space");
  } else if (signal == SIGSEGV || signal == SIGBUS) {
    char where[128];
    const bool known = Guarded::explain(info->si_addr, where, sizeof where);
    const bool null = reinterpret_cast<std::size_t>(info->si_addr) < 4096;
    // Formatting is not safe in a handler in general; this process does nothing after it.
    std::snprintf(explanation, explanation_room, "%s%s", verb(context),
                  known  ? where
                  : null ? "through a null pointer (what is absent, not wanted or not kept is NULL)"
                         : "memory that is nobody's");
  }
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

void explain_faults(char* to, std::size_t room) {
  explanation = to;
  explanation_room = room;
  alignas(16) static char stack[64 * 1024];
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  ::sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    ::sigaction(signal, &action, nullptr);
}

}  // namespace trellis::validate
