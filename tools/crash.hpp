// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace trellis::tools {

// From now on a fatal signal raised inside a plugin ends the program with `code` and a line that
// names plugin and signal. Others end it as usual.
void report_crashes(int code);

}  // namespace trellis::tools
