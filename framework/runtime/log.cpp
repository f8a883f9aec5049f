// SPDX-License-Identifier: Apache-2.0
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <algorithm>

#include "runtime/core.hpp"

namespace trellis::detail {
namespace {

// Never destroyed: plugins may log while static objects go. Not in spdlog's registry, which belongs
// to the program.
spdlog::logger& default_logger() {
  static spdlog::logger* const logger = [] {
    auto* made =
        new spdlog::logger("trellis", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("trellis: %^%l%$: %v");
    made->set_level(spdlog::level::trace);
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *logger;
}

}  // namespace

void RuntimeCore::log(int level, std::string_view text) {
  // A message that cannot be delivered must not turn into an error of the caller, which may be C.
  try {
    if (log_sink) {
      const std::lock_guard lock(log_mutex);
      log_sink(level, text);
    } else if (level >= log_level.load(std::memory_order_relaxed)) {
      default_logger().log(static_cast<spdlog::level::level_enum>(std::clamp(level, 0, 4)),
                           spdlog::string_view_t(text.data(), text.size()));
    }
  } catch (...) {
  }
}

}  // namespace trellis::detail
