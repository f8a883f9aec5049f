/* SPDX-License-Identifier: Apache-2.0
 *
 * Umbrella of the stable headers. Start with plugin.h (life cycle), then op.h.
 */
#ifndef TRELLIS_ABI_ABI_H
#define TRELLIS_ABI_ABI_H

#include <trellis/abi/attr.h>
#include <trellis/abi/base.h>
#include <trellis/abi/builder.h>
#include <trellis/abi/host.h>
#include <trellis/abi/initializer.h>
#include <trellis/abi/linalg.h>
#include <trellis/abi/op.h>
#include <trellis/abi/plugin.h>
#include <trellis/abi/softmax.h>
#include <trellis/abi/tensor.h>
#include <trellis/abi/trainer.h>

#endif
