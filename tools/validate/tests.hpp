// SPDX-License-Identifier: Apache-2.0
//
// The tests, one function a file.
#pragma once

#include <span>

#include "validate/test.hpp"

namespace trellis::validate {

std::span<const Test> batch_tests();
std::span<const Test> builder_tests();
std::span<const Test> fault_tests();
std::span<const Test> forward_tests();
std::span<const Test> gradient_tests();
std::span<const Test> graph_tests();
std::span<const Test> initializer_tests();
std::span<const Test> linalg_tests();
std::span<const Test> load_tests();
std::span<const Test> shape_tests();
std::span<const Test> softmax_tests();
std::span<const Test> static_tests();
std::span<const Test> trainer_tests();

}  // namespace trellis::validate
