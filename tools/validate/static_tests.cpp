// SPDX-License-Identifier: Apache-2.0
//
// What can be said of a plugin without running it.

#include "validate/tests.hpp"

namespace trellis::validate {
namespace {

// Errors fail; warnings are advice, and stand in the report of a test that passed.
void check(Context& c, const Subject&) {
  const PluginInfo& plugin = c.info();
  const auto& file = plugin.manifest.empty() ? plugin.library : plugin.manifest;
  const PluginCheck result = check_plugin(file.string(), c.runtime_options());
  std::string errors;
  for (const CheckFinding& f : result.findings) {
    if (f.severity == Severity::error)
      errors += (errors.empty() ? "" : "\n") + f.fact;
    else
      c.note(f.fact);
  }
  if (!errors.empty()) c.fail(errors);
}

constexpr Test kTests[] = {
    {"static.check", 1, Kind::plugin, "manifest, note and linking of all libraries", check},
};

}  // namespace

std::span<const Test> static_tests() { return kTests; }

}  // namespace trellis::validate
