// SPDX-License-Identifier: Apache-2.0
//
// The tagger without any framework: word vectors, an LSTM from both ends, a layer of tanh, scores;
// gradients by hand.
//
//   --char         rare words are spelt by an LSTM over their characters
//   --unique       equal words (characters) of an update share a row
//   --part N       sentences gone through at a time within an update (16, with --char 8)
//   --check        checks the gradients

#include "lstm.hpp"
#include "tasks/common.hpp"

namespace limit {
namespace {

using bench::kRare;
using bench::Sentence;

constexpr int kWord = 128, kHid = 50, kMlp = 32, kChar = 20, kCharHid = 64;

struct Model {
  int words, chars, tags;
  bool spell;
  Param table, char_table, w1, b1, w2, b2;
  Lstm lstm, speller;
  Rows rows, char_rows;
  Packed q, cq;
  Buffer x, dx, xc, dxc, h, dh, a, da, scores, w1T, w2T, sums;
  std::vector<const Sentence*> batch;
  std::vector<int> lengths, gold, best;
  struct Rare {
    const std::vector<int>* chars;
    int row;
  };
  std::vector<Rare> rare;

  Model(int words_, int chars_, int tags_, bool spell_)
      : words(words_), chars(chars_), tags(tags_), spell(spell_) {
    std::mt19937 rng(5);
    const auto glorot = [](int a, int b) { return std::sqrt(6.f / float(a + b)); };
    table.make(words, kWord, 0.3f, rng), lstm.make(kWord, kHid, 2, 1, rng);
    w1.make(2 * kHid, kMlp, glorot(2 * kHid, kMlp), rng), b1.make(1, kMlp, 0, rng);
    w2.make(kMlp, tags, glorot(kMlp, tags), rng), b2.make(1, tags, 0, rng);
    if (spell) char_table.make(chars, kChar, 1, rng), speller.make(kChar, kCharHid, 2, 1, rng);
  }
  void layout() {  // rows of the batch, positions in both directions, spelling batch
    std::stable_sort(batch.begin(), batch.end(),
                     [](auto* u, auto* v) { return u->words.size() > v->words.size(); });
    lengths.clear(), rows.start(words), rare.clear();
    for (auto* s : batch) lengths.push_back(int(s->words.size()));
    q.shape(lengths);
    gold.resize(size_t(q.total)), best.resize(size_t(q.total));
    for (int s = 0, p = 0; s < q.steps; ++s)
      for (int r = 0; r < q.n[s]; ++r, ++p) {
        const Sentence& z = *batch[size_t(r)];
        const int w = z.words[size_t(s)], row = w == kRare ? rows.reserve() : rows.add(w);
        if (w == kRare) rare.push_back({&z.spelling[size_t(s)], row});
        const int mirror = q.off[lengths[size_t(r)] - 1 - s] + r;
        q.in[0][p] = q.in[1][mirror] = row, q.out[0][p] = q.out[1][mirror] = p;
        gold[p] = z.tags[size_t(s)];
      }
    if (!spell) return;
    std::sort(rare.begin(), rare.end(),
              [](auto& u, auto& v) { return u.chars->size() > v.chars->size(); });
    lengths.clear(), char_rows.start(chars);
    for (auto& r : rare) lengths.push_back(int(r.chars->size()));
    cq.shape(lengths);
    for (int s = 0, p = 0; s < cq.steps; ++s)
      for (int r = 0; r < cq.n[s]; ++r, ++p) {
        const auto& c = *rare[size_t(r)].chars;
        const int n = lengths[size_t(r)], mirror = cq.off[n - 1 - s] + r;
        cq.in[0][p] = cq.in[1][mirror] = char_rows.add(c[size_t(s)]);
        cq.out[0][p] = cq.out[1][p] = s == n - 1 ? rare[size_t(r)].row : -1;
      }
  }
  double run(bool train) {
    layout();
    const int T = q.total, U = rows.size(), C = spell ? char_rows.size() : 0, cw = pad(kChar),
              hw = pad(2 * kHid), S = pad(tags);
    rows.gather(table, x.need(size_t(U) * kWord), kWord);
    if (C) {
      char_rows.gather(char_table, xc.need(size_t(C) * cw), cw);
      speller.forward(cq, C, xc, cw, x, kWord);
    }
    lstm.forward(q, U, x, kWord, h.need(size_t(T) * hw), hw);
    gemm(T, kMlp, 2 * kHid, h, hw, w1.w, w1.ld, a.need(size_t(T) * kMlp), kMlp, kZero, b1.w);
    for (int k = 0; k < T * kMlp; k += W) st(a + k, tanh(ld(a + k)));
    gemm(T, S, kMlp, a, kMlp, w2.w, w2.ld, scores.need(size_t(T) * S), S, kZero, b2.w);
    double loss = 0;
    if (!train && !adam.check) {
      for (int p = 0; p < T; ++p)
        best[size_t(p)] =
            int(std::max_element(scores + p * S, scores + p * S + tags) - (scores + p * S));
      return 0;
    }
    for (int p = 0; p < T; ++p) {
      float* s = scores + p * S;
      const float mine = s[gold[size_t(p)]];
      float top;
      const float z = softmax_row(s, tags, top);
      s[gold[size_t(p)]] -= 1;
      loss += top + std::log(z) - mine;
    }
    if (!train) return loss;

    adam.next();
    transpose(w2.w, kMlp, S, w2.ld, w2T.need(size_t(S) * kMlp), kMlp);
    transpose(w1.w, 2 * kHid, kMlp, w1.ld, w1T.need(size_t(kMlp) * hw), hw);
    gemm(T, kMlp, tags, scores, S, w2T, kMlp, da.need(size_t(T) * kMlp), kMlp);
    for (int k = 0; k < T * kMlp; k += W)
      st(da + k, ld(da + k) * (set(1.f) - ld(a + k) * ld(a + k)));
    gemm(T, hw, kMlp, da, kMlp, w1T, hw, dh.need(size_t(T) * hw), hw);
    learn(w2, 0, kMlp, T, a, 1, kMlp, scores, S),
        column_sums(T, S, scores, S, sums.need(64 + size_t(S))), learn_bias(b2, sums);
    learn(w1, 0, 2 * kHid, T, h, 1, hw, da, kMlp), column_sums(T, kMlp, da, kMlp, sums),
        learn_bias(b1, sums);
    lstm.backward(q, U, x, kWord, dh, hw, dx.need(size_t(U) * kWord), kWord);
    rows.learn(table, dx, kWord);
    if (spell && (C || adam.parts > 1)) {
      speller.backward(cq, C, xc, cw, dx, kWord, dxc.need(size_t(C) * cw), cw);
      char_rows.learn(char_table, dxc, cw);
    }
    return loss;
  }
};

void run(const bench::Options& options) {
  const bool spell = options.flag("char");
  const bench::TagData data(options.data(), spell);
  const size_t mb = options.mb(), part = options.count("part", spell ? 8 : 16);
  Model m(data.words, data.chars, data.tags, spell);
  m.rows.unique = m.char_rows.unique = options.flag("unique");
  const auto go = [&](bench::Cycle& order, const std::vector<Sentence>& sentences, bool learn) {
    int n = 0;
    adam.parts = learn ? int((mb + part - 1) / part) : 1;
    for (adam.part = 0; adam.part < adam.parts; ++adam.part) {
      m.batch.clear();
      const size_t p = size_t(adam.part), parts = size_t(adam.parts);
      for (size_t k = mb * p / parts; k < mb * (p + 1) / parts; ++k) {
        m.batch.push_back(&sentences[order.next()]);
        n += int(m.batch.back()->words.size());
      }
      m.run(learn);
    }
    adam.part = 0;
    return n;
  };
  if (options.flag("check")) {
    m.batch.clear();
    for (size_t k = 0; k < mb; ++k) m.batch.push_back(&data.train[k + 7]);
    std::vector<std::pair<const char*, Param*>> params{
        {"table", &m.table},    {"wx", &m.lstm.wx},     {"b", &m.lstm.b},
        {"wh0", &m.lstm.wh[0]}, {"wh1", &m.lstm.wh[1]}, {"w1", &m.w1},
        {"b1", &m.b1},          {"w2", &m.w2},          {"b2", &m.b2}};
    if (spell) {
      params.insert(params.end(), {{"chars", &m.char_table},
                                   {"c.wx", &m.speller.wx},
                                   {"c.b", &m.speller.b},
                                   {"c.wh0", &m.speller.wh[0]},
                                   {"c.wh1", &m.speller.wh[1]}});
    }
    check(
        params, [&] { return m.run(false); }, [&] { m.run(true); });
    return;
  }
  bench::Cycle order(data.train.size()), dev_order(data.dev.size());
  bench::Report report(options, "limit", spell ? "tagger-char" : "tagger");
  bench::run_task(
      options, report, "accuracy", (data.train.size() + mb - 1) / mb,
      [&] { return go(order, data.train, true); }, [&] { return go(dev_order, data.dev, false); },
      [&] {
        double right = 0, n = 0;
        for (const Sentence& s : data.dev) {
          m.batch = {&s};
          m.run(false);
          for (size_t k = 0; k < s.tags.size(); ++k) right += m.best[k] == s.tags[k], ++n;
        }
        return right / n;
      });
  report.print();
}

}  // namespace
}  // namespace limit

int main(int argc, char** argv) { return bench::guarded(argc, argv, limit::run); }
