// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <trellis/tensor.hpp>

#include "tensor/element.hpp"

namespace trellis {
namespace {

constexpr std::align_val_t kAlignment{64};

void* allocate(const Dim& dim, DType dtype) {
  const uint64_t size = dtype_size(dtype);
  const uint64_t total = dim.total();
  void* data = nullptr;
  if (total <= static_cast<uint64_t>(INT64_MAX) / size) {
    data = ::operator new(total* size, kAlignment, std::nothrow);
    if (data != nullptr) std::memset(data, 0, total * size);
  }
  if (data == nullptr)
    fail(ErrorKind::memory,
         fmt::format("[tensor] out of memory: {} of {} (needs {} elements of {} bytes)",
                     dim.to_string(), dtype_name(dtype), total, size));
  return data;
}

void check_count(const Dim& dim, size_t given) {
  if (dim.total() != given)
    fail(ErrorKind::shape, fmt::format("[tensor] wrong number of values for {}: {} (needed {})",
                                       dim.to_string(), given, dim.total()));
}

}  // namespace

size_t dtype_size(DType t) {
  switch (t) {
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::u8:
    case DType::boolean:
      return 1;
  }
  fail(ErrorKind::dtype, fmt::format("[dtype] unknown element type: {}", static_cast<unsigned>(t)));
}

std::string_view dtype_name(DType t) {
  switch (t) {
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::u8:
      return "u8";
    case DType::boolean:
      return "bool";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
  }
  fail(ErrorKind::dtype, fmt::format("[dtype] unknown element type: {}", static_cast<unsigned>(t)));
}

namespace detail {

double load_element(const void* data, DType dtype, uint64_t i) {
  return visit_dtype(dtype, [&](auto zero) {
    return static_cast<double>(static_cast<const decltype(zero)*>(data)[i]);
  });
}

void store_element(void* data, DType dtype, uint64_t i, double v) {
  visit_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>) {
      // Converting a number that does not fit is undefined. 2^63 itself is a double, the largest
      // int64 is not.
      constexpr double kLow = static_cast<double>(std::numeric_limits<T>::min());
      constexpr double kEnd =
          2.0 * static_cast<double>(T{1} << (std::numeric_limits<T>::digits - 1));
      if (!(v > kLow - 1 || v == kLow) || !(v < kEnd))
        fail(ErrorKind::range,
             fmt::format("[tensor] value does not fit: {} ({})", v, dtype_name(dtype)));
    }
    static_cast<T*>(data)[i] = static_cast<T>(v);
  });
}

}  // namespace detail

void TensorView::check_type(size_t size, DType t) const {
  if (data_ == nullptr) fail(ErrorKind::state, "[tensor] no elements: an empty view");
  const bool bytes = dtype_ == DType::boolean && t == DType::u8;
  const bool halves = dtype_ == DType::bf16 && t == DType::f16;
  if ((dtype_ != t && !bytes && !halves) || size != dtype_size(dtype_))
    fail(ErrorKind::dtype,
         fmt::format("[tensor] wrong element type: asked for {} of {} bytes (the tensor is {})",
                     dtype_name(t), size, dtype_name(dtype_)));
}

TensorView TensorView::batch_element(uint32_t b) const {
  if (dim_.batch == 1) return *this;
  if (b >= dim_.batch)
    fail(ErrorKind::range,
         fmt::format("[batch_element] no batch element {}: {}", b, dim_.to_string()));
  char* base = static_cast<char*>(data_);
  if (base != nullptr) base += b * dim_.elements() * dtype_size(dtype_);
  return {base, dim_.single_batch(), dtype_};
}

double TensorView::as_scalar() const {
  if (dim_.total() != 1)
    fail(ErrorKind::shape, fmt::format("[as_scalar] {} has {} elements (needed exactly one)",
                                       dim_.to_string(), dim_.total()));
  return at(0);
}

std::vector<float> TensorView::as_vector() const {
  std::vector<float> values(empty() ? 0 : dim_.total());
  if (dtype_ == DType::f32 && !empty()) {
    std::memcpy(values.data(), data_, values.size() * sizeof(float));
  } else {
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(detail::load_element(data_, dtype_, i));
  }
  return values;
}

std::vector<double> TensorView::as_doubles() const {
  std::vector<double> values(empty() ? 0 : dim_.total());
  for (size_t i = 0; i < values.size(); ++i) values[i] = detail::load_element(data_, dtype_, i);
  return values;
}

double TensorView::at(uint64_t flat_index) const {
  if (empty() || flat_index >= dim_.total())
    fail(ErrorKind::range, fmt::format("[at] no element {}: {} has {} elements", flat_index,
                                       dim_.to_string(), empty() ? 0 : dim_.total()));
  return detail::load_element(data_, dtype_, flat_index);
}

double TensorView::at(std::initializer_list<uint32_t> index, uint32_t batch) const {
  uint64_t flat = 0, stride = 1;
  size_t axis = 0;
  for (const uint32_t i : index) {
    const uint32_t size = dim_[axis];
    if (i >= size)
      fail(ErrorKind::range, fmt::format("[at] index out of bound on axis {}: {} ({} has size {})",
                                         axis, i, dim_.to_string(), size));
    flat += i * stride;
    stride *= size;
    ++axis;
  }
  const TensorView element = batch_element(batch);
  return element.at(flat);
}

void TensorView::set(uint64_t flat_index, double v) const {
  if (empty() || flat_index >= dim_.total())
    fail(ErrorKind::range, fmt::format("[set] no element {}: {} has {} elements", flat_index,
                                       dim_.to_string(), empty() ? 0 : dim_.total()));
  detail::store_element(data_, dtype_, flat_index, v);
}

// A vector is one line "[1 2 3]", a matrix one line per row; blocks of higher axes and of the batch
// have a title.
std::string TensorView::to_string() const {
  if (empty()) return "(empty)";
  const auto append = [this](std::string& text, uint64_t i) {
    if (dtype_ == DType::f32)
      fmt::format_to(std::back_inserter(text), "{}", static_cast<const float*>(data_)[i]);
    else if (dtype_ == DType::i64)
      fmt::format_to(std::back_inserter(text), "{}", static_cast<const int64_t*>(data_)[i]);
    else
      fmt::format_to(std::back_inserter(text), "{}", detail::load_element(data_, dtype_, i));
  };
  const uint64_t rows = dim_.rank >= 2 ? dim_.d[0] : 1;
  const uint64_t cols = dim_.rank >= 2 ? dim_.d[1] : dim_.d[0];
  const uint64_t blocks = dim_.elements() / (rows * cols);
  std::string text;
  uint64_t base = 0;
  for (uint32_t b = 0; b < dim_.batch; ++b) {
    for (uint64_t block = 0; block < blocks; ++block, base += rows * cols) {
      std::string title;
      if (blocks > 1) {
        title = "(:,:";
        uint64_t rest = block;
        for (uint32_t axis = 2; axis < dim_.rank; rest /= dim_.d[axis], ++axis)
          title += fmt::format(",{}", rest % dim_.d[axis]);
        title += ")";
      }
      if (dim_.batch > 1) title += fmt::format("{}batch {}", title.empty() ? "" : " ", b);
      if (!text.empty()) text += '\n';
      if (!title.empty()) text += title + ":\n";
      for (uint64_t row = 0; row < rows; ++row) {
        if (row != 0) text += '\n';
        if (dim_.rank != 0) text += '[';
        for (uint64_t col = 0; col < cols; ++col) {
          if (col != 0) text += ' ';
          append(text, base + row + col * rows);
        }
        if (dim_.rank != 0) text += ']';
      }
    }
  }
  return text;
}

Tensor::Tensor(const Dim& dim, DType dtype) : TensorView(allocate(dim, dtype), dim, dtype) {}

Tensor::Tensor(const Dim& dim, std::span<const float> values) {
  check_count(dim, values.size());
  *this = Tensor(dim, DType::f32);
  std::memcpy(data(), values.data(), values.size_bytes());
}

Tensor::Tensor(const Dim& dim, std::span<const double> values) {
  check_count(dim, values.size());
  *this = Tensor(dim, DType::f64);
  std::memcpy(data(), values.data(), values.size_bytes());
}

Tensor::Tensor(const TensorView& other) {
  if (other.empty()) return;
  *this = Tensor(other.dim(), other.dtype());
  std::memcpy(data(), other.data(), other.dim().total() * dtype_size(other.dtype()));
}

Tensor::Tensor(const Tensor& other) : Tensor(static_cast<const TensorView&>(other)) {}

Tensor::Tensor(Tensor&& other) noexcept : TensorView(other) {
  static_cast<TensorView&>(other) = TensorView();
}

Tensor& Tensor::operator=(Tensor&& other) noexcept {
  std::swap(static_cast<TensorView&>(*this), static_cast<TensorView&>(other));
  return *this;
}

Tensor& Tensor::operator=(const Tensor& other) { return *this = Tensor(other); }

Tensor::~Tensor() { ::operator delete(data(), kAlignment); }

}  // namespace trellis
