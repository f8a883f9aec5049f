// SPDX-License-Identifier: Apache-2.0
//
// A runtime is a registry, the plugins loaded into it, and a seed. There is no global state: two
// runtimes with different plugins may live in one process, and everything else (Model, Graph,
// Trainer) is made from one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <trellis/api.hpp>
#include <trellis/device.hpp>
#include <trellis/error.hpp>
#include <vector>

namespace trellis {

class Registry;
namespace detail {
struct RuntimeCore;
}

struct RuntimeOptions {
  // What to load. An experiment file (trellis.toml) names exactly the plugins; `plugins` adds ids,
  // "id@version-range" or paths of manifests. Both empty: every plugin of the install place (the
  // shipped ones).
  std::filesystem::path plugins_file;
  std::vector<std::string> plugins;
  bool no_plugins = false;  // load nothing at all
  // Where to look, before ./.trellis/plugins, $TRELLIS_PLUGIN_PATH, the user's store and the
  // install place.
  std::vector<std::filesystem::path> search;
  uint64_t seed = 1;
  // Messages of the host and of plugins; level 0 trace .. 4 error. Default: warnings and errors to
  // stderr.
  std::function<void(int level, std::string_view text)> log;
};

// A handle; copies refer to the same runtime, and moving copies. It ends with the last handle, model,
// graph and trainer made from it; the libraries of its plugins stay mapped.
class TRELLIS_API Runtime {
 public:
  // Throws Error(plugin) naming file, fact and what to do; then nothing was registered.
  explicit Runtime(const RuntimeOptions& options = {});
  Runtime(const Runtime&) = default;
  Runtime& operator=(const Runtime&) = default;
  ~Runtime();

  const Registry& registry()
      const;  // what is loaded: registry.hpp of the framework; see also plugin.hpp
  uint64_t seed() const;
  void set_seed(uint64_t seed);                  // for graphs and parameters made from now on
  std::vector<Device> devices() const;           // the CPU first
  Device device(std::string_view name) const;    // "cpu"; throws Error(argument) naming those there
  std::string device_name(Device device) const;  // throws Error(argument) when it is not there
  bool operator==(const Runtime&) const = default;  // one and the same
  detail::RuntimeCore& core() const { return *core_; }

 private:
  std::shared_ptr<detail::RuntimeCore> core_;
};

// "0.1.0" and the ABI it speaks, "0.1".
TRELLIS_API std::string_view version();
TRELLIS_API std::string abi_version();

}  // namespace trellis
