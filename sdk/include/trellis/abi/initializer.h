/* SPDX-License-Identifier: Apache-2.0
 *
 * Initializers: fill a new parameter. One descriptor serves f32 and f64 (value->dtype says which).
 */
#ifndef TRELLIS_ABI_INITIALIZER_H
#define TRELLIS_ABI_INITIALIZER_H

#include <trellis/abi/host.h>

enum {
  TRL_INIT_DEFAULT = 1u << 0
}; /* used where a parameter names none; one provider in a runtime */

typedef struct trl_fill_args {
  uint32_t struct_size, flags;
  trl_call* call;
  const trl_attr* attrs;
  trl_tensor*
      value; /* packed. Lookup tables: the row's shape with the number of rows as last dimension */
  trl_stream stream; /* from (seed, the parameter's name) */
  uint64_t fan_in,
      fan_out; /* matrix {out, in}: in, out; vector {n}: n, n; conv {h,w,ci,co}: ci*h*w, co*h*w;
                               lookup row {n}: n, n */
  uint32_t n_attrs, lookup; /* lookup 1: the last dimension counts rows */
} trl_fill_args;

typedef struct trl_initializer_desc {
  uint32_t struct_size, flags;
  trl_str id, summary, doc, formula, source;
  const trl_str* aliases;
  const trl_attr_spec* const* attrs;
  uint16_t n_aliases, n_attrs;
  uint32_t version;
  trl_status (*fill)(const trl_fill_args*); /* [any] */
} trl_initializer_desc;

#endif
