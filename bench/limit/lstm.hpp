// SPDX-License-Identifier: Apache-2.0
//
// LSTM over a packed batch, one or two directions, gradients by hand.
#pragma once
#include "kernels.hpp"
#include "rows.hpp"

namespace limit {

struct
    Packed {  // positions step by step; the batch shrinks because rows are sorted by falling length
  int steps = 0, total = 0;
  std::vector<int> off, n;  // per step: first position, rows still running
  std::vector<int> in[2],
      out[2];  // per direction and position: row of the input, row of the result (-1: not wanted)
  void shape(const std::vector<int>& lengths) {
    steps = lengths.empty() ? 0 : lengths[0], total = 0;
    off.resize(size_t(steps)), n.resize(size_t(steps));
    int rows = int(lengths.size());
    for (int s = 0; s < steps; ++s) {
      while (lengths[size_t(rows - 1)] <= s) --rows;
      off[size_t(s)] = total, n[size_t(s)] = rows, total += rows;
    }
    for (auto* v : {&in[0], &in[1], &out[0], &out[1]}) v->resize(size_t(total));
  }
};

struct Lstm {
  int I, H, D, G, N, Hp;  // inputs, hidden, directions; 4H, padded 4H, padded H
  long ldx, ldg, ldh,
      lda;  // distances: projections of both directions, gates of one, hidden, saved activations
  Param wx, b, wh[2];
  Buffer wxT, dxT, whT[2], P, dP, act[2], hp[2], dg[2], gates, dh, dc, db;

  void make(int inputs, int hidden, int directions, float forget, std::mt19937& rng) {
    I = inputs, H = hidden, D = directions, G = 4 * H, N = pad(G), Hp = pad(H);
    ldx = stride(D * N + (H % 16 ? 16 : 0)), ldg = stride(N + (H % 16 ? 16 : 0)), ldh = stride(Hp),
    lda = stride(6 * Hp);
    const float r = 1 / std::sqrt(float(H));
    wx.make(I, D * N, 0, rng), b.make(1, D * N, 0, rng);
    std::uniform_real_distribution<float> u(-r, r);
    for (int d = 0; d < D; ++d) {
      wh[d].make(H, N, r, rng, G);
      for (int i = 0; i < I; ++i)
        for (int j = 0; j < G; ++j) wx.w[i * wx.ld + d * N + j] = u(rng);
      for (int j = H; j < 2 * H; ++j) b.w[d * N + j] = forget;
    }
  }
  // X: `rows` inputs; results go to out[row * ldo + d * H]
  void forward(const Packed& q, int rows, const float* X, long ldX, float* out, long ldo) {
    gemm(rows, D * N, I, X, ldX, wx.w, wx.ld, P.need(size_t(rows) * ldx), ldx, kZero, b.w);
    gates.need(size_t(q.total ? q.n[0] : 0) * ldg);
    for (int d = 0; d < D; ++d) {
      act[d].need(size_t(q.total) * lda), hp[d].need(size_t(q.total) * ldh);
      for (int s = 0; s < q.steps; ++s) {
        const int p0 = q.off[s], n = q.n[s];
        if (s) gemm(n, N, H, hp[d] + p0 * ldh, ldh, wh[d].w, wh[d].ld, gates, ldg);
        for (int r = 0; r < n; ++r) {
          const int p = p0 + r, to = q.out[d][p];
          const float* past = s ? act[d] + (q.off[s - 1] + r) * lda + 4 * Hp : nullptr;
          float* next =
              s + 1 < q.steps && r < q.n[s + 1] ? hp[d] + (q.off[s + 1] + r) * ldh : nullptr;
          cell(s ? gates + r * ldg : nullptr, P + q.in[d][p] * ldx + d * N, past, act[d] + p * lda,
               next, to < 0 ? nullptr : out + to * ldo + d * H);
        }
      }
    }
  }
  void cell(const float* g, const float* x, const float* past, float* a, float* next,
            float* out) const {
    for (int u = 0; u < H; u += W) {
      const Mask m = tail(H - u);
      V i = ld(x + u, m), f = ld(x + H + u, m), o = ld(x + 2 * H + u, m), c = ld(x + 3 * H + u, m);
      if (g)
        i += ld(g + u, m), f += ld(g + H + u, m), o += ld(g + 2 * H + u, m),
            c += ld(g + 3 * H + u, m);
      i = sigmoid(i), f = sigmoid(f), o = sigmoid(o), c = tanh(c);
      st(a + u, i), st(a + Hp + u, f), st(a + 2 * Hp + u, o), st(a + 3 * Hp + u, c);
      c = past ? fma(f, ld(past + u), i * c) : i * c;
      const V t = tanh(c), h = o * t;
      st(a + 4 * Hp + u, c), st(a + 5 * Hp + u, t);
      if (next) st(next + u, h);
      if (out) st(out + u, m, h);
    }
  }
  // dout: gradient of the results; dX receives the gradient of the inputs; updates the weights on the way
  void backward(const Packed& q, int rows, const float* X, long ldX, const float* dout, long ldo,
                float* dX, long lddX) {
    std::memset(dP.need(size_t(rows) * ldx), 0, size_t(rows) * ldx * 4);
    for (int d = 0; d < D; ++d) {
      const bool turn = q.steps > 1 && q.n[1] > kDots;
      if (turn) transpose(wh[d].w, H, G, wh[d].ld, whT[d].need(size_t(G) * ldh), ldh);
      dg[d].need(size_t(q.total) * ldg);
      dh.need(size_t(q.n[0]) * ldh), dc.need(size_t(q.n[0]) * ldh);
      for (int s = q.steps; s--;) {
        const int p0 = q.off[s], n = q.n[s], later = s + 1 < q.steps ? q.n[s + 1] : 0;
        for (int r = 0; r < n; ++r) {
          const int p = p0 + r, from = q.out[d][p];
          cell_back(act[d] + p * lda, s ? act[d] + (q.off[s - 1] + r) * lda + 4 * Hp : nullptr,
                    from < 0 ? nullptr : dout + from * ldo + d * H,
                    r < later ? dh + r * ldh : nullptr, dc + r * ldh, dg[d] + p * ldg,
                    dP + q.in[d][p] * ldx + d * N);
        }
        if (s && turn)
          gemm(n, Hp, G, dg[d] + p0 * ldg, ldg, whT[d], ldh, dh, ldh);
        else if (s)
          gemm_nt(n, H, N, dg[d] + p0 * ldg, ldg, wh[d].w, wh[d].ld, dh, ldh);
      }
      if (q.steps > 1)
        learn(wh[d], 0, H, q.total - q.off[1], hp[d] + q.off[1] * ldh, 1, ldh,
              dg[d] + q.off[1] * ldg, ldg);
      else
        learn(wh[d], 0, H, 0, hp[d], 1, ldh, dg[d], ldg);
    }
    back_product(rows, I, D * N, dP, ldx, wx.w, wx.ld, dX, lddX, wxT, dxT);
    learn(wx, 0, I, rows, X, 1, ldX, dP, ldx);
    column_sums(rows, D * N, dP, ldx, db.need(size_t(D) * N));
    learn_bias(b, db);
  }
  void cell_back(const float* a, const float* past, const float* dout, const float* dh, float* dc,
                 float* g, float* dx) const {
    // Last vector first: whole stores may then run over into the next gate, which is written later. (A masked store cannot
    // be forwarded to the broadcast loads of the product that follows at once.)
    for (int u = (H - 1) / W * W; u >= 0; u -= W) {
      const Mask m = tail(H - u);
      const V i = ld(a + u), f = ld(a + Hp + u), o = ld(a + 2 * Hp + u), c = ld(a + 3 * Hp + u),
              t = ld(a + 5 * Hp + u), one = set(1.f);
      V h = dout ? ld(dout + u, m) : zero();
      if (dh) h += ld(dh + u, m);  // dots leave rubbish in the padding
      V k = h * o * (one - t * t);
      if (dh) k += ld(dc + u);
      st(dc + u, k * f);
      const V gi = k * c * i * (one - i), gf = past ? k * ld(past + u) * f * (one - f) : zero(),
              go = h * t * o * (one - o), gc = k * i * (one - c * c);
      st(g + u, gi), st(g + H + u, gf), st(g + 2 * H + u, go), st(g + 3 * H + u, gc);
      st(dx + u, ld(dx + u) + gi), st(dx + H + u, ld(dx + H + u) + gf),
          st(dx + 2 * H + u, ld(dx + 2 * H + u) + go), st(dx + 3 * H + u, ld(dx + 3 * H + u) + gc);
    }
  }
};

}  // namespace limit
