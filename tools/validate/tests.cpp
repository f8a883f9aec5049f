// SPDX-License-Identifier: Apache-2.0
#include "validate/tests.hpp"

#include <algorithm>

namespace trellis::validate {

// A new file of tests is declared in tests.hpp, added here and named in tools/meson.build.
const std::vector<Test>& all_tests() {
  static const std::vector<Test> tests = [] {
    std::vector<Test> all;
    for (const auto part : {
             static_tests,
             load_tests,
             shape_tests,
             forward_tests,
             gradient_tests,
             batch_tests,
             fault_tests,
             graph_tests,
             builder_tests,
             softmax_tests,
             initializer_tests,
             trainer_tests,
             linalg_tests,
         }) {
      const std::span<const Test> some = part();
      all.insert(all.end(), some.begin(), some.end());
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Test& a, const Test& b) { return a.level < b.level; });
    return all;
  }();
  return tests;
}

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::plugin:
      return "plugin";
    case Kind::op:
      return "operator";
    case Kind::builder:
      return "builder";
    case Kind::softmax:
      return "softmax builder";
    case Kind::initializer:
      return "initializer";
    case Kind::trainer:
      return "trainer";
    case Kind::linalg:
      return "linalg provider";
  }
  return "";
}

}  // namespace trellis::validate
