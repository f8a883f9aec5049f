// SPDX-License-Identifier: Apache-2.0
//
// The growth curve of the LSTM step without any framework.

#include "tasks/growth.hpp"

#include "lstm.hpp"

namespace limit {
namespace {

void batch(bench::Rows& rows) {
  using bench::kInput, bench::kStates, bench::kSteps;
  std::mt19937 rng(3);
  adam.check = true;  // gradients are kept, nothing is updated
  for (const int n : bench::kBatches) {
    Lstm lstm;
    lstm.make(kInput, kStates, 1, 0, rng);
    Packed q;
    q.shape(std::vector<int>(size_t(n), kSteps));
    std::iota(q.in[0].begin(), q.in[0].end(), 0), q.out[0] = q.in[0];
    Buffer x, dx, h, dh;
    const long ldh = stride(kStates);
    std::fill_n(x.need(size_t(q.total) * kInput), size_t(q.total) * kInput, 0.1f);
    std::fill_n(dh.need(size_t(q.total) * ldh), size_t(q.total) * ldh, 1.f);
    h.need(size_t(q.total) * ldh), dx.need(size_t(q.total) * kInput);
    const auto [forward, backward] =
        rows.least_each([&] { lstm.forward(q, q.total, x, kInput, h, ldh); },
                        [&] { lstm.backward(q, q.total, x, kInput, dh, ldh, dx, kInput); });
    const bench::Curve curve("batch", n);
    curve.point("forward", forward, q.total);
    curve.point("backward", backward, q.total);
  }
}

void run(const bench::Options& options) {
  bench::Rows rows(options);
  rows.group("batch", [&] { batch(rows); });
}

}  // namespace
}  // namespace limit

int main(int argc, char** argv) { return bench::guarded(argc, argv, limit::run); }
