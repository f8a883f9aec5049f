// SPDX-License-Identifier: Apache-2.0
//
// What the tests of operators' kernels share.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "validate/kernel_run.hpp"
#include "validate/test.hpp"

namespace trellis::validate {

// Calls body(case, values, dtype) for every case of an operator and every element type that it has
// a kernel for, smallest first. Skips composites, and what the schema says cannot be checked.
void for_each_case(Context& ctx, const Subject& subject, std::string_view test,
                   const std::function<void(const Case&, const Values&, DType)>& body);
// The same for kernels with backward, in f64 only: skips the others. The run is a forward one.
void for_each_gradient(Context& ctx, const Subject& subject, std::string_view test,
                       const std::function<void(const Case&, const Values&, KernelRun& run)>& body);

}  // namespace trellis::validate
