/* SPDX-License-Identifier: Apache-2.0
 *
 * Builders: a recipe that adds the nodes of one recurrent step to a graph. A step is PURE in the
 * state: the host keeps the tree of states, so rewinding, beam search, set_h/set_s, stacking,
 * bidirectional runs, residual connections and dropout masks are the host's combinators and no
 * builder knows of them.
 */
#ifndef TRELLIS_ABI_BUILDER_H
#define TRELLIS_ABI_BUILDER_H

#include <trellis/abi/host.h>

enum {
  TRL_PARAM_LOOKUP = 1u << 0,   /* a table of n_rows rows of shape dim */
  TRL_PARAM_CONSTANT = 1u << 1, /* not trained */
  TRL_PARAM_EXTERNAL = 1u << 2  /* may be bound to another parameter by name (tied weights) */
};

/* Host-allocated; filled by `param`. Made by the host in the user's sub-model. */
typedef struct trl_param_spec {
  uint32_t struct_size, flags;
  trl_str name;
  trl_str initializer;        /* id; empty: the default initializer. Static lifetime */
  const trl_attr* init_attrs; /* in the order of init_keys; static lifetime or held by `self` */
  const trl_str* init_keys;
  uint32_t n_init_attrs, n_rows;
  trl_dim dim; /* batch 1 */
} trl_param_spec;

/* Host-allocated; filled by `describe`. */
typedef struct trl_builder_info {
  uint32_t struct_size, flags;
  uint32_t n_params, n_state, n_prepared; /* n_state: expressions in one state (LSTM: 2, h and c) */
  uint32_t h_index;                       /* which of them is the output */
} trl_builder_info;

typedef struct trl_step_args {
  uint32_t struct_size, flags;
  trl_call* call;
  const trl_attr* attrs;
  const trl_expr* params; /* by index */
  const trl_expr* pred;   /* n_pred states of n_state expressions, one after another */
  const trl_expr *in, *context, *prepared;
  trl_expr* state_out; /* out: n_state */
  uint32_t n_attrs, n_params, n_pred, n_state, n_in, n_context, n_prepared;
  uint32_t branch; /* tree builders: which child this is; else 0 */
} trl_step_args;

typedef struct trl_sequence_args {
  uint32_t struct_size, n_steps;
  const trl_step_args*
      first;            /* pred: start state; in: n_steps * n_in, n_in being that of one step */
  trl_expr* states_out; /* n_steps * n_state */
} trl_sequence_args;

#define TRL_VARIADIC 0xFFFFu

typedef struct trl_builder_desc {
  uint32_t struct_size, flags;
  trl_str id, summary, doc, formula, source;
  const trl_str* aliases;
  const trl_attr_spec* const* attrs;
  uint16_t n_aliases, n_attrs;
  uint16_t min_pred, max_pred; /* predecessor states of a step: 1,1 chain; N,N or 0,VARIADIC tree */
  uint16_t min_in, max_in, min_context, max_context; /* context: attention memory */
  int16_t input_attr, hidden_attr; /* which attributes hold the sizes of an input vector and of the
                                      output vector, so that the host can stack layers; -1: none */
  uint32_t version, state_version; /* state_version guards checkpoints */
  trl_status (*describe)(trl_call*, const trl_attr*, uint32_t n, trl_builder_info*); /* [any] */
  trl_status (*param)(trl_call*, const trl_attr*, uint32_t n, uint32_t i,
                      trl_param_spec*); /* [any] */
  trl_status (*state)(trl_call*, const trl_attr*, uint32_t n, uint32_t i,
                      trl_dim*); /* [any]; starts as zeros */
  trl_status (*prepare)(const trl_step_args*,
                        trl_expr* prepared); /* [graph] once a graph; may be NULL */
  trl_status (*step)(const trl_step_args*);  /* [graph] */
  trl_status (*sequence)(
      const trl_sequence_args*); /* [graph] may be NULL: the host loops over step */
} trl_builder_desc;

#endif
