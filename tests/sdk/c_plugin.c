/* SPDX-License-Identifier: Apache-2.0
 *
 * A real plugin in plain C with two operators: proof that the border is C, and a template for
 * authors who want no C++.
 *
 *   ctest.scale        y = factor * x, element by element
 *   ctest.sum_squares  y = sum of x * x over an example
 */
#include <trellis/abi/abi.h>

static uint64_t elements(const trl_dim* dim) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < dim->rank; ++i) n *= dim->d[i];
  return n;
}

static trl_status refuse(trl_call* call, trl_status status, const char* text) {
  const trl_str s = {text, strlen(text)};
  return call->host->fail(call, status, s);
}

/* ---- scale ---- */

static trl_status scale_infer(trl_infer_args* a) {
  const uint32_t batch = a->out[0].batch;
  a->out[0] = a->in[0];
  a->out[0].batch = batch;
  return TRL_OK;
}

/* Both operators in both element types; a shared input (batch_stride 0) serves every batch element.
 */
#define KERNELS(NAME, T)                                                       \
  static trl_status scale_forward_##NAME(const trl_fwd_args* a) {              \
    const T factor = (T)a->attrs[0].v.f;                                       \
    const uint64_t n = elements(&a->in[0].dim);                                \
    for (uint32_t b = 0; b < a->batch; ++b) {                                  \
      const T* x = (const T*)a->in[0].data + b * a->in[0].batch_stride;        \
      T* y = (T*)a->out[0].data + b * a->out[0].batch_stride;                  \
      for (uint64_t i = 0; i < n; ++i) y[i] = factor * x[i];                   \
    }                                                                          \
    return TRL_OK;                                                             \
  }                                                                            \
  static trl_status scale_backward_##NAME(const trl_bwd_args* a) {             \
    if (a->d_in[0].data == NULL) return TRL_OK;                                \
    const T factor = (T)a->attrs[0].v.f;                                       \
    const uint64_t n = elements(&a->d_in[0].dim);                              \
    for (uint32_t b = 0; b < a->batch; ++b) {                                  \
      const T* dy = (const T*)a->d_out[0].data + b * a->d_out[0].batch_stride; \
      T* dx = (T*)a->d_in[0].data + b * a->d_in[0].batch_stride;               \
      for (uint64_t i = 0; i < n; ++i) dx[i] += factor * dy[i];                \
    }                                                                          \
    return TRL_OK;                                                             \
  }                                                                            \
  static trl_status squares_forward_##NAME(const trl_fwd_args* a) {            \
    const uint64_t n = elements(&a->in[0].dim);                                \
    for (uint32_t b = 0; b < a->batch; ++b) {                                  \
      const T* x = (const T*)a->in[0].data + b * a->in[0].batch_stride;        \
      T sum = 0;                                                               \
      for (uint64_t i = 0; i < n; ++i) sum += x[i] * x[i];                     \
      ((T*)a->out[0].data)[b * a->out[0].batch_stride] = sum;                  \
    }                                                                          \
    return TRL_OK;                                                             \
  }                                                                            \
  static trl_status squares_backward_##NAME(const trl_bwd_args* a) {           \
    if (a->d_in[0].data == NULL) return TRL_OK;                                \
    const uint64_t n = elements(&a->in[0].dim);                                \
    for (uint32_t b = 0; b < a->batch; ++b) {                                  \
      const T* x = (const T*)a->in[0].data + b * a->in[0].batch_stride;        \
      T* dx = (T*)a->d_in[0].data + b * a->d_in[0].batch_stride;               \
      const T dy = ((const T*)a->d_out[0].data)[b * a->d_out[0].batch_stride]; \
      for (uint64_t i = 0; i < n; ++i) dx[i] += 2 * x[i] * dy;                 \
    }                                                                          \
    return TRL_OK;                                                             \
  }
KERNELS(f32, float)
KERNELS(f64, double)

static const trl_in_spec scale_x = {.struct_size = sizeof(trl_in_spec), .name = TRL_STR("x")};
static const trl_in_spec* const scale_in[] = {&scale_x};
static const trl_out_spec plain_y = {.struct_size = sizeof(trl_out_spec), .name = TRL_STR("y")};
static const trl_out_spec* const plain_out[] = {&plain_y};
static const trl_attr_spec scale_factor = {
    .struct_size = sizeof(trl_attr_spec),
    .type = TRL_ATTR_F64,
    .key = TRL_STR("factor"),
    .doc = TRL_STR("what every element is multiplied by"),
    .dflt = {.type = TRL_ATTR_F64, .count = 1, .v = {.f = 2.0}},
    .lo = 1,
    .hi = 0,
    .bound_input = -1,
    .bound_axis = -1,
    .bound_axis_attr = -1};
static const trl_attr_spec* const scale_attrs[] = {&scale_factor};
static const trl_op_desc scale = {.struct_size = sizeof(trl_op_desc),
                                  .flags = TRL_OP_ELEMENTWISE,
                                  .id = TRL_STR("ctest.scale"),
                                  .summary = TRL_STR("multiplies every element by a number"),
                                  .formula = TRL_STR("y = factor * x"),
                                  .example = TRL_STR("scale({3}); scale({2,3}x4, factor=-0.5)"),
                                  .source = TRL_STR("tests/sdk/c_plugin.c"),
                                  .in = scale_in,
                                  .out = plain_out,
                                  .attrs = scale_attrs,
                                  .n_in = 1,
                                  .n_out = 1,
                                  .n_attrs = 1,
                                  .version = 1,
                                  .since_version = 1,
                                  .infer = scale_infer};

/* ---- sum_squares ---- */

static trl_status squares_infer(trl_infer_args* a) {
  if (a->in[0].rank == 0)
    return refuse(a->call, TRL_E_SHAPE, "[sum_squares] x is a scalar (need a dimension)");
  a->out[0].rank = 0;
  return TRL_OK;
}

static const trl_in_spec squares_x = {
    .struct_size = sizeof(trl_in_spec), .flags = TRL_IN_KEEP, .name = TRL_STR("x")};
static const trl_in_spec* const squares_in[] = {&squares_x};
static const trl_op_desc sum_squares = {
    .struct_size = sizeof(trl_op_desc),
    .id = TRL_STR("ctest.sum_squares"),
    .summary = TRL_STR("sum of the squares of an example"),
    .formula = TRL_STR("y = sum(x * x)"),
    .example = TRL_STR("sum_squares({3}); sum_squares({2,3}x4)"),
    .source = TRL_STR("tests/sdk/c_plugin.c"),
    .in = squares_in,
    .out = plain_out,
    .n_in = 1,
    .n_out = 1,
    .version = 1,
    .since_version = 1,
    .infer = squares_infer};

/* ---- tables ---- */

#define KERNEL(OP, ID, NAME, DTYPE)                                                   \
  static const trl_kernel_desc OP##_##NAME = {.struct_size = sizeof(trl_kernel_desc), \
                                              .op_id = TRL_STR(ID),                   \
                                              .device = TRL_STR("cpu"),               \
                                              .dtype = DTYPE,                         \
                                              .forward = OP##_forward_##NAME,         \
                                              .backward = OP##_backward_##NAME}
KERNEL(scale, "ctest.scale", f32, TRL_F32);
KERNEL(scale, "ctest.scale", f64, TRL_F64);
KERNEL(squares, "ctest.sum_squares", f32, TRL_F32);
KERNEL(squares, "ctest.sum_squares", f64, TRL_F64);

static const trl_op_desc* const ops[] = {&scale, &sum_squares};
static const trl_kernel_desc* const kernels[] = {&scale_f32, &scale_f64, &squares_f32,
                                                 &squares_f64};

TRL_PLUGIN_NOTE("c-plugin", "1.0.0");

TRL_EXPORT trl_status trl_plugin_entry_v1(trl_call* call, trl_plugin* out);
trl_status trl_plugin_entry_v1(trl_call* call, trl_plugin* out) {
  static const trl_plugin table = {.struct_size = sizeof(trl_plugin),
                                   .abi_major = TRL_ABI_MAJOR,
                                   .abi_minor = TRL_ABI_MINOR,
                                   .min_host_minor = TRL_TARGET_MINOR,
                                   .id = TRL_STR("c-plugin"),
                                   .version = TRL_STR("1.0.0"),
                                   .ops = ops,
                                   .n_ops = 2,
                                   .n_kernels = 4,
                                   .kernels = kernels};
  if (call->host->abi_minor < TRL_TARGET_MINOR)
    return refuse(call, TRL_E_ABI, "c-plugin needs a newer host (upgrade trellis)");
  TRL_FILL(out, &table);
  return TRL_OK;
}
