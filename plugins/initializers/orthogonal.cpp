// SPDX-License-Identifier: Apache-2.0
//
// Saxe, McClelland, Ganguli, "Exact solutions to the nonlinear dynamics of learning in deep linear
// neural networks", ICLR 2014.
//
//   w = gain q,  q' q = 1 (at least as many rows as columns) or q q' = 1

#include <algorithm>
#include <cmath>
#include <trellis/sdk/initializer.hpp>
#include <vector>

namespace trellis::ops {

struct Orthogonal {
  struct Attrs {
    double gain = 1;
  };
  static constexpr auto attrs = fields(field("gain", &Attrs::gain, "factor"));
  static constexpr InitializerSpec spec{
      .name = "orthogonal",
      .summary = "random orthogonal matrix",
      .doc =
          "uniform over all of them. Not square: orthonormal columns, or rows where there are more "
          "columns. Costs long side times short side squared",
      .formula = "w = gain q, q' q = 1",
      .aliases = {"core.saxe", "dynet.saxe"}};

  // Vectors with normal elements, each made orthogonal to those before it. Done twice, the result
  // is orthogonal to the last bits.
  static void fill(const Attrs& a, const auto& f) {
    const Dim dim = f.dim();
    TRL_REQUIRE(!f.lookup() && dim.rank == 2,
                f.lookup() ? "no orthogonal lookup table: " : "not orthogonal in this shape: ", dim,
                " (a matrix)");
    const std::uint64_t rows = dim[0], columns = dim[1];
    const std::uint64_t n = std::max(rows, columns), count = std::min(rows, columns);
    std::vector<double> q(n * count);
    Random random = f.random();
    for (std::uint64_t j = 0; j < count; ++j) {
      double* const v = &q[j * n];
      const auto dot = [n, v](const double* u) {
        double sum = 0;
        for (std::uint64_t i = 0; i < n; ++i) sum += u[i] * v[i];
        return sum;
      };
      double length;
      do {  // again where almost nothing is left of it
        random.normal(v, n);
        for (int pass = 0; pass < 2; ++pass)
          for (std::uint64_t k = 0; k < j; ++k) {
            const double* const u = &q[k * n];
            const double along = dot(u);
            for (std::uint64_t i = 0; i < n; ++i) v[i] -= along * u[i];
          }
        length = std::sqrt(dot(v));
      } while (length < 1e-4);
      for (std::uint64_t i = 0; i < n; ++i) v[i] /= length;
    }
    const auto w = f.value();
    for (std::uint64_t c = 0; c < columns; ++c)
      for (std::uint64_t r = 0; r < rows; ++r)
        w[c * rows + r] = f.number(a.gain * (rows >= columns ? q[c * n + r] : q[r * n + c]));
  }
};

TRL_OPS(orthogonal, Orthogonal)

}  // namespace trellis::ops
