// SPDX-License-Identifier: Apache-2.0
//
// A trainer applies an update rule, which a plugin provides, to the parameters of a model. What all
// rules share is here: clipping by the global norm, refusal of NaN and Inf, weight decay, sparse
// updates of lookup tables, state slots, counts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <trellis/attrs.hpp>
#include <trellis/model.hpp>

namespace trellis {

namespace detail {
struct TrainerImpl;
}

class TRELLIS_API Trainer {
 public:
  // Trains the subtree of `model`, parameters added later included. `id` as in `trellis op list`:
  // "core.adam", "adam". Throws Error(argument) for an unknown id or a bad attribute, Error(dtype)
  // when the rule has no kernel for the model's element type.
  explicit Trainer(const Model& model, std::string_view id, const Attrs& attrs = {});
  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;

  // One step with the gradients of the model's own block, or of `gradients`, which are cleared then
  // (those of this subtree only; of frozen parameters too). Every trainable parameter takes part,
  // with a zero gradient where none was accumulated; of a lookup table the touched rows, see
  // set_sparse_updates().
  //
  // A gradient that is NaN or Inf throws Error(numeric) naming the parameter. Then, as after every
  // error but one, values, slots and counts are as before and the gradients are cleared. The
  // exception is a rule that fails on its own: the parameters before the one named in the error
  // have taken the step, the counts have not.
  //
  // Takes the model's lock. No graph may be reading the parameters meanwhile.
  void update();
  void update(GradientBlock& gradients);

  // Attributes of the rule by name; the learning rate is the one called "lr". Throw Error(argument)
  // for unknown names and refused values, and get() for attributes that are no numbers.
  void set(std::string_view key, const AttrValue& value);
  double get(std::string_view key) const;
  double learning_rate() const;  // 1 for a rule without one
  void set_learning_rate(double lr);

  // Gradients are scaled so that the norm over all trainable parameters and tables together is at
  // most this. Default 5; 0 turns clipping off.
  double clip_threshold() const;
  void set_clip_threshold(double threshold);

  // Decoupled: after the step w <- w (1 - decay), decay in [0, 1), default 0. It reaches every
  // trainable parameter of the subtree and every row of its tables, touched or not, so with decay
  // an update costs a pass over the whole tables.
  double weight_decay() const;
  void set_weight_decay(double decay);

  // On (default): only rows with a gradient are updated, and the state of other rows (momentum,
  // moments) rests. Off: the whole table is updated, at the cost of the table. A table that was
  // used whole in a graph is updated whole.
  bool sparse_updates() const;
  void set_sparse_updates(bool on);

  // Forgets the rule's state (momentum, moments, its step count), not the counts below.
  void restart();
  void restart(double lr);

  uint64_t updates() const;      // successful ones
  uint64_t clips() const;        // how many of them were clipped
  double gradient_norm() const;  // of the last update, before clipping
  // "[lr=0.1 clips=2 updates=50]"; the counts are those since the last call.
  std::string status();

  const std::string& id() const;  // full: "core.adam"
  const Model& model() const;
  detail::TrainerImpl& impl() const;  // throws Error(state) for one that was moved from

 private:
  std::unique_ptr<detail::TrainerImpl> impl_;
};

}  // namespace trellis
