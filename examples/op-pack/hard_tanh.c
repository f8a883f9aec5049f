/* SPDX-License-Identifier: Apache-2.0
 *
 * An operator in plain C: y = x cut off at -1 and 1, dx = dy inside, 0 outside.
 *
 * What a C author sees of the host is one call: trl_fwd_args or trl_bwd_args, with views on memory
 * that the host owns. An input whose batch_stride is 0 serves every batch element.
 */
#include "hard_tanh.h"

static uint64_t elements(const trl_dim* dim) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < dim->rank; ++i) n *= dim->d[i];
  return n;
}

static trl_status infer(trl_infer_args* a) {
  const uint32_t batch = a->out[0].batch; /* set by the host */
  a->out[0] = a->in[0];
  a->out[0].batch = batch;
  return TRL_OK;
}

/* These kernels do not declare TRL_KERNEL_CAN_STORE, so gradients are always to be added. */
#define KERNELS(NAME, T)                                                       \
  static trl_status forward_##NAME(const trl_fwd_args* a) {                    \
    const uint64_t n = elements(&a->in[0].dim);                                \
    for (uint32_t b = 0; b < a->batch; ++b) {                                  \
      const T* x = (const T*)a->in[0].data + b * a->in[0].batch_stride;        \
      T* y = (T*)a->out[0].data + b * a->out[0].batch_stride;                  \
      for (uint64_t i = 0; i < n; ++i) {                                       \
        const T low = x[i] < -1 ? -1 : x[i];                                   \
        y[i] = low > 1 ? 1 : low;                                              \
      }                                                                        \
    }                                                                          \
    return TRL_OK;                                                             \
  }                                                                            \
  static trl_status backward_##NAME(const trl_bwd_args* a) {                   \
    if (a->d_in[0].data == NULL || a->d_out[0].data == NULL) return TRL_OK;    \
    const uint64_t n = elements(&a->in[0].dim);                                \
    for (uint32_t b = 0; b < a->batch; ++b) {                                  \
      const T* x = (const T*)a->in[0].data + b * a->in[0].batch_stride;        \
      const T* dy = (const T*)a->d_out[0].data + b * a->d_out[0].batch_stride; \
      T* dx = (T*)a->d_in[0].data + b * a->d_in[0].batch_stride;               \
      for (uint64_t i = 0; i < n; ++i) {                                       \
        if (x[i] > -1 && x[i] < 1) dx[i] += dy[i];                             \
      }                                                                        \
    }                                                                          \
    return TRL_OK;                                                             \
  }
KERNELS(f32, float)
KERNELS(f64, double)

static const trl_in_spec x_spec = {
    .struct_size = sizeof(trl_in_spec), .flags = TRL_IN_KEEP, .name = TRL_STR("x")};
static const trl_in_spec* const inputs[] = {&x_spec};
static const trl_out_spec y_spec = {.struct_size = sizeof(trl_out_spec), .name = TRL_STR("y")};
static const trl_out_spec* const outputs[] = {&y_spec};

const trl_op_desc acme_hard_tanh = {.struct_size = sizeof(trl_op_desc),
                                    .flags = TRL_OP_ELEMENTWISE,
                                    .id = TRL_STR("acme.hard_tanh"),
                                    .summary = TRL_STR("x cut off at -1 and 1, element by element"),
                                    .formula = TRL_STR("y = min(max(x, -1), 1)"),
                                    .example = TRL_STR("hard_tanh({3}); hard_tanh({2,3}x4)"),
                                    .source = TRL_STR("hard_tanh.c"),
                                    .in = inputs,
                                    .out = outputs,
                                    .n_in = 1,
                                    .n_out = 1,
                                    .version = 1,
                                    .since_version = 1,
                                    .infer = infer};

#define KERNEL(NAME, DTYPE)                                                              \
  const trl_kernel_desc acme_hard_tanh_##NAME = {.struct_size = sizeof(trl_kernel_desc), \
                                                 .op_id = TRL_STR("acme.hard_tanh"),     \
                                                 .device = TRL_STR("cpu"),               \
                                                 .dtype = DTYPE,                         \
                                                 .forward = forward_##NAME,              \
                                                 .backward = backward_##NAME}
KERNEL(f32, TRL_F32);
KERNEL(f64, TRL_F64);
