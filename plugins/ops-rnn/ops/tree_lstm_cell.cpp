// SPDX-License-Identifier: Apache-2.0
//
// The element-wise part of a node of a binary tree-LSTM (Tai, Socher and Manning 2015, the N-ary
// form with N = 2): an LSTM cell with one forget gate for each child. Without children it is a
// leaf.
//
//   z = [zi; zl; zr; zo; zg]
//   i = sigmoid(zi), l = sigmoid(zl + forget_bias), r = sigmoid(zr + forget_bias), o = sigmoid(zo),
//   g = tanh(zg) c' = i g + l cl + r cr,  h = o t,  t = tanh(c')
//
//   e   = dc' + dh o (1 - t t)
//   dzi = e g i (1 - i),  dzl = e cl l (1 - l),  dzr = e cr r (1 - r),  dzo = dh t o (1 - o),  dzg
//   = e i (1 - g g) dcl = e l,  dcr = e r

#include "kernels/cell.hpp"
#include "kernels/gates.hpp"

namespace trellis::ops {

struct TreeLstmCell {
  struct Attrs {
    double forget_bias = 1;
  };
  static constexpr auto attrs = fields(field("forget_bias", &Attrs::forget_bias,
                                             "added to the pre-activations of both forget gates"));

  static constexpr OpSpec spec{
      .name = "tree_lstm_cell",
      .summary = "gates, cell and output of a node of a binary tree-LSTM from its pre-activations",
      .doc =
          "z holds five blocks of n numbers in the order input, forget left, forget right, output, "
          "candidate. A "
          "child that is left out counts as zero.",
      .formula =
          "[i, l, r, o] = sigmoid([zi, zl + forget_bias, zr + forget_bias, zo]), g = tanh(zg)\n"
          "c' = i g + l left + r right\n"
          "h = o tanh(c')",
      .examples =
          "tree_lstm_cell({10}, {2}, {2}); tree_lstm_cell({5}x3, {1}x3, {1}x3, forget_bias=0); "
          "tree_lstm_cell({10}); tree_lstm_cell({10}x2, {2}); tree_lstm_cell({5}, {1}x2, {1})",
      .inputs = {In("z").about("{5n}: pre-activations"),
                 In("left").optional().keep().about("{n}: the left child's cell"),
                 In("right").optional().keep().about("{n}: the right child's cell")},
      .outputs = {Out("h").about("{n}: output"), Out("c").about("{n}: the new cell"),
                  Out("gates").hidden()},
  };

  static std::array<Dim, 3> infer(const Attrs&, Dims x) {
    const std::uint32_t n = cell_size(x, 5);
    for (std::uint32_t i = 1; i < x.size(); ++i)
      if (x.has(i)) require_size(x, i, n);
    return {Dim{n}, Dim{n}, Dim{6 * n}};
  }

  template <class T>
  static void forward(const Attrs& a, const Forward<T>& f) {
    const std::uint64_t n = f.x(0).size() / 5;
    const bool keep = static_cast<bool>(f.y(2));
    T* unwanted = keep ? nullptr : f.scratch(6 * n);
    const Child<T> left(f, 1, n), right(f, 2, n);
    for (std::uint32_t b = 0; b < f.batch(); ++b)
      step(n, static_cast<T>(a.forget_bias), f.x(0).data(b), left.at(b), right.at(b),
           f.y(0).data(b), f.y(1).data(b), keep ? f.y(2).data(b) : unwanted);
  }

  template <class T>
  static void backward(const Attrs&, const Backward<T>& b) {
    const std::uint64_t n = b.y(2).size() / 6;
    const Source<T> dh(b, 0, n), dc(b, 1, n);
    const Child<T> left(b, 1, n), right(b, 2, n);
    const Sink<T> dz(b, 0, 5 * n), dl(b, 1, n), dr(b, 2, n);
    for (std::uint32_t i = 0; i < b.batch(); ++i)
      step_back(n, left.at(i), right.at(i), b.y(2).data(i), dh.at(i), dc.at(i), dz.at(i),
                dz.keep(i), dl.at(i), dl.keep(i), dr.at(i), dr.keep(i));
  }

 private:
  // The cell of a child, zeros where there is none.
  template <class T>
  class Child {
   public:
    Child(const auto& call, std::uint32_t input, std::uint64_t n) {
      if (call.has(input)) {
        cell_ = call.x(input);
        return;
      }
      T* zeros = call.template scratch<T>(n);
      std::fill_n(zeros, n, T(0));
      zeros_ = zeros;
    }
    const T* at(std::uint32_t batch_element) const {
      return cell_ ? cell_.data(batch_element) : zeros_;
    }

   private:
    Tensor<const T> cell_;
    const T* zeros_ = nullptr;
  };

  // Loops of one activation each: all of them in one loop are too much for the vectoriser.
  template <class T>
  static void step(std::uint64_t n, T forget_bias, const T* __restrict z, const T* __restrict left,
                   const T* __restrict right, T* __restrict h, T* __restrict c,
                   T* __restrict gates) {
    for (std::uint64_t k = 0; k < n; ++k) gates[k] = gates::sigmoid(z[k]);
    for (std::uint64_t k = n; k < 3 * n; ++k) gates[k] = gates::sigmoid(z[k] + forget_bias);
    for (std::uint64_t k = 3 * n; k < 4 * n; ++k) gates[k] = gates::sigmoid(z[k]);
    for (std::uint64_t k = 4 * n; k < 5 * n; ++k) gates[k] = gates::tanh(z[k]);
    const T *i = gates, *l = gates + n, *r = gates + 2 * n, *o = gates + 3 * n, *g = gates + 4 * n;
    for (std::uint64_t k = 0; k < n; ++k) c[k] = i[k] * g[k] + l[k] * left[k] + r[k] * right[k];
    T* const t = gates + 5 * n;
    for (std::uint64_t k = 0; k < n; ++k) {
      t[k] = gates::tanh(c[k]);
      h[k] = o[k] * t[k];
    }
  }
  template <class T>
  static void step_back(std::uint64_t n, const T* __restrict left, const T* __restrict right,
                        const T* __restrict gates, const T* __restrict dh, const T* __restrict dc,
                        T* __restrict dz, T keep_z, T* __restrict dl, T keep_l, T* __restrict dr,
                        T keep_r) {
    for (std::uint64_t k = 0; k < n; ++k) {
      const T i = gates[k], l = gates[n + k], r = gates[2 * n + k], o = gates[3 * n + k],
              g = gates[4 * n + k], t = gates[5 * n + k];
      const T e = dc[k] + dh[k] * o * (1 - t * t);
      put(dz[k], keep_z, e * g * i * (1 - i));
      put(dz[n + k], keep_z, e * left[k] * l * (1 - l));
      put(dz[2 * n + k], keep_z, e * right[k] * r * (1 - r));
      put(dz[3 * n + k], keep_z, dh[k] * t * o * (1 - o));
      put(dz[4 * n + k], keep_z, e * i * (1 - g * g));
      put(dl[k], keep_l, e * l);
      put(dr[k], keep_r, e * r);
    }
  }
};

TRL_OPS(tree_lstm_cell, TreeLstmCell)

}  // namespace trellis::ops
