// SPDX-License-Identifier: Apache-2.0
//
// Glorot, Bengio, "Understanding the difficulty of training deep feedforward neural networks",
// AISTATS 2010. L: number of dimensions; of a lookup table those of a row.
//
//   w ~ U[-s, s)
//   s = gain sqrt(3 L / (d0 + .. + dL-1))
//   s = gain sqrt(6 / ((in + out) height width))    filters {height,width,in,out}
//
// So a matrix {m,n} has s = gain sqrt(6 / (m + n)), a vector {n} s = gain sqrt(3 / n).

#include <cmath>
#include <trellis/sdk/initializer.hpp>

namespace trellis::ops {

struct Glorot {
  struct Attrs {
    double gain = 1;
  };
  static constexpr auto attrs =
      fields(field("gain", &Attrs::gain, "factor of the bound", at_least(0)));
  static constexpr InitializerSpec spec{
      .name = "glorot",
      .summary = "uniform, scaled so that layers keep the variance",
      .doc = "L dimensions (of a lookup table: those of a row). A scalar counts as {1}",
      .formula =
          "w ~ U[-s, s), s = gain sqrt(3 L / (d0 + .. + dL-1)); filters {h,w,in,out}: s = gain "
          "sqrt(6 / ((in + out) h w))",
      .aliases = {"dynet.glorot"},
      .is_default = true};

  static void fill(const Attrs& a, const auto& f) {
    const Dim dim = f.dim();
    const std::uint32_t rank = f.lookup() ? dim.rank - 1 : dim.rank;
    double square = 3;
    if (rank == 4) {
      square = 6.0 / ((1.0 * dim[2] + dim[3]) * dim[0] * dim[1]);
    } else if (rank != 0) {
      double sum = 0;
      for (std::uint32_t i = 0; i < rank; ++i) sum += dim[i];
      square = 3.0 * rank / sum;
    }
    const double bound = a.gain * std::sqrt(square);
    f.random().uniform(f.data(), f.size(), f.number(-bound), f.number(bound));
  }
};

TRL_OPS(glorot, Glorot)

}  // namespace trellis::ops
