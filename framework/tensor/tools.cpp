// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <trellis/random.hpp>
#include <trellis/tensor.hpp>

#include "tensor/element.hpp"

namespace trellis::tensor_tools {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void need_elements(const char* who, const TensorView& t) {
  if (t.empty()) fail(ErrorKind::state, fmt::format("[{}] no elements: an empty view", who));
}

void need_float(const char* who, const TensorView& t) {
  need_elements(who, t);
  if (!is_float(t.dtype()))
    fail(ErrorKind::dtype, fmt::format("[{}] wrong element type: {} (needed f32 or f64)", who,
                                       dtype_name(t.dtype())));
}

void need_same_total(const char* who, const TensorView& to, const TensorView& from) {
  need_elements(who, to);
  need_elements(who, from);
  if (to.dim().total() != from.dim().total())
    fail(ErrorKind::shape,
         fmt::format("[{}] sizes differ: {} and {} (needed equally many elements)", who,
                     to.dim().to_string(), from.dim().to_string()));
}

void need_square(const char* who, const TensorView& t) {
  need_float(who, t);
  if (t.dim().rank != 2 || t.dim().rows() != t.dim().cols())
    fail(ErrorKind::shape, fmt::format("[{}] not a square matrix: {}", who, t.dim().to_string()));
}

// Calls f with a span of the elements.
template <class F>
auto with_floats(const TensorView& t, F&& f) {
  return t.dtype() == DType::f64 ? f(t.as<double>()) : f(t.as<float>());
}

// The slices along one axis: element i of slice s lies at base(s) + i * inner.
struct Slices {
  uint64_t inner, size, count;
  Slices(const char* who, const TensorView& t, uint32_t axis) : inner(1), size(0), count(0) {
    need_float(who, t);
    const Dim& dim = t.dim();
    if (axis >= dim.rank)
      fail(ErrorKind::range, fmt::format("[{}] no axis {}: {} has {} dimension{}", who, axis,
                                         dim.to_string(), dim.rank, dim.rank == 1 ? "" : "s"));
    for (uint32_t i = 0; i < axis; ++i) inner *= dim.d[i];
    size = dim.d[axis];
    count = dim.total() / size;
  }
  uint64_t base(uint64_t s) const { return s / inner * inner * size + s % inner; }
};

// log(sum(exp(x))) with the largest taken out; -inf for nothing but -inf, NaN for any NaN.
template <class T>
double stable_logsumexp(const T* x, const Slices& slices) {
  double largest = -kInfinity;
  for (uint64_t i = 0; i < slices.size; ++i) {
    const double v = x[i * slices.inner];
    if (std::isnan(v)) return v;
    largest = std::max(largest, v);
  }
  if (std::isinf(largest)) return largest;
  double sum = 0;
  for (uint64_t i = 0; i < slices.size; ++i) sum += std::exp(x[i * slices.inner] - largest);
  return largest + std::log(sum);
}

// The order of argmax and topk: NaN counts as the largest, so that it is seen.
template <class T>
bool larger(T a, T b) {
  return a > b || (std::isnan(a) && !std::isnan(b));
}

template <class T>
void set_from(const char* who, const TensorView& to, std::span<const T> values, DType dtype) {
  need_elements(who, to);
  if (to.dim().total() != values.size())
    fail(ErrorKind::shape, fmt::format("[{}] wrong number of values for {}: {} (needed {})", who,
                                       to.dim().to_string(), values.size(), to.dim().total()));
  copy(to, TensorView(const_cast<T*>(values.data()), to.dim(), dtype));
}

}  // namespace

bool is_finite(const TensorView& t) {
  need_float("is_finite", t);
  return with_floats(t, [](auto values) {
    constexpr size_t kBlock = 4096;  // without a branch inside, so that it runs in vectors
    for (size_t begin = 0; begin < values.size(); begin += kBlock) {
      const size_t end = std::min(values.size(), begin + kBlock);
      bool finite = true;
      for (size_t i = begin; i < end; ++i) finite &= values[i] - values[i] == 0;
      if (!finite) return false;
    }
    return true;
  });
}

void fill(const TensorView& t, double value) {
  need_elements("fill", t);
  detail::store_element(t.data(), t.dtype(), 0, value);
  detail::visit_dtype(t.dtype(), [&](auto zero) {
    auto* data = static_cast<decltype(zero)*>(t.data());
    std::fill_n(data, t.dim().total(), data[0]);
  });
}

void scale(const TensorView& t, double a, double b) {
  need_float("scale", t);
  with_floats(t, [&](auto values) {
    using T = typename decltype(values)::value_type;
    for (T& v : values) v = static_cast<T>(a) * v + static_cast<T>(b);
  });
}

void clip(const TensorView& t, double lo, double hi) {
  need_float("clip", t);
  if (!(lo <= hi))
    fail(ErrorKind::argument,
         fmt::format("[clip] empty range: {} to {} (needed lo <= hi)", lo, hi));
  with_floats(t, [&](auto values) {
    using T = typename decltype(values)::value_type;
    for (T& v : values) v = std::clamp(v, static_cast<T>(lo), static_cast<T>(hi));
  });
}

void identity(const TensorView& t) {
  need_square("identity", t);
  fill(t, 0);
  const uint64_t n = t.dim().rows();
  for (uint64_t at = 0; at < t.dim().total(); at += n * n)
    for (uint64_t i = 0; i < n; ++i) t.set(at + i * (n + 1), 1);
}

void copy(const TensorView& to, const TensorView& from) {
  need_same_total("copy", to, from);
  const uint64_t total = to.dim().total();
  if (to.dtype() == from.dtype()) {
    std::memmove(to.data(), from.data(), total * dtype_size(to.dtype()));
  } else if (is_float(to.dtype())) {
    detail::visit_dtype(from.dtype(), [&](auto zero) {
      const auto* source = static_cast<const decltype(zero)*>(from.data());
      with_floats(to, [&](auto values) {
        using T = typename decltype(values)::value_type;
        for (uint64_t i = 0; i < total; ++i) values[i] = static_cast<T>(source[i]);
      });
    });
  } else {
    for (uint64_t i = 0; i < total; ++i)
      detail::store_element(to.data(), to.dtype(), i,
                            detail::load_element(from.data(), from.dtype(), i));
  }
}

void set_elements(const TensorView& to, std::span<const float> values) {
  set_from("set_elements", to, values, DType::f32);
}

void set_elements(const TensorView& to, std::span<const double> values) {
  set_from("set_elements", to, values, DType::f64);
}

void copy_element(const TensorView& from, uint64_t i, const TensorView& to, uint64_t j) {
  to.set(j, from.at(i));
}

void accumulate(const TensorView& to, const TensorView& from) {
  need_same_total("accumulate", to, from);
  need_float("accumulate", to);
  if (to.dtype() != from.dtype())
    fail(ErrorKind::dtype, fmt::format("[accumulate] element types differ: {} and {}",
                                       dtype_name(to.dtype()), dtype_name(from.dtype())));
  with_floats(to, [&](auto values) {
    const auto source = from.as<typename decltype(values)::value_type>();
    for (size_t i = 0; i < values.size(); ++i) values[i] += source[i];
  });
}

void random_normal(const TensorView& t, RandomEngine& r, double mean, double std) {
  need_float("random_normal", t);
  if (!(std >= 0))
    fail(ErrorKind::argument, fmt::format("[random_normal] bad deviation: {} (at least 0)", std));
  with_floats(t, [&](auto values) {
    for (auto& v : values)
      v = static_cast<std::remove_reference_t<decltype(v)>>(mean + std * r.normal());
  });
}

void random_uniform(const TensorView& t, RandomEngine& r, double lo, double hi) {
  need_float("random_uniform", t);
  if (!(lo <= hi))
    fail(ErrorKind::argument,
         fmt::format("[random_uniform] empty range: {} to {} (needed lo <= hi)", lo, hi));
  with_floats(t, [&](auto values) {
    for (auto& v : values)
      v = static_cast<std::remove_reference_t<decltype(v)>>(lo + (hi - lo) * r.uniform());
  });
}

void random_bernoulli(const TensorView& t, RandomEngine& r, double p, double scale) {
  need_float("random_bernoulli", t);
  if (!(p >= 0 && p <= 1))
    fail(ErrorKind::argument, fmt::format("[random_bernoulli] bad probability: {} (0 to 1)", p));
  with_floats(t, [&](auto values) {
    for (auto& v : values)
      v = static_cast<std::remove_reference_t<decltype(v)>>(r.uniform() < p ? scale : 0.0);
  });
}

// Normal columns made orthonormal by Gram-Schmidt, twice each, which is enough to be exact to
// rounding.
void random_orthonormal(const TensorView& t, RandomEngine& r, double scale) {
  need_square("random_orthonormal", t);
  const uint64_t n = t.dim().rows();
  std::vector<double> q(n * n);
  for (uint64_t at = 0; at < t.dim().total(); at += n * n) {
    for (uint64_t col = 0; col < n; ++col) {
      double* const x = q.data() + col * n;
      double norm = 0;
      while (norm <
             1e-8) {  // again in the unlikely case that the column depends on the earlier ones
        for (uint64_t i = 0; i < n; ++i) x[i] = r.normal();
        for (int pass = 0; pass < 2; ++pass) {
          for (uint64_t other = 0; other < col; ++other) {
            const double* const y = q.data() + other * n;
            const double dot = std::inner_product(x, x + n, y, 0.0);
            for (uint64_t i = 0; i < n; ++i) x[i] -= dot * y[i];
          }
        }
        norm = std::sqrt(std::inner_product(x, x + n, x, 0.0));
      }
      for (uint64_t i = 0; i < n; ++i) x[i] /= norm;
    }
    for (uint64_t i = 0; i < n * n; ++i) t.set(at + i, scale * q[i]);
  }
}

Tensor logsumexp(const TensorView& t, uint32_t axis) {
  const Slices slices("logsumexp", t, axis);
  Tensor result(t.dim().deleted(axis), t.dtype());
  with_floats(t, [&](auto values) {
    for (uint64_t s = 0; s < slices.count; ++s)
      result.set(s, stable_logsumexp(values.data() + slices.base(s), slices));
  });
  return result;
}

Tensor argmax(const TensorView& t, uint32_t axis) {
  const Slices slices("argmax", t, axis);
  Tensor result(t.dim().deleted(axis), DType::i64);
  const auto out = result.as<int64_t>();
  with_floats(t, [&](auto values) {
    for (uint64_t s = 0; s < slices.count; ++s) {
      const auto* x = values.data() + slices.base(s);
      uint64_t best = 0;
      for (uint64_t i = 1; i < slices.size; ++i)
        if (larger(x[i * slices.inner], x[best * slices.inner])) best = i;
      out[s] = static_cast<int64_t>(best);
    }
  });
  return result;
}

std::pair<Tensor, Tensor> topk(const TensorView& t, uint32_t k, uint32_t axis) {
  const Slices slices("topk", t, axis);
  if (k == 0 || k > slices.size)
    fail(ErrorKind::range, fmt::format("[topk] bad k: {} (1 to {}, the size of axis {} of {})", k,
                                       slices.size, axis, t.dim().to_string()));
  Dim dim = t.dim();
  dim.set(axis, k);
  Tensor largest(dim, t.dtype()), indices(dim, DType::i64);
  const auto index_out = indices.as<int64_t>();
  Slices out = slices;
  out.size = k;
  std::vector<uint64_t> order(slices.size);
  with_floats(t, [&](auto values) {
    const auto value_out = largest.as<typename decltype(values)::value_type>();
    for (uint64_t s = 0; s < slices.count; ++s) {
      const auto* x = values.data() + slices.base(s);
      std::iota(order.begin(), order.end(), uint64_t{0});
      std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](uint64_t a, uint64_t b) {
        const auto va = x[a * slices.inner], vb = x[b * slices.inner];
        return larger(va, vb) || (!larger(vb, va) && a < b);
      });
      for (uint64_t i = 0; i < k; ++i) {
        const uint64_t at = out.base(s) + i * out.inner;
        value_out[at] = x[order[i] * slices.inner];
        index_out[at] = static_cast<int64_t>(order[i]);
      }
    }
  });
  return {std::move(largest), std::move(indices)};
}

Tensor sample_log_prob(const TensorView& t, RandomEngine& r, uint32_t axis) {
  const Slices slices("sample_log_prob", t, axis);
  Tensor result(t.dim().deleted(axis), DType::i64);
  const auto out = result.as<int64_t>();
  with_floats(t, [&](auto values) {
    for (uint64_t s = 0; s < slices.count; ++s) {
      const auto* x = values.data() + slices.base(s);
      const double total = stable_logsumexp(x, slices);
      if (!std::isfinite(total))
        fail(ErrorKind::numeric,
             fmt::format("[sample_log_prob] no distribution in slice {}: log of the sum is {}", s,
                         total));
      const double u = r.uniform();
      double sum = 0;
      int64_t drawn = 0;
      for (uint64_t i = 0; i < slices.size; ++i) {
        const double p = std::exp(x[i * slices.inner] - total);
        if (p > 0)
          drawn =
              static_cast<int64_t>(i);  // what rounding leaves over goes to the last possible one
        sum += p;
        if (u < sum) break;
      }
      out[s] = drawn;
    }
  });
  return result;
}

}  // namespace trellis::tensor_tools
