/* SPDX-License-Identifier: Apache-2.0
 *
 * Versions, negotiation, status codes and strings: what every other ABI header stands on.
 *
 * How the numbers move
 *   TRL_ABI_MAJOR 0   draft: host and plugin must have equal minors.
 *   TRL_ABI_MAJOR 1   frozen: fields are only appended at the end of growable structs, numbers are never reused,
 *                     and a plugin that targets minor t runs on every host minor h >= t.
 * Growable structs start with struct_size; frozen ones (trl_str, trl_dim, trl_tensor, trl_stream, trl_attr, trl_expr)
 * travel in by-value arrays and never change. tests/sdk/abi_layout.c pins every size and offset.
 */
#ifndef TRELLIS_ABI_BASE_H
#define TRELLIS_ABI_BASE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
#define TRL_STATIC_ASSERT(condition, text) static_assert(condition, text)
#else
#define TRL_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif

#define TRL_ABI_MAJOR 0u
#define TRL_ABI_MINOR 1u

/* The oldest host minor a plugin wants to run on. Define it before including to run on older hosts. */
#ifndef TRL_TARGET_MINOR
#define TRL_TARGET_MINOR TRL_ABI_MINOR
#endif

#define TRL_EXPORT __attribute__((visibility("default")))

/* Size of T up to and including field f: what struct_size must be at least for f to exist. */
#define TRL_SIZE_THRU(T, f) (offsetof(T, f) + sizeof(((T*)0)->f))
/* True when the other side knows field f of struct T and has set it. */
#define TRL_HAS(p, T, f) ((p)->struct_size >= TRL_SIZE_THRU(T, f) && (p)->f != NULL)
/* Plugin to host-allocated struct: never writes past what the host has room for. */
#define TRL_FILL(dst, src)                                                                 \
  do {                                                                                     \
    uint32_t trl_n_ =                                                                      \
        (dst)->struct_size < (src)->struct_size ? (dst)->struct_size : (src)->struct_size; \
    memcpy((dst), (src), trl_n_);                                                          \
    (dst)->struct_size = trl_n_;                                                           \
  } while (0)

/* 0 is success, everything below zero an error; numbers are never reused. */
typedef int32_t trl_status;
enum {
  TRL_OK = 0,
  TRL_E_INVALID = -1,     /* a wrong argument or attribute */
  TRL_E_SHAPE = -2,       /* shapes do not fit */
  TRL_E_DTYPE = -3,       /* element types do not fit */
  TRL_E_UNSUPPORTED = -4, /* valid, but this plugin does not do it */
  TRL_E_OOM = -5,         /* out of memory */
  TRL_E_INTERNAL = -6,    /* a fault in the plugin or the host */
  TRL_E_ABI = -7,         /* versions do not fit */
  TRL_E_CANCELLED = -8,   /* stopped on request */
  TRL_E_RANGE = -9        /* an index out of its bound */
};

/* UTF-8, not NUL-terminated. Lifetime: that of the struct that holds it, unless said otherwise. Frozen. */
typedef struct trl_str {
  const char* p;
  size_t n;
} trl_str;
/* Initialiser from a string literal. */
#define TRL_STR(literal) \
  { (literal), sizeof(literal) - 1 }

TRL_STATIC_ASSERT(sizeof(trl_str) == 16, "frozen: trl_str");

#endif
