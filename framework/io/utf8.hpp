// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace trellis::detail {

// Position of the first byte that is not part of well-formed UTF-8 (no overlong forms, no
// surrogates, at most U+10FFFF); npos when all are.
size_t find_invalid_utf8(std::string_view text);

// For error texts: control and ill-formed bytes as \xNN, at most `limit` bytes of the text, then
// "...".
std::string printable(std::string_view text, size_t limit = 60);

}  // namespace trellis::detail
