// SPDX-License-Identifier: Apache-2.0
//
// The state of a trainer, as checkpoints use it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <trellis/train.hpp>
#include <vector>

#include "model/mapped.hpp"
#include "model/records.hpp"
#include "registry/registry.hpp"
#include "runtime/call.hpp"
#include "tensor/arena.hpp"

namespace trellis::detail {

struct TrainerImpl {
  TrainerImpl(const Model& m, std::string_view id, const Attrs& given);

  Model model;
  const TrainerEntry& entry;
  const trl_update_desc& kernel;
  BoundAttrs attrs;
  double clip_threshold = 5, weight_decay = 0, gradient_norm = 0;
  bool sparse_updates = true;
  uint64_t step = 0;  // the rule's; starts again with restart()
  uint64_t updates = 0, clips = 0, status_updates = 0, status_clips = 0;

  void update(GradientBlock& gradients);
  double learning_rate() const;
  void restart();

  // The slots of a parameter, one pointer for each of entry.slots, laid out like its value. Made at
  // first use.
  const std::vector<char*>& slots_of(const ParamRecord& r);
  bool has_slots(const ParamRecord& r) const {
    return r.index < slots_.size() && !slots_[r.index].empty();
  }

 private:
  [[noreturn]] void refuse(const ParamRecord& r, const GradSlot& gradient) const;
  void apply(const ParamRecord& r, GradientBlock::Impl& block, double lr, double grad_scale);

  std::vector<std::vector<char*>> slots_;  // by ParamRecord::index
  Arena memory_;                           // slots of parameters
  std::vector<Mapped> tables_;  // slots of tables: pages appear with the rows that are touched
  std::vector<trl_tensor> slot_views_;
  Arena scratch_;
  Call call_;
};

}  // namespace trellis::detail
