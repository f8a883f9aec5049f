// SPDX-License-Identifier: Apache-2.0
#include <trellis/abi/base.h>

#include <trellis/runtime.hpp>

#include "linalg/dispatch.hpp"
#include "plugin/loader.hpp"
#include "registry/registry.hpp"
#include "runtime/core.hpp"

namespace trellis {

namespace detail {

RuntimeCore::RuntimeCore() = default;

std::string RuntimeCore::device_list() const {
  std::string list;
  for (const std::string& name : devices) list += (list.empty() ? "" : ", ") + name;
  return list;
}

void RuntimeCore::check_device(std::string_view who, Device device) const {
  if (device.number() >= devices.size())
    fail(ErrorKind::argument, "[" + std::string(who) + "] no device " +
                                  std::to_string(device.number()) + " (has: " + device_list() +
                                  ")");
}

RuntimeCore::~RuntimeCore() {
  // fini may still use what the runtime offers.
  if (loader) loader->finish();
}

}  // namespace detail

Runtime::Runtime(const RuntimeOptions& options) : core_(std::make_shared<detail::RuntimeCore>()) {
  core_->seed = options.seed;
  core_->log_sink = options.log;
  core_->registry = std::make_unique<Registry>();
  core_->loader = std::make_unique<detail::PluginLoader>(*core_);
  core_->loader->load(options);
  core_->linalg = std::make_unique<detail::LinalgDispatch>(*core_);
}

Runtime::~Runtime() = default;

const Registry& Runtime::registry() const { return *core_->registry; }

std::vector<Device> Runtime::devices() const {
  std::vector<Device> all;
  for (size_t i = 0; i < core_->devices.size(); ++i) all.emplace_back(static_cast<uint8_t>(i));
  return all;
}

Device Runtime::device(std::string_view name) const {
  for (const Device d : devices())
    if (core_->devices[d.number()] == name) return d;
  fail(ErrorKind::argument,
       "[device] no device '" + std::string(name) + "' (has: " + core_->device_list() + ")");
}

std::string Runtime::device_name(Device device) const {
  core_->check_device("device_name", device);
  return core_->devices[device.number()];
}

uint64_t Runtime::seed() const { return core_->seed; }

void Runtime::set_seed(uint64_t seed) { core_->seed = seed; }

std::string_view version() { return TRELLIS_VERSION; }

std::string abi_version() {
  return std::to_string(TRL_ABI_MAJOR) + "." + std::to_string(TRL_ABI_MINOR);
}

}  // namespace trellis
