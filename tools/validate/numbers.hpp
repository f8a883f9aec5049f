// SPDX-License-Identifier: Apache-2.0
//
// Lists of numbers compared, and derivatives by differences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <trellis/random.hpp>
#include <vector>

namespace trellis::validate {

using Numbers = std::vector<double>;

// a and b differ by at most relative * the larger of them + absolute; NaN equals NaN.
bool close(double a, double b, double relative, double absolute);

// The first place where two lists differ, for people; empty: none. `what` names a list: "output"
// gives "output 1, element 3 is 0.5 (needed 0.25)".
std::string difference(const std::string& what, const std::vector<Numbers>& got,
                       const std::vector<Numbers>& needed, double relative, double absolute);
std::string difference(const std::string& what, const Numbers& got, const Numbers& needed,
                       double relative, double absolute);

// The derivative of f at x by central differences of fourth order; relative error about 1e-10 where
// f is smooth.
double slope(const std::function<double(double)>& f, double x);

// n numbers between -size and size.
Numbers uniform_numbers(size_t n, RandomEngine& random, double size = 1);

// A number so that it can be read back.
std::string text_of(double v);

}  // namespace trellis::validate
