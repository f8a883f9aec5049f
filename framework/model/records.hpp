// SPDX-License-Identifier: Apache-2.0
//
// The storage behind Model, Parameter and GradientBlock, as graph, exec and train use it.
//
// Threads: values are immutable while any graph reads them; an update takes root.mutex once. Each
// worker adds to its own GradientBlock.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <trellis/model.hpp>
#include <vector>

#include "model/mapped.hpp"
#include "tensor/arena.hpp"

namespace trellis::detail {

struct ModelRoot;
class NormSum;  // model/norm.hpp

struct ParamRecord {
  uint32_t uid =
      0;  // process-wide, never reused, never 0: the identity of shared storage in batching keys
  uint32_t index = 0;  // in root.records
  std::string name;    // full
  Dim dim;             // tables: row dim with rows appended
  DType dtype = DType::f32;
  char* value = nullptr;  // packed, 64-byte aligned, never moves
  Device device{};
  bool trainable = true;
  bool lookup = false;
  uint32_t rows = 0;  // tables
  uint64_t row_elements = 0;
  ModelRoot* root = nullptr;
  std::weak_ptr<ModelRoot> owner;
  uint64_t bytes() const { return dim.elements() * dtype_size(dtype); }
  uint64_t row_bytes() const { return row_elements * dtype_size(dtype); }
};

// Gradient rows of one table: only touched rows have memory.
class SparseRows {
 public:
  explicit SparseRows(const ParamRecord& record);
  // Zeroed at its first touch since clear(). Valid until the next call: rows move as their number
  // grows.
  char* row(uint32_t r);
  const char* find(uint32_t r) const;  // null when not touched
  const std::vector<uint32_t>& touched() const { return touched_; }
  const char* data() const {
    return data_.data();
  }  // touched().size() rows, one after another, in order of touch
  char* data() { return data_.data(); }
  uint64_t elements() const { return touched_.size() * row_elements_; }
  void clear();  // costs the touched rows

 private:
  uint32_t* slots() const { return reinterpret_cast<uint32_t*>(slots_.data()); }
  uint64_t row_elements_, row_bytes_;
  uint32_t rows_;
  Mapped slots_;  // slots()[r] - 1 is the position of row r in data_
  Mapped data_;
  std::vector<uint32_t> touched_;
};

// The gradient of one parameter in one block.
struct GradSlot {
  char* dense = nullptr;               // made at first use; tables: only when used whole
  std::unique_ptr<SparseRows> sparse;  // tables
  bool touched = false;                // dense holds something
};

}  // namespace trellis::detail

namespace trellis {

struct GradientBlock::Impl {
  explicit Impl(detail::ModelRoot& r) : root(&r) {}
  detail::ModelRoot* root;
  std::shared_ptr<detail::ModelRoot> keep;  // null in the model's own block
  detail::Arena memory;
  // By ParamRecord::index; grows when parameters are added later.
  std::vector<detail::GradSlot> slots;

  // Memory to ADD the dense gradient to: zero at the first call since clear(). Marks the slot
  // touched.
  char* dense(const detail::ParamRecord& r);
  detail::SparseRows& sparse(const detail::ParamRecord& r);
  // dense(); tables: with the gradients of single rows moved into it.
  char* fold(const detail::ParamRecord& r);
  // Tables not used whole: a copy of the gradient, laid out like the table. The block stays as is.
  char* spread(const detail::ParamRecord& r);
  detail::GradSlot& slot(const detail::ParamRecord& r) {
    if (r.index >= slots.size()) slots.resize(r.index + 1);
    return slots[r.index];
  }
  void clear(const detail::ParamRecord& r);
  // Adds the gradient of one parameter to a norm; tables used both whole and by rows are folded.
  // False: NaN or Inf.
  bool add_norm(const detail::ParamRecord& r, detail::NormSum& norm);
};

}  // namespace trellis

namespace trellis::detail {

struct ModelRoot : std::enable_shared_from_this<ModelRoot> {
  RuntimeCore* core = nullptr;
  std::optional<Runtime> runtime;  // keeps it alive
  DType dtype = DType::f32;
  Device device{};
  int32_t owner_process = 0;  // shared values: who may add parameters; 0: the values are not shared
  Arena values;
  std::vector<std::shared_ptr<ParamRecord>> records;  // all, in order of creation
  GradientBlock gradients;
  std::mutex mutex;
  // Of every node of the tree: parameters and tables count together, sub-models apart.
  struct Counters;
  std::unique_ptr<Counters> counters;
  explicit ModelRoot(bool shared);
  ~ModelRoot();

  const ParamRecord* find(const std::string& full_name) const;  // null: none
  // A handle's pointer: it keeps the whole model alive.
  std::shared_ptr<ParamRecord> handle(uint32_t index) {
    return {shared_from_this(), records[index].get()};
  }
};

// A host-owned view for callbacks on memory laid out like the parameter.
trl_tensor tensor_like(const ParamRecord& r, char* data);

}  // namespace trellis::detail
