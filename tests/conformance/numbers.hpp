// SPDX-License-Identifier: Apache-2.0
//
// Lists of numbers compared, and derivatives by differences.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace conformance {

using Numbers = std::vector<double>;

inline bool close(double a, double b, double relative, double absolute) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return true;
  return std::fabs(a - b) <= relative * std::max(std::fabs(a), std::fabs(b)) + absolute;
}

// The first place where two lists differ, for people; empty: none.
inline std::string difference(const std::vector<Numbers>& got, const std::vector<Numbers>& expected,
                              double relative, double absolute) {
  if (got.size() != expected.size())
    return std::to_string(got.size()) + " tensors instead of " + std::to_string(expected.size());
  for (size_t k = 0; k < got.size(); ++k) {
    if (got[k].size() != expected[k].size())
      return "tensor " + std::to_string(k) + " has " + std::to_string(got[k].size()) +
             " numbers instead of " + std::to_string(expected[k].size());
    for (size_t i = 0; i < got[k].size(); ++i)
      if (!close(got[k][i], expected[k][i], relative, absolute))
        return "tensor " + std::to_string(k) + ", number " + std::to_string(i) + ": " +
               std::to_string(got[k][i]) + " instead of " + std::to_string(expected[k][i]);
  }
  return {};
}

// The derivative of f at x by central differences of fourth order; relative error about 1e-10 where
// f is smooth.
inline double slope(const std::function<double(double)>& f, double x) {
  const double h = 1e-3;
  return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h);
}

}  // namespace conformance
