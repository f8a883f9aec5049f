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

RuntimeCore::~RuntimeCore() {
  // fini may still use what the runtime offers.
  if (loader) loader->finish();
}

}  // namespace detail

Runtime::Runtime(const RuntimeOptions& options) : core_(std::make_unique<detail::RuntimeCore>()) {
  core_->seed = options.seed;
  core_->log_sink = options.log;
  core_->registry = std::make_unique<Registry>();
  core_->loader = std::make_unique<detail::PluginLoader>(*core_);
  core_->loader->load(options);
  core_->linalg = std::make_unique<detail::LinalgDispatch>(*core_);
}

Runtime::~Runtime() = default;

const Registry& Runtime::registry() const { return *core_->registry; }

uint64_t Runtime::seed() const { return core_->seed; }

void Runtime::set_seed(uint64_t seed) { core_->seed = seed; }

std::string_view version() { return TRELLIS_VERSION; }

std::string abi_version() {
  return std::to_string(TRL_ABI_MAJOR) + "." + std::to_string(TRL_ABI_MINOR);
}

}  // namespace trellis
