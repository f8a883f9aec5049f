// SPDX-License-Identifier: Apache-2.0
//
// Tables as a plugin would hand them over, made by hand and easy to spoil.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "registry/registry.hpp"

namespace trellis::tests {

template <class T>
T sized() {
  T t{};
  t.struct_size = sizeof t;
  return t;
}

inline trl_status ok_infer(trl_infer_args*) { return TRL_OK; }
inline trl_status ok_expand(const trl_expand_args*) { return TRL_OK; }
inline trl_status ok_forward(const trl_fwd_args*) { return TRL_OK; }
inline trl_status ok_backward(const trl_bwd_args*) { return TRL_OK; }
inline trl_status ok_create(trl_call*, const trl_attr*, uint32_t, void**) { return TRL_OK; }
inline void ok_destroy(void*) {}
inline trl_status ok_update(const trl_update_args*) { return TRL_OK; }
inline trl_status ok_fill(const trl_fill_args*) { return TRL_OK; }
inline trl_status ok_describe(trl_call*, const trl_attr*, uint32_t, trl_builder_info*) {
  return TRL_OK;
}
inline trl_status ok_param(trl_call*, const trl_attr*, uint32_t, uint32_t, trl_param_spec*) {
  return TRL_OK;
}
inline trl_status ok_state(trl_call*, const trl_attr*, uint32_t, uint32_t, trl_dim*) {
  return TRL_OK;
}
inline trl_status ok_step(const trl_step_args*) { return TRL_OK; }
inline trl_status ok_n_params(trl_call*, const trl_attr*, uint32_t, uint32_t*) { return TRL_OK; }
inline trl_status ok_softmax(const trl_softmax_args*) { return TRL_OK; }
inline trl_status ok_product(const trl_mm_args*) { return TRL_OK; }

class Tables {
 public:
  explicit Tables(std::string id, std::vector<std::string> namespaces = {"acme"}) {
    record.id = std::move(id);
    record.version = "1.0.0";
    record.path = "/p/" + record.id + ".so";
    record.namespaces = std::move(namespaces);
  }
  Tables(const Tables&) = delete;

  trl_str text(std::string t) {
    texts_.push_back(std::move(t));
    return {texts_.back().data(), texts_.back().size()};
  }
  template <class T>
  static std::vector<const T*> pointers(std::deque<T>& all) {
    std::vector<const T*> p;
    for (T& t : all) p.push_back(&t);
    return p;
  }

  // One input "x" and one output "y", with kernels f32 and f64 unless without_kernels.
  trl_op_desc& op(const std::string& id, bool without_kernels = false) {
    trl_op_desc d = sized<trl_op_desc>();
    d.id = text(id);
    d.summary = text("an operator");
    d.infer = ok_infer;
    d.version = d.since_version = 1;
    ops.push_back(d);
    trl_op_desc& to = ops.back();
    inputs(to, {"x"});
    outputs(to, {"y"});
    if (!without_kernels) {
      kernel(id, TRL_F32);
      kernel(id, TRL_F64);
    }
    return to;
  }
  trl_in_spec* inputs(trl_op_desc& to, const std::vector<std::string>& names) {
    const auto list = specs<trl_in_spec>(names);
    to.in = list.second;
    to.n_in = static_cast<uint16_t>(names.size());
    return list.first;
  }
  trl_out_spec* outputs(trl_op_desc& to, const std::vector<std::string>& names) {
    const auto list = specs<trl_out_spec>(names);
    to.out = list.second;
    to.n_out = static_cast<uint16_t>(names.size());
    return list.first;
  }
  // Attributes of the given types, to be changed before they are registered.
  template <class Desc>
  trl_attr_spec* attrs(Desc& to, const std::vector<std::pair<std::string, uint32_t>>& all) {
    std::vector<std::string> names;
    for (const auto& [key, type] : all) names.push_back(key);
    const auto list = specs<trl_attr_spec>(names);
    for (size_t i = 0; i < all.size(); ++i) {
      trl_attr_spec& s = list.first[i];
      s.type = s.dflt.type = all[i].second;
      s.dflt.count = s.type == TRL_ATTR_I64S || s.type == TRL_ATTR_F64S ? 0 : 1;
      s.doc = text("an attribute");
      s.lo = 1;
      s.bound_input = s.bound_axis = s.bound_axis_attr = -1;
      s.max_each = ~0u;
    }
    to.attrs = list.second;
    to.n_attrs = static_cast<uint16_t>(all.size());
    return list.first;
  }
  template <class Desc>
  void aliases(Desc& to, const std::vector<std::string>& names) {
    alias_lists_.emplace_back();
    for (const std::string& name : names) alias_lists_.back().push_back(text(name));
    to.aliases = alias_lists_.back().data();
    to.n_aliases = static_cast<uint16_t>(names.size());
  }
  trl_kernel_desc& kernel(const std::string& op_id, uint16_t dtype,
                          const std::string& device = "cpu", int16_t rank = 0) {
    trl_kernel_desc d = sized<trl_kernel_desc>();
    d.op_id = text(op_id);
    d.device = text(device);
    d.dtype = dtype;
    d.rank = rank;
    d.forward = ok_forward;
    d.backward = ok_backward;
    kernels.push_back(d);
    return kernels.back();
  }
  trl_builder_desc& builder(const std::string& id) {
    trl_builder_desc d = sized<trl_builder_desc>();
    d.id = text(id);
    d.min_pred = d.max_pred = d.min_in = d.max_in = 1;
    d.input_attr = d.hidden_attr = -1;
    d.describe = ok_describe;
    d.param = ok_param;
    d.state = ok_state;
    d.step = ok_step;
    builders.push_back(d);
    return builders.back();
  }
  trl_softmax_desc& softmax(const std::string& id) {
    trl_softmax_desc d = sized<trl_softmax_desc>();
    d.id = text(id);
    d.n_params = ok_n_params;
    d.param = ok_param;
    d.loss = d.scores = ok_softmax;
    softmaxes.push_back(d);
    return softmaxes.back();
  }
  trl_initializer_desc& initializer(const std::string& id, bool is_default = false) {
    trl_initializer_desc d = sized<trl_initializer_desc>();
    d.id = text(id);
    d.flags = is_default ? TRL_INIT_DEFAULT : 0;
    d.fill = ok_fill;
    initializers.push_back(d);
    return initializers.back();
  }
  trl_trainer_desc& trainer(const std::string& id) {
    trl_trainer_desc d = sized<trl_trainer_desc>();
    d.id = text(id);
    trainers.push_back(d);
    trl_slot_spec slot = sized<trl_slot_spec>();
    slot.name = text("m");
    slots.push_back(slot);
    slot_lists_.push_back({&slots.back()});
    trainers.back().slots = slot_lists_.back().data();
    trainers.back().n_slots = 1;
    attrs(trainers.back(), {{"lr", TRL_ATTR_F64}});
    update(id, TRL_F32);
    update(id, TRL_F64);
    return trainers.back();
  }
  trl_update_desc& update(const std::string& id, uint16_t dtype, int16_t rank = 0) {
    trl_update_desc d = sized<trl_update_desc>();
    d.trainer_id = text(id);
    d.device = text("cpu");
    d.dtype = dtype;
    d.rank = rank;
    d.update = ok_update;
    updates.push_back(d);
    return updates.back();
  }
  trl_linalg_desc& linalg(const std::string& id, uint16_t dtype) {
    trl_linalg_desc d = sized<trl_linalg_desc>();
    d.id = text(id);
    d.device = text("cpu");
    d.dtype = dtype;
    d.classes = TRL_MM_GEMV;
    d.gemm = ok_product;
    linalgs.push_back(d);
    return linalgs.back();
  }

  // The table as the entry would fill it. Valid until the next call.
  const trl_plugin& table() {
    op_list_ = pointers(ops);
    kernel_list_ = pointers(kernels);
    builder_list_ = pointers(builders);
    softmax_list_ = pointers(softmaxes);
    initializer_list_ = pointers(initializers);
    trainer_list_ = pointers(trainers);
    update_list_ = pointers(updates);
    linalg_list_ = pointers(linalgs);
    table_ = sized<trl_plugin>();
    table_.abi_minor = TRL_ABI_MINOR;
    table_.id = text(record.id);
    table_.version = text(record.version);
    const auto set = [](auto& to, uint32_t& n, const auto& from) {
      to = from.data();
      n = static_cast<uint32_t>(from.size());
    };
    set(table_.ops, table_.n_ops, op_list_);
    set(table_.kernels, table_.n_kernels, kernel_list_);
    set(table_.builders, table_.n_builders, builder_list_);
    set(table_.softmaxes, table_.n_softmaxes, softmax_list_);
    set(table_.initializers, table_.n_initializers, initializer_list_);
    set(table_.trainers, table_.n_trainers, trainer_list_);
    set(table_.updates, table_.n_updates, update_list_);
    set(table_.linalgs, table_.n_linalgs, linalg_list_);
    return table_;
  }

  PluginRecord record;
  std::deque<trl_op_desc> ops;
  std::deque<trl_kernel_desc> kernels;
  std::deque<trl_builder_desc> builders;
  std::deque<trl_softmax_desc> softmaxes;
  std::deque<trl_initializer_desc> initializers;
  std::deque<trl_trainer_desc> trainers;
  std::deque<trl_update_desc> updates;
  std::deque<trl_linalg_desc> linalgs;
  std::deque<trl_slot_spec> slots;

 private:
  template <class Spec>
  std::pair<Spec*, const Spec* const*> specs(const std::vector<std::string>& names) {
    auto& memory = std::get<std::deque<std::vector<Spec>>>(spec_lists_);
    auto& lists = std::get<std::deque<std::vector<const Spec*>>>(spec_pointers_);
    memory.emplace_back(names.size(), sized<Spec>());
    lists.emplace_back();
    for (size_t i = 0; i < names.size(); ++i) {
      if constexpr (requires(Spec s) { s.key; })
        memory.back()[i].key = text(names[i]);
      else
        memory.back()[i].name = text(names[i]);
      lists.back().push_back(&memory.back()[i]);
    }
    return {memory.back().data(), lists.back().data()};
  }

  std::deque<std::string> texts_;
  std::deque<std::vector<trl_str>> alias_lists_;
  std::deque<std::vector<const trl_slot_spec*>> slot_lists_;
  std::tuple<std::deque<std::vector<trl_in_spec>>, std::deque<std::vector<trl_out_spec>>,
             std::deque<std::vector<trl_attr_spec>>>
      spec_lists_;
  std::tuple<std::deque<std::vector<const trl_in_spec*>>,
             std::deque<std::vector<const trl_out_spec*>>,
             std::deque<std::vector<const trl_attr_spec*>>>
      spec_pointers_;
  std::vector<const trl_op_desc*> op_list_;
  std::vector<const trl_kernel_desc*> kernel_list_;
  std::vector<const trl_builder_desc*> builder_list_;
  std::vector<const trl_softmax_desc*> softmax_list_;
  std::vector<const trl_initializer_desc*> initializer_list_;
  std::vector<const trl_trainer_desc*> trainer_list_;
  std::vector<const trl_update_desc*> update_list_;
  std::vector<const trl_linalg_desc*> linalg_list_;
  trl_plugin table_{};
};

}  // namespace trellis::tests
