// SPDX-License-Identifier: Apache-2.0
//
// The plugin ops-core: everything that the files in ops/ define.

#include <trellis/sdk/plugin.hpp>

#include "ops.inc"

TRL_PLUGIN("ops-core", OPS_CORE_VERSION, "core", OPS_CORE_FILES)
