/* SPDX-License-Identifier: Apache-2.0
 *
 * What the host offers. A plugin links nothing of the host: it reaches everything through the trl_call it is given.
 *
 * Interfaces have an id with a revision ("trl.exec/1"), are resolved once (in init) and kept; a new revision is a new
 * struct under a new id. An interface's table is immutable and lives as long as the process.
 *
 * Thread tags: [init] while the plugin is loaded, one thread. [graph] the thread that owns the graph. [exec] one call
 * per group of nodes; different graphs run at the same time. [any] everywhere.
 */
#ifndef TRELLIS_ABI_HOST_H
#define TRELLIS_ABI_HOST_H

#include <trellis/abi/attr.h>
#include <trellis/abi/tensor.h>

struct trl_host;

/* Made by the host for each call and valid during it; the host's own fields follow these two. It is the only way to
 * the runtime: a plugin keeps nothing that depends on a runtime in a static, it keeps it in `self`. */
typedef struct trl_call {
  const struct trl_host* host;
  void* self; /* what init returned for this plugin in this runtime; NULL before */
} trl_call;

/* One, immutable, process-wide; append-only. */
typedef struct trl_host {
  uint32_t struct_size, abi_major, abi_minor, reserved;
  trl_str version; /* of the product, for people */
  /* [any] Records the text of an error (copied) and returns `status`, so `return host->fail(call, st, text)` reads well.
   * The first text of a call wins. Form of a text: "[operator] fact: given (needed)". */
  trl_status (*fail)(trl_call*, trl_status status, trl_str text);
  /* [any] level: 0 trace, 1 debug, 2 info, 3 warning, 4 error. */
  void (*log)(trl_call*, int32_t level, trl_str text);
  /* [init] NULL: this host does not have it. */
  const void* (*get_interface)(trl_call*, trl_str id_rev, uint32_t* size_out);
} trl_host;

/* 0: none. Belongs to the runtime that resolved it; kept in `self`. */
typedef uint32_t trl_op_handle;

/* "trl.registry/1" */
typedef struct trl_registry_api {
  uint32_t struct_size, reserved;
  /* [init] The handle remembers the keys: apply and invoke pass values in the order of `keys`, no text at run time.
   * Attributes that are not named take their defaults. The operator may be registered later in the same start-up;
   * resolving fails with a text when no plugin of the set provides it. */
  trl_status (*resolve)(trl_call*, trl_str op_id, const trl_str* keys, uint32_t n_keys,
                        trl_op_handle* out);
} trl_registry_api;

/* "trl.exec/1" */
typedef struct trl_exec_api {
  uint32_t struct_size, reserved;
  /* [exec] Calls fn on sub-ranges of [begin, end) of at least `grain`; serial inside a worker. First error wins. */
  trl_status (*parallel_for)(trl_call*, int64_t begin, int64_t end, int64_t grain,
                             trl_status (*fn)(void* context, int64_t begin, int64_t end),
                             void* context);
  /* [exec] Uninitialised, 64-byte aligned, gone at return. NULL: out of memory. */
  void* (*scratch)(trl_call*, size_t bytes);
  /* [exec] Runs the forward kernel of another operator: no graph, no gradient, at most 8 deep. `streams` is NULL
   * unless the operator is stochastic. */
  trl_status (*invoke)(trl_call*, trl_op_handle, const trl_tensor* in, uint32_t n_in,
                       trl_tensor* out, uint32_t n_out, const trl_attr* attrs, uint32_t n_attrs,
                       const trl_stream* streams);
} trl_exec_api;

/* "trl.devices/1" */
typedef struct trl_devices_api {
  uint32_t struct_size, n_devices;
  trl_status (*device_name)(trl_call*, uint8_t device, trl_str* out); /* [any] */
  trl_status (*dtype_name)(trl_call*, uint16_t dtype, trl_str* out);  /* [any] */
  void* (*queue)(
      trl_call*); /* [exec] the stream of an accelerator for this call; NULL on the CPU */
} trl_devices_api;

/* One output of one node. Frozen. Valid while the callback that received it runs. */
typedef struct trl_expr {
  uint32_t node;
  uint16_t output, epoch;
} trl_expr;

/* "trl.graph/1": builds nodes. [graph], and only inside expand, expand_grad, prepare, step, sequence and
 * softmax callbacks. */
typedef struct trl_graph_api {
  uint32_t struct_size, reserved;
  /* `attrs` in the order of the keys given to resolve. `out` receives n_out visible outputs. */
  trl_status (*apply)(trl_call*, trl_op_handle, const trl_expr* in, uint32_t n_in,
                      const trl_attr* attrs, uint32_t n_attrs, trl_expr* out, uint32_t n_out);
  /* A tensor filled with `value`. dtype 0: the graph's float type. */
  trl_status (*constant)(trl_call*, const trl_dim*, uint16_t dtype, double value, trl_expr* out);
  trl_status (*shape)(trl_call*, trl_expr, trl_dim* out, uint16_t* dtype);
} trl_graph_api;

/* Shape classes of matrix products C[m,n] = A[m,k] B[k,n]; the host chooses a provider by class (linalg.h). */
enum {
  TRL_MM_GEMV = 1u << 0,   /* n == 1, A as it lies */
  TRL_MM_GEMV_T = 1u << 1, /* n == 1, A transposed */
  TRL_MM_OUTER = 1u << 2,  /* k == 1 */
  TRL_MM_TINY = 1u << 3,   /* m * n * k <= 16^3 */
  TRL_MM_SKINNY = 1u << 4, /* n < 64 */
  TRL_MM_SMALL = 1u << 5,  /* m * n * k <= 128^3 */
  TRL_MM_LARGE = 1u << 6   /* the rest */
};
enum { TRL_MM_TRANS_A = 1u << 0, TRL_MM_TRANS_B = 1u << 1 };

/* C = alpha op(A) op(B) + beta C, column-major, `batch` times. beta == 0: C is written, never read. op(A) is m x k,
 * op(B) is k x n. Sizes, leading dimensions and strides are in elements. */
typedef struct trl_mm_args {
  uint32_t struct_size, flags;
  trl_call* call;
  const void *a, *b;
  void* c;
  uint64_t m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c, batch;
  double alpha, beta;
  uint16_t dtype;
  uint8_t device, reserved[5];
} trl_mm_args;

/* "trl.linalg/1": what plugins call. [exec] */
typedef struct trl_linalg_api {
  uint32_t struct_size, reserved;
  trl_status (*gemm)(const trl_mm_args*);
  trl_status (*gemv)(const trl_mm_args*); /* n == 1, ldb and ldc ignored */
} trl_linalg_api;

/* "trl.options/1": what the experiment's file sets for this plugin. */
typedef struct trl_options_api {
  uint32_t struct_size, reserved;
  /* [init] The value as text (true, 3, 0.5, fast), alive as long as the runtime; p is NULL when it is not set. */
  trl_status (*get)(trl_call*, trl_str key, trl_str* out);
} trl_options_api;

TRL_STATIC_ASSERT(sizeof(trl_expr) == 8, "frozen: trl_expr");

#endif
