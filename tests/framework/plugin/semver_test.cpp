// SPDX-License-Identifier: Apache-2.0
#include "plugin/semver.hpp"

#include <doctest/doctest.h>

using trellis::detail::Version;
using trellis::detail::VersionRange;

namespace {

bool fits(const char* range, const char* version) {
  const auto r = VersionRange::parse(range);
  REQUIRE(r);
  return r->contains(*Version::parse(version));
}

}  // namespace

TEST_CASE("semver: versions have three numbers, perhaps a pre-release, perhaps a build part") {
  for (const char* good :
       {"0.0.0", "1.4.0", "10.20.30", "1.0.0-rc.1", "1.0.0-0-a.b", "1.0.0+build.5", "1.0.0-rc+x"})
    CHECK_MESSAGE(Version::parse(good), good);
  for (const char* bad :
       {"", "1", "1.2", "1.2.3.4", "01.2.3", "1.2.x", "1.2.3-", "1.2.3-a..b", "1.2.3+", " 1.2.3",
        "1.2.3 ", "-1.2.3", "1..3", "1.2.", "4294967296.0.0", "1.2.3-ü"})
    CHECK_MESSAGE(!Version::parse(bad), bad);
  CHECK(Version::parse("1.4.0-rc.1+x")->to_string() == "1.4.0-rc.1");
}

TEST_CASE("semver: precedence goes by numbers, then pre-release identifiers") {
  const char* const ascending[] = {
      "0.9.9",      "1.0.0-alpha",  "1.0.0-alpha.1", "1.0.0-alpha.beta",
      "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1",
      "1.0.0",      "1.0.1",        "1.2.0",         "1.10.0",
      "2.0.0"};
  for (size_t i = 0; i < std::size(ascending); ++i)
    for (size_t j = 0; j < std::size(ascending); ++j) {
      CAPTURE(ascending[i]);
      CAPTURE(ascending[j]);
      CHECK((*Version::parse(ascending[i]) < *Version::parse(ascending[j])) == (i < j));
    }
  CHECK(*Version::parse("1.0.0+a") == *Version::parse("1.0.0+b"));
}

TEST_CASE("semver: ranges") {
  CHECK(fits("*", "0.0.1"));
  CHECK(fits("^1.2", "1.2.0"));
  CHECK(fits("^1.2", "1.9.3"));
  CHECK_FALSE(fits("^1.2", "2.0.0"));
  CHECK_FALSE(fits("^1.2", "1.1.9"));
  CHECK(fits("^0.1", "0.1.7"));
  CHECK_FALSE(fits("^0.1", "0.2.0"));
  CHECK(fits("^0.0.3", "0.0.3"));
  CHECK_FALSE(fits("^0.0.3", "0.0.4"));
  CHECK(fits("^0", "0.9.0"));
  CHECK_FALSE(fits("^0", "1.0.0"));
  CHECK(fits("~1.2.3", "1.2.9"));
  CHECK_FALSE(fits("~1.2.3", "1.3.0"));
  CHECK(fits("~1", "1.9.0"));
  CHECK(fits(">=1.2", "7.0.0"));
  CHECK(fits(">= 1.2", "1.2.0"));
  CHECK_FALSE(fits(">=1.2", "1.1.99"));
  CHECK(fits("=1.2.3", "1.2.3"));
  CHECK(fits("1.2.3", "1.2.3"));
  CHECK_FALSE(fits("1.2.3", "1.2.4"));
}

TEST_CASE("semver: a pre-release fits only a range that names one of the same numbers") {
  CHECK_FALSE(fits("^1.2", "1.3.0-rc.1"));
  CHECK_FALSE(fits("*", "1.3.0-rc.1"));
  CHECK(fits("^1.3.0-rc.1", "1.3.0-rc.2"));
  CHECK_FALSE(fits("^1.3.0-rc.1", "1.4.0-rc.1"));
  CHECK(fits("^1.3.0-rc.1", "1.4.0"));
  CHECK(fits("=1.3.0-rc.1", "1.3.0-rc.1"));
}

TEST_CASE("semver: what is no range is not taken for one") {
  for (const char* bad : {"", "^", "1.2", "=1.2", ">1.2.3", "<2", "^1.2 ", "latest", "^1.x",
                          "~1.2-rc", "^4294967295"})
    CHECK_MESSAGE(!VersionRange::parse(bad), bad);
  CHECK(VersionRange::parse("^1.2")->text() == "^1.2");
}
