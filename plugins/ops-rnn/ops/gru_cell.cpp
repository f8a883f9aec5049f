// SPDX-License-Identifier: Apache-2.0
//
// The element-wise parts of a GRU step (Cho et al. 2014): the reset gate acts on the old state
// before the product of the candidate, the update gate after it.
//
//   a = [az; ar]
//   gru_reset:  y  = sigmoid(ar) h
//   gru_cell:   h' = (1 - z) h + z n,  z = sigmoid(az), n = tanh(zn)

#include "kernels/cell.hpp"
#include "kernels/gates.hpp"

namespace trellis::ops {

//   r = sigmoid(ar):  dar = dy h r (1 - r),  daz = 0,  dh = dy r
struct GruReset {
  static constexpr OpSpec spec{
      .name = "gru_reset",
      .summary = "old state of a GRU step after its reset gate",
      .doc = "a holds two blocks of n numbers: update gate, reset gate.",
      .formula = "y = sigmoid(ar) h",
      .examples =
          "gru_reset({6}, {3}); gru_reset({4}x3, {2}x3); gru_reset({4}x2, {2}); gru_reset({4}, "
          "{2}x2)",
      .inputs = {In("a").about("{2n}: pre-activations"),
                 In("h").keep().about("{n}: the old state")},
      .outputs = {"y", Out("r").hidden()},
  };

  static std::array<Dim, 2> infer(Dims x) {
    const std::uint32_t n = cell_size(x, 2);
    require_size(x, 1, n);
    return {Dim{n}, Dim{n}};
  }

  template <class T>
  static void forward(const Forward<T>& f) {
    const std::uint64_t n = f.x(1).size();
    const bool keep = static_cast<bool>(f.y(1));
    T* unwanted = keep ? nullptr : f.scratch(n);
    for (std::uint32_t b = 0; b < f.batch(); ++b)
      step(n, f.x(0).data(b), f.x(1).data(b), f.y(0).data(b), keep ? f.y(1).data(b) : unwanted);
  }

  template <class T>
  static void backward(const Backward<T>& b) {
    const std::uint64_t n = b.x(1).size();
    const Source<T> dy(b, 0, n);
    const Sink<T> da(b, 0, 2 * n), dh(b, 1, n);
    for (std::uint32_t i = 0; i < b.batch(); ++i)
      step_back(n, b.x(1).data(i), b.y(1).data(i), dy.at(i), da.at(i), da.keep(i), dh.at(i),
                dh.keep(i));
  }

 private:
  template <class T>
  static void step(std::uint64_t n, const T* __restrict a, const T* __restrict h, T* __restrict y,
                   T* __restrict r) {
    for (std::uint64_t k = 0; k < n; ++k) {
      r[k] = gates::sigmoid(a[n + k]);
      y[k] = r[k] * h[k];
    }
  }
  template <class T>
  static void step_back(std::uint64_t n, const T* __restrict h, const T* __restrict r,
                        const T* __restrict dy, T* __restrict da, T keep_a, T* __restrict dh,
                        T keep_h) {
    for (std::uint64_t k = 0; k < n; ++k) {
      put(da[k], keep_a, T(0));
      put(da[n + k], keep_a, dy[k] * h[k] * r[k] * (1 - r[k]));
      put(dh[k], keep_h, dy[k] * r[k]);
    }
  }
};

//   daz = dh' (n - h) z (1 - z),  dar = 0,  dzn = dh' z (1 - n n),  dh = dh' (1 - z)
struct GruCell {
  static constexpr OpSpec spec{
      .name = "gru_cell",
      .summary = "new state of a GRU step from its pre-activations",
      .doc =
          "a holds two blocks of n numbers: update gate, reset gate; only the first is read here. "
          "The update gate "
          "weights the candidate.",
      .formula =
          "z = sigmoid(az), n = tanh(zn)\n"
          "h' = (1 - z) h + z n",
      .examples =
          "gru_cell({6}, {3}, {3}); gru_cell({4}x3, {2}x3, {2}x3); gru_cell({4}x2, {2}x2, {2})",
      .inputs = {In("a").about("{2n}: pre-activations of the gates"),
                 In("zn").about("{n}: pre-activation of the candidate"),
                 In("h").keep().about("{n}: the old state")},
      .outputs = {Out("h").about("{n}: the new state"), Out("gates").hidden()},
  };

  static std::array<Dim, 2> infer(Dims x) {
    const std::uint32_t n = cell_size(x, 2);
    require_size(x, 1, n);
    require_size(x, 2, n);
    return {Dim{n}, Dim{2 * n}};
  }

  template <class T>
  static void forward(const Forward<T>& f) {
    const std::uint64_t n = f.x(2).size();
    const bool keep = static_cast<bool>(f.y(1));
    T* unwanted = keep ? nullptr : f.scratch(2 * n);
    for (std::uint32_t b = 0; b < f.batch(); ++b)
      step(n, f.x(0).data(b), f.x(1).data(b), f.x(2).data(b), f.y(0).data(b),
           keep ? f.y(1).data(b) : unwanted);
  }

  template <class T>
  static void backward(const Backward<T>& b) {
    const std::uint64_t n = b.x(2).size();
    const Source<T> dy(b, 0, n);
    const Sink<T> da(b, 0, 2 * n), dzn(b, 1, n), dh(b, 2, n);
    for (std::uint32_t i = 0; i < b.batch(); ++i)
      step_back(n, b.x(2).data(i), b.y(1).data(i), dy.at(i), da.at(i), da.keep(i), dzn.at(i),
                dzn.keep(i), dh.at(i), dh.keep(i));
  }

 private:
  template <class T>
  static void step(std::uint64_t n, const T* __restrict a, const T* __restrict zn,
                   const T* __restrict h, T* __restrict y, T* __restrict gates) {
    for (std::uint64_t k = 0; k < n; ++k) {
      const T z = gates::sigmoid(a[k]), c = gates::tanh(zn[k]);
      gates[k] = z;
      gates[n + k] = c;
      y[k] = (1 - z) * h[k] + z * c;
    }
  }
  template <class T>
  static void step_back(std::uint64_t n, const T* __restrict h, const T* __restrict gates,
                        const T* __restrict dy, T* __restrict da, T keep_a, T* __restrict dzn,
                        T keep_n, T* __restrict dh, T keep_h) {
    for (std::uint64_t k = 0; k < n; ++k) {
      const T z = gates[k], c = gates[n + k];
      put(da[k], keep_a, dy[k] * (c - h[k]) * z * (1 - z));
      put(da[n + k], keep_a, T(0));
      put(dzn[k], keep_n, dy[k] * z * (1 - c * c));
      put(dh[k], keep_h, dy[k] * (1 - z));
    }
  }
};

TRL_OPS(gru_cell, GruReset, GruCell)

}  // namespace trellis::ops
