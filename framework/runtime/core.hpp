// SPDX-License-Identifier: Apache-2.0
//
// What a runtime owns, seen from every folder. The parts are known here by name only (they live to
// the right of runtime/); host/ puts them together and takes them apart.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <trellis/device.hpp>
#include <trellis/error.hpp>
#include <vector>

namespace trellis {
class Registry;
}

namespace trellis::detail {

class LinalgDispatch;  // linalg/dispatch.hpp
class PluginLoader;    // plugin/loader.hpp

// How closely plugins are watched. full: outputs pre-filled with NaN patterns, guard bytes around
// every buffer.
enum class CheckLevel : uint8_t { off, cheap, full };

struct RuntimeCore {
  RuntimeCore();
  ~RuntimeCore();  // host/runtime.cpp: runs fini of every plugin, newest first

  std::unique_ptr<Registry> registry;
  std::unique_ptr<LinalgDispatch> linalg;
  std::unique_ptr<PluginLoader> loader;
  std::atomic<uint64_t> seed{1};
  std::atomic<uint64_t> next_serial{1};  // graphs that name no serial
  CheckLevel check = CheckLevel::cheap;
  std::function<void(int, std::string_view)> log_sink;
  std::mutex log_mutex;
  std::atomic<int> log_level{
      3};  // what reaches stderr where there is no sink; a sink gets everything

  std::vector<std::string> devices{"cpu"};  // names, by number

  std::string device_list() const;  // "cpu"
  // Throws Error(argument) unless the device is there; `who` starts the text.
  void check_device(std::string_view who, Device device) const;
  void log(int level, std::string_view text);  // [any] never throws
};

}  // namespace trellis::detail
