// SPDX-License-Identifier: Apache-2.0
//
// Dev folders: where a user works on plugins, trusted because that user said so. They are kept, a
// line each, in $XDG_CONFIG_HOME/trellis/dev-folders (else ~/.config/trellis/dev-folders).
#pragma once

#include <filesystem>

namespace trellis::detail {

// Empty: neither variable names a folder, or the process runs with more rights than its user.
std::filesystem::path dev_file();

}  // namespace trellis::detail
