/* SPDX-License-Identifier: Apache-2.0
 *
 * Providers behind "trl.linalg/1". The host chooses by shape class and CPU level from one committed table; nothing is
 * measured at first use. At load the host runs `check`; a provider whose check fails is reported and not used.
 */
#ifndef TRELLIS_ABI_LINALG_H
#define TRELLIS_ABI_LINALG_H

#include <trellis/abi/host.h>

typedef struct trl_linalg_desc {
  uint32_t struct_size, flags;
  trl_str id, summary, device;
  uint16_t dtype;
  int16_t rank; /* among providers of one class: higher wins where the host's table names none */
  uint32_t classes;                       /* TRL_MM_* this provider can serve */
  trl_status (*check)(trl_call*);         /* [init] a few products against own loops; may be NULL */
  trl_status (*gemm)(const trl_mm_args*); /* [exec] */
  trl_status (*gemv)(const trl_mm_args*); /* [exec] may be NULL: gemm with n == 1 */
} trl_linalg_desc;

#endif
