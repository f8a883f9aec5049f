/* SPDX-License-Identifier: Apache-2.0
 *
 * Size and offset of everything that crosses the border, for 64-bit machines. A line that fails
 * says which number must move: the major for what exists, the minor for what is appended. Appended
 * fields get a line; no line is ever changed.
 */
#include <trellis/abi/abi.h>

#define FROZEN(T, bytes) \
  TRL_STATIC_ASSERT(sizeof(T) == (bytes), #T " is frozen: TRL_ABI_MAJOR must move")
#define GROWABLE(T, bytes)                \
  TRL_STATIC_ASSERT(sizeof(T) == (bytes), \
                    #T " has grown: TRL_ABI_MINOR must move and this line with it")
#define AT(T, field, offset)                        \
  TRL_STATIC_ASSERT(offsetof(T, field) == (offset), \
                    #T "." #field " has moved: TRL_ABI_MAJOR must move")

TRL_STATIC_ASSERT(sizeof(void*) == 8, "the numbers below are for 64-bit machines");

/* base.h */
FROZEN(trl_str, 16);
AT(trl_str, p, 0);
AT(trl_str, n, 8);

/* tensor.h */
FROZEN(trl_dim, 40);
AT(trl_dim, rank, 0);
AT(trl_dim, batch, 4);
AT(trl_dim, d, 8);
FROZEN(trl_tensor, 64);
AT(trl_tensor, data, 0);
AT(trl_tensor, batch_stride, 8);
AT(trl_tensor, dim, 16);
AT(trl_tensor, dtype, 56);
AT(trl_tensor, device, 58);
AT(trl_tensor, align_log2, 59);
AT(trl_tensor, flags, 60);
FROZEN(trl_stream, 16);
AT(trl_stream, key, 0);
AT(trl_stream, counter_hi, 8);

/* attr.h */
FROZEN(trl_attr, 32);
AT(trl_attr, type, 0);
AT(trl_attr, count, 4);
AT(trl_attr, v, 8);
AT(trl_attr, offsets, 24);
GROWABLE(trl_attr_spec, 120);
AT(trl_attr_spec, struct_size, 0);
AT(trl_attr_spec, flags, 4);
AT(trl_attr_spec, type, 8);
AT(trl_attr_spec, n_choices, 12);
AT(trl_attr_spec, key, 16);
AT(trl_attr_spec, doc, 32);
AT(trl_attr_spec, dflt, 48);
AT(trl_attr_spec, lo, 80);
AT(trl_attr_spec, hi, 88);
AT(trl_attr_spec, choices, 96);
AT(trl_attr_spec, bound_input, 104);
AT(trl_attr_spec, bound_axis, 106);
AT(trl_attr_spec, bound_axis_attr, 108);
AT(trl_attr_spec, reserved, 110);
AT(trl_attr_spec, min_each, 112);
AT(trl_attr_spec, max_each, 116);

/* host.h */
FROZEN(trl_call, 16);
AT(trl_call, host, 0);
AT(trl_call, self, 8);
GROWABLE(trl_host, 56);
AT(trl_host, struct_size, 0);
AT(trl_host, abi_major, 4);
AT(trl_host, abi_minor, 8);
AT(trl_host, reserved, 12);
AT(trl_host, version, 16);
AT(trl_host, fail, 32);
AT(trl_host, log, 40);
AT(trl_host, get_interface, 48);
GROWABLE(trl_registry_api, 16);
AT(trl_registry_api, struct_size, 0);
AT(trl_registry_api, reserved, 4);
AT(trl_registry_api, resolve, 8);
GROWABLE(trl_exec_api, 32);
AT(trl_exec_api, struct_size, 0);
AT(trl_exec_api, reserved, 4);
AT(trl_exec_api, parallel_for, 8);
AT(trl_exec_api, scratch, 16);
AT(trl_exec_api, invoke, 24);
GROWABLE(trl_devices_api, 32);
AT(trl_devices_api, struct_size, 0);
AT(trl_devices_api, n_devices, 4);
AT(trl_devices_api, device_name, 8);
AT(trl_devices_api, dtype_name, 16);
AT(trl_devices_api, queue, 24);
FROZEN(trl_expr, 8);
AT(trl_expr, node, 0);
AT(trl_expr, output, 4);
AT(trl_expr, epoch, 6);
GROWABLE(trl_graph_api, 32);
AT(trl_graph_api, struct_size, 0);
AT(trl_graph_api, reserved, 4);
AT(trl_graph_api, apply, 8);
AT(trl_graph_api, constant, 16);
AT(trl_graph_api, shape, 24);
GROWABLE(trl_mm_args, 144);
AT(trl_mm_args, struct_size, 0);
AT(trl_mm_args, flags, 4);
AT(trl_mm_args, call, 8);
AT(trl_mm_args, a, 16);
AT(trl_mm_args, b, 24);
AT(trl_mm_args, c, 32);
AT(trl_mm_args, m, 40);
AT(trl_mm_args, n, 48);
AT(trl_mm_args, k, 56);
AT(trl_mm_args, lda, 64);
AT(trl_mm_args, ldb, 72);
AT(trl_mm_args, ldc, 80);
AT(trl_mm_args, stride_a, 88);
AT(trl_mm_args, stride_b, 96);
AT(trl_mm_args, stride_c, 104);
AT(trl_mm_args, batch, 112);
AT(trl_mm_args, alpha, 120);
AT(trl_mm_args, beta, 128);
AT(trl_mm_args, dtype, 136);
AT(trl_mm_args, device, 138);
AT(trl_mm_args, reserved, 139);
GROWABLE(trl_linalg_api, 24);
AT(trl_linalg_api, struct_size, 0);
AT(trl_linalg_api, reserved, 4);
AT(trl_linalg_api, gemm, 8);
AT(trl_linalg_api, gemv, 16);
GROWABLE(trl_options_api, 16);
AT(trl_options_api, struct_size, 0);
AT(trl_options_api, reserved, 4);
AT(trl_options_api, get, 8);

/* op.h */
GROWABLE(trl_in_spec, 48);
AT(trl_in_spec, struct_size, 0);
AT(trl_in_spec, flags, 4);
AT(trl_in_spec, name, 8);
AT(trl_in_spec, doc, 24);
AT(trl_in_spec, dtype, 40);
AT(trl_in_spec, merge, 42);
AT(trl_in_spec, domain, 43);
AT(trl_in_spec, reserved, 44);
GROWABLE(trl_out_spec, 48);
AT(trl_out_spec, struct_size, 0);
AT(trl_out_spec, flags, 4);
AT(trl_out_spec, name, 8);
AT(trl_out_spec, doc, 24);
AT(trl_out_spec, dtype, 40);
AT(trl_out_spec, reserved, 42);
GROWABLE(trl_infer_args, 88);
AT(trl_infer_args, struct_size, 0);
AT(trl_infer_args, flags, 4);
AT(trl_infer_args, call, 8);
AT(trl_infer_args, attrs, 16);
AT(trl_infer_args, in, 24);
AT(trl_infer_args, in_dtype, 32);
AT(trl_infer_args, n_attrs, 40);
AT(trl_infer_args, n_in, 44);
AT(trl_infer_args, n_out, 48);
AT(trl_infer_args, batch, 52);
AT(trl_infer_args, out, 56);
AT(trl_infer_args, out_dtype, 64);
AT(trl_infer_args, view_of, 72);
AT(trl_infer_args, view_stops_gradient, 76);
AT(trl_infer_args, view_offset, 80);
GROWABLE(trl_fwd_args, 72);
AT(trl_fwd_args, struct_size, 0);
AT(trl_fwd_args, flags, 4);
AT(trl_fwd_args, call, 8);
AT(trl_fwd_args, attrs, 16);
AT(trl_fwd_args, in, 24);
AT(trl_fwd_args, out, 32);
AT(trl_fwd_args, n_attrs, 40);
AT(trl_fwd_args, n_in, 44);
AT(trl_fwd_args, n_out, 48);
AT(trl_fwd_args, batch, 52);
AT(trl_fwd_args, streams, 56);
AT(trl_fwd_args, state, 64);
GROWABLE(trl_bwd_args, 88);
AT(trl_bwd_args, struct_size, 0);
AT(trl_bwd_args, flags, 4);
AT(trl_bwd_args, call, 8);
AT(trl_bwd_args, attrs, 16);
AT(trl_bwd_args, in, 24);
AT(trl_bwd_args, out, 32);
AT(trl_bwd_args, d_out, 40);
AT(trl_bwd_args, d_in, 48);
AT(trl_bwd_args, n_attrs, 56);
AT(trl_bwd_args, n_in, 60);
AT(trl_bwd_args, n_out, 64);
AT(trl_bwd_args, batch, 68);
AT(trl_bwd_args, streams, 72);
AT(trl_bwd_args, state, 80);
GROWABLE(trl_expand_args, 56);
AT(trl_expand_args, struct_size, 0);
AT(trl_expand_args, flags, 4);
AT(trl_expand_args, call, 8);
AT(trl_expand_args, attrs, 16);
AT(trl_expand_args, in, 24);
AT(trl_expand_args, out, 32);
AT(trl_expand_args, n_attrs, 40);
AT(trl_expand_args, n_in, 44);
AT(trl_expand_args, n_out, 48);
AT(trl_expand_args, batch, 52);
GROWABLE(trl_kernel_desc, 80);
AT(trl_kernel_desc, struct_size, 0);
AT(trl_kernel_desc, flags, 4);
AT(trl_kernel_desc, op_id, 8);
AT(trl_kernel_desc, device, 24);
AT(trl_kernel_desc, dtype, 40);
AT(trl_kernel_desc, rank, 42);
AT(trl_kernel_desc, reserved, 44);
AT(trl_kernel_desc, create, 48);
AT(trl_kernel_desc, destroy, 56);
AT(trl_kernel_desc, forward, 64);
AT(trl_kernel_desc, backward, 72);
GROWABLE(trl_op_desc, 216);
AT(trl_op_desc, struct_size, 0);
AT(trl_op_desc, flags, 4);
AT(trl_op_desc, id, 8);
AT(trl_op_desc, summary, 24);
AT(trl_op_desc, doc, 40);
AT(trl_op_desc, formula, 56);
AT(trl_op_desc, example, 72);
AT(trl_op_desc, role, 88);
AT(trl_op_desc, source, 104);
AT(trl_op_desc, unchecked, 120);
AT(trl_op_desc, aliases, 136);
AT(trl_op_desc, in, 144);
AT(trl_op_desc, out, 152);
AT(trl_op_desc, attrs, 160);
AT(trl_op_desc, n_aliases, 168);
AT(trl_op_desc, n_in, 170);
AT(trl_op_desc, n_out, 172);
AT(trl_op_desc, n_attrs, 174);
AT(trl_op_desc, version, 176);
AT(trl_op_desc, since_version, 180);
AT(trl_op_desc, infer, 184);
AT(trl_op_desc, expand, 192);
AT(trl_op_desc, expand_grad, 200);
AT(trl_op_desc, upgrade, 208);

/* builder.h */
GROWABLE(trl_param_spec, 104);
AT(trl_param_spec, struct_size, 0);
AT(trl_param_spec, flags, 4);
AT(trl_param_spec, name, 8);
AT(trl_param_spec, initializer, 24);
AT(trl_param_spec, init_attrs, 40);
AT(trl_param_spec, init_keys, 48);
AT(trl_param_spec, n_init_attrs, 56);
AT(trl_param_spec, n_rows, 60);
AT(trl_param_spec, dim, 64);
GROWABLE(trl_builder_info, 24);
AT(trl_builder_info, struct_size, 0);
AT(trl_builder_info, flags, 4);
AT(trl_builder_info, n_params, 8);
AT(trl_builder_info, n_state, 12);
AT(trl_builder_info, n_prepared, 16);
AT(trl_builder_info, h_index, 20);
GROWABLE(trl_step_args, 104);
AT(trl_step_args, struct_size, 0);
AT(trl_step_args, flags, 4);
AT(trl_step_args, call, 8);
AT(trl_step_args, attrs, 16);
AT(trl_step_args, params, 24);
AT(trl_step_args, pred, 32);
AT(trl_step_args, in, 40);
AT(trl_step_args, context, 48);
AT(trl_step_args, prepared, 56);
AT(trl_step_args, state_out, 64);
AT(trl_step_args, n_attrs, 72);
AT(trl_step_args, n_params, 76);
AT(trl_step_args, n_pred, 80);
AT(trl_step_args, n_state, 84);
AT(trl_step_args, n_in, 88);
AT(trl_step_args, n_context, 92);
AT(trl_step_args, n_prepared, 96);
AT(trl_step_args, branch, 100);
GROWABLE(trl_sequence_args, 24);
AT(trl_sequence_args, struct_size, 0);
AT(trl_sequence_args, n_steps, 4);
AT(trl_sequence_args, first, 8);
AT(trl_sequence_args, states_out, 16);
GROWABLE(trl_builder_desc, 184);
AT(trl_builder_desc, struct_size, 0);
AT(trl_builder_desc, flags, 4);
AT(trl_builder_desc, id, 8);
AT(trl_builder_desc, summary, 24);
AT(trl_builder_desc, doc, 40);
AT(trl_builder_desc, formula, 56);
AT(trl_builder_desc, source, 72);
AT(trl_builder_desc, aliases, 88);
AT(trl_builder_desc, attrs, 96);
AT(trl_builder_desc, n_aliases, 104);
AT(trl_builder_desc, n_attrs, 106);
AT(trl_builder_desc, min_pred, 108);
AT(trl_builder_desc, max_pred, 110);
AT(trl_builder_desc, min_in, 112);
AT(trl_builder_desc, max_in, 114);
AT(trl_builder_desc, min_context, 116);
AT(trl_builder_desc, max_context, 118);
AT(trl_builder_desc, input_attr, 120);
AT(trl_builder_desc, hidden_attr, 122);
AT(trl_builder_desc, version, 124);
AT(trl_builder_desc, state_version, 128);
AT(trl_builder_desc, describe, 136);
AT(trl_builder_desc, param, 144);
AT(trl_builder_desc, state, 152);
AT(trl_builder_desc, prepare, 160);
AT(trl_builder_desc, step, 168);
AT(trl_builder_desc, sequence, 176);

/* softmax.h */
GROWABLE(trl_softmax_args, 64);
AT(trl_softmax_args, struct_size, 0);
AT(trl_softmax_args, flags, 4);
AT(trl_softmax_args, call, 8);
AT(trl_softmax_args, attrs, 16);
AT(trl_softmax_args, params, 24);
AT(trl_softmax_args, h, 32);
AT(trl_softmax_args, ids, 40);
AT(trl_softmax_args, out, 48);
AT(trl_softmax_args, n_attrs, 56);
AT(trl_softmax_args, n_params, 60);
GROWABLE(trl_softmax_desc, 136);
AT(trl_softmax_desc, struct_size, 0);
AT(trl_softmax_desc, flags, 4);
AT(trl_softmax_desc, id, 8);
AT(trl_softmax_desc, summary, 24);
AT(trl_softmax_desc, doc, 40);
AT(trl_softmax_desc, source, 56);
AT(trl_softmax_desc, aliases, 72);
AT(trl_softmax_desc, attrs, 80);
AT(trl_softmax_desc, n_aliases, 88);
AT(trl_softmax_desc, n_attrs, 90);
AT(trl_softmax_desc, version, 92);
AT(trl_softmax_desc, n_params, 96);
AT(trl_softmax_desc, param, 104);
AT(trl_softmax_desc, loss, 112);
AT(trl_softmax_desc, scores, 120);
AT(trl_softmax_desc, sample, 128);

/* initializer.h */
GROWABLE(trl_fill_args, 72);
AT(trl_fill_args, struct_size, 0);
AT(trl_fill_args, flags, 4);
AT(trl_fill_args, call, 8);
AT(trl_fill_args, attrs, 16);
AT(trl_fill_args, value, 24);
AT(trl_fill_args, stream, 32);
AT(trl_fill_args, fan_in, 48);
AT(trl_fill_args, fan_out, 56);
AT(trl_fill_args, n_attrs, 64);
AT(trl_fill_args, lookup, 68);
GROWABLE(trl_initializer_desc, 120);
AT(trl_initializer_desc, struct_size, 0);
AT(trl_initializer_desc, flags, 4);
AT(trl_initializer_desc, id, 8);
AT(trl_initializer_desc, summary, 24);
AT(trl_initializer_desc, doc, 40);
AT(trl_initializer_desc, formula, 56);
AT(trl_initializer_desc, source, 72);
AT(trl_initializer_desc, aliases, 88);
AT(trl_initializer_desc, attrs, 96);
AT(trl_initializer_desc, n_aliases, 104);
AT(trl_initializer_desc, n_attrs, 106);
AT(trl_initializer_desc, version, 108);
AT(trl_initializer_desc, fill, 112);

/* trainer.h */
GROWABLE(trl_slot_spec, 48);
AT(trl_slot_spec, struct_size, 0);
AT(trl_slot_spec, flags, 4);
AT(trl_slot_spec, name, 8);
AT(trl_slot_spec, doc, 24);
AT(trl_slot_spec, init, 40);
GROWABLE(trl_update_args, 96);
AT(trl_update_args, struct_size, 0);
AT(trl_update_args, flags, 4);
AT(trl_update_args, call, 8);
AT(trl_update_args, attrs, 16);
AT(trl_update_args, value, 24);
AT(trl_update_args, grad, 32);
AT(trl_update_args, slots, 40);
AT(trl_update_args, rows, 48);
AT(trl_update_args, n_attrs, 56);
AT(trl_update_args, n_slots, 60);
AT(trl_update_args, n_rows, 64);
AT(trl_update_args, reserved, 68);
AT(trl_update_args, lr, 72);
AT(trl_update_args, grad_scale, 80);
AT(trl_update_args, step, 88);
GROWABLE(trl_update_desc, 56);
AT(trl_update_desc, struct_size, 0);
AT(trl_update_desc, flags, 4);
AT(trl_update_desc, trainer_id, 8);
AT(trl_update_desc, device, 24);
AT(trl_update_desc, dtype, 40);
AT(trl_update_desc, rank, 42);
AT(trl_update_desc, reserved, 44);
AT(trl_update_desc, update, 48);
GROWABLE(trl_trainer_desc, 136);
AT(trl_trainer_desc, struct_size, 0);
AT(trl_trainer_desc, flags, 4);
AT(trl_trainer_desc, id, 8);
AT(trl_trainer_desc, summary, 24);
AT(trl_trainer_desc, doc, 40);
AT(trl_trainer_desc, formula, 56);
AT(trl_trainer_desc, source, 72);
AT(trl_trainer_desc, aliases, 88);
AT(trl_trainer_desc, attrs, 96);
AT(trl_trainer_desc, slots, 104);
AT(trl_trainer_desc, n_aliases, 112);
AT(trl_trainer_desc, n_attrs, 114);
AT(trl_trainer_desc, n_slots, 116);
AT(trl_trainer_desc, reserved, 118);
AT(trl_trainer_desc, version, 120);
AT(trl_trainer_desc, state_version, 124);
AT(trl_trainer_desc, begin_step, 128);

/* linalg.h */
GROWABLE(trl_linalg_desc, 88);
AT(trl_linalg_desc, struct_size, 0);
AT(trl_linalg_desc, flags, 4);
AT(trl_linalg_desc, id, 8);
AT(trl_linalg_desc, summary, 24);
AT(trl_linalg_desc, device, 40);
AT(trl_linalg_desc, dtype, 56);
AT(trl_linalg_desc, rank, 58);
AT(trl_linalg_desc, classes, 60);
AT(trl_linalg_desc, check, 64);
AT(trl_linalg_desc, gemm, 72);
AT(trl_linalg_desc, gemv, 80);

/* plugin.h */
GROWABLE(trl_plugin, 168);
AT(trl_plugin, struct_size, 0);
AT(trl_plugin, abi_major, 4);
AT(trl_plugin, abi_minor, 8);
AT(trl_plugin, min_host_minor, 12);
AT(trl_plugin, id, 16);
AT(trl_plugin, version, 32);
AT(trl_plugin, ops, 48);
AT(trl_plugin, n_ops, 56);
AT(trl_plugin, n_kernels, 60);
AT(trl_plugin, kernels, 64);
AT(trl_plugin, builders, 72);
AT(trl_plugin, n_builders, 80);
AT(trl_plugin, n_softmaxes, 84);
AT(trl_plugin, softmaxes, 88);
AT(trl_plugin, initializers, 96);
AT(trl_plugin, n_initializers, 104);
AT(trl_plugin, n_trainers, 108);
AT(trl_plugin, trainers, 112);
AT(trl_plugin, updates, 120);
AT(trl_plugin, n_updates, 128);
AT(trl_plugin, n_linalgs, 132);
AT(trl_plugin, linalgs, 136);
AT(trl_plugin, init, 144);
AT(trl_plugin, fini, 152);
AT(trl_plugin, get_interface, 160);
FROZEN(trl_note, 184);
AT(trl_note, namesz, 0);
AT(trl_note, descsz, 4);
AT(trl_note, type, 8);
AT(trl_note, name, 12);
AT(trl_note, abi_major, 16);
AT(trl_note, abi_minor, 20);
AT(trl_note, min_host_minor, 24);
AT(trl_note, sdk_flags, 28);
AT(trl_note, id, 32);
AT(trl_note, version, 96);
AT(trl_note, target, 120);
AT(trl_note, cpu, 152);
AT(trl_note, abi_extra, 168);

/* Numbers that are written into files or compared across the border. */
TRL_STATIC_ASSERT(TRL_OK == 0, "TRL_OK has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_E_INVALID == -1, "TRL_E_INVALID has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_E_SHAPE == -2, "TRL_E_SHAPE has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_E_DTYPE == -3, "TRL_E_DTYPE has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_E_UNSUPPORTED == -4,
                  "TRL_E_UNSUPPORTED has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_E_OOM == -5, "TRL_E_OOM has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_E_INTERNAL == -6, "TRL_E_INTERNAL has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_E_ABI == -7, "TRL_E_ABI has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_E_CANCELLED == -8, "TRL_E_CANCELLED has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_E_RANGE == -9, "TRL_E_RANGE has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_F32 == 1, "TRL_F32 has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_F64 == 2, "TRL_F64 has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_I32 == 3, "TRL_I32 has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_I64 == 4, "TRL_I64 has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_U8 == 5, "TRL_U8 has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_BOOL == 6, "TRL_BOOL has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_F16 == 7, "TRL_F16 has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_BF16 == 8, "TRL_BF16 has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_CPU == 0, "TRL_CPU has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_TENSOR_STORE == 1, "TRL_TENSOR_STORE has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_TENSOR_POINTERS == 2,
                  "TRL_TENSOR_POINTERS has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_ATTR_I64 == 1, "TRL_ATTR_I64 has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_ATTR_F64 == 2, "TRL_ATTR_F64 has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_ATTR_BOOL == 3, "TRL_ATTR_BOOL has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_ATTR_CHOICE == 4, "TRL_ATTR_CHOICE has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_ATTR_I64S == 5, "TRL_ATTR_I64S has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_ATTR_F64S == 6, "TRL_ATTR_F64S has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_ATTR_STR == 7, "TRL_ATTR_STR has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_ATTR_REQUIRED == 1, "TRL_ATTR_REQUIRED has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_ATTR_PER_BATCH == 2,
                  "TRL_ATTR_PER_BATCH has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_ATTR_VALUE == 4, "TRL_ATTR_VALUE has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_ATTR_BOUND_CLOSED == 8,
                  "TRL_ATTR_BOUND_CLOSED has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_MM_GEMV == 1, "TRL_MM_GEMV has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_MM_GEMV_T == 2, "TRL_MM_GEMV_T has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_MM_OUTER == 4, "TRL_MM_OUTER has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_MM_TINY == 8, "TRL_MM_TINY has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_MM_SKINNY == 16, "TRL_MM_SKINNY has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_MM_SMALL == 32, "TRL_MM_SMALL has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_MM_LARGE == 64, "TRL_MM_LARGE has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_MM_TRANS_A == 1, "TRL_MM_TRANS_A has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_MM_TRANS_B == 2, "TRL_MM_TRANS_B has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_CALL_TRAIN == 1, "TRL_CALL_TRAIN has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_CALL_MERGED == 2, "TRL_CALL_MERGED has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_CALL_NO_BACKWARD == 4,
                  "TRL_CALL_NO_BACKWARD has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_OP_ELEMENTWISE == 1,
                  "TRL_OP_ELEMENTWISE has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_OP_STOCHASTIC == 2, "TRL_OP_STOCHASTIC has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_OP_NONDETERMINISTIC == 4,
                  "TRL_OP_NONDETERMINISTIC has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_OP_STRIDED == 8, "TRL_OP_STRIDED has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_OP_MODE == 16, "TRL_OP_MODE has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_IN_CONCAT == 0, "TRL_IN_CONCAT has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_IN_SHARED == 1, "TRL_IN_SHARED has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_IN_NEVER == 2, "TRL_IN_NEVER has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_IN_OPTIONAL == 1, "TRL_IN_OPTIONAL has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_IN_VARIADIC == 2, "TRL_IN_VARIADIC has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_IN_KEEP == 4, "TRL_IN_KEEP has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_IN_NO_GRAD == 8, "TRL_IN_NO_GRAD has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_DOMAIN_ANY == 0, "TRL_DOMAIN_ANY has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_DOMAIN_POSITIVE == 1,
                  "TRL_DOMAIN_POSITIVE has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_DOMAIN_UNIT == 2, "TRL_DOMAIN_UNIT has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_DOMAIN_PROBABILITY == 3,
                  "TRL_DOMAIN_PROBABILITY has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_DOMAIN_ABOVE_ONE == 4,
                  "TRL_DOMAIN_ABOVE_ONE has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_DOMAIN_NONZERO == 5,
                  "TRL_DOMAIN_NONZERO has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_OUT_HIDDEN == 1, "TRL_OUT_HIDDEN has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_OUT_KEEP == 2, "TRL_OUT_KEEP has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_OUT_NO_GRAD == 4, "TRL_OUT_NO_GRAD has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_KERNEL_CAN_STORE == 1,
                  "TRL_KERNEL_CAN_STORE has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_PARAM_LOOKUP == 1, "TRL_PARAM_LOOKUP has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_PARAM_CONSTANT == 2,
                  "TRL_PARAM_CONSTANT has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_PARAM_EXTERNAL == 4,
                  "TRL_PARAM_EXTERNAL has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_INIT_DEFAULT == 1, "TRL_INIT_DEFAULT has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_MAX_RANK == 8, "TRL_MAX_RANK has changed: TRL_ABI_MAJOR must move");
TRL_STATIC_ASSERT(TRL_VARIADIC == 0xFFFF, "TRL_VARIADIC has changed: TRL_ABI_MAJOR must move");

int main(void) { return 0; }
