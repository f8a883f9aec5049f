// SPDX-License-Identifier: Apache-2.0
//
// Joins tensors along an axis. In memory each input is a block of every run of the result.

#include "kernels/blocks.hpp"
#include "kernels/terms.hpp"

namespace trellis::ops {

struct Concat {
  struct Attrs {
    std::int64_t axis = 0;
  };
  static constexpr auto attrs =
      fields(field("axis", &Attrs::axis, "axis to join along; one beyond the rank adds a dimension",
                   in_range(0, 7)));
  static constexpr OpSpec spec{
      .name = "concat",
      .summary = "joins tensors along an axis",
      .doc =
          "Sizes on all other axes agree; missing trailing dimensions count as 1. Batch sizes are "
          "equal or 1.",
      .formula = "y = [x0; x1; ...]",
      .examples =
          "concat({3}, {2}); concat({2,3}x4, {2,1}, axis=1); concat({2}, {2}, {2}, axis=1); "
          "concat({3}x2); concat({2,2,3}, {2,4,3}, axis=1); concat({}, {})",
      .role = "concat",
      .aliases = {"dynet.concatenate"},
      .inputs = {In("x").variadic()},
  };

  static Dim infer(const Attrs& a, Dims x) {
    return concat_dim(x, static_cast<std::uint32_t>(a.axis));
  }

  static void forward(const Attrs& a, const auto& f) {
    const auto y = f.y();
    const Split s = split(y.raw_dim(), static_cast<std::uint32_t>(a.axis));
    std::uint64_t at = 0;
    for (std::uint32_t i = 0; i < f.inputs(); ++i) {
      const auto x = f.x(i);
      const std::uint64_t n = x.size() / s.outer;
      for (std::uint32_t b = 0; b < f.batch(); ++b)
        copy_blocks(s.outer, n, y.data(b) + at, s.n * s.inner, x.data(b), n);
      at += n;
    }
  }

  static void backward(const Attrs& a, const auto& b) {
    const auto dy = b.dy();
    const Split s = split(dy.raw_dim(), static_cast<std::uint32_t>(a.axis));
    std::uint64_t at = 0;
    for (std::uint32_t i = 0; i < b.inputs(); ++i) {
      const std::uint64_t n = b.x(i).size() / s.outer;
      if (const auto dx = b.dx(i)) {
        for (std::uint32_t e = 0; e < b.batch(); ++e) {
          if (dx.stores() && (e == 0 || dx.batch() > 1))
            copy_blocks(s.outer, n, dx.data(e), n, dy.data(e) + at, s.n * s.inner);
          else
            add_blocks(s.outer, n, dx.data(e), n, dy.data(e) + at, s.n * s.inner);
        }
      }
      at += n;
    }
  }

  using uses = GradientOps;
  static void expand_grad(const Attrs& a, const auto& g) {
    const auto dy = term(g, g.dy());
    std::int64_t at = 0;
    for (std::uint32_t i = 0; i < g.inputs(); ++i) {
      const std::int64_t end = at + g.shape(g.x(i))[static_cast<std::uint32_t>(a.axis)];
      if (g.wants(i)) g.dx(i, dy.template to<use::Slice>(at, end, a.axis));
      at = end;
    }
  }
};

TRL_OPS(concat, Concat)

}  // namespace trellis::ops
