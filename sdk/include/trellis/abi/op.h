/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators and their kernels.
 *
 * Life of an operator application
 *   infer     [graph] pure in shapes, dtypes, mode and interned attributes; memoised by the host.
 *   create    [init or graph] once per (kernel, interned attributes): pre-compute. May be NULL.
 *   forward   [exec] once per group of merged nodes.
 *   backward  [exec] once per group; again for a shared weight when the host defers its gradient.
 *
 * Batching needs no plugin code: the host makes the complete key of a node (operator, attributes, dtype, per-example
 * shapes, identity of shared inputs), groups equal ones, packs inputs, and hands the sum as `batch`. An operator only
 * declares, per input, how it merges.
 */
#ifndef TRELLIS_ABI_OP_H
#define TRELLIS_ABI_OP_H

#include <trellis/abi/host.h>

/* flags of infer, forward and backward arguments */
enum {
  TRL_CALL_TRAIN = 1u << 0,  /* the graph's mode; else inference. Only operators with TRL_OP_MODE or
                                    TRL_OP_STOCHASTIC may look */
  TRL_CALL_MERGED = 1u << 1, /* several nodes in one call: batch is their sum */
  TRL_CALL_NO_BACKWARD = 1u << 2 /* nobody will ask for gradients of this call */
};

enum {
  TRL_OP_ELEMENTWISE =
      1u << 0, /* contract: right on any reshape with the same element count, including the
                                   concatenation of unrelated nodes */
  TRL_OP_STOCHASTIC = 1u << 1, /* receives one stream per batch element */
  TRL_OP_NONDETERMINISTIC = 1u << 2,
  TRL_OP_STRIDED = 1u << 3, /* takes TRL_TENSOR_POINTERS; without it inputs are packed or shared */
  TRL_OP_MODE = 1u << 4     /* infer or the kernels look at TRL_CALL_TRAIN */
};

/* How an input behaves when nodes merge */
enum {
  TRL_IN_CONCAT = 0, /* concatenated along the batch */
  TRL_IN_SHARED =
      1, /* a parameter: the same one for the whole group, its identity enters the key; else concatenated */
  TRL_IN_NEVER =
      2 /* nodes of this operator are never merged (operators that change the batch size) */
};

enum {
  TRL_IN_OPTIONAL = 1u << 0, /* may be absent: rank 0, dtype 0, data NULL */
  TRL_IN_VARIADIC = 1u << 1, /* the last one only: one or more */
  TRL_IN_KEEP = 1u << 2,     /* backward reads its value */
  TRL_IN_NO_GRAD = 1u << 3   /* no gradient flows into it */
};

/* Where an input may lie for the generic checks to sweep it with random numbers */
enum {
  TRL_DOMAIN_ANY = 0,         /* all reals */
  TRL_DOMAIN_POSITIVE = 1,    /* x > 0 */
  TRL_DOMAIN_UNIT = 2,        /* -1 < x < 1 */
  TRL_DOMAIN_PROBABILITY = 3, /* 0 < x < 1 */
  TRL_DOMAIN_ABOVE_ONE = 4,   /* x > 1 */
  TRL_DOMAIN_NONZERO = 5      /* |x| bounded away from 0 */
};

enum {
  TRL_OUT_HIDDEN = 1u << 0, /* kept for backward, unseen by users; after the visible ones */
  TRL_OUT_KEEP = 1u << 1,   /* backward reads its value (hidden ones always) */
  TRL_OUT_NO_GRAD = 1u << 2 /* integers, comparisons */
};

typedef struct trl_in_spec {
  uint32_t struct_size, flags;
  trl_str name, doc;
  uint16_t dtype; /* 0: the kernel's dtype */
  uint8_t merge;  /* TRL_IN_CONCAT, _SHARED, _NEVER */
  uint8_t domain; /* TRL_DOMAIN_* */
  uint8_t reserved[4];
} trl_in_spec;

typedef struct trl_out_spec {
  uint32_t struct_size, flags;
  trl_str name, doc;
  uint16_t dtype; /* 0: the kernel's dtype */
  uint16_t reserved[3];
} trl_out_spec;

/* PER_BATCH and VALUE attributes come with count 0 here. out[] is pre-set to rank 0 and the node's batch, out_dtype[]
 * to the spec's. in[i].batch is the input's own batch (1 or the node's, unless the operator is IN_NEVER). */
typedef struct trl_infer_args {
  uint32_t struct_size, flags;
  trl_call* call;
  const trl_attr* attrs;
  const trl_dim* in;
  const uint16_t* in_dtype;             /* absent optional inputs: rank 0, dtype 0 */
  uint32_t n_attrs, n_in, n_out, batch; /* n_out counts hidden ones; batch: after broadcasting */
  trl_dim* out;
  uint16_t* out_dtype;
  /* Out: the input of which output 0 is the same run of elements of each example (reshape, identity, contiguous
   * slice), -1 none. The HOST then makes a view: no call where the run is contiguous. Plugins never alias. */
  int32_t view_of;
  uint32_t view_stops_gradient;
  uint64_t view_offset; /* elements, per example */
} trl_infer_args;

/* Inputs: dim.batch is `batch`, packed, or 1 with batch_stride 0. Outputs are uninitialised and packed. */
typedef struct trl_fwd_args {
  uint32_t struct_size, flags;
  trl_call* call;
  const trl_attr* attrs;
  const trl_tensor* in;
  trl_tensor* out; /* hidden outputs: data NULL when TRL_CALL_NO_BACKWARD */
  uint32_t n_attrs, n_in, n_out, batch;
  const trl_stream* streams; /* STOCHASTIC: `batch` entries, else NULL */
  void* state;               /* what create returned; read-only */
} trl_fwd_args;

typedef struct trl_bwd_args {
  uint32_t struct_size, flags;
  trl_call* call;
  const trl_attr* attrs;
  const trl_tensor *in, *out; /* data NULL where not kept */
  const trl_tensor* d_out;    /* d_out[i].data NULL: that gradient is zero */
  trl_tensor*
      d_in; /* d_in[i].data NULL: not wanted. flags: TRL_TENSOR_STORE, else add. batch_stride 0 with
                                 batch > 1: sum over the batch (always add). Buffers never overlap each other */
  uint32_t n_attrs, n_in, n_out, batch;
  const trl_stream* streams; /* the same as in forward: regenerate, do not keep */
  void* state;
} trl_bwd_args;

typedef struct trl_expand_args {
  uint32_t struct_size, flags;
  trl_call* call;
  const trl_attr* attrs; /* PER_BATCH and VALUE ones complete */
  const trl_expr* in;
  trl_expr* out; /* visible outputs; expand_grad: gradients of the inputs */
  uint32_t n_attrs, n_in, n_out, batch;
} trl_expand_args;

enum {
  TRL_KERNEL_CAN_STORE = 1u << 0
}; /* honours TRL_TENSOR_STORE; for others the host zeroes and asks to add */

/* One implementation of one operator for one device and dtype. */
typedef struct trl_kernel_desc {
  uint32_t struct_size, flags;
  trl_str op_id, device; /* "acme.square", "cpu" */
  uint16_t dtype;
  int16_t rank; /* higher wins; ties are errors */
  uint32_t reserved;
  trl_status (*create)(trl_call*, const trl_attr*, uint32_t n, void** state); /* may be NULL */
  void (*destroy)(void* state); /* NULL exactly when create is */
  trl_status (*forward)(const trl_fwd_args*);
  trl_status (*backward)(const trl_bwd_args*); /* NULL: no gradient */
} trl_kernel_desc;

typedef struct trl_op_desc {
  uint32_t struct_size, flags;
  trl_str id, summary, doc, formula;
  trl_str
      example; /* calls that are right, separated by ';': "concat({2,3}x4, {2,1}, axis=1)". {..} is the shape of
                        an input, xN its batch; the generic checks run them */
  trl_str role;   /* "add", "matmul", ...: what the host's operators + * [] resolve; empty: none */
  trl_str source; /* file that defines it, for people */
  trl_str unchecked;      /* which generic check cannot apply and why; empty: all apply */
  const trl_str* aliases; /* full ids: "dynet.rectify" */
  const trl_in_spec* const* in;
  const trl_out_spec* const* out;
  const trl_attr_spec* const* attrs;
  uint16_t n_aliases, n_in, n_out, n_attrs; /* n_out counts hidden ones */
  uint32_t version,
      since_version; /* semantic revision; the oldest one it still means the same as */
  trl_status (*infer)(trl_infer_args*);         /* required unless expand is there */
  trl_status (*expand)(const trl_expand_args*); /* composite: a macro on graph level */
  /* The gradient as a graph, for derivatives of derivatives. in: the inputs, the visible outputs, their gradients (absent:
   * zero). out: one gradient an input; on entry absent, `output` 1 where it is wanted, else 0. What stays absent is
   * zero. A gradient that is larger than its input where the input was broadcast is summed by the host, one that is
   * smaller is broadcast. Nodes of this operator itself, added here, have this node's random numbers. */
  trl_status (*expand_grad)(const trl_expand_args*);
  trl_status (*upgrade)(trl_call*, uint32_t from_version, const trl_str* keys, const trl_attr* old,
                        uint32_t n_old, trl_attr* attrs); /* attrs: in order, defaults set */
} trl_op_desc;

#endif
