// SPDX-License-Identifier: Apache-2.0
#include "validate/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace trellis::validate {

bool close(double a, double b, double relative, double absolute) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return true;
  return std::fabs(a - b) <= relative * std::max(std::fabs(a), std::fabs(b)) + absolute;
}

std::string text_of(double v) { return fmt::format("{}", v); }

std::string difference(const std::string& what, const Numbers& got, const Numbers& needed,
                       double relative, double absolute) {
  if (got.size() != needed.size())
    return fmt::format("{} has {} numbers (needed {})", what, got.size(), needed.size());
  for (size_t i = 0; i < got.size(); ++i)
    if (!close(got[i], needed[i], relative, absolute))
      return fmt::format("{}, element {} is {} (needed {})", what, i, got[i], needed[i]);
  return {};
}

std::string difference(const std::string& what, const std::vector<Numbers>& got,
                       const std::vector<Numbers>& needed, double relative, double absolute) {
  if (got.size() != needed.size())
    return fmt::format("{}: {} of them (needed {})", what, got.size(), needed.size());
  for (size_t k = 0; k < got.size(); ++k)
    if (std::string d =
            difference(fmt::format("{} {}", what, k), got[k], needed[k], relative, absolute);
        !d.empty())
      return d;
  return {};
}

double slope(const std::function<double(double)>& f, double x) {
  const double h = 1e-3;
  return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h);
}

Numbers uniform_numbers(size_t n, RandomEngine& random, double size) {
  Numbers v(n);
  for (double& x : v) x = size * (2 * random.uniform() - 1);
  return v;
}

}  // namespace trellis::validate
