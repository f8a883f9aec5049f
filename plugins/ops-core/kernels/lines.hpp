// SPDX-License-Identifier: Apache-2.0
//
// Reductions along an axis, several lines at a time. Of a Split with inner > 1, `inner` lines lie
// side by side, and one value per line is an array of `inner`; with inner == 1 a line is a plain
// run. Functions take the elements of a line first, then the values of the line.
#pragma once

#include <array>
#include <cmath>
#include <trellis/sdk/op.hpp>
#include <utility>

#include "kernels/simd.hpp"

namespace trellis::ops {

template <class T, std::size_t N>
using Pointers = std::array<const T*, N>;

namespace detail {

// f(elements..., values...) with the values of one line fixed.
template <class T, std::size_t X, class F, std::size_t... C>
auto with_values(F f, const T* const (&c)[sizeof...(C) + 1], std::index_sequence<C...>) {
  const std::array<T, sizeof...(C) + 1> v{(*c[C])..., T(0)};
  return simd::wide(
      [=](auto first, auto... more) { return f(first, more..., decltype(first)(v[C])...); });
}

}  // namespace detail

// out = sum of f over each line.
template <class T, class F, std::size_t X, std::size_t C, std::size_t... IX, std::size_t... IC>
void sum_lines(const Split& s, T* out, F f, const Pointers<T, X>& x, const Pointers<T, C>& c,
               std::index_sequence<IX...>, std::index_sequence<IC...> ic) {
  if (s.inner == 1) {
    const T* const values[C + 1] = {c[IC]..., nullptr};
    *out = sum_run(s.n, detail::with_values<T, X>(f, values, ic), x[IX]...);
    return;
  }
  for (std::uint64_t i = 0; i < s.inner; ++i) out[i] = 0;
  for (std::uint64_t k = 0; k < s.n; ++k)
    add_run(s.inner, out, simd::wide(f), (x[IX] + k * s.inner)..., c[IC]...);
}
template <class T, class F, std::size_t X, std::size_t C>
void sum_lines(const Split& s, T* out, F f, const Pointers<T, X>& x, const Pointers<T, C>& c) {
  sum_lines(s, out, f, x, c, std::make_index_sequence<X>{}, std::make_index_sequence<C>{});
}

// y = f, or y += f, on each line.
template <bool kAdd, class T, class F, std::size_t X, std::size_t C, std::size_t... IX,
          std::size_t... IC>
void map_lines(const Split& s, T* y, F f, const Pointers<T, X>& x, const Pointers<T, C>& c,
               std::index_sequence<IX...>, std::index_sequence<IC...> ic) {
  if (s.inner == 1) {
    const T* const values[C + 1] = {c[IC]..., nullptr};
    const auto g = detail::with_values<T, X>(f, values, ic);
    if constexpr (kAdd)
      add_run(s.n, y, g, x[IX]...);
    else
      map_run(s.n, y, g, x[IX]...);
    return;
  }
  for (std::uint64_t k = 0; k < s.n; ++k) {
    if constexpr (kAdd)
      add_run(s.inner, y + k * s.inner, simd::wide(f), (x[IX] + k * s.inner)..., c[IC]...);
    else
      map_run(s.inner, y + k * s.inner, simd::wide(f), (x[IX] + k * s.inner)..., c[IC]...);
  }
}
template <class T, class F, std::size_t X, std::size_t C>
void map_lines(const Split& s, T* y, F f, const Pointers<T, X>& x, const Pointers<T, C>& c) {
  map_lines<false>(s, y, f, x, c, std::make_index_sequence<X>{}, std::make_index_sequence<C>{});
}
// A gradient: stored or added as the host asked.
template <class T, class F, std::size_t X, std::size_t C>
void grad_lines(const Split& s, bool store, T* y, F f, const Pointers<T, X>& x,
                const Pointers<T, C>& c) {
  constexpr std::make_index_sequence<X> ix;
  constexpr std::make_index_sequence<C> ic;
  if (store)
    map_lines<false>(s, y, f, x, c, ix, ic);
  else
    map_lines<true>(s, y, f, x, c, ix, ic);
}

// The largest value of each line, for exp(x - shift): 0 where that is no number.
template <class T>
void shift_of_lines(const Split& s, const T* x, T* shift) {
  for (std::uint64_t i = 0; i < s.inner; ++i) shift[i] = x[i];
  if (s.inner == 1) {
    T lane[8];  // one comparison per lane: they vectorise
    for (T& l : lane) l = *x;
    std::uint64_t k = 0;
    for (; k + 8 <= s.n; k += 8)
      for (std::uint64_t l = 0; l < 8; ++l) lane[l] = x[k + l] > lane[l] ? x[k + l] : lane[l];
    for (; k < s.n; ++k) lane[0] = x[k] > lane[0] ? x[k] : lane[0];
    for (const T l : lane) *shift = l > *shift ? l : *shift;
  } else {
    for (std::uint64_t k = 1; k < s.n; ++k) {
      const T* row = x + k * s.inner;
      for (std::uint64_t i = 0; i < s.inner; ++i) shift[i] = row[i] > shift[i] ? row[i] : shift[i];
    }
  }
  for (std::uint64_t i = 0; i < s.inner; ++i)
    if (!std::isfinite(shift[i])) shift[i] = 0;
}

// Calls f(line offset) for each group of lines of each batch element that lies at `x`, `y`, ...
template <class F>
void each_group(std::uint32_t batch, const Split& s, F&& f) {
  for (std::uint32_t b = 0; b < batch; ++b)
    for (std::uint64_t o = 0; o < s.outer; ++o) f(b, o * s.n * s.inner, o * s.inner);
}

}  // namespace trellis::ops
