// SPDX-License-Identifier: Apache-2.0
#include "plugin/trace.hpp"

#include <stdlib.h>

#include <cstdio>
#include <utility>

namespace trellis::detail {
namespace {

constexpr std::pair<std::string_view, TraceTopic> kTopics[] = {{"search", TraceTopic::search},
                                                               {"verify", TraceTopic::verify},
                                                               {"load", TraceTopic::load},
                                                               {"resolve", TraceTopic::resolve}};

}  // namespace

Trace Trace::from_environment() {
  const char* const topics = ::secure_getenv("TRELLIS_PLUGIN_DEBUG");
  return Trace(topics ? topics : "");
}

Trace::Trace(std::string_view topics) {
  while (!topics.empty()) {
    const size_t comma = topics.find(',');
    const std::string_view word = topics.substr(0, comma);
    for (const auto& [name, topic] : kTopics)
      if (word == name || word == "all" || word == "1") topics_ |= static_cast<unsigned>(topic);
    topics = comma == std::string_view::npos ? std::string_view() : topics.substr(comma + 1);
  }
}

void Trace::write(TraceTopic t, const std::string& text) {
  for (const auto& [name, topic] : kTopics)
    if (topic == t) {
      const std::string line = "[plugin:" + std::string(name) + "] " + text + "\n";
      std::fwrite(line.data(), 1, line.size(), stderr);
    }
}

}  // namespace trellis::detail
