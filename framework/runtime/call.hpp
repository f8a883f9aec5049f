// SPDX-License-Identifier: Apache-2.0
//
// The host's side of trl_call: what a plugin's callback may reach, and where its error text goes.
// Reused from call to call by its owner (a graph, a trainer, the loader), so a call costs two
// stores and no allocation.
#pragma once

#include <trellis/abi/host.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <trellis/error.hpp>

#include "runtime/core.hpp"

namespace trellis::detail {

class Arena;
class GraphImpl;

// What may be called: see docs/abi.md. Functions that a phase forbids return TRL_E_INVALID with a
// text.
enum class Phase : uint8_t {
  entry,
  init,
  fini,
  infer,
  create,
  exec,
  graph,
  describe,
  fill,
  update
};

struct Call : trl_call {
  RuntimeCore* core = nullptr;
  Phase phase = Phase::entry;
  uint32_t depth = 0;          // of nested invokes
  trl_status status = TRL_OK;  // of the first failure
  std::string text;            // of the first failure
  Arena* scratch = nullptr;    // exec, fill, update; rewound by the owner after the call
  GraphImpl* graph = nullptr;  // graph phase: where apply and constant add nodes
  uint32_t attr_batch = 0;  // batch elements of the per-batch attributes that a callback was given
  std::string_view plugin_id;  // for messages

  explicit Call(RuntimeCore& c);  // sets host = host_table()
  void begin(Phase p, void* plugin_self) {
    self = plugin_self;
    phase = p;
  }
  // Text of the failure of a callback that returned `st`, then resets. "no text given (status -6)"
  // when it was silent.
  std::string take_text(trl_status st);
};

inline Call& as_call(trl_call* c) { return *static_cast<Call*>(c); }

// The one immutable table, in host/.
const trl_host* host_table();

ErrorKind kind_of(trl_status st);

}  // namespace trellis::detail
