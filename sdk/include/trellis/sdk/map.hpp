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
//   map_run, add_run, sum_run   the same on plain runs of elements
//
// A function object may work on several elements at a time: when it has a member template `pack<T>`
// - a type with `size`, `load(const T*)`, `load_part(const T*, n)`, `store(T*)`, `store_part(T*,
// n)`, and `+` - it is called with those only. Without it the loops are plain and left to the compiler's
// vectoriser.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <trellis/sdk/tensor.hpp>
#include <tuple>
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

// y = f(x...) on n elements that follow one another: the only loop that knows f. The last,
// incomplete pack goes through the same code, so that a result does not depend on its place.
template <class T, class F, std::same_as<T>... In>
void store_wide(std::uint64_t n, T* __restrict y, F& f, const In* __restrict... x) {
  using P = typename std::remove_cvref_t<F>::template pack<T>;
  for (std::uint64_t i = 0; i < n; i += P::size) {
    const std::uint64_t rest = n - i;
    const bool whole = rest >= P::size;
    const P v = f((whole ? P::load(x + i) : P::load_part(x + i, rest))...);
    if (whole)
      v.store(y + i);
    else
      v.store_part(y + i, rest);
  }
}
template <class T, class F, std::same_as<T>... In>
void store_plain(std::uint64_t n, T* __restrict y, F& f, const In* __restrict... x) {
  for (std::uint64_t i = 0; i < n; ++i) y[i] = static_cast<T>(f(x[i]...));
}
template <class T, class F, std::same_as<T>... In>
void store(std::uint64_t n, T* y, F& f, const In*... x) {
  if constexpr (Wide<F, T>)
    store_wide(n, y, f, x...);
  else
    store_plain(n, y, f, x...);
}

inline constexpr std::uint64_t kChunk = 256;  // elements of an intermediate result, in the cache

template <class T>
void add_plain(std::uint64_t n, T* __restrict y, const T* __restrict x) {
  for (std::uint64_t i = 0; i < n; ++i) y[i] += x[i];
}
// Partial sums: they vectorise, and round less.
template <class T>
T sum_plain(std::uint64_t n, const T* x) {
  constexpr std::uint64_t kLanes = 16;
  T lane[kLanes]{}, total{};
  std::uint64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::uint64_t k = 0; k < kLanes; ++k) lane[k] += x[i + k];
  for (; i < n; ++i) total += x[i];
  for (std::uint64_t k = 0; k < kLanes; ++k) total += lane[k];
  return total;
}

// y += f(x...)
template <class T, class F, std::same_as<T>... In>
void add(std::uint64_t n, T* __restrict y, F& f, const In* __restrict... x) {
  if constexpr (Wide<F, T>) {
    using P = typename std::remove_cvref_t<F>::template pack<T>;
    for (std::uint64_t i = 0; i < n; i += P::size) {
      const std::uint64_t rest = n - i;
      if (rest >= P::size)
        (P::load(y + i) + P(f(P::load(x + i)...))).store(y + i);
      else
        (P::load_part(y + i, rest) + P(f(P::load_part(x + i, rest)...))).store_part(y + i, rest);
    }
  } else {
    for (std::uint64_t i = 0; i < n; ++i) y[i] += static_cast<T>(f(x[i]...));
  }
}

enum class Sink { store, add };

// A loop over runs with f behind a pointer: the code for broadcasting is the same for every f.
template <class T, std::size_t N>
struct Run {
  void* f;
  void (*store)(void* f, std::uint64_t n, T* y, const std::array<const T*, N>& x);
};

// One run: operands that do not move are spread out, results are added up where the target does
// not.
template <class T, std::size_t N>
void broadcast_run(const Run<T, N>& run, std::uint64_t n, T* y, std::array<const T*, N> x,
                   const std::array<bool, N>& moves, bool y_moves, Sink sink) {
  T spread[N][kChunk], part[kChunk];
  bool all_move = true;
  for (std::size_t k = 0; k < N; ++k) {
    all_move = all_move && moves[k];
    if (moves[k]) continue;
    std::fill_n(spread[k], std::min(kChunk, n), *x[k]);
    x[k] = spread[k];
  }
  if (all_move && y_moves && sink == Sink::store) return run.store(run.f, n, y, x);
  T total{};
  for (std::uint64_t i = 0; i < n; i += kChunk) {
    const std::uint64_t m = std::min(kChunk, n - i);
    T* const to = y_moves && sink == Sink::store ? y + i : part;
    run.store(run.f, m, to, x);
    if (!y_moves)
      total += sum_plain(m, part);
    else if (sink == Sink::add)
      add_plain(m, y + i, part);
    for (std::size_t k = 0; k < N; ++k)
      if (moves[k]) x[k] += m;
  }
  if (!y_moves) *y += total;
}

// Every run of an iteration space; operand 0 of the plan is the target.
template <class T, std::size_t N>
void broadcast(const Plan<N + 1>& plan, const Run<T, N>& run, T* y, std::array<const T*, N> x,
               Sink sink) {
  std::array<std::uint64_t, kMaxAxes> at{};
  std::array<bool, N> moves;
  for (std::size_t k = 0; k < N; ++k) moves[k] = plan.step[k + 1][0] != 0;
  for (;;) {
    broadcast_run(run, plan.size[0], y, x, moves, plan.step[0][0] != 0, sink);
    std::uint32_t axis = 1;
    for (; axis < plan.rank; ++axis) {
      y += plan.step[0][axis];
      for (std::size_t k = 0; k < N; ++k) x[k] += plan.step[k + 1][axis];
      if (++at[axis] < plan.size[axis]) break;
      y -= plan.step[0][axis] * plan.size[axis];
      for (std::size_t k = 0; k < N; ++k) x[k] -= plan.step[k + 1][axis] * plan.size[axis];
      at[axis] = 0;
    }
    if (axis >= plan.rank) return;
  }
}

// The same where batch elements lie anywhere: one after the other.
template <class T>
Tensor<T> one_element(const Tensor<T>& t, std::uint32_t b, trl_tensor& holder) {
  holder = trl_tensor{};
  holder.data = const_cast<std::remove_const_t<T>*>(t.data(t.batch() == 1 ? 0 : b));
  holder.dim = t.raw_dim();
  holder.dim.batch = 1;
  holder.flags = flag(t.stores(), TRL_TENSOR_STORE);
  return Tensor<T>(holder);
}

template <class T, std::size_t N>
void broadcast_tensors(const Tensor<T>& y, const std::array<Tensor<const T>, N>& x,
                       const Run<T, N>& run, bool gradient) {
  bool pointers = y.pointers();
  std::uint32_t batch = y.batch();
  for (const Tensor<const T>& t : x) {
    pointers = pointers || t.pointers();
    batch = std::max(batch, t.batch());
  }
  if (pointers) {
    for (std::uint32_t b = 0; b < batch; ++b) {
      trl_tensor to, from[N];
      std::array<Tensor<const T>, N> x_b;
      for (std::size_t k = 0; k < N; ++k) x_b[k] = one_element(x[k], b, from[k]);
      const Tensor<T> y_b = one_element(y, b, to);
      broadcast_tensors(y.batch() == 1 && b > 0 ? y_b.adding() : y_b, x_b, run, gradient);
    }
    return;
  }
  std::array<Operand, N + 1> operands{Operand{&y.raw_dim(), y.batch_stride()}};
  std::array<const T*, N> data;
  for (std::size_t k = 0; k < N; ++k) {
    operands[k + 1] = {&x[k].raw_dim(), x[k].batch_stride()};
    data[k] = x[k].data();
  }
  const auto plan = make_plan<N + 1>(operands);
  bool adds = gradient && !y.stores();
  if (gradient && !adds) {  // a target that stands still on an axis is summed into
    for (std::uint32_t axis = 0; axis < plan.rank; ++axis) adds = adds || plan.step[0][axis] == 0;
    if (adds) y.fill(T(0));
  }
  broadcast(plan, run, y.data(), data, adds ? Sink::add : Sink::store);
}

template <bool kGradient, class T, class F, std::same_as<T>... In>
void elements(const Tensor<T>& y, F& f, const Tensor<const In>&... x) {
  const std::uint64_t size = y.size();
  const std::uint32_t batch = y.batch();
  // The normal case: every operand is the same packed run.
  if (y.packed(size) && ((x.batch() == batch && x.size() == size && x.packed(size)) && ...))
      [[likely]] {
    if constexpr (kGradient)
      if (!y.stores()) return add(size * batch, y.data(), f, x.data()...);
    return store(size * batch, y.data(), f, x.data()...);
  }
  constexpr std::size_t kN = sizeof...(In);
  const Run<T, kN> run{
      &f, [](void* f_any, std::uint64_t n, T* to, const std::array<const T*, kN>& from) {
        std::apply([&](const auto*... p) { store(n, to, *static_cast<F*>(f_any), p...); }, from);
      }};
  broadcast_tensors<T, kN>(y, {x...}, run, kGradient);
}

template <class T, class F, std::same_as<T>... In>
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

// The same on n elements that follow one another: y = f(x...), y += f(x...), and the sum of
// f(x...).
template <class T, class F, std::same_as<T>... In>
void map_run(std::uint64_t n, T* y, F f, const In*... x) {
  detail::store(n, y, f, x...);
}
template <class T, class F, std::same_as<T>... In>
void add_run(std::uint64_t n, T* y, F f, const In*... x) {
  detail::add(n, y, f, x...);
}
template <class T>
T sum_run(std::uint64_t n, const T* x) {
  return detail::sum_plain(n, x);
}
template <class F, class T, std::same_as<T>... In>
T sum_run(std::uint64_t n, F f, const T* x, const In*... more) {
  T part[detail::kChunk], total{};
  for (std::uint64_t i = 0; i < n; i += detail::kChunk) {
    const std::uint64_t m = std::min(detail::kChunk, n - i);
    detail::store(m, part, f, x + i, (more + i)...);
    total += detail::sum_plain(m, part);
  }
  return total;
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
