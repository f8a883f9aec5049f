// SPDX-License-Identifier: Apache-2.0
//
//   w[i,j] = i == j

#include <trellis/sdk/initializer.hpp>

namespace trellis::ops {

struct Identity {
  static constexpr InitializerSpec spec{.name = "identity",
                                        .summary = "identity matrix",
                                        .formula = "w[i,j] = 1 where i == j, else 0",
                                        .aliases = {"dynet.identity"}};

  static void fill(const auto& f) {
    const Dim dim = f.dim();
    TRL_REQUIRE(!f.lookup() && dim.rank == 2 && dim[0] == dim[1],
                f.lookup() ? "no identity for a lookup table: " : "no identity of this shape: ",
                dim, " (a square matrix)");
    const auto w = f.value();
    w.fill(f.number(0));
    for (std::uint64_t i = 0; i < dim[0]; ++i) w[i * (dim[0] + 1)] = f.number(1);
  }
};

TRL_OPS(identity, Identity)

}  // namespace trellis::ops
