// SPDX-License-Identifier: Apache-2.0
//
// The element-wise part of an LSTM step: from the pre-activations of the four gates and the old
// cell to the new output and cell (Hochreiter and Schmidhuber 1997; forget gate: Gers, Schmidhuber
// and Cummins 2000).
//
//   z = [zi; zf; zo; zg]
//   i = sigmoid(zi), f = sigmoid(zf + forget_bias), o = sigmoid(zo), g = tanh(zg)
//   c' = f c + i g,  h = o t,  t = tanh(c')
//
//   e   = dc' + dh o (1 - t t)       everything that reaches the new cell
//   dzi = e g i (1 - i),  dzf = e c f (1 - f),  dzo = dh t o (1 - o),  dzg = e i (1 - g g),  dc = e
//   f

#include "kernels/cell.hpp"
#include "kernels/gates.hpp"

namespace trellis::ops {

struct LstmCell {
  struct Attrs {
    double forget_bias = 1;
  };
  static constexpr auto attrs = fields(
      field("forget_bias", &Attrs::forget_bias, "added to the forget gate's pre-activation"));

  static constexpr OpSpec spec{
      .name = "lstm_cell",
      .summary = "gates, cell and output of an LSTM step from its pre-activations",
      .doc = "z holds four blocks of n numbers in the order input, forget, output, candidate.",
      .formula =
          "[i, f, o] = sigmoid([zi, zf + forget_bias, zo]), g = tanh(zg)\n"
          "c' = f c + i g\n"
          "h = o tanh(c')",
      .examples =
          "lstm_cell({12}, {3}); lstm_cell({8}x3, {2}x3, forget_bias=0); lstm_cell({4}x2, {1}); "
          "lstm_cell({4}, {1}x2)",
      .inputs = {In("z").about("{4n}: pre-activations"), In("c").keep().about("{n}: the old cell")},
      .outputs = {Out("h").about("{n}: output"), Out("c").about("{n}: the new cell"),
                  Out("gates").hidden()},
  };

  static std::array<Dim, 3> infer(const Attrs&, Dims x) {
    const std::uint32_t n = cell_size(x, 4);
    require_size(x, 1, n);
    return {Dim{n}, Dim{n}, Dim{5 * n}};
  }

  template <class T>
  static void forward(const Attrs& a, const Forward<T>& f) {
    const std::uint64_t n = f.x(1).size();
    const bool keep = static_cast<bool>(f.y(2));
    T* unwanted = keep ? nullptr : f.scratch(5 * n);
    for (std::uint32_t b = 0; b < f.batch(); ++b)
      step(n, static_cast<T>(a.forget_bias), f.x(0).data(b), f.x(1).data(b), f.y(0).data(b),
           f.y(1).data(b), keep ? f.y(2).data(b) : unwanted);
  }

  template <class T>
  static void backward(const Attrs&, const Backward<T>& b) {
    const std::uint64_t n = b.x(1).size();
    const Source<T> dh(b, 0, n), dc(b, 1, n);
    const Sink<T> dz(b, 0, 4 * n), dc0(b, 1, n);
    for (std::uint32_t i = 0; i < b.batch(); ++i)
      step_back(n, b.x(1).data(i), b.y(2).data(i), dh.at(i), dc.at(i), dz.at(i), dz.keep(i),
                dc0.at(i), dc0.keep(i));
  }

 private:
  template <class T>
  static void step(std::uint64_t n, T forget_bias, const T* __restrict z, const T* __restrict c0,
                   T* __restrict h, T* __restrict c, T* __restrict gates) {
    for (std::uint64_t k = 0; k < n; ++k) {
      const T i = gates::sigmoid(z[k]), f = gates::sigmoid(z[n + k] + forget_bias),
              o = gates::sigmoid(z[2 * n + k]), g = gates::tanh(z[3 * n + k]);
      const T cell = f * c0[k] + i * g, t = gates::tanh(cell);
      gates[k] = i;
      gates[n + k] = f;
      gates[2 * n + k] = o;
      gates[3 * n + k] = g;
      gates[4 * n + k] = t;
      c[k] = cell;
      h[k] = o * t;
    }
  }

  template <class T>
  static void step_back(std::uint64_t n, const T* __restrict c0, const T* __restrict gates,
                        const T* __restrict dh, const T* __restrict dc, T* __restrict dz, T keep_z,
                        T* __restrict dc0, T keep_c) {
    for (std::uint64_t k = 0; k < n; ++k) {
      const T i = gates[k], f = gates[n + k], o = gates[2 * n + k], g = gates[3 * n + k],
              t = gates[4 * n + k];
      const T e = dc[k] + dh[k] * o * (1 - t * t);
      put(dz[k], keep_z, e * g * i * (1 - i));
      put(dz[n + k], keep_z, e * c0[k] * f * (1 - f));
      put(dz[2 * n + k], keep_z, dh[k] * t * o * (1 - o));
      put(dz[3 * n + k], keep_z, e * i * (1 - g * g));
      put(dc0[k], keep_c, e * f);
    }
  }
};

TRL_OPS(lstm_cell, LstmCell)

}  // namespace trellis::ops
