// SPDX-License-Identifier: Apache-2.0
//
// TRELLIS_PLUGIN_DEBUG=search,verify,load,resolve: why each plugin was chosen, skipped or refused,
// line by line on stderr.
#pragma once

#include <string>
#include <string_view>

namespace trellis::detail {

enum class TraceTopic : unsigned { search = 1, verify = 2, load = 4, resolve = 8 };

class Trace {
 public:
  // From the environment; "all" or "1" switches every topic on.
  static Trace from_environment();
  explicit Trace(std::string_view topics);

  bool on(TraceTopic t) const { return topics_ & static_cast<unsigned>(t); }
  // [plugin:search] text
  void line(TraceTopic t, const std::string& text) const {
    if (on(t)) write(t, text);
  }

 private:
  static void write(TraceTopic t, const std::string& text);
  unsigned topics_ = 0;
};

}  // namespace trellis::detail
