// SPDX-License-Identifier: Apache-2.0
//
// A program that knows only the installed headers and library; the plugin is found in the install
// place.

#include <cstdio>
#include <exception>
#include <string>
#include <trellis/runtime.hpp>

int main() {
  try {
    trellis::RuntimeOptions options;
    options.plugins = {"ops-core"};
    trellis::Runtime runtime(options);
    std::printf("%s\n", std::string(trellis::version()).c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
