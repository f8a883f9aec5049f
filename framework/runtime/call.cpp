// SPDX-License-Identifier: Apache-2.0
#include "runtime/call.hpp"

#include <utility>

namespace trellis::detail {

Call::Call(RuntimeCore& c) : trl_call{host_table(), nullptr}, core(&c) {}

std::string Call::take_text(trl_status st) {
  status = TRL_OK;
  std::string taken = std::exchange(text, {});
  if (taken.empty()) taken = "no text given (status " + std::to_string(st) + ")";
  return taken;
}

ErrorKind kind_of(trl_status st) {
  switch (st) {
    case TRL_E_INVALID:
    case TRL_E_UNSUPPORTED:
      return ErrorKind::argument;
    case TRL_E_SHAPE:
      return ErrorKind::shape;
    case TRL_E_DTYPE:
      return ErrorKind::dtype;
    case TRL_E_OOM:
      return ErrorKind::memory;
    case TRL_E_CANCELLED:
      return ErrorKind::state;
    case TRL_E_RANGE:
      return ErrorKind::range;
    case TRL_E_ABI:
      return ErrorKind::abi;
    default:  // TRL_E_INTERNAL, and numbers nobody defined
      return ErrorKind::plugin;
  }
}

}  // namespace trellis::detail
