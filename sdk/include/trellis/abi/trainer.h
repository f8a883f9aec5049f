/* SPDX-License-Identifier: Apache-2.0
 *
 * Trainers: an update kernel plus declared state slots. The host owns what all trainers share: clipping, refusal of
 * NaN and Inf, weight decay, which rows of a lookup table were touched, allocation, checkpointing and counting.
 */
#ifndef TRELLIS_ABI_TRAINER_H
#define TRELLIS_ABI_TRAINER_H

#include <trellis/abi/host.h>

/* A tensor of the parameter's shape that the host keeps for the trainer, filled with `init` at first. */
typedef struct trl_slot_spec {
  uint32_t struct_size, flags;
  trl_str name, doc;
  double init;
} trl_slot_spec;

typedef struct trl_update_args {
  uint32_t struct_size, flags;
  trl_call* call;
  const trl_attr* attrs;
  trl_tensor* value; /* the whole parameter; sparse: the whole table, rows in the last dimension */
  const trl_tensor* grad; /* dense: the parameter's shape. Sparse: n_rows rows, one after another */
  trl_tensor* slots;      /* n_slots, laid out like value */
  const uint32_t*
      rows; /* NULL: dense. Else grad row i belongs to row rows[i] of value and slots; no row twice */
  uint32_t n_attrs, n_slots, n_rows, reserved;
  double lr;         /* learning rate of this step */
  double grad_scale; /* multiply the gradient by this (clipping) */
  uint64_t step;     /* global to the trainer; 1 at the first update */
} trl_update_args;

/* The update for one dtype and device. */
typedef struct trl_update_desc {
  uint32_t struct_size, flags;
  trl_str trainer_id, device;
  uint16_t dtype;
  int16_t rank;
  uint32_t reserved;
  trl_status (*update)(
      const trl_update_args*); /* [exec] different parameters possibly at the same time */
} trl_update_desc;

typedef struct trl_trainer_desc {
  uint32_t struct_size, flags;
  trl_str id, summary, doc, formula, source;
  const trl_str* aliases;
  const trl_attr_spec* const*
      attrs; /* an F64 attribute "lr" is the learning rate; the host passes it as lr */
  const trl_slot_spec* const* slots;
  uint16_t n_aliases, n_attrs, n_slots, reserved;
  uint32_t version, state_version;
  trl_status (*begin_step)(trl_call*, const trl_attr*, uint32_t n,
                           uint64_t step); /* [graph] may be NULL */
} trl_trainer_desc;

#endif
