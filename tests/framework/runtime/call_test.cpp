// SPDX-License-Identifier: Apache-2.0
#include "runtime/call.hpp"

#include <doctest/doctest.h>

using namespace trellis;
using namespace trellis::detail;

TEST_CASE("call: starts with the host's table and no plugin") {
  RuntimeCore core;
  Call call(core);
  CHECK(call.host == host_table());
  CHECK(call.self == nullptr);
  CHECK(call.core == &core);
  CHECK(&as_call(&call) == &call);
  int self = 0;
  call.begin(Phase::exec, &self);
  CHECK(call.self == &self);
  CHECK(call.phase == Phase::exec);
}

TEST_CASE("call: the text of a failure is taken once") {
  RuntimeCore core;
  Call call(core);
  call.status = TRL_E_SHAPE;
  call.text = "[square] no";
  CHECK(call.take_text(TRL_E_SHAPE) == "[square] no");
  CHECK(call.status == TRL_OK);
  CHECK(call.take_text(TRL_E_INTERNAL) == "no text given (status -6)");
}

TEST_CASE("call: every status has a kind") {
  CHECK(kind_of(TRL_E_INVALID) == ErrorKind::argument);
  CHECK(kind_of(TRL_E_SHAPE) == ErrorKind::shape);
  CHECK(kind_of(TRL_E_DTYPE) == ErrorKind::dtype);
  CHECK(kind_of(TRL_E_UNSUPPORTED) == ErrorKind::argument);
  CHECK(kind_of(TRL_E_OOM) == ErrorKind::memory);
  CHECK(kind_of(TRL_E_INTERNAL) == ErrorKind::plugin);
  CHECK(kind_of(TRL_E_ABI) == ErrorKind::abi);
  CHECK(kind_of(TRL_E_CANCELLED) == ErrorKind::state);
  CHECK(kind_of(TRL_E_RANGE) == ErrorKind::range);
  CHECK(kind_of(-4711) == ErrorKind::plugin);
  CHECK(kind_of(1) == ErrorKind::plugin);
}
