// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace trellis::validate {

// From now on a fatal signal leaves in `to` what address was touched and which guarded memory that
// is, and then ends the process by that signal.
void explain_faults(char* to, std::size_t room);

}  // namespace trellis::validate
