// SPDX-License-Identifier: Apache-2.0

#include <trellis/sdk/plugin.hpp>

#include "hard_tanh.h"

TRL_PLUGIN("acme-pack", "1.0.0", "acme", swish, hard_tanh, lion, mgu)

// A group whose tables are written by hand, in C.
void trl_ops_hard_tanh(trellis::sdk::Catalog& catalog) {
  catalog.ops.push_back(&acme_hard_tanh);
  catalog.kernels.push_back(&acme_hard_tanh_f32);
  catalog.kernels.push_back(&acme_hard_tanh_f64);
}
