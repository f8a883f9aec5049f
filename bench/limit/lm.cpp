// SPDX-License-Identifier: Apache-2.0
//
// The language model without any framework: an LSTM and a full softmax, gradients by hand.
//
//   --unique       equal words of an update share a row
//   --part N       sentences gone through at a time within an update (16)
//   --check        checks the gradients

#include "lstm.hpp"
#include "tasks/common.hpp"

namespace limit {
namespace {

constexpr int kEmb = 128, kHid = 256, kBlock = 128;  // words of the output layer handled together

struct Model {
  int vocab;
  Param table, wo, bo;
  Lstm lstm;
  Rows rows;
  Packed q;
  Buffer x, dx, h, dh, hT, logits, top, shift, total, peak, bias_grad;
  std::vector<int> target, head, link, lengths;
  std::vector<const std::vector<int>*> batch;

  explicit Model(int v) : vocab(v) {
    std::mt19937 rng(3);
    table.make(v, kEmb, 1.7f, rng), wo.make(v, kHid, 1.f / 16, rng), bo.make(1, v, 0, rng);
    lstm.make(kEmb, kHid, 1, 0, rng);
  }
  // Sentences of falling length; input starts with word 0, targets end with it.
  double run(bool train) {
    lengths.clear(), rows.start(vocab);
    for (auto* s : batch) lengths.push_back(int(s->size()) + 1);
    q.shape(lengths);
    const int T = q.total;
    target.resize(size_t(T));
    for (int s = 0, p = 0; s < q.steps; ++s)
      for (int r = 0; r < q.n[s]; ++r, ++p) {
        const auto& w = *batch[size_t(r)];
        q.in[0][p] = rows.add(s ? w[size_t(s) - 1] : 0), q.out[0][p] = p;
        target[p] = s < int(w.size()) ? w[size_t(s)] : 0;
      }
    const int U = rows.size();
    const long ldh = stride(kHid);
    rows.gather(table, x.need(size_t(U) * kEmb), kEmb);
    lstm.forward(q, U, x, kEmb, h.need(size_t(T) * ldh), ldh);

    // scores of all positions, one block of words after the other, transposed: [word][position]
    const long Tp = pad(T), ldt = stride(Tp), blocks = (vocab + kBlock - 1) / kBlock;
    transpose(h, T, kHid, ldh, hT.need(size_t(kHid) * ldt), ldt);
    logits.need(size_t(train ? vocab : kBlock) * ldt), top.need(size_t(blocks * ldt)),
        total.need(size_t(ldt)), peak.need(size_t(ldt)), shift.need(size_t(ldt));
    for (long t = 0; t < Tp; ++t) total[t] = 0, peak[t] = -1e30f;
    head.assign(size_t(blocks), -1), link.resize(size_t(T));
    for (int p = 0; p < T; ++p) link[p] = std::exchange(head[size_t(target[p] / kBlock)], p);
    double loss = 0;
    for (long k = 0; k < blocks; ++k) {
      const long v0 = k * kBlock, n = std::min<long>(kBlock, vocab - v0);
      float* e = train ? logits + v0 * ldt : logits;
      product(n, Tp, kHid, wo.w + v0 * wo.ld, wo.ld, 1, hT, ldt, {e, ldt});
      for (long t = 0; t < Tp;
           t += W) {  // exponentials against the block's own maximum, merged into the running sum
        V most = set(-1e30f), s = zero();
        for (long v = 0; v < n; ++v) most = max(most, ld(e + v * ldt + t) + set(bo.w[v0 + v]));
        for (long v = 0; v < n; ++v) {
          const V x = exp(ld(e + v * ldt + t) + set(bo.w[v0 + v]) - most);
          st(e + v * ldt + t, x), s += x;
        }
        const V old = ld(peak + t), now = max(old, most);
        st(total + t, ld(total + t) * exp(old - now) + s * exp(most - now));
        st(peak + t, now), st(top + k * ldt + t, most);
      }
      for (int p = head[size_t(k)]; p >= 0; p = link[p])
        loss -= std::log(std::max(e[(target[p] - v0) * ldt + p], 1e-37f)) + top[k * ldt + p];
    }
    for (long t = 0; t < Tp; ++t) shift[t] = t < T ? peak[t] + std::log(total[t]) : 1e30f;
    for (int t = 0; t < T; ++t) loss += shift[t];
    if (!train) return loss;

    // one sweep over the output layer: gradient of the scores, of the states, of the weights, update
    adam.next();
    dh.need(size_t(T) * ldh), bias_grad.need(size_t(pad(vocab)));
    for (long k = 0; k < blocks; ++k) {
      const long v0 = k * kBlock, n = std::min<long>(kBlock, vocab - v0);
      float* e = logits + v0 * ldt;
      for (long t = 0; t < Tp; t += W) {
        const V f = exp(ld(top + k * ldt + t) - ld(shift + t));
        for (long v = 0; v < n; ++v) st(e + v * ldt + t, ld(e + v * ldt + t) * f);
      }
      if (Tp > T)
        for (long v = 0; v < n; ++v) std::memset(e + v * ldt + T, 0, size_t(Tp - T) * 4);
      for (int p = head[size_t(k)]; p >= 0; p = link[p]) e[(target[p] - v0) * ldt + p] -= 1;
      for (long v = 0; v < n; ++v) {
        V s = zero();
        for (long t = 0; t < Tp; t += W) s += ld(e + v * ldt + t);
        bias_grad[v0 + v] = sum(s);
      }
      product(T, kHid, n, e, 1, ldt, wo.w + v0 * wo.ld, wo.ld, {dh, ldh, k ? kLoad : kZero});
      learn(wo, v0, n, T, e, ldt, 1, h, ldh);
    }
    learn_bias(bo, bias_grad);
    lstm.backward(q, U, x, kEmb, dh, ldh, dx.need(size_t(U) * kEmb), kEmb);
    rows.learn(table, dx, kEmb);
    return loss;
  }
};

void run(const bench::Options& options) {
  const bench::TextData data(options.data());
  const size_t mb = options.mb(), part = options.count("part", 16);
  Model m(data.vocab);
  m.rows.unique = options.flag("unique");
  const size_t train_batches = (data.train.size() + mb - 1) / mb;
  const size_t dev_batches = (data.dev.size() + mb - 1) / mb;
  int words = 0;
  const auto go = [&](const auto& sentences, size_t k, bool learn) {
    const size_t first = k * mb, n = std::min(sentences.size() - first, mb);
    adam.parts = learn && !adam.check ? int((n + part - 1) / part) : 1;
    double loss = 0;
    words = 0;
    for (adam.part = 0; adam.part < adam.parts; ++adam.part) {
      m.batch.clear();
      const size_t p = size_t(adam.part), parts = size_t(adam.parts);
      for (size_t i = first + n * p / parts; i < first + n * (p + 1) / parts; ++i)
        m.batch.push_back(&sentences[i]);
      loss += m.run(learn);
      words += m.q.total;
    }
    adam.part = 0;
    return loss;
  };
  if (options.flag("check")) {
    check(
        {{"table", &m.table},
         {"wx", &m.lstm.wx},
         {"b", &m.lstm.b},
         {"wh", &m.lstm.wh[0]},
         {"wo", &m.wo},
         {"bo", &m.bo}},
        [&] { return go(data.train, train_batches / 2, false); },
        [&] { go(data.train, train_batches / 2, true); });
    return;
  }
  bench::Cycle order(train_batches), dev_order(dev_batches);
  bench::Report report(options, "limit", "lm");
  bench::run_task(
      options, report, "perplexity", train_batches,
      [&] { return go(data.train, order.next(), true), words; },
      [&] { return go(data.dev, dev_order.next(), false), words; },
      [&] {
        double loss = 0, n = 0;
        for (size_t k = 0; k < dev_batches; ++k) loss += go(data.dev, k, false), n += words;
        return std::exp(loss / n);
      });
  report.print();
}

}  // namespace
}  // namespace limit

int main(int argc, char** argv) { return bench::guarded(argc, argv, limit::run); }
