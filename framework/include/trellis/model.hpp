// SPDX-License-Identifier: Apache-2.0
//
// A model is a tree of named parameters and lookup tables, kept apart from graphs. Values lie in
// contiguous blocks, so an update is one streaming pass; gradients of tables are stored for touched
// rows only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <trellis/attrs.hpp>
#include <trellis/runtime.hpp>
#include <trellis/tensor.hpp>
#include <vector>

namespace trellis {

class Model;
namespace detail {
struct ModelRoot;
struct ParamRecord;
}  // namespace detail

// How a new parameter is filled: an initializer's id ("core.normal", "normal") with attributes,
// values, or (default) the initializer that a loaded plugin declares as the default one.
struct Init {
  std::string id;
  Attrs attrs;
  std::vector<double> values;  // column-major; wins when not empty
  Init() = default;
  Init(const char* initializer, Attrs a = {}) : id(initializer), attrs(std::move(a)) {}
  Init(std::string initializer, Attrs a = {}) : id(std::move(initializer)), attrs(std::move(a)) {}
  static Init from(std::vector<double> v) {
    Init i;
    i.values = std::move(v);
    return i;
  }
};

// Handles; copies refer to the same parameter, which lives as long as its model or any handle.
class TRELLIS_API Parameter {
 public:
  Parameter() = default;
  const Dim& dim() const;
  DType dtype() const;
  Device device() const;
  const std::string& name() const;  // full name, "/encoder/w"
  TensorView value() const;
  // Of the model's own block; zero where none was accumulated; writing to it adds to the next
  // update. Of a table that was not used whole: a copy as large as the table (row_gradient() costs
  // one row).
  TensorView gradient() const;
  void set_value(std::span<const float> v);  // throws Error(shape) when the count differs
  void set_value(std::span<const double> v);
  void zero();  // values and gradient
  void clip(double lo, double hi);
  void scale(double s);
  void scale_gradient(double s);
  void set_trainable(bool on);  // false: updates skip it, clipping ignores it
  bool trainable() const;
  bool valid() const { return record_ != nullptr; }
  detail::ParamRecord& record() const;  // throws Error(state) for a default-made handle
  explicit Parameter(std::shared_ptr<detail::ParamRecord> r) : record_(std::move(r)) {}

 protected:
  std::shared_ptr<detail::ParamRecord> record_;
};

class TRELLIS_API LookupParameter : public Parameter {
 public:
  LookupParameter() = default;
  uint32_t rows() const;
  Dim row_dim() const;               // dim() is row_dim() with rows() appended
  TensorView row(uint32_t i) const;  // throws Error(range)
  void set_row(uint32_t i, std::span<const float> v);
  // Rows with a gradient in the model's own block, in order of touch.
  std::span<const uint32_t> touched_rows() const;
  TensorView row_gradient(uint32_t i) const;  // empty view when the row was not touched
  explicit LookupParameter(std::shared_ptr<detail::ParamRecord> r) : Parameter(std::move(r)) {}
};

// Gradients of one worker: dense ones as large as the model, sparse ones as large as the touched
// rows. A model has one of its own; data-parallel workers make one each and add them in a fixed
// order.
class TRELLIS_API GradientBlock {
 public:
  explicit GradientBlock(const Model& model);
  ~GradientBlock();
  GradientBlock(GradientBlock&&) noexcept;
  GradientBlock& operator=(GradientBlock&&) noexcept;
  void clear();
  void add(const GradientBlock& other);  // += in the order of parameters, then rows as touched
  struct Impl;
  Impl& impl() const;  // throws Error(state) for one that was moved from

 private:
  friend struct detail::ModelRoot;
  GradientBlock() = default;
  std::unique_ptr<Impl> impl_;
};

struct ModelOptions {
  DType dtype = DType::f32;
  // Values (of tables, too) lie in memory that processes made by fork() afterwards share: what one
  // trains, all see. Parameters are added before the fork, by the process that made the model;
  // others that add throw Error(state). Gradients, trainer slots and counters stay with each
  // process. Nothing keeps updates of two processes at the same time apart: let one process update,
  // or take turns.
  bool shared = false;
  Device device{};  // of parameters that name none; throws Error(argument) when not there
};

// A handle on a node of the tree; copies refer to the same node, and moving copies. The last handle
// on a node, parameter or graph that uses one frees the tree.
class TRELLIS_API Model {
 public:
  Model(const Model&) = default;
  Model& operator=(const Model&) = default;
  explicit Model(const Runtime& runtime, DType dtype = DType::f32);
  Model(const Runtime& runtime, const ModelOptions& options);

  // Child "<name>". The second child (or parameter) of one name becomes name_1, the third name_2.
  // Names: [A-Za-z0-9.-] and '_' inside, not empty; else Error(argument).
  Model sub(std::string_view name);
  // dim must have batch 1 (Error(shape)).
  Parameter add_parameter(std::string_view name, const Dim& dim, const Init& init = {});
  LookupParameter add_lookup(std::string_view name, uint32_t rows, const Dim& row_dim,
                             const Init& init = {});
  // On a device; throw Error(argument) when it is not there.
  Parameter add_parameter(std::string_view name, const Dim& dim, const Init& init, Device device);
  LookupParameter add_lookup(std::string_view name, uint32_t rows, const Dim& row_dim,
                             const Init& init, Device device);

  const std::string& name() const;  // "/" for the root, "/encoder/" for a child
  // This subtree, in order of creation.
  std::vector<Parameter> parameters() const;  // tables not included
  std::vector<LookupParameter> lookups() const;
  // Throw Error(argument) with suggestions.
  Parameter parameter(std::string_view full_or_relative_name) const;
  LookupParameter lookup(std::string_view full_or_relative_name) const;
  uint64_t size() const;           // parameters and tables in this subtree
  uint64_t element_count() const;  // numbers in this subtree
  uint64_t trainable_element_count() const;

  void reset_gradient();         // of this subtree, in the model's own block
  double gradient_norm() const;  // L2 over trainable ones; cannot overflow; NaN: one is NaN or Inf
  double value_norm() const;
  const Runtime& runtime() const;
  DType dtype() const;
  bool shared() const;               // with processes made by fork()
  GradientBlock& gradients() const;  // the model's own block
  detail::ModelRoot& root() const { return *root_; }
  const std::string& path() const { return *path_; }

 private:
  Model(std::shared_ptr<detail::ModelRoot> root, std::shared_ptr<const std::string> path)
      : root_(std::move(root)), path_(std::move(path)) {}
  std::shared_ptr<detail::ModelRoot> root_;
  std::shared_ptr<const std::string> path_;
};

}  // namespace trellis
