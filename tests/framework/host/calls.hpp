// SPDX-License-Identifier: Apache-2.0
//
// A runtime with the operators of tests/support/test_ops.hpp and calls into it, as a plugin would
// see them.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "host/host.hpp"
#include "plugin/loader.hpp"
#include "support/test_ops.hpp"
#include "tensor/arena.hpp"

namespace trellis::test {

struct HostCall {
  TestRuntime runtime;
  detail::Arena scratch;
  detail::Call call{runtime.get().core()};

  explicit HostCall(detail::Phase phase) {
    call.begin(phase, nullptr);
    call.scratch = &scratch;
    call.plugin_id = "caller";
  }
  operator trl_call*() { return &call; }

  trl_op_handle resolve(const char* op, std::vector<const char*> keys = {}) {
    std::vector<std::string> names(keys.begin(), keys.end());
    return runtime.get().core().loader->handles().resolve(runtime.get().registry(), "caller", op,
                                                          names);
  }
  // The text of the failure recorded last.
  std::string text(trl_status st) { return call.take_text(st); }
};

inline trl_str str(std::string_view s) { return {s.data(), s.size()}; }

// A packed f32 tensor over `values`.
inline trl_tensor tensor(std::vector<float>& values, const Dim& dim) {
  trl_tensor t{};
  t.data = values.data();
  t.dim = dim;
  t.batch_stride = dim.batch == 1 ? 0 : dim.elements();
  t.dtype = TRL_F32;
  return t;
}

inline trl_attr integers(const std::vector<int64_t>& values) {
  trl_attr a{};
  a.type = TRL_ATTR_I64S;
  a.count = static_cast<uint32_t>(values.size());
  a.v.is = values.data();
  return a;
}

inline trl_attr integer(int64_t value) {
  trl_attr a{};
  a.type = TRL_ATTR_I64;
  a.count = 1;
  a.v.i = value;
  return a;
}

}  // namespace trellis::test
