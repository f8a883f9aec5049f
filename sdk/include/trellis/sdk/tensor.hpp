// SPDX-License-Identifier: Apache-2.0
//
// Shapes and typed views on the host's tensors. Column-major: the first index runs fastest, the
// batch slowest.
#pragma once

#include <trellis/abi/tensor.h>

#include <cstdint>
#include <initializer_list>
#include <trellis/sdk/error.hpp>
#include <type_traits>

namespace trellis::sdk {
inline namespace [[gnu::visibility("hidden")]] v0 {

// trl_dim with an interface. Sizes beyond the rank read as 1; rank 0 is a scalar.
struct Dim : trl_dim {
  constexpr Dim() : trl_dim{0, 1, {}} {}
  constexpr Dim(const trl_dim& raw) : trl_dim(raw) {}
  constexpr Dim(std::initializer_list<std::uint32_t> sizes, std::uint32_t batch_size = 1)
      : trl_dim{0, batch_size, {}} {
    for (const std::uint32_t size : sizes) push(size);
  }

  constexpr std::uint32_t operator[](std::uint32_t axis) const { return axis < rank ? d[axis] : 1; }
  // Elements of one example.
  constexpr std::uint64_t size() const {
    std::uint64_t n = 1;
    for (std::uint32_t i = 0; i < rank; ++i) n *= d[i];
    return n;
  }
  // Adds a last dimension. Refuses a ninth.
  constexpr Dim& push(std::uint32_t size) {
    if (rank == TRL_MAX_RANK) fail(TRL_E_SHAPE, "more than 8 dimensions");
    d[rank++] = size;
    return *this;
  }
  // A copy with `size` at an axis; missing dimensions before it become 1.
  constexpr Dim with(std::uint32_t axis, std::uint32_t size) const {
    Dim to = *this;
    while (to.rank <= axis) to.push(1);
    to.d[axis] = size;
    return to;
  }
  // A copy without an axis; unchanged where the rank is lower.
  constexpr Dim without(std::uint32_t axis) const {
    if (axis >= rank) return *this;
    Dim to = *this;
    for (std::uint32_t i = axis; i + 1 < rank; ++i) to.d[i] = d[i + 1];
    --to.rank;
    return to;
  }
  constexpr Dim with_batch(std::uint32_t batch_size) const {
    Dim to = *this;
    to.batch = batch_size;
    return to;
  }
  // Equal sizes, missing trailing dimensions counting as 1; the batch does not matter.
  constexpr bool same_shape(const Dim& other) const {
    const std::uint32_t n = rank > other.rank ? rank : other.rank;
    for (std::uint32_t i = 0; i < n; ++i)
      if ((*this)[i] != other[i]) return false;
    return true;
  }
};
static_assert(sizeof(Dim) == sizeof(trl_dim));

// A typed view on a trl_tensor; T is const for inputs. Cheap to copy, valid during the call. False
// in a condition when the tensor is absent or a gradient is not wanted.
template <class T>
class Tensor {
 public:
  using value_type = std::remove_const_t<T>;

  Tensor() = default;
  explicit Tensor(const trl_tensor& t)
      : data_(t.data), stride_(t.batch_stride), dim_(&t.dim), flags_(t.flags) {}

  explicit operator bool() const { return data_ != nullptr; }
  operator Tensor<const T>() const requires(!std::is_const_v<T>) {
    Tensor<const T> to;
    to.data_ = data_;
    to.stride_ = stride_;
    to.dim_ = dim_;
    to.flags_ = flags_;
    return to;
  }

  // First element of batch element b. A shared tensor returns the same for every b.
  T* data(std::uint32_t b = 0) const {
    if (flags_ & TRL_TENSOR_POINTERS) [[unlikely]]
      return static_cast<T* const*>(data_)[b];
    return static_cast<T*>(data_) + b * stride_;
  }
  T& operator[](std::uint64_t i) const { return data()[i]; }

  Dim dim() const { return *dim_; }
  const trl_dim& raw_dim() const { return *dim_; }
  std::uint32_t rank() const { return dim_->rank; }
  std::uint32_t dim(std::uint32_t axis) const { return axis < dim_->rank ? dim_->d[axis] : 1; }
  std::uint64_t size() const {  // elements of one example
    std::uint64_t n = 1;
    for (std::uint32_t i = 0; i < dim_->rank; ++i) n *= dim_->d[i];
    return n;
  }
  std::uint64_t total() const { return size() * batch(); }
  std::uint32_t batch() const { return dim_->batch; }  // 1 where shared
  std::uint64_t batch_stride() const {
    return stride_;
  }  // 0: the same values for every batch element
  bool shared() const { return stride_ == 0; }
  bool pointers() const { return (flags_ & TRL_TENSOR_POINTERS) != 0; }
  // Batch elements follow one another without gaps.
  bool packed() const { return packed(size()); }
  bool packed(std::uint64_t known_size) const {
    return !pointers() && (dim_->batch == 1 || stride_ == known_size);
  }
  // d_in only: write the gradient; otherwise add to what is there.
  bool stores() const { return (flags_ & TRL_TENSOR_STORE) != 0; }

  // The same elements under another shape with the same number of elements per example. `dim` must
  // outlive the view.
  Tensor viewed_as(const trl_dim& dim) const {
    Tensor to = *this;
    to.dim_ = &dim;
    return to;
  }
  Tensor viewed_as(trl_dim&&) const = delete;
  // The same view, asked to add.
  Tensor adding() const {
    Tensor to = *this;
    to.flags_ &= ~static_cast<std::uint32_t>(TRL_TENSOR_STORE);
    return to;
  }
  void fill(value_type value) const requires(!std::is_const_v<T>) {
    const std::uint64_t n = size();
    for (std::uint32_t b = 0; b < batch(); ++b) {
      T* p = data(b);
      for (std::uint64_t i = 0; i < n; ++i) p[i] = value;
    }
  }

 private:
  template <class>
  friend class Tensor;
  using Raw = std::conditional_t<std::is_const_v<T>, const void, void>;

  Raw* data_ = nullptr;
  std::uint64_t stride_ = 0;
  const trl_dim* dim_ = nullptr;
  std::uint32_t flags_ = 0;
};

// One stream per batch element.
class Streams {
 public:
  explicit Streams(const trl_stream* first) : first_(first) {}
  const trl_stream& operator[](std::uint32_t b) const { return first_[b]; }

 private:
  const trl_stream* first_;
};

namespace detail {

template <class T>
constexpr std::uint16_t dtype_of() {
  if constexpr (std::is_same_v<T, float>) return TRL_F32;
  if constexpr (std::is_same_v<T, double>) return TRL_F64;
  if constexpr (std::is_same_v<T, std::int32_t>) return TRL_I32;
  if constexpr (std::is_same_v<T, std::int64_t>) return TRL_I64;
  if constexpr (std::is_same_v<T, std::uint8_t>) return TRL_U8;
  return 0;
}

}  // namespace detail

// How a tensor with an axis falls apart: `inner` elements before it, `n` along it, `outer` after
// it. Element (i, k, o) lies at i + inner * (k + n * o).
struct Split {
  std::uint64_t inner = 1, n = 1, outer = 1;
};
constexpr Split split(const trl_dim& dim, std::uint32_t axis) {
  Split s;
  for (std::uint32_t i = 0; i < dim.rank; ++i)
    (i < axis ? s.inner : i == axis ? s.n : s.outer) *= dim.d[i];
  return s;
}

}  // namespace gnu::visibility("hidden")]]v0
}  // namespace trellis::sdk
