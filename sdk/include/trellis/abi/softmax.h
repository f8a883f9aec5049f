/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax builders: output layers as macros on graph level. Parameters as for builders.
 */
#ifndef TRELLIS_ABI_SOFTMAX_H
#define TRELLIS_ABI_SOFTMAX_H

#include <trellis/abi/builder.h>

typedef struct trl_softmax_args {
  uint32_t struct_size, flags;
  trl_call* call;
  const trl_attr* attrs;
  const trl_expr* params;
  trl_expr h;          /* {hidden} x batch */
  const trl_attr* ids; /* loss: PER_BATCH ids (offsets set); else NULL */
  trl_expr* out;
  uint32_t n_attrs, n_params;
} trl_softmax_args;

typedef struct trl_softmax_desc {
  uint32_t struct_size, flags;
  trl_str id, summary, doc, source;
  const trl_str* aliases;
  const trl_attr_spec* const* attrs;
  uint16_t n_aliases, n_attrs;
  uint32_t version;
  trl_status (*n_params)(trl_call*, const trl_attr*, uint32_t n, uint32_t* out); /* [any] */
  trl_status (*param)(trl_call*, const trl_attr*, uint32_t n, uint32_t i,
                      trl_param_spec*);        /* [any] */
  trl_status (*loss)(const trl_softmax_args*); /* [graph] -log p(ids | h), one scalar per example */
  trl_status (*scores)(const trl_softmax_args*); /* [graph] log-probabilities of all classes */
  trl_status (*sample)(
      const trl_softmax_args*); /* [graph] an i64 node without gradient; may be NULL */
} trl_softmax_desc;

#endif
