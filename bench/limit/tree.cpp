// SPDX-License-Identifier: Apache-2.0
//
// The tree-LSTM without any framework: a label on every node, all trees of an update level by
// level, gradients by hand.
//
//   --unique       equal words of an update share a row
//   --part N       trees gone through at a time within an update (16)
//   --check        checks the gradients

#include "rows.hpp"
#include "tasks/common.hpp"

namespace limit {
namespace {

using bench::Tree;

// gates: forget left | i o u | forget right
constexpr int kWord = 128, H = 128, L = 3 * H, N = 5 * H;

struct Model {
  int vocab, labels, S;
  Param table, leaf, leaf_bias, inner, forget[2], bias, out, out_bias;
  Rows rows;
  std::vector<const Tree*> batch;
  // nodes sorted by height; an inner node's `slot` is its number among inner nodes
  std::vector<int> level, label, slot_row, place, parent, source,
      first;  // parent: 2 * slot + side, or -1 at a root
  int nodes = 0, leaves = 0;
  Buffer x, dx, P, dP, hh, dhh, g, dg, act, h, dh, dc, scores, leafT, leafDT, innerT, forgetT[2],
      outT, sums, gates;
  static constexpr long ldg = stride(N), ldp = stride(L), ldhh = stride(2 * H), ldh = H,
                        lda = stride(8 * H);

  Model(int v, int l) : vocab(v), labels(l), S(pad(l)) {
    std::mt19937 rng(11);
    const auto glorot = [](int a, int b) { return std::sqrt(6.f / float(a + b)); };
    table.make(v, kWord, 0.15f, rng), leaf.make(kWord, L, glorot(kWord, H), rng),
        leaf_bias.make(1, L, 0, rng);
    inner.make(2 * H, L, glorot(2 * H, H), rng), forget[0].make(H, H, glorot(H, H), rng),
        forget[1].make(H, H, glorot(H, H), rng);
    bias.make(1, N, 0, rng), out.make(H, labels, glorot(H, labels), rng),
        out_bias.make(1, labels, 0, rng);
    for (int j = 0; j < H; ++j)
      bias.w[j] = 1;  // one forget bias for both sides: the first H of `bias`, then i o u
  }
  void layout() {
    int top = 0;
    nodes = 0;
    for (auto* t : batch) top = std::max(top, t->height.back()), nodes += t->size();
    level.assign(size_t(top) + 2, 0);
    for (auto* t : batch)
      for (int k : t->height) ++level[size_t(k) + 1];
    for (size_t k = 1; k < level.size(); ++k) level[k] += level[k - 1];
    leaves = level[1];
    label.resize(size_t(nodes)), parent.assign(size_t(nodes), -1), source.resize(size_t(leaves)),
        first.clear();
    static std::vector<int> at, mine;
    at = level, rows.start(vocab);
    for (auto* t : batch) {
      mine.resize(size_t(t->size()));
      for (int k = 0; k < t->size(); ++k) {
        const int n = mine[size_t(k)] = at[size_t(t->height[size_t(k)])]++;
        label[size_t(n)] = t->label[size_t(k)];
        if (n < leaves)
          source[size_t(n)] = rows.add(t->word[size_t(k)]);
        else
          parent[size_t(mine[size_t(t->left[size_t(k)])])] = 2 * (n - leaves),
          parent[size_t(mine[size_t(t->right[size_t(k)])])] = 2 * (n - leaves) + 1;
      }
      first.push_back(mine.back());  // roots
    }
  }
  // activations of a node: i o u c tanh(c) | fl fr; inner nodes read their children's c from cc = hh-like pairs kept beside h
  double run(bool train) {
    layout();
    const int inners = nodes - leaves, U = rows.size();
    rows.gather(table, x.need(size_t(U) * kWord), kWord);
    gemm(U, L, kWord, x, kWord, leaf.w, leaf.ld, P.need(size_t(U) * ldp), ldp, kZero, leaf_bias.w);
    act.need(size_t(nodes) * lda), h.need(size_t(nodes) * ldh), hh.need(size_t(inners) * ldhh),
        cc.need(size_t(inners) * ldhh), gates.need(size_t(nodes) * ldg);
    for (int n = 0; n < leaves; ++n) leaf_cell(P + source[size_t(n)] * ldp, n);
    for (size_t k = 1; k + 1 < level.size(); ++k) {
      const int n0 = level[k], n = level[k + 1] - n0, s = n0 - leaves;
      const float* c = hh + s * ldhh;
      gemm(n, H, H, c, ldhh, forget[0].w, forget[0].ld, gates, ldg, kZero, bias.w);
      gemm(n, L, 2 * H, c, ldhh, inner.w, inner.ld, gates + H, ldg, kZero, bias.w + H);
      gemm(n, H, H, c + H, ldhh, forget[1].w, forget[1].ld, gates + 4 * H, ldg, kZero, bias.w);
      for (int r = 0; r < n; ++r) inner_cell(gates + r * ldg, n0 + r);
    }
    double loss = 0;
    if (!train && !adam.check) {  // class of the roots
      best.clear();
      for (int n : first) {
        gemm(1, S, H, h + n * ldh, 0, out.w, out.ld, scores.need(size_t(S)), S, kZero, out_bias.w);
        best.push_back(int(std::max_element(scores.p, scores.p + labels) - scores.p));
      }
      return 0;
    }
    gemm(nodes, S, H, h, ldh, out.w, out.ld, scores.need(size_t(nodes) * S), S, kZero, out_bias.w);
    double product_of_sums = 1;  // one logarithm for many nodes
    for (int n = 0; n < nodes; ++n) {
      float* s = scores + n * S;
      const float mine = s[label[size_t(n)]];
      float top;
      const float z = softmax_row(s, labels, top);
      s[label[size_t(n)]] -= 1;
      loss += top - mine, product_of_sums *= z;
      if (product_of_sums > 1e200) loss += std::log(product_of_sums), product_of_sums = 1;
    }
    loss += std::log(product_of_sums);
    if (!train) return loss;

    adam.next();
    transpose(out.w, H, S, out.ld, outT.need(size_t(S) * H), H);
    gemm(nodes, H, labels, scores, S, outT, H, dh.need(size_t(nodes) * ldh), ldh);
    learn(out, 0, H, nodes, h, 1, ldh, scores, S),
        column_sums(nodes, S, scores, S, sums.need(size_t(N))), learn_bias(out_bias, sums);
    int widest_level = 0;
    for (size_t k = 1; k + 1 < level.size(); ++k)
      widest_level = std::max(widest_level, level[k + 1] - level[k]);
    const bool turn = widest_level > kDots;
    if (turn) {
      transpose(inner.w, 2 * H, L, inner.ld, innerT.need(size_t(L) * ldhh), ldhh);
      for (int d = 0; d < 2; ++d)
        transpose(forget[d].w, H, H, forget[d].ld, forgetT[d].need(size_t(H) * H), H);
    }
    dhh.need(size_t(inners) * ldhh), dcc.need(size_t(inners) * ldhh), dg.need(size_t(inners) * ldg),
        dP.need(size_t(U) * ldp);
    for (size_t k = level.size() - 2; k >= 1; --k) {
      const int n0 = level[k], n = level[k + 1] - n0, s = n0 - leaves;
      for (int r = 0; r < n; ++r) inner_back(n0 + r);
      const float* d = dg + s * ldg;
      float* c = dhh + s * ldhh;
      if (turn) {
        gemm(n, 2 * H, L, d + H, ldg, innerT, ldhh, c, ldhh);
        gemm(n, H, H, d, ldg, forgetT[0], H, c, ldhh, kLoad),
            gemm(n, H, H, d + 4 * H, ldg, forgetT[1], H, c + H, ldhh, kLoad);
      } else {
        gemm_nt(n, 2 * H, L, d + H, ldg, inner.w, inner.ld, c, ldhh);
        gemm_nt(n, H, H, d, ldg, forget[0].w, forget[0].ld, c, ldhh, kLoad),
            gemm_nt(n, H, H, d + 4 * H, ldg, forget[1].w, forget[1].ld, c + H, ldhh, kLoad);
      }
    }
    std::memset(dP, 0, size_t(U) * ldp * 4);
    for (int n = 0; n < leaves; ++n) leaf_back(n, dP + source[size_t(n)] * ldp);
    learn(inner, 0, 2 * H, inners, hh, 1, ldhh, dg + H, ldg);
    learn(forget[0], 0, H, inners, hh, 1, ldhh, dg, ldg),
        learn(forget[1], 0, H, inners, hh + H, 1, ldhh, dg + 4 * H, ldg);
    column_sums(inners, N, dg, ldg, sums);
    for (int j = 0; j < H; j += W)
      st(sums + j, ld(sums + j) + ld(sums + 4 * H + j)), st(sums + 4 * H + j, set(0.f));
    learn_bias(bias, sums);
    back_product(U, kWord, L, dP, ldp, leaf.w, leaf.ld, dx.need(size_t(U) * kWord), kWord, leafT,
                 leafDT);
    learn(leaf, 0, kWord, U, x, 1, kWord, dP, ldp), column_sums(U, L, dP, ldp, sums),
        learn_bias(leaf_bias, sums);
    rows.learn(table, dx, kWord);
    return loss;
  }
  Buffer cc, dcc;
  std::vector<int> best;

  void publish(int n, int u, V hidden,
               V c) {  // a node's state goes straight to where its parent's product reads it
    st(h + n * ldh + u, hidden);
    if (const int p = parent[size_t(n)]; p >= 0)
      st(hh + (p / 2) * ldhh + p % 2 * H + u, hidden), st(cc + (p / 2) * ldhh + p % 2 * H + u, c);
  }
  void leaf_cell(const float* p, int n) {
    float* a = act + n * lda;
    for (int u = 0; u < H; u += W) {
      const V i = sigmoid(ld(p + u)), o = sigmoid(ld(p + H + u)), z = tanh(ld(p + 2 * H + u)),
              c = i * z, t = tanh(c);
      st(a + u, i), st(a + H + u, o), st(a + 2 * H + u, z), st(a + 4 * H + u, t);
      publish(n, u, o * t, c);
    }
  }
  void inner_cell(const float* g, int n) {
    float* a = act + n * lda;
    const float* past = cc + (n - leaves) * ldhh;
    for (int u = 0; u < H; u += W) {
      const V i = sigmoid(ld(g + H + u)), o = sigmoid(ld(g + 2 * H + u)),
              z = tanh(ld(g + 3 * H + u)), l = sigmoid(ld(g + u)), r = sigmoid(ld(g + 4 * H + u));
      const V c = fma(i, z, fma(l, ld(past + u), r * ld(past + H + u))), t = tanh(c);
      st(a + u, i), st(a + H + u, o), st(a + 2 * H + u, z), st(a + 4 * H + u, t),
          st(a + 5 * H + u, l), st(a + 6 * H + u, r);
      publish(n, u, o * t, c);
    }
  }
  V incoming(int n, int u, V& dc, const float* a, V& o,
             V& t) {  // total gradient of h; dc becomes that of c
    V d = ld(dh + n * ldh + u);
    const int p = parent[size_t(n)];
    if (p >= 0) d += ld(dhh + (p / 2) * ldhh + p % 2 * H + u);
    o = ld(a + H + u), t = ld(a + 4 * H + u);
    dc = d * o * (set(1.f) - t * t);
    if (p >= 0) dc += ld(dcc + (p / 2) * ldhh + p % 2 * H + u);
    return d;
  }
  void inner_back(int n) {
    const float *a = act + n * lda, *past = cc + (n - leaves) * ldhh;
    float *g = dg + (n - leaves) * ldg, *back = dcc + (n - leaves) * ldhh;
    const V one = set(1.f);
    for (int u = 0; u < H; u += W) {
      V dc, o, t;
      const V d = incoming(n, u, dc, a, o, t), i = ld(a + u), z = ld(a + 2 * H + u),
              l = ld(a + 5 * H + u), r = ld(a + 6 * H + u);
      st(g + u, dc * ld(past + u) * l * (one - l)), st(g + H + u, dc * z * i * (one - i)),
          st(g + 2 * H + u, d * t * o * (one - o));
      st(g + 3 * H + u, dc * i * (one - z * z)),
          st(g + 4 * H + u, dc * ld(past + H + u) * r * (one - r));
      st(back + u, dc * l), st(back + H + u, dc * r);
    }
  }
  void leaf_back(int n, float* g) {
    const float* a = act + n * lda;
    const V one = set(1.f);
    for (int u = 0; u < H; u += W) {
      V dc, o, t;
      const V d = incoming(n, u, dc, a, o, t), i = ld(a + u), z = ld(a + 2 * H + u);
      st(g + u, ld(g + u) + dc * z * i * (one - i)),
          st(g + H + u, ld(g + H + u) + d * t * o * (one - o));
      st(g + 2 * H + u, ld(g + 2 * H + u) + dc * i * (one - z * z));
    }
  }
};

void run(const bench::Options& options) {
  const bench::TreeData data(options.data());
  const size_t mb = options.mb(), part = options.count("part", 16);
  Model m(data.vocab, data.labels);
  m.rows.unique = options.flag("unique");
  const auto go = [&](bench::Cycle& order, const std::vector<Tree>& trees, bool learn) {
    adam.parts = learn ? int((mb + part - 1) / part) : 1;
    for (adam.part = 0; adam.part < adam.parts; ++adam.part) {
      m.batch.clear();
      const size_t p = size_t(adam.part), parts = size_t(adam.parts);
      for (size_t k = mb * p / parts; k < mb * (p + 1) / parts; ++k)
        m.batch.push_back(&trees[order.next()]);
      m.run(learn);
    }
    adam.part = 0;
    return mb;
  };
  if (options.flag("check")) {
    for (size_t k = 0; k < mb; ++k) m.batch.push_back(&data.train[k + 7]);
    check(
        {{"table", &m.table},
         {"leaf", &m.leaf},
         {"leaf_b", &m.leaf_bias},
         {"inner", &m.inner},
         {"forget0", &m.forget[0]},
         {"forget1", &m.forget[1]},
         {"bias", &m.bias},
         {"out", &m.out},
         {"out_b", &m.out_bias}},
        [&] { return m.run(false); }, [&] { m.run(true); });
    return;
  }
  bench::Cycle order(data.train.size()), dev_order(data.dev.size());
  bench::Report report(options, "limit", "tree");
  bench::run_task(
      options, report, "accuracy", data.train.size() / mb,
      [&] { return go(order, data.train, true); }, [&] { return go(dev_order, data.dev, false); },
      [&] {
        double right = 0;
        for (const Tree& t : data.dev) {
          m.batch = {&t};
          m.run(false);
          right += m.best[0] == t.label.back();
        }
        return right / double(data.dev.size());
      });
  report.print();
}

}  // namespace
}  // namespace limit

int main(int argc, char** argv) { return bench::guarded(argc, argv, limit::run); }
