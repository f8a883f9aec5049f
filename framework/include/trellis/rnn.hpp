// SPDX-License-Identifier: Apache-2.0
//
// Recurrent networks over the builders that plugins provide ("lstm", "gru", ...). A builder knows
// one step; states, stacking, directions, trees, residual connections and dropout are made here,
// the same for all of them.
//
//   Rnn encoder(model, "lstm", {{"input", 100}, {"hidden", 200}}, {.layers = 2, .dropout = {.input
//   = 0.3}}); std::vector<Expr> h = encoder.transduce(graph, words);
//
// States are values: add() returns a new one and leaves the old one as it was. To rewind is to go
// on from an old state; the branches of a beam are states with one predecessor.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <trellis/attrs.hpp>
#include <trellis/graph.hpp>
#include <trellis/model.hpp>
#include <utility>
#include <vector>

namespace trellis {

namespace detail {
class RnnLayers;
class RnnSequence;
}  // namespace detail

// Rates in [0, 1]; they act in graphs in train mode. Every batch element has masks of its own.
struct RnnDropout {
  double input = 0;   // on the input of every layer
  double hidden = 0;  // on the output of the step before, where it enters the next step
  double output = 0;  // on output(), not on the state
  bool variational =
      true;  // one mask a sequence (Gal and Ghahramani, 2016); false: a fresh one each step
};

struct RnnOptions {
  std::string name{};     // of the sub-model with the parameters; empty: the builder's
  uint32_t layers = 1;    // each reads the output of the one below
  bool residual = false;  // from the second layer on, the output of a layer has its input added
  bool constant = false;  // no gradient for the parameters
  RnnDropout dropout{};
  // Parameters made elsewhere for those the builder lets one bind (tied weights), by name; every
  // layer uses them.
  std::vector<std::pair<std::string, Parameter>> bind{};
};

// A state: for each layer what its builder keeps (LSTM: h and c; GRU: h). Belongs to its graph;
// when that is cleared, using it throws Error(state).
class TRELLIS_API RnnState {
 public:
  RnnState() = default;  // belongs to no sequence; using it throws Error(state)

  // One step. `in`: as many expressions as the builder takes.
  RnnState add(const Expr& x, SourceLine where = SourceLine::here()) const {
    return add(std::span<const Expr>(&x, 1), where);
  }
  RnnState add(std::span<const Expr> in, SourceLine where = SourceLine::here()) const;
  // The states after each of the inputs; none for none. Equal to add() after add(), but a builder
  // that can read a whole sequence at once does.
  std::vector<RnnState> add_all(std::span<const Expr> xs,
                                SourceLine where = SourceLine::here()) const;
  // Their outputs.
  std::vector<Expr> transduce(std::span<const Expr> xs,
                              SourceLine where = SourceLine::here()) const;

  Expr output() const;          // of the last layer, with residual connection and output dropout
  std::vector<Expr> h() const;  // the output of each layer as the next step sees it
  // Everything, Rnn::state_size() expressions: first what is not the output, each for all layers
  // (LSTM: cells), then the outputs of all layers.
  std::vector<Expr> s() const;
  RnnState set_h(std::span<const Expr> h)
      const;  // a new state with these outputs, one a layer; the rest as here
  RnnState set_s(std::span<const Expr> s) const;  // a new state, in the order of s()
  // The state this one was made from; of a tree's node its first child. Throws Error(state) at the
  // start.
  RnnState prev() const;
  bool is_start() const;

 private:
  friend class Rnn;
  friend class RnnTree;
  friend class TreeRnn;
  RnnState(std::shared_ptr<detail::RnnSequence> sequence, uint32_t index)
      : sequence_(std::move(sequence)), index_(index) {}
  detail::RnnSequence& sequence() const;
  std::shared_ptr<detail::RnnSequence> sequence_;
  uint32_t index_ = 0;
};

// A chain. Copies share parameters; each has its own dropout rates.
class TRELLIS_API Rnn {
 public:
  // Makes the parameters in `model`, in a sub-model. `attrs` are the builder's; upper layers take
  // the size of the output below as that of their input. Throws Error(argument), and Error(plugin)
  // when no builder has the name.
  Rnn(Model model, std::string_view builder, const Attrs& attrs, const RnnOptions& options = {});

  // A new sequence with new dropout masks. `s`: the start state in the order of RnnState::s(), or
  // nothing for zeros. `contexts`: what every step sees besides (an attention's memory), as many as
  // the builder takes.
  RnnState start(const Graph& graph, std::span<const Expr> s = {},
                 std::span<const Expr> contexts = {}) const;
  // The outputs for a whole sequence from zeros; none for none.
  std::vector<Expr> transduce(const Graph& graph, std::span<const Expr> xs,
                              SourceLine where = SourceLine::here()) const {
    return start(graph).transduce(xs, where);
  }

  void set_dropout(const RnnDropout& dropout);  // of sequences started from now on
  const RnnDropout& dropout() const { return dropout_; }
  void set_constant(bool constant) { constant_ = constant; }

  uint32_t layers() const;
  uint32_t state_size() const;   // expressions in s()
  uint32_t output_size() const;  // rows of output()
  Model model() const;           // the sub-model

 private:
  friend class BiRnn;
  explicit Rnn(std::shared_ptr<const detail::RnnLayers> layers, const RnnOptions& options);
  std::shared_ptr<const detail::RnnLayers> layers_;
  RnnDropout dropout_;
  bool constant_ = false;
};

// Two chains a layer, one from each end; the next layer and the user see their outputs as one
// vector, forward first, so with `hidden` h the output has 2 h rows.
class TRELLIS_API BiRnn {
 public:
  BiRnn(Model model, std::string_view builder, const Attrs& attrs, const RnnOptions& options = {});

  std::vector<Expr> transduce(const Graph& graph, std::span<const Expr> xs,
                              SourceLine where = SourceLine::here()) const;
  // States of the last layer at each position, from the left and from the right.
  std::vector<std::pair<RnnState, RnnState>> states(const Graph& graph, std::span<const Expr> xs,
                                                    SourceLine where = SourceLine::here()) const;

  void set_dropout(const RnnDropout& dropout);
  void set_constant(bool constant);

  uint32_t layers() const { return static_cast<uint32_t>(forward_.size()); }
  uint32_t output_size() const;
  Model model() const { return model_; }

 private:
  // Inputs of the last layer.
  std::vector<Expr> below(const Graph& graph, std::span<const Expr> xs, SourceLine where) const;
  std::vector<Expr> layer(const Graph& graph, size_t l, std::span<const Expr> xs,
                          SourceLine where) const;

  Model model_;
  std::vector<Rnn> forward_, backward_;
  RnnDropout dropout_;
  bool residual_ = false;
};

// The nodes of one tree, or of several that share dropout masks.
class TRELLIS_API RnnTree {
 public:
  // A node from its children, left to right, and its own inputs; a leaf has no children. The
  // children are states of this tree.
  RnnState add(std::span<const RnnState> children, std::span<const Expr> in,
               SourceLine where = SourceLine::here()) const;
  RnnState add(std::initializer_list<RnnState> children, const Expr& x,
               SourceLine where = SourceLine::here()) const {
    return add(std::span<const RnnState>(children.begin(), children.size()),
               std::span<const Expr>(&x, 1), where);
  }
  RnnState add(std::initializer_list<RnnState> children,
               SourceLine where = SourceLine::here()) const {
    return add(std::span<const RnnState>(children.begin(), children.size()), {}, where);
  }
  RnnState leaf(const Expr& x, SourceLine where = SourceLine::here()) const {
    return add(std::span<const RnnState>(), std::span<const Expr>(&x, 1), where);
  }

 private:
  friend class TreeRnn;
  explicit RnnTree(RnnState start) : start_(std::move(start)) {}
  RnnState start_;
};

// A tree-shaped network, over builders whose step takes the states of several predecessors
// ("tree_lstm").
class TRELLIS_API TreeRnn {
 public:
  TreeRnn(Model model, std::string_view builder, const Attrs& attrs,
          const RnnOptions& options = {});

  RnnTree start(const Graph& graph, std::span<const Expr> contexts = {}) const;

  void set_dropout(const RnnDropout& dropout);
  void set_constant(bool constant) { constant_ = constant; }

  uint32_t layers() const;
  uint32_t state_size() const;
  uint32_t output_size() const;
  Model model() const;

 private:
  std::shared_ptr<const detail::RnnLayers> layers_;
  RnnDropout dropout_;
  bool constant_ = false;
};

}  // namespace trellis
