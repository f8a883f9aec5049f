// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace trellis::tools {

// Lines with aligned columns, two blanks between them; the last column is not padded.
std::string format_table(const std::vector<std::vector<std::string>>& rows,
                         const std::string& indent = "");

// "a, b, c"; `empty` when there is none.
std::string join(const std::vector<std::string>& words, const std::string& empty = "none");

}  // namespace trellis::tools
