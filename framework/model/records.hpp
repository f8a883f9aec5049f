// SPDX-License-Identifier: Apache-2.0
//
// The storage behind Model, Parameter and GradientBlock, as graph, exec and train use it.
//
// Threads: values are immutable while any graph reads them; an update takes root.mutex once. Each worker adds to its own
// GradientBlock.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <trellis/model.hpp>

#include "tensor/arena.hpp"

namespace trellis::detail {

struct ModelRoot;

struct ParamRecord {
  uint32_t uid = 0;         // process-wide, never reused, never 0: the identity of shared storage in batching keys
  uint32_t index = 0;       // in root.records
  std::string name;         // full
  Dim dim;                  // tables: row dim with rows appended
  DType dtype = DType::f32;
  char* value = nullptr;    // packed, 64-byte aligned, never moves
  bool trainable = true;
  bool lookup = false;
  uint32_t rows = 0;        // tables
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
  ~SparseRows();
  char* row(uint32_t r);                       // zeroed at its first touch since clear()
  const char* find(uint32_t r) const;          // null when not touched
  const std::vector<uint32_t>& touched() const { return touched_; }
  const char* data() const { return data_; }   // touched().size() rows, one after another, in order of touch
  char* data() { return data_; }
  void clear();                                // costs the touched rows

 private:
  void grow();
  uint64_t row_bytes_ = 0;
  uint32_t rows_ = 0;
  uint32_t* slot_ = nullptr;                   // slot_[r] - 1 is the position in data_; mapped lazily
  char* data_ = nullptr;
  uint64_t capacity_ = 0;                      // rows
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
  detail::Arena memory;
  std::vector<detail::GradSlot> slots;  // by ParamRecord::index; grows when parameters are added later

  // Memory to ADD the dense gradient to; zeroed since the last clear(). Marks the slot touched.
  char* dense(const detail::ParamRecord& r);
  detail::SparseRows& sparse(const detail::ParamRecord& r);
  detail::GradSlot& slot(const detail::ParamRecord& r) {
    if (r.index >= slots.size()) slots.resize(r.index + 1);
    return slots[r.index];
  }
  void clear(const detail::ParamRecord& r);
};

}  // namespace trellis

namespace trellis::detail {

struct ModelRoot : std::enable_shared_from_this<ModelRoot> {
  RuntimeCore* core = nullptr;
  const Runtime* runtime = nullptr;
  DType dtype = DType::f32;
  Arena values;
  std::vector<std::shared_ptr<ParamRecord>> records;  // all, in order of creation
  GradientBlock gradients;
  std::mutex mutex;
  // name counters of every node of the tree: parameters and tables share one, sub-models have their own
  struct Counters;
  std::unique_ptr<Counters> counters;
  ModelRoot();
  ~ModelRoot();
};

}  // namespace trellis::detail
