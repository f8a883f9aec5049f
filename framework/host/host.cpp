// SPDX-License-Identifier: Apache-2.0
#include "host/host.hpp"

#include <cstring>
#include <trellis/runtime.hpp>

#include "plugin/loader.hpp"
#include "runtime/core.hpp"

namespace trellis::detail {
namespace {

trl_status host_fail(trl_call* call, trl_status status, trl_str text) noexcept {
  // Success is no failure; a plugin that says so gets a status it cannot overlook.
  return record(call, status < 0 ? status : TRL_E_INTERNAL, view_of(text));
}

void host_log(trl_call* call, int32_t level, trl_str text) noexcept {
  as_call(call).core->log(level, view_of(text));
}

struct Interface {
  std::string_view id;
  const void* table;
  uint32_t size;
};

const Interface kInterfaces[] = {
    {"trl.registry/1", &kRegistryApi, sizeof kRegistryApi},
    {"trl.exec/1", &kExecApi, sizeof kExecApi},
    {"trl.devices/1", &kDevicesApi, sizeof kDevicesApi},
    {"trl.graph/1", &kGraphApi, sizeof kGraphApi},
    {"trl.linalg/1", &kLinalgApi, sizeof kLinalgApi},
    {"trl.options/1", &kOptionsApi, sizeof kOptionsApi},
};

const void* host_get_interface(trl_call* call, trl_str id_rev, uint32_t* size_out) noexcept {
  if (size_out) *size_out = 0;
  if (require_phase(call, "get_interface", Phase::init) != TRL_OK) return nullptr;
  const std::string_view id = view_of(id_rev);
  for (const Interface& i : kInterfaces) {
    if (i.id != id) continue;
    if (size_out) *size_out = i.size;
    return i.table;
  }
  if (id.starts_with("trl.")) return nullptr;
  const void* found = nullptr;
  uint32_t size = 0;
  guard_host(call, [&] {
    found = as_call(call).core->loader->plugin_interface(id_rev, &size);
    return TRL_OK;
  });
  if (found && size_out) *size_out = size;
  return found;
}

}  // namespace

trl_status record(trl_call* c, trl_status status, std::string_view text) noexcept {
  Call& call = as_call(c);
  if (call.status == TRL_OK) {
    call.status = status;
    try {
      call.text = text;
    } catch (const std::exception&) {  // no memory for the text: the status must do
    }
  }
  return status;
}

trl_status wrong_phase(trl_call* call, std::string_view what) noexcept {
  return guard_host(call, [&]() -> trl_status {
    return record(call, TRL_E_INVALID,
                  "[host] " + std::string(what) + " is not allowed in " +
                      std::string(phase_name(as_call(call).phase)));
  });
}

std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::entry:
      return "the entry function";
    case Phase::init:
      return "init";
    case Phase::fini:
      return "fini";
    case Phase::infer:
      return "infer";
    case Phase::create:
      return "create";
    case Phase::exec:
      return "forward and backward";
    case Phase::graph:
      return "graph building";
    case Phase::describe:
      return "describe";
    case Phase::fill:
      return "fill";
    case Phase::update:
      return "update";
  }
  return "";
}

trl_status status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::argument:
    case ErrorKind::state:
    case ErrorKind::numeric:
      return TRL_E_INVALID;
    case ErrorKind::shape:
      return TRL_E_SHAPE;
    case ErrorKind::dtype:
      return TRL_E_DTYPE;
    case ErrorKind::range:
      return TRL_E_RANGE;
    case ErrorKind::memory:
      return TRL_E_OOM;
    case ErrorKind::abi:
      return TRL_E_ABI;
    case ErrorKind::plugin:
    case ErrorKind::trust:
    case ErrorKind::io:
    case ErrorKind::internal:
      return TRL_E_INTERNAL;
  }
  return TRL_E_INTERNAL;
}

const trl_host* host_table() {
  static const trl_host table = [] {
    trl_host t{};
    t.struct_size = sizeof t;
    t.abi_major = TRL_ABI_MAJOR;
    t.abi_minor = TRL_ABI_MINOR;
    t.version = {version().data(), version().size()};
    t.fail = host_fail;
    t.log = host_log;
    t.get_interface = host_get_interface;
    return t;
  }();
  return &table;
}

}  // namespace trellis::detail
