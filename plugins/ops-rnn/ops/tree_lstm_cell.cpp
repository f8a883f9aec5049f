// SPDX-License-Identifier: Apache-2.0
//
// The element-wise part of a node of a binary tree-LSTM (Tai, Socher and Manning 2015, the N-ary
// form with N = 2): an LSTM cell with one forget gate for each child. Without children it is a
// leaf.
//
//   z = [zi; zo; zg; zl; zr]
//   i = sigmoid(zi), o = sigmoid(zo), g = tanh(zg), l = sigmoid(zl + forget_bias),
//   r = sigmoid(zr + forget_bias)
//   c' = i g + l cl + r cr,  h = o t,  t = tanh(c')
//
//   e   = dc' + dh o (1 - t t)
//   dzi = e g i (1 - i),  dzo = dh t o (1 - o),  dzg = e i (1 - g g)
//   dzl = e cl l (1 - l),  dzr = e cr r (1 - r),  dcl = e l,  dcr = e r
//
// The forget gates come last, so that the pre-activations of a leaf are the first rows.

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
          "z holds five blocks of n numbers in the order input, output, candidate, forget left, "
          "forget right. A child that is left out counts as zero; without both, z holds the first "
          "three blocks.",
      .formula =
          "[i, o, l, r] = sigmoid([zi, zo, zl + forget_bias, zr + forget_bias]), g = tanh(zg)\n"
          "c' = i g + l left + r right\n"
          "h = o tanh(c')",
      .examples =
          "tree_lstm_cell({10}, {2}, {2}); tree_lstm_cell({5}x3, {1}x3, {1}x3, forget_bias=0); "
          "tree_lstm_cell({6}); tree_lstm_cell({9}x2); tree_lstm_cell({10}x2, {2}); "
          "tree_lstm_cell({5}, {1}x2, {1})",
      .inputs = {In("z").about("{5n}, of a leaf {3n}: pre-activations"),
                 In("left").optional().keep().about("{n}: the left child's cell"),
                 In("right").optional().keep().about("{n}: the right child's cell")},
      .outputs = {Out("h").about("{n}: output"), Out("c").about("{n}: the new cell"),
                  Out("gates").hidden()},
  };

  static std::array<Dim, 3> infer(const Attrs&, Dims x) {
    const bool leaf = !x.has(1) && !x.has(2);
    const std::uint32_t n = cell_size(x, leaf ? 3 : 5);
    for (std::uint32_t i = 1; i < x.size(); ++i)
      if (x.has(i)) require_size(x, i, n);
    return {Dim{n}, Dim{n}, Dim{(leaf ? 4 : 6) * n}};
  }

  template <class T>
  static void forward(const Attrs& a, const Forward<T>& f) {
    const std::uint64_t n = f.y(0).size();
    const bool leaf = !f.has(1) && !f.has(2), keep = static_cast<bool>(f.y(2));
    T* const unwanted = keep ? nullptr : f.scratch(6 * n);
    const Child<T> left(f, 1, n), right(f, 2, n);
    for (std::uint32_t b = 0; b < f.batch(); ++b) {
      const T* const z = f.x(0).data(b);
      T* const gates = keep ? f.y(2).data(b) : unwanted;
      T *const h = f.y(0).data(b), *const c = f.y(1).data(b);
      open(n, z, gates);
      if (leaf)
        for (std::uint64_t k = 0; k < n; ++k) c[k] = gates[k] * gates[2 * n + k];
      else
        remember(n, static_cast<T>(a.forget_bias), z + 3 * n, left.at(b), right.at(b), gates, c);
      close(n, gates, c, h);
    }
  }

  template <class T>
  static void backward(const Attrs&, const Backward<T>& b) {
    const bool leaf = !b.has(1) && !b.has(2);
    const std::uint64_t n = b.y(2).size() / (leaf ? 4 : 6);
    const Source<T> dh(b, 0, n), dc(b, 1, n);
    const Child<T> left(b, 1, n), right(b, 2, n);
    const Sink<T> dz(b, 0, 5 * n), dl(b, 1, n), dr(b, 2, n);
    T* const e = b.scratch(n);
    for (std::uint32_t i = 0; i < b.batch(); ++i) {
      const T* const gates = b.y(2).data(i);
      step_back(n, gates, dh.at(i), dc.at(i), dz.at(i), dz.keep(i), e);
      if (!leaf)
        forget_back(n, gates + 4 * n, left.at(i), right.at(i), e, dz.at(i) + 3 * n, dz.keep(i),
                    dl.at(i), dl.keep(i), dr.at(i), dr.keep(i));
    }
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

  // gates: i, o, g, tanh(c'), then l and r. Loops of one activation each: all of them in one loop are
  // too much for the vectoriser.
  template <class T>
  static void open(std::uint64_t n, const T* __restrict z, T* __restrict gates) {
    for (std::uint64_t k = 0; k < 2 * n; ++k) gates[k] = gates::sigmoid(z[k]);
    for (std::uint64_t k = 2 * n; k < 3 * n; ++k) gates[k] = gates::tanh(z[k]);
  }
  template <class T>
  static void remember(std::uint64_t n, T forget_bias, const T* __restrict z,
                       const T* __restrict left, const T* __restrict right, T* __restrict gates,
                       T* __restrict c) {
    T *const l = gates + 4 * n, *const r = gates + 5 * n;
    for (std::uint64_t k = 0; k < 2 * n; ++k) l[k] = gates::sigmoid(z[k] + forget_bias);
    const T *i = gates, *g = gates + 2 * n;
    for (std::uint64_t k = 0; k < n; ++k) c[k] = i[k] * g[k] + l[k] * left[k] + r[k] * right[k];
  }
  template <class T>
  static void close(std::uint64_t n, T* __restrict gates, const T* __restrict c, T* __restrict h) {
    const T* const o = gates + n;
    T* const t = gates + 3 * n;
    for (std::uint64_t k = 0; k < n; ++k) {
      t[k] = gates::tanh(c[k]);
      h[k] = o[k] * t[k];
    }
  }
  template <class T>
  static void step_back(std::uint64_t n, const T* __restrict gates, const T* __restrict dh,
                        const T* __restrict dc, T* __restrict dz, T keep, T* __restrict de) {
    for (std::uint64_t k = 0; k < n; ++k) {
      const T i = gates[k], o = gates[n + k], g = gates[2 * n + k], t = gates[3 * n + k];
      const T e = de[k] = dc[k] + dh[k] * o * (1 - t * t);
      put(dz[k], keep, e * g * i * (1 - i));
      put(dz[n + k], keep, dh[k] * t * o * (1 - o));
      put(dz[2 * n + k], keep, e * i * (1 - g * g));
    }
  }
  template <class T>
  static void forget_back(std::uint64_t n, const T* __restrict gates, const T* __restrict left,
                          const T* __restrict right, const T* __restrict de, T* __restrict dz,
                          T keep_z, T* __restrict dl, T keep_l, T* __restrict dr, T keep_r) {
    for (std::uint64_t k = 0; k < n; ++k) {
      const T l = gates[k], r = gates[n + k], e = de[k];
      put(dz[k], keep_z, e * left[k] * l * (1 - l));
      put(dz[n + k], keep_z, e * right[k] * r * (1 - r));
      put(dl[k], keep_l, e * l);
      put(dr[k], keep_r, e * r);
    }
  }
};

TRL_OPS(tree_lstm_cell, TreeLstmCell)

}  // namespace trellis::ops
