// SPDX-License-Identifier: Apache-2.0
//
// A range of an axis. Along the last axis that matters it is a run of elements: a view, no copy.

#include "kernels/blocks.hpp"
#include "kernels/terms.hpp"

namespace trellis::ops {

struct Slice {
  struct Attrs {
    std::int64_t start = 0, end = 0, axis = 0;
  };
  static constexpr auto attrs =
      fields(field("start", &Attrs::start, "first entry; negative counts from the end"),
             field("end", &Attrs::end, "entry after the last one; 0 and below count from the end"),
             field("axis", &Attrs::axis, "axis; negative counts from the last", in_range(-8, 7)));
  static constexpr OpSpec spec{
      .name = "slice",
      .summary = "entries start to end - 1 of an axis",
      .formula = "y = x[start:end]",
      .examples =
          "slice({5}, start=1, end=3); slice({4,3}x2, start=1, end=-1); "
          "slice({2,4}x3, start=2, axis=1); slice({2,3,4}, start=1, end=2, axis=1); slice({3})",
      .role = "slice",
      .aliases = {"dynet.pick_range", "dynet.pickrange"},
      .inputs = {"x"},
  };

  static Shape infer(const Attrs& a, Dims x) {
    const std::uint32_t axis = axis_of(a.axis, x[0]);
    const Split s = split(x[0], axis);
    const Range r = range(a, s.n);
    TRL_REQUIRE(r.start >= 0 && r.start < r.end && r.end <= static_cast<std::int64_t>(s.n),
                "no such range: ", a.start, " to ", a.end, " on axis ", axis, " of ",
                x[0].with_batch(1), " (need 0 <= start < end <= ", s.n, ")");
    const Shape y(x[0].with(axis, static_cast<std::uint32_t>(r.end - r.start)));
    return s.outer == 1 ? y.view(0, static_cast<std::uint64_t>(r.start) * s.inner) : y;
  }

  static void forward(const Attrs& a, const auto& f) {
    const auto x = f.x();
    const Split s = split(x.raw_dim(), axis_of(a.axis, x.dim()));
    const std::uint64_t first = static_cast<std::uint64_t>(range(a, s.n).start) * s.inner;
    const std::uint64_t n = f.y().size() / s.outer;
    for (std::uint32_t b = 0; b < f.batch(); ++b)
      copy_blocks(s.outer, n, f.y().data(b), n, x.data(b) + first, s.n * s.inner);
  }

  static void backward(const Attrs& a, const auto& b) {
    const auto dx = b.dx_zeroed();
    if (!dx) return;
    const Split s = split(dx.raw_dim(), axis_of(a.axis, dx.dim()));
    const std::uint64_t first = static_cast<std::uint64_t>(range(a, s.n).start) * s.inner;
    const std::uint64_t n = b.dy().size() / s.outer;
    for (std::uint32_t i = 0; i < b.batch(); ++i)
      add_blocks(s.outer, n, dx.data(i) + first, s.n * s.inner, b.dy().data(i), n);
  }

  using uses = GradientOps;
  static Expr expand_grad(const Attrs& a, const auto& g) {
    const Dim x = g.shape(g.x());
    const std::uint32_t axis = axis_of(a.axis, x);
    return padded(term(g, g.dy()), axis, static_cast<std::uint32_t>(range(a, x[axis]).start),
                  x[axis]);
  }

 private:
  struct Range {
    std::int64_t start, end;
  };
  static Range range(const Attrs& a, std::uint64_t n) {
    const auto size = static_cast<std::int64_t>(n);
    return {a.start < 0 ? a.start + size : a.start, a.end <= 0 ? a.end + size : a.end};
  }
};

TRL_OPS(slice, Slice)

}  // namespace trellis::ops
