/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ACME_HARD_TANH_H
#define ACME_HARD_TANH_H

#include <trellis/abi/op.h>

#ifdef __cplusplus
extern "C" {
#endif

extern const trl_op_desc acme_hard_tanh;
extern const trl_kernel_desc acme_hard_tanh_f32, acme_hard_tanh_f64;

#ifdef __cplusplus
}
#endif

#endif
