// SPDX-License-Identifier: Apache-2.0
//
// What the formula of an initializer says of its numbers, where it says it in one of two forms:
//
//   w ~ N(mean, std^2)           normal, by mean and variance
//   w ~ U[lo, hi)                uniform; any bracket
//
// followed, if needed, by definitions of names (", s = gain sqrt(3 / n)"). Expressions have + - * /
// ^, sqrt, brackets, products by juxtaposition, attributes, fan_in and fan_out.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace trellis::validate {

// The value of an expression; nothing when it can't be read or a name is unknown.
std::optional<double> evaluate(std::string_view expression,
                               const std::map<std::string, double, std::less<>>& names);

class Distribution {
 public:
  struct Numbers {
    bool uniform = false;
    double a = 0, b = 0;  // uniform: the ends; normal: mean and variance
    double mean() const;
    double deviation() const;
  };

  static std::optional<Distribution> parse(const std::string& formula);
  // Nothing when an expression stands on what is not known.
  std::optional<Numbers> at(std::map<std::string, double, std::less<>> names) const;
  const std::string& text() const { return text_; }

 private:
  bool uniform_ = false;
  std::string text_, first_, second_;
  std::map<std::string, std::string> definitions_;
};

}  // namespace trellis::validate
