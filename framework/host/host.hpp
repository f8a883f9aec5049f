// SPDX-License-Identifier: Apache-2.0
//
// The tables behind get_interface, one file each. All are immutable and live as long as the
// process; what they act on is reached through the call.
//
// No exception leaves any function of a table: the caller may be C.
#pragma once

#include <trellis/abi/abi.h>

#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <trellis/error.hpp>

#include "runtime/call.hpp"

namespace trellis::detail {

extern const trl_registry_api kRegistryApi;
extern const trl_exec_api kExecApi;
extern const trl_devices_api kDevicesApi;
extern const trl_graph_api kGraphApi;
extern const trl_linalg_api kLinalgApi;
extern const trl_options_api kOptionsApi;

trl_status status_of(ErrorKind kind);

// Records a failure on the call, first text first, and returns `status`.
trl_status record(trl_call* call, trl_status status, std::string_view text) noexcept;

// TRL_OK when the call is in one of `phases`; else records "[trl.exec/1] scratch is not allowed in
// init".
template <class... P>
trl_status require_phase(trl_call* call, std::string_view what, P... phases) noexcept;
std::string_view phase_name(Phase phase);
trl_status wrong_phase(trl_call* call, std::string_view what) noexcept;

// Runs `body`, which returns a status and may throw; what it throws is recorded on the call.
template <class F>
trl_status guard_host(trl_call* call, F&& body) noexcept {
  try {
    return body();
  } catch (const Error& e) {
    return record(call, status_of(e.kind()), e.what());
  } catch (const std::bad_alloc&) {
    return record(call, TRL_E_OOM, "out of memory");
  } catch (const std::exception& e) {
    return record(call, TRL_E_INTERNAL, e.what());
  } catch (...) {
    return record(call, TRL_E_INTERNAL, "an exception of unknown type");
  }
}

// n elements, on the stack while they are few: applying an operator allocates nothing.
template <class T, size_t kFew>
class Buffer {
 public:
  explicit Buffer(size_t n) : size_(n) {
    if (n > kFew) more_ = std::make_unique<T[]>(n);
  }
  T* data() { return more_ ? more_.get() : few_; }
  T& operator[](size_t i) { return data()[i]; }
  std::span<const T> span() { return {data(), size_}; }

 private:
  T few_[kFew];
  std::unique_ptr<T[]> more_;
  size_t size_;
};

inline std::string_view view_of(const trl_str& s) {
  return s.p ? std::string_view(s.p, s.n) : std::string_view();
}

template <class... P>
trl_status require_phase(trl_call* call, std::string_view what, P... phases) noexcept {
  const Phase phase = as_call(call).phase;
  return ((phase == phases) || ...) ? TRL_OK : wrong_phase(call, what);
}

}  // namespace trellis::detail
