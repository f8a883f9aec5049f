// SPDX-License-Identifier: Apache-2.0
//
// Versions of plugins (semver 2.0) and the ranges in which they are asked for.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trellis::detail {

// 1.4.0, 2.0.0-rc.1; a build part (+abc) is read and ignored.
struct Version {
  uint32_t major = 0, minor = 0, patch = 0;
  std::string pre;  // "rc.1"; empty: a release

  // Nothing where the text is not a version of three numbers.
  static std::optional<Version> parse(std::string_view text);
  std::string to_string() const;

  // By precedence: a pre-release comes before its release.
  friend std::strong_ordering operator<=>(const Version& a, const Version& b);
  friend bool operator==(const Version& a, const Version& b) { return (a <=> b) == 0; }
};

// ^1.2 (same first number that is not zero), ~1.2 (same major and minor), >=1.2, =1.2.3 or 1.2.3
// (that one), * (any). A pre-release satisfies a range only when the range names a pre-release of
// the same three numbers.
class VersionRange {
 public:
  VersionRange() = default;  // any
  static std::optional<VersionRange> parse(std::string_view text);
  bool contains(const Version& v) const;
  const std::string& text() const { return text_; }  // as given

 private:
  std::string text_ = "*";
  Version low_;                   // inclusive
  std::optional<Version> below_;  // exclusive; nothing: no upper bound
  bool any_ = true, exact_ = false;
};

}  // namespace trellis::detail
