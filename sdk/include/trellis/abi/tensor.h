/* SPDX-License-Identifier: Apache-2.0
 *
 * Shapes, element types and host-owned views on tensors. Everything here is frozen.
 *
 * A tensor has up to 8 dimensions and, apart from them, a batch size. Storage is column-major (the first index runs
 * fastest) and batch elements follow one another: element i of batch element b lies at data[b * batch_stride + i].
 */
#ifndef TRELLIS_ABI_TENSOR_H
#define TRELLIS_ABI_TENSOR_H

#include <trellis/abi/base.h>

#define TRL_MAX_RANK 8

/* Element types. Numbers below 256 are fixed here; others are given out by the host ("trl.devices/1"). F16 (IEEE 754
 * binary16) and BF16 (the upper half of an F32) are for storage: the host converts, no kernel sees them. */
enum {
  TRL_F32 = 1,
  TRL_F64 = 2,
  TRL_I32 = 3,
  TRL_I64 = 4,
  TRL_U8 = 5,
  TRL_BOOL = 6,
  TRL_F16 = 7,
  TRL_BF16 = 8
};

/* Devices. Numbers other than 0 are given out by the host ("trl.devices/1"). */
enum { TRL_CPU = 0 };

/* Shape. Sizes at and above rank are unspecified; read them as 1. batch is at least 1. */
typedef struct trl_dim {
  uint32_t rank, batch;
  uint32_t d[TRL_MAX_RANK];
} trl_dim;

enum {
  TRL_TENSOR_STORE =
      1u << 0, /* on d_in only: write the gradient; without it: add to what is there */
  TRL_TENSOR_POINTERS = 1u << 1 /* data is an array of dim.batch pointers, one per batch element;
                                   only for operators that declare TRL_OP_STRIDED */
};

/* A view owned by the host. The plugin reads inputs and writes outputs through it, and keeps no pointer after return. */
typedef struct trl_tensor {
  void* data; /* element (0,0,..) of batch element 0; NULL: absent, or gradient not wanted */
  uint64_t batch_stride; /* in elements; 0: the same values serve every batch element */
  trl_dim dim;           /* dim.batch is 1 where batch_stride is 0 */
  uint16_t dtype;
  uint8_t device;
  uint8_t
      align_log2; /* the ACTUAL alignment of data (6: 64 bytes); views may have less, never assume */
  uint32_t flags;
} trl_tensor;

/* One stream of random numbers: Philox-4x32-10 with this key and this upper half of the counter; the lower half
 * counts from 0. The host derives it from (seed, graph serial, node, batch element), so the numbers do not depend on
 * batching, order or threads. */
typedef struct trl_stream {
  uint32_t key[2], counter_hi[2];
} trl_stream;

TRL_STATIC_ASSERT(sizeof(trl_dim) == 40, "frozen: trl_dim");
TRL_STATIC_ASSERT(sizeof(trl_tensor) == 64, "frozen: trl_tensor is one cache line");
TRL_STATIC_ASSERT(sizeof(trl_stream) == 16, "frozen: trl_stream");

#endif
