// SPDX-License-Identifier: Apache-2.0
//
// The plugin ops-rnn: the cells in ops/ and the builders that stand on them in builders/.

#include <trellis/sdk/plugin.hpp>

#include "ops.inc"

TRL_PLUGIN("ops-rnn", OPS_RNN_VERSION, "core", OPS_RNN_FILES)
