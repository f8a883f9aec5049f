// SPDX-License-Identifier: Apache-2.0
#include "micro.hpp"

#include <cstdlib>

#include "allocations.hpp"

namespace trellis::bench {

uint64_t allocations() { return test::allocations; }

const Runtime& runtime() {
  static const Runtime runtime([] {
    RuntimeOptions options;
    options.plugins = {"ops-core",      "initializers", "trainers",
                       "linalg-native", "linalg-eigen", "linalg-openblas"};
    return options;
  }());
  return runtime;
}

void register_products();

}  // namespace trellis::bench

int main(int argc, char** argv) {
  setenv("TRELLIS_PLUGIN_PATH", PLUGIN_DIR, 0);  // this build's, unless told otherwise
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  trellis::bench::register_products();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
