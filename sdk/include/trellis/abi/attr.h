/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes: typed settings of an operator, builder, softmax builder, initializer or trainer. The host validates and
 * canonicalises them; they arrive in the order of the descriptor's specs, all of them, defaults filled in. A kernel
 * indexes, it never searches and never sees text.
 */
#ifndef TRELLIS_ABI_ATTR_H
#define TRELLIS_ABI_ATTR_H

#include <trellis/abi/base.h>

enum {
  TRL_ATTR_I64 = 1,
  TRL_ATTR_F64 = 2,
  TRL_ATTR_BOOL = 3,   /* 0 or 1 in v.i */
  TRL_ATTR_CHOICE = 4, /* text for people; arrives as its index among `choices`, in v.i */
  TRL_ATTR_I64S = 5,   /* count values in v.is */
  TRL_ATTR_F64S = 6,   /* count values in v.fs */
  TRL_ATTR_STR = 7     /* builders, initializers, trainers; never in operators */
};

enum {
  TRL_ATTR_REQUIRED = 1u << 0,
  TRL_ATTR_PER_BATCH =
      1u << 1, /* type I64S: ids, lengths, label sets: values + offsets, one list per batch element.
                                   Not part of batching key or memo; concatenated by the host when nodes merge. */
  TRL_ATTR_VALUE =
      1u << 2, /* type F64S: a scalar that varies freely (0.37 * x): one value per batch element */
  TRL_ATTR_BOUND_CLOSED = 1u << 3 /* the bound itself is allowed (lengths, end positions) */
};

/* Frozen. PER_BATCH and VALUE attributes: count values over the whole batch, `offsets` has batch + 1 entries and the
 * values of batch element b are [offsets[b], offsets[b+1]); all others: offsets is NULL. Valid during the call. */
typedef struct trl_attr {
  uint32_t type, count; /* count: number of values in is/fs; 1 for the others */
  union {
    int64_t i;
    double f;
    trl_str s;
    const int64_t* is;
    const double* fs;
  } v;
  const uint32_t* offsets;
} trl_attr;

typedef struct trl_attr_spec {
  uint32_t struct_size, flags;
  uint32_t type, n_choices;
  trl_str key, doc;
  trl_attr
      dflt; /* typed; ignored when REQUIRED. For PER_BATCH and VALUE: one value, or none, for every element */
  double lo, hi; /* closed range of each value; lo > hi: no range */
  const trl_str* choices;
  /* PER_BATCH ids: every value must lie in [0, size) where size is axis `bound_axis` of input `bound_input`. The host
   * checks every id of every node when the node is made; a memo hit does not skip the check. */
  int16_t bound_input; /* -1: no bound but lo, hi */
  int16_t bound_axis;  /* the axis; -1: the value of the (I64) attribute number bound_axis_attr */
  int16_t bound_axis_attr; /* -1: none */
  int16_t reserved;
  uint32_t min_each,
      max_each; /* values per batch element: 1,1 one id; 0,~0u a ragged list. I64S, F64S that are not
                                  per batch: number of values */
} trl_attr_spec;

TRL_STATIC_ASSERT(sizeof(trl_attr) == 32, "frozen: trl_attr");

#endif
