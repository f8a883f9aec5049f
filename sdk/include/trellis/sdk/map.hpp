// SPDX-License-Identifier: Apache-2.0
//
// Element-wise loops with broadcasting over dimensions and batch, and their gradients.
//
//   map(x, y, f)                y = f(x)
//   zip(a, b, y, f)             y = f(a, b), operands broadcast to the shape of y; up to four
//   operands grad_zip(a, b, dx, f)       dx = f(a, b) or dx += f(a, b), as the host asked; summed
//   over every axis, batch
//                               included, along which dx is broadcast; nothing where dx is not
//                               wanted
//   reduce(x, y, axes)          y = sum of x over a set of axes (bit i: axis i)
//
// A function object may also run on several elements at a time: when it has a member template
// `pack<T>` - a type with `size`, `load(const T*)`, `splat(T)`, `store(T*)` and `sum()` - it is
// called with those where elements follow one another, and with single elements at the end. Without
// it the loops are plain and left to the compiler's vectoriser.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <trellis/sdk/tensor.hpp>
#include <utility>

namespace trellis::sdk {
inline namespace [[gnu::visibility("hidden")]] v0 {

namespace detail {

inline constexpr std::uint32_t kMaxAxes = TRL_MAX_RANK + 1;  // the batch is the last one

template <class F, class T>
concept Wide = requires {
  typename std::remove_cvref_t<F>::template pack<T>;
};

// One operand's place in an iteration space: its shape and the distance of its batch elements.
struct Operand {
  const trl_dim* dim;
  std::uint64_t batch_stride;
};

// N operands over one iteration space; axes that run on without a gap are one. Steps of axis 0 are
// 0 or 1.
template <std::size_t N>
struct Plan {
  std::uint32_t rank = 0;
  std::array<std::uint64_t, kMaxAxes> size{};
  std::array<std::array<std::uint64_t, kMaxAxes>, N> step{};

  void add(std::uint64_t extent, const std::array<std::uint64_t, N>& steps) {
    if (extent == 1) return;
    if (rank != 0) {
      bool runs_on = true;
      for (std::size_t k = 0; k < N; ++k)
        runs_on = runs_on && steps[k] == step[k][rank - 1] * size[rank - 1];
      if (runs_on) {
        size[rank - 1] *= extent;
        return;
      }
    }
    size[rank] = extent;
    for (std::size_t k = 0; k < N; ++k) step[k][rank] = steps[k];
    ++rank;
  }
};

template <std::size_t N>
Plan<N> make_plan(const std::array<Operand, N>& operands) {
  Plan<N> plan;
  std::uint32_t rank = 0, batch = 1;
  for (const Operand& o : operands) {
    if (o.dim->rank > rank) rank = o.dim->rank;
    if (o.dim->batch > batch) batch = o.dim->batch;
  }
  std::array<std::uint64_t, N> run, steps;
  run.fill(1);
  for (std::uint32_t axis = 0; axis < rank; ++axis) {
    std::uint64_t extent = 1;
    for (std::size_t k = 0; k < N; ++k) {
      const std::uint64_t n = axis < operands[k].dim->rank ? operands[k].dim->d[axis] : 1;
      if (n != 1) extent = n;
      steps[k] = n == 1 ? 0 : run[k];
      run[k] *= n;
    }
    plan.add(extent, steps);
  }
  for (std::size_t k = 0; k < N; ++k)
    steps[k] = operands[k].dim->batch == 1 ? 0 : operands[k].batch_stride;
  plan.add(batch, steps);
  if (plan.rank == 0) {
    plan.rank = 1;
    plan.size[0] = 1;
    for (auto& step : plan.step) step[0] = 1;
  }
  return plan;
}

enum class Sink { store, add, sum };  // sum: the whole run adds to one element

// The next elements of an operand that moves on, or what was loaded of one that does not.
template <bool kMoves, class P, class T>
P take(const T* p, const P& fixed) {
  if constexpr (kMoves)
    return P::load(p);
  else
    return fixed;
}

template <bool kMoves, class T, std::size_t N>
void pad(const T* p, T filler, std::uint64_t n, T (&to)[N]) {
  if constexpr (kMoves)
    for (std::uint64_t k = 0; k < N; ++k) to[k] = k < n ? p[k] : filler;
}

// One run of n elements. Bit k of kSteps: operand k moves on, otherwise it is one value.
template <unsigned kSteps, Sink kSink, class T, class F, class... In, std::size_t... I>
void run_plain(std::uint64_t n, T* __restrict y, F& f, std::index_sequence<I...>,
               const In* __restrict... x) {
  std::uint64_t i = 0;
  [[maybe_unused]] T total{};
  if constexpr (kSink == Sink::sum) {
    constexpr std::uint64_t kLanes = 8;  // partial sums: they vectorise, and round less
    T lane[kLanes]{};
    for (; i + kLanes <= n; i += kLanes)
      for (std::uint64_t k = 0; k < kLanes; ++k)
        lane[k] += f(x[(kSteps >> I & 1) != 0 ? i + k : 0]...);
    for (std::uint64_t k = 0; k < kLanes; ++k) total += lane[k];
  }
  for (; i < n; ++i) {
    const T v = static_cast<T>(f(x[(kSteps >> I & 1) != 0 ? i : 0]...));
    if constexpr (kSink == Sink::store) y[i] = v;
    if constexpr (kSink == Sink::add) y[i] += v;
    if constexpr (kSink == Sink::sum) total += v;
  }
  if constexpr (kSink == Sink::sum) *y += total;
}

template <unsigned kSteps, Sink kSink, class T, class F, std::same_as<T>... In, std::size_t... I>
void run_wide(std::uint64_t n, T* __restrict y, F& f, std::index_sequence<I...>,
              const In* __restrict... x) {
  using P = typename std::remove_cvref_t<F>::template pack<T>;
  const std::array<P, sizeof...(In)> fixed{P::splat(*x)...};
  [[maybe_unused]] P sum = P::splat(T(0));
  std::uint64_t i = 0;
  for (; i + P::size <= n; i += P::size) {
    const P v = f(take<(kSteps >> I & 1) != 0>(x + i, fixed[I])...);
    if constexpr (kSink == Sink::store) v.store(y + i);
    if constexpr (kSink == Sink::add) (P::load(y + i) + v).store(y + i);
    if constexpr (kSink == Sink::sum) sum = sum + v;
  }
  [[maybe_unused]] T total{};
  if constexpr (kSink == Sink::sum) total = sum.sum();
  if (i < n) {  // the end runs the same code, so that a result does not depend on its place
    const std::uint64_t rest = n - i;
    T padded[sizeof...(In)][P::size], last[P::size];
    (pad<(kSteps >> I & 1) != 0>(x + i, *x, rest, padded[I]), ...);
    P(f(take<(kSteps >> I & 1) != 0>(padded[I], fixed[I])...)).store(last);
    for (std::uint64_t k = 0; k < rest; ++k) {
      if constexpr (kSink == Sink::store) y[i + k] = last[k];
      if constexpr (kSink == Sink::add) y[i + k] += last[k];
      if constexpr (kSink == Sink::sum) total += last[k];
    }
  }
  if constexpr (kSink == Sink::sum) *y += total;
}

template <unsigned kSteps, Sink kSink, class T, class F, class... In, std::size_t... I>
void run(std::uint64_t n, T* y, F& f, std::index_sequence<I...> all, const In*... x) {
  if constexpr (Wide<F, T>)
    run_wide<kSteps, kSink>(n, y, f, all, x...);
  else
    run_plain<kSteps, kSink>(n, y, f, all, x...);
}

// Runs f over a whole plan: operand 0 is the target.
template <unsigned kSteps, Sink kSink, class T, class F, class... In>
void walk(const Plan<sizeof...(In) + 1>& plan, T* y, F& f, const In*... x) {
  constexpr std::size_t kN = sizeof...(In) + 1;
  std::array<std::uint64_t, kMaxAxes> at{};
  std::array<std::uint64_t, kN> offset{};
  for (;;) {
    [&]<std::size_t... I>(std::index_sequence<I...> all) {
      run<kSteps, kSink>(plan.size[0], y + offset[0], f, all, (x + offset[I + 1])...);
    }
    (std::index_sequence_for<In...>{});
    std::uint32_t axis = 1;
    for (; axis < plan.rank; ++axis) {
      for (std::size_t k = 0; k < kN; ++k) offset[k] += plan.step[k][axis];
      if (++at[axis] < plan.size[axis]) break;
      for (std::size_t k = 0; k < kN; ++k) offset[k] -= plan.step[k][axis] * plan.size[axis];
      at[axis] = 0;
    }
    if (axis >= plan.rank) return;
  }
}

// Chooses, at run time, the code for the operands that move along the innermost axis.
template <Sink kSink, unsigned kSteps, unsigned kBit, class T, class F, class... In>
void choose(const Plan<sizeof...(In) + 1>& plan, T* y, F& f, const In*... x) {
  if constexpr (kBit < sizeof...(In)) {
    if (plan.step[kBit + 1][0] != 0)
      choose<kSink, kSteps | (1u << kBit), kBit + 1>(plan, y, f, x...);
    else
      choose<kSink, kSteps, kBit + 1>(plan, y, f, x...);
  } else {
    walk<kSteps, kSink>(plan, y, f, x...);
  }
}

template <class T>
Tensor<T> one_element(const Tensor<T>& t, std::uint32_t b, trl_tensor& holder) {
  holder = trl_tensor{};
  holder.data = const_cast<std::remove_const_t<T>*>(t.data(t.batch() == 1 ? 0 : b));
  holder.dim = t.raw_dim();
  holder.dim.batch = 1;
  holder.flags = flag(t.stores(), TRL_TENSOR_STORE);
  return Tensor<T>(holder);
}

template <bool kGradient, class T, class F, class... In>
void elements(const Tensor<T>& y, F& f, const Tensor<const In>&... x) {
  const std::uint64_t size = y.size();
  const std::uint32_t batch = y.batch();
  const bool store = !kGradient || y.stores();
  constexpr auto kAll = std::index_sequence_for<In...>{};
  constexpr unsigned kSteps = (1u << sizeof...(In)) - 1;
  // The normal case: every operand is the same packed run.
  if (y.packed() && ((x.batch() == batch && x.size() == size && x.packed()) && ...)) {
    if (store) return run<kSteps, Sink::store>(size * batch, y.data(), f, kAll, x.data()...);
    return run<kSteps, Sink::add>(size * batch, y.data(), f, kAll, x.data()...);
  }
  if (y.pointers() || (x.pointers() || ...)) {
    const std::uint32_t n = std::max({batch, x.batch()...});
    for (std::uint32_t b = 0; b < n; ++b) {
      trl_tensor to, from[sizeof...(In)];
      const Tensor<T> y_b = one_element(y, b, to);
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        elements<kGradient>(batch == 1 && b > 0 ? y_b.adding() : y_b, f,
                            one_element(x, b, from[I])...);
      }
      (kAll);
    }
    return;
  }
  const auto plan = make_plan<sizeof...(In) + 1>(
      {Operand{&y.raw_dim(), y.batch_stride()}, Operand{&x.raw_dim(), x.batch_stride()}...});
  if constexpr (kGradient) {
    bool summed = false;
    for (std::uint32_t axis = 0; axis < plan.rank; ++axis)
      summed = summed || plan.step[0][axis] == 0;
    if (summed) {
      if (store) y.fill(T(0));
      if (plan.step[0][0] == 0) return choose<Sink::sum, 0, 0>(plan, y.data(), f, x.data()...);
      return choose<Sink::add, 0, 0>(plan, y.data(), f, x.data()...);
    }
    if (!store) return choose<Sink::add, 0, 0>(plan, y.data(), f, x.data()...);
  }
  choose<Sink::store, 0, 0>(plan, y.data(), f, x.data()...);
}

template <class T, class F, class... In>
void gradient(const Tensor<T>& dx, F& f, const Tensor<const In>&... x) {
  if (!dx) return;
  if (!(x && ...)) {  // a gradient that does not flow is zero
    if (dx.stores()) dx.fill(T(0));
    return;
  }
  elements<true>(dx, f, x...);
}

// Arguments are tensors, or lists of them, meaning the first.
template <class X>
auto readable(const X& x) {
  if constexpr (requires { x.first(); })
    return readable(x.first());
  else
    return Tensor<const typename X::value_type>(x);
}
template <class Y>
auto writable(const Y& y) {
  if constexpr (requires { y.first(); })
    return y.first();
  else
    return y;
}

}  // namespace detail

// y = f(x); x may be shared by the batch.
template <class X, class Y, class F>
void map(const X& x, const Y& y, F f) {
  detail::elements<false>(detail::writable(y), f, detail::readable(x));
}
// y = f(a, b, ...), broadcast to the shape of y.
template <class A, class B, class Y, class F>
void zip(const A& a, const B& b, const Y& y, F f) {
  detail::elements<false>(detail::writable(y), f, detail::readable(a), detail::readable(b));
}
template <class A, class B, class C, class Y, class F>
void zip(const A& a, const B& b, const C& c, const Y& y, F f) {
  detail::elements<false>(detail::writable(y), f, detail::readable(a), detail::readable(b),
                          detail::readable(c));
}

// dx = f(a, ...) or dx += f(a, ...), summed where dx is smaller. One of the operands has the full
// shape (dy).
template <class A, class X, class F>
void grad_zip(const A& a, const X& dx, F f) {
  detail::gradient(detail::writable(dx), f, detail::readable(a));
}
template <class A, class B, class X, class F>
void grad_zip(const A& a, const B& b, const X& dx, F f) {
  detail::gradient(detail::writable(dx), f, detail::readable(a), detail::readable(b));
}
template <class A, class B, class C, class X, class F>
void grad_zip(const A& a, const B& b, const C& c, const X& dx, F f) {
  detail::gradient(detail::writable(dx), f, detail::readable(a), detail::readable(b),
                   detail::readable(c));
}
template <class A, class B, class C, class D, class X, class F>
void grad_zip(const A& a, const B& b, const C& c, const D& d, const X& dx, F f) {
  detail::gradient(detail::writable(dx), f, detail::readable(a), detail::readable(b),
                   detail::readable(c), detail::readable(d));
}

// A set of axes: bit i is axis i.
using AxisSet = std::uint32_t;

// The shape with 1 on every axis of a set.
inline Dim keep_reduced(const trl_dim& dim, AxisSet axes) {
  Dim to = dim;
  for (std::uint32_t i = 0; i < to.rank; ++i)
    if (axes >> i & 1) to.d[i] = 1;
  return to;
}
// The shape without the axes of a set.
inline Dim drop_reduced(const trl_dim& dim, AxisSet axes) {
  Dim to;
  to.batch = dim.batch;
  for (std::uint32_t i = 0; i < dim.rank; ++i)
    if (!(axes >> i & 1)) to.push(dim.d[i]);
  return to;
}

// y = sum of f(x) over a set of axes; y has x's shape without them.
template <class X, class Y, class F>
void reduce(const X& x, const Y& y, AxisSet axes, F f) {
  const auto from = detail::readable(x);
  const auto to = detail::writable(y);
  Dim kept = keep_reduced(from.raw_dim(), axes);
  kept.batch = to.batch();
  to.fill(0);
  const auto view = to.viewed_as(kept).adding();
  detail::elements<true>(view, f, from);
}
template <class X, class Y>
void reduce(const X& x, const Y& y, AxisSet axes) {
  reduce(x, y, axes, [](auto v) { return v; });
}

}  // namespace gnu::visibility("hidden")]]v0
}  // namespace trellis::sdk
