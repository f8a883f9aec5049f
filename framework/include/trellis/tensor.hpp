// SPDX-License-Identifier: Apache-2.0
//
// Shapes, element types, views and owning tensors.
//
// Storage is column-major (first index fastest) and the batch index is slowest: element i of batch
// element b of a packed tensor lies at data[b * elements_per_example + i].
#pragma once

#include <trellis/abi/tensor.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <trellis/api.hpp>
#include <trellis/error.hpp>
#include <type_traits>
#include <utility>
#include <vector>

namespace trellis {

enum class DType : uint16_t {
  f32 = TRL_F32,
  f64 = TRL_F64,
  i32 = TRL_I32,
  i64 = TRL_I64,
  u8 = TRL_U8,
  boolean = TRL_BOOL,
  // For storage: tensors convert from and to them, rounding to nearest even; as an input of a graph
  // they become its float type.
  f16 = TRL_F16,
  bf16 = TRL_BF16,
};
TRELLIS_API size_t dtype_size(DType t);            // bytes of one element
TRELLIS_API std::string_view dtype_name(DType t);  // "f32"
inline bool is_float(DType t) { return t == DType::f32 || t == DType::f64; }  // kernels compute in

// A shape: up to 8 sizes and, apart from them, a batch size. Layout-compatible with trl_dim; sizes
// at and above the rank are always 1 here, so comparing raw memory compares shapes.
class TRELLIS_API Dim : public trl_dim {
 public:
  static constexpr uint32_t kMaxRank = TRL_MAX_RANK;

  // Rank 0 (a scalar), batch 1.
  constexpr Dim() : trl_dim{0, 1, {1, 1, 1, 1, 1, 1, 1, 1}} {}
  // Throws Error(shape): more than 8 sizes, a size of 0, batch 0, or a product that overflows 63
  // bits.
  Dim(std::initializer_list<uint32_t> sizes, uint32_t batch = 1);
  explicit Dim(std::span<const uint32_t> sizes, uint32_t batch = 1);
  explicit Dim(const trl_dim& raw);  // sets unused sizes to 1; same checks

  // {3,4}x8; a batch of 1 is not printed; a scalar is {}.
  std::string to_string() const;
  // Parses to_string()'s form and DyNet's {3,4X8}. Throws Error(argument) naming the position.
  static Dim parse(std::string_view text);

  uint64_t elements() const;                             // of one example
  uint64_t total() const { return elements() * batch; }  // with the batch
  uint64_t sum_dims() const;                             // sum of the sizes
  uint32_t rows() const { return d[0]; }
  uint32_t cols() const { return d[1]; }
  uint32_t operator[](size_t i) const { return i < kMaxRank ? d[i] : 1; }  // 1 beyond the rank
  uint32_t non_one_dims() const;

  Dim single_batch() const { return with_batch(1); }
  Dim with_batch(uint32_t b) const;
  Dim truncated() const;  // without trailing 1s; keeps at least one dimension of a rank >= 1
  Dim resized(uint32_t rank) const;  // new dimensions are 1; throws when a dropped one is not 1
  void set(uint32_t axis, uint32_t size);  // throws: size 0; axis >= rank unless size is 1
  Dim deleted(uint32_t axis) const;        // throws: axis >= rank. The last one leaves rank 0
  Dim deleted(std::span<const uint32_t> axes,
              bool reduce_batch = false) const;  // duplicates count once
  Dim appended(uint32_t size) const;
  Dim inserted(uint32_t axis, uint32_t size) const;
  Dim transposed() const;  // rank 1: {1,n}; rank 2: swapped; else throws

  friend bool operator==(const Dim& a, const Dim& b) {
    if (a.rank != b.rank || a.batch != b.batch) return false;
    for (uint32_t i = 0; i < a.rank; ++i)
      if (a.d[i] != b.d[i]) return false;
    return true;
  }
};
static_assert(sizeof(Dim) == sizeof(trl_dim));
TRELLIS_API std::ostream& operator<<(std::ostream& out, const Dim& dim);
TRELLIS_API std::string to_string(std::span<const Dim> dims);  // [{3} {4}x2]

// A view on packed memory owned by somebody else. Copying it copies the view.
class TRELLIS_API TensorView {
 public:
  TensorView() = default;
  TensorView(void* data, const Dim& dim, DType dtype) : data_(data), dim_(dim), dtype_(dtype) {}

  const Dim& dim() const { return dim_; }
  DType dtype() const { return dtype_; }
  void* data() const { return data_; }
  bool empty() const { return data_ == nullptr; }
  // Throws Error(dtype) when T is not the element type. uint16_t: the bits of f16 and bf16.
  template <class T>
  std::span<T> as() const {
    check_type(sizeof(T), type_of<T>());
    return {static_cast<T*>(data_), static_cast<size_t>(dim_.total())};
  }
  TensorView batch_element(uint32_t b) const;  // throws Error(range); a batch of 1 serves every b

  double as_scalar() const;              // throws Error(shape) unless exactly one element
  std::vector<float> as_vector() const;  // flat, column-major, batch slowest
  std::vector<double> as_doubles() const;
  double at(uint64_t flat_index) const;  // throws Error(range)
  double at(std::initializer_list<uint32_t> index, uint32_t batch = 0) const;
  void set(uint64_t flat_index, double v) const;
  std::string to_string() const;  // all ranks and batches

 private:
  template <class T>
  static constexpr DType type_of() {
    using U = std::remove_const_t<T>;
    if constexpr (std::is_same_v<U, float>) return DType::f32;
    if constexpr (std::is_same_v<U, double>) return DType::f64;
    if constexpr (std::is_same_v<U, int32_t>) return DType::i32;
    if constexpr (std::is_same_v<U, int64_t>) return DType::i64;
    if constexpr (std::is_same_v<U, uint16_t>) return DType::f16;
    return DType::u8;
  }
  void check_type(size_t size, DType t) const;

  void* data_ = nullptr;
  Dim dim_;
  DType dtype_ = DType::f32;
};

// An owning tensor on the host, 64-byte aligned, zero at first.
class TRELLIS_API Tensor : public TensorView {
 public:
  Tensor() = default;
  explicit Tensor(const Dim& dim, DType dtype = DType::f32);
  Tensor(const Dim& dim,
         std::span<const float> values);  // throws Error(shape) when the counts differ
  Tensor(const Dim& dim, std::span<const double> values);  // f64
  explicit Tensor(const TensorView& other);                // copies the elements
  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(Tensor&& other) noexcept;
  Tensor(const Tensor& other);
  Tensor& operator=(const Tensor& other);
  ~Tensor();
};

class RandomEngine;  // trellis/random.hpp

// Utilities on tensors of float types unless said otherwise. All check sizes and throw
// Error(shape/dtype/range).
namespace tensor_tools {
TRELLIS_API bool is_finite(const TensorView& t);  // no NaN, no Inf
TRELLIS_API void fill(const TensorView& t, double value);
TRELLIS_API void scale(const TensorView& t, double a, double b = 0);  // t = a t + b
TRELLIS_API void clip(const TensorView& t, double lo, double hi);
TRELLIS_API void identity(const TensorView& t);  // square matrix only
TRELLIS_API void copy(const TensorView& to,
                      const TensorView& from);  // converts between dtypes; equal totals
TRELLIS_API void set_elements(const TensorView& to, std::span<const float> values);
TRELLIS_API void set_elements(const TensorView& to, std::span<const double> values);
TRELLIS_API void copy_element(const TensorView& from, uint64_t i, const TensorView& to, uint64_t j);
TRELLIS_API void accumulate(const TensorView& to, const TensorView& from);  // to += from
TRELLIS_API void random_normal(const TensorView& t, RandomEngine& r, double mean = 0,
                               double std = 1);
TRELLIS_API void random_uniform(const TensorView& t, RandomEngine& r, double lo = 0, double hi = 1);
TRELLIS_API void random_bernoulli(const TensorView& t, RandomEngine& r, double p, double scale = 1);
TRELLIS_API void random_orthonormal(const TensorView& t, RandomEngine& r,
                                    double scale = 1);  // square matrix
// Reductions along an axis of each example; the axis is removed from the result's shape.
TRELLIS_API Tensor logsumexp(const TensorView& t, uint32_t axis = 0);
TRELLIS_API Tensor argmax(const TensorView& t, uint32_t axis = 0);  // i64; ties: the lowest index
// The k largest, descending, and their indices (i64); the axis has size k. Ties: the lowest index
// first.
TRELLIS_API std::pair<Tensor, Tensor> topk(const TensorView& t, uint32_t k, uint32_t axis = 0);
// One index (i64) per slice, drawn with probability exp(t) / sum exp(t).
TRELLIS_API Tensor sample_log_prob(const TensorView& t, RandomEngine& r, uint32_t axis = 0);
}  // namespace tensor_tools

}  // namespace trellis
