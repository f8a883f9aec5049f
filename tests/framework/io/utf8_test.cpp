// SPDX-License-Identifier: Apache-2.0
#include "io/utf8.hpp"

#include <doctest/doctest.h>

using trellis::detail::find_invalid_utf8;
using trellis::detail::printable;

TEST_CASE("utf8: well-formed text of every length") {
  CHECK(find_invalid_utf8("") == std::string::npos);
  CHECK(find_invalid_utf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80") == std::string::npos);
  CHECK(find_invalid_utf8("\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF") == std::string::npos);
}

TEST_CASE("utf8: the first ill-formed byte") {
  CHECK(find_invalid_utf8("ab\x80") == 2);            // a tail alone
  CHECK(find_invalid_utf8("\xC0\x80") == 0);          // overlong
  CHECK(find_invalid_utf8("\xE0\x9F\xBF") == 0);      // overlong
  CHECK(find_invalid_utf8("\xF0\x8F\xBF\xBF") == 0);  // overlong
  CHECK(find_invalid_utf8("a\xED\xA0\x80") == 1);     // surrogate
  CHECK(find_invalid_utf8("\xF4\x90\x80\x80") == 0);  // above U+10FFFF
  CHECK(find_invalid_utf8("\xF5") == 0);
  CHECK(find_invalid_utf8("x\xE2\x82") == 1);  // cut off
}

TEST_CASE("utf8: printable text for messages") {
  CHECK(printable("a\tb\x80\xC3\xA9") == "a\\x09b\\x80\xC3\xA9");
  CHECK(printable("abcdef", 3) == "abc...");
  CHECK(printable("abc", 3) == "abc");
}
