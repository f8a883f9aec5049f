/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugin itself: one exported symbol, one note that can be read without running anything.
 *
 * Order of events
 *   1 the host reads manifest, file and note; nothing of the plugin runs before they agree.
 *   2 dlopen (RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE). Libraries are never unloaded.
 *   3 trl_plugin_entry_v1(call, out): fills `out` with pointers to constant tables and nothing else; may be called
 *     more than once. It refuses with TRL_E_ABI when the host's minor is below its target.
 *   4 the host checks every table before it registers any.
 *   5 init, once per runtime: resolve interfaces and operators, keep them in *self.
 *   6 fini when the runtime ends.
 */
#ifndef TRELLIS_ABI_PLUGIN_H
#define TRELLIS_ABI_PLUGIN_H

#include <trellis/abi/builder.h>
#include <trellis/abi/initializer.h>
#include <trellis/abi/linalg.h>
#include <trellis/abi/op.h>
#include <trellis/abi/softmax.h>
#include <trellis/abi/trainer.h>

/* Host-allocated and zeroed; the plugin uses TRL_FILL. Tables are constant and live as long as the process. */
typedef struct trl_plugin {
  uint32_t struct_size, abi_major, abi_minor, min_host_minor;
  trl_str id, version; /* must equal note and manifest */
  const trl_op_desc* const* ops;
  uint32_t n_ops, n_kernels;
  const trl_kernel_desc* const* kernels;
  const trl_builder_desc* const* builders;
  uint32_t n_builders, n_softmaxes;
  const trl_softmax_desc* const* softmaxes;
  const trl_initializer_desc* const* initializers;
  uint32_t n_initializers, n_trainers;
  const trl_trainer_desc* const* trainers;
  const trl_update_desc* const* updates;
  uint32_t n_updates, n_linalgs;
  const trl_linalg_desc* const* linalgs;
  trl_status (*init)(trl_call*, void** self); /* [init] may be NULL */
  void (*fini)(trl_call*);                    /* [init] may be NULL */
  const void* (*get_interface)(trl_call*, trl_str id_rev,
                               uint32_t* size_out); /* for other plugins; may be NULL */
} trl_plugin;

typedef trl_status (*trl_entry_fn)(trl_call*, trl_plugin* out);
#define TRL_ENTRY_SYMBOL "trl_plugin_entry_v1" /* the number is the major; 0.x is the draft of 1 */

/* ELF note (SHF_ALLOC, PT_NOTE): readable without dlopen, survives strip. Texts are NUL-padded. */
typedef struct trl_note {
  uint32_t namesz, descsz, type;
  char name[4];
  uint32_t abi_major, abi_minor, min_host_minor, sdk_flags;
  char id[64];
  char version[24];
  char target[32];
  char cpu[16];
  char abi_extra[16];
} trl_note;

/* One library per CPU level: the level this one was compiled for. */
#ifndef TRL_CPU_LEVEL
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define TRL_CPU_LEVEL "x86-64-v4"
#elif defined(__AVX2__) && defined(__FMA__)
#define TRL_CPU_LEVEL "x86-64-v3"
#elif defined(__SSE4_2__)
#define TRL_CPU_LEVEL "x86-64-v2"
#else
#define TRL_CPU_LEVEL ""
#endif
#endif
#ifndef TRL_TARGET
#if defined(__aarch64__)
#define TRL_TARGET "aarch64-linux-gnu"
#else
#define TRL_TARGET "x86_64-linux-gnu"
#endif
#endif
#ifndef TRL_ABI_EXTRA /* non-empty: exact match (forks, builds between two minors) */
#define TRL_ABI_EXTRA ""
#endif

#define TRL_PLUGIN_NOTE(ID, VERSION)                                                              \
  __attribute__((used, section(".note.trellis"), aligned(4))) static const trl_note trl_note_ = { \
      4,                                                                                          \
      sizeof(trl_note) - 16,                                                                      \
      1,                                                                                          \
      "TRL",                                                                                      \
      TRL_ABI_MAJOR,                                                                              \
      TRL_ABI_MINOR,                                                                              \
      TRL_TARGET_MINOR,                                                                           \
      0u,                                                                                         \
      ID,                                                                                         \
      VERSION,                                                                                    \
      TRL_TARGET,                                                                                 \
      TRL_CPU_LEVEL,                                                                              \
      TRL_ABI_EXTRA}

TRL_STATIC_ASSERT(sizeof(trl_note) == 184, "frozen: trl_note");

#endif
