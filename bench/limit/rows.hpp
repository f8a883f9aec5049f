// SPDX-License-Identifier: Apache-2.0
//
// Rows of a table used by one update, and the check of gradients.
#pragma once

#include <functional>
#include <stdexcept>

#include "kernels.hpp"

namespace limit {

// `unique`: equal ids share a row of the gathered matrix, so they share its projection and their
// gradients meet for free. Otherwise one row for each use, as a toolkit does it.
struct Rows {
  bool unique = false;
  std::vector<int> mark, ids;  // mark: row of an id in this update, or -1
  std::vector<long> seen;      // update in which an id was last touched (updates in parts only)
  std::vector<int> touched;

  void start(int vocab) {
    mark.resize(size_t(vocab), -1);
    for (const int i : ids)
      if (i >= 0) mark[size_t(i)] = -1;
    ids.clear();
  }
  int add(int id) {
    int& m = mark[size_t(id)];
    if (m < 0 || !unique) m = int(ids.size()), ids.push_back(id);
    return m;
  }
  int reserve() {  // a row that comes from elsewhere
    ids.push_back(-1);
    return int(ids.size()) - 1;
  }
  int size() const { return int(ids.size()); }
  void gather(const Param& t, float* x, long ldx) const {
    for (size_t k = 0; k < ids.size(); ++k)
      if (ids[k] >= 0)
        std::memcpy(x + long(k) * ldx, t.w + ids[k] * t.ld, size_t(t.cols) * sizeof(float));
  }
  void learn(Param& t, float* dx, long lddx) {
    if (!unique)  // fold repeated ids into their last row
      for (size_t k = 0; k < ids.size(); ++k)
        if (const int m = ids[k] < 0 ? -1 : mark[size_t(ids[k])]; m >= 0 && m != int(k))
          for (int j = 0; j < t.cols; j += W)
            st(dx + m * lddx + j, ld(dx + m * lddx + j) + ld(dx + long(k) * lddx + j));
    const bool keep = adam.check || adam.parts > 1;
    if (adam.part == 0) touched.clear();
    seen.resize(mark.size(), -1);
    for (size_t k = 0; k < ids.size(); ++k) {
      if (ids[k] < 0 || mark[size_t(ids[k])] != int(k)) continue;
      if (!keep) {
        adam_row(t, ids[k], dx + long(k) * lddx);
        continue;
      }
      const bool fresh = std::exchange(seen[size_t(ids[k])], adam.t) != adam.t;
      if (fresh) touched.push_back(ids[k]);
      keep_row(t, ids[k], dx + long(k) * lddx, fresh);
    }
    if (keep && !adam.check && adam.last())
      for (const int i : touched) adam_row(t, i, t.g + i * t.ld);
  }
};

// Directional derivative along the gradient of every parameter against its length. Throws when one
// differs by more than 1e-3.
inline void check(const std::vector<std::pair<const char*, Param*>>& params,
                  const std::function<double()>& loss, const std::function<void()>& gradient) {
  adam.check = true;
  gradient();
  bool wrong = false;
  for (const auto& [name, p] : params) {
    const size_t n = size_t(p->rows) * size_t(p->ld);
    double norm = 0;
    for (size_t k = 0; k < n; ++k) norm += double(p->grad()[k]) * double(p->g[k]);
    norm = std::sqrt(norm);
    const std::vector<float> before(p->w, p->w + n);
    const auto at = [&, p = p](double e) {
      for (size_t k = 0; k < n; ++k) p->w[k] = float(before[k] + e * p->g[k] / norm);
      return loss();
    };
    const double e = 0.02;
    const double slope = (8 * (at(e) - at(-e)) - (at(2 * e) - at(-2 * e))) / (12 * e);
    std::copy(before.begin(), before.end(), p->w);
    const double difference = std::abs(slope / norm - 1);
    wrong = wrong || difference > 1e-3;
    std::printf("check %-8s gradient %12.6f  measured %12.6f  relative difference %.1e\n", name,
                norm, slope, difference);
  }
  if (wrong) throw std::runtime_error("a gradient is wrong");
}

}  // namespace limit
