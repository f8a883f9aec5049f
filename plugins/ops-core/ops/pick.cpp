// SPDX-License-Identifier: Apache-2.0
//
// Entries by index: pick takes one per batch element and removes the axis, scatter puts one back
// between zeros, select takes a list that is the same for all.

#include <algorithm>

#include "kernels/blocks.hpp"
#include "kernels/terms.hpp"

namespace trellis::ops {

struct Pick {
  struct Attrs {
    Ids ids;
    std::int64_t axis = 0;
  };
  static constexpr auto attrs =
      fields(field("ids", &Attrs::ids, "the entry of each batch element", within(0, "axis")),
             field("axis", &Attrs::axis, "axis to remove; negative counts from the last",
                   in_range(-8, 7)));
  static constexpr OpSpec spec{
      .name = "pick",
      .summary = "one entry of an axis per batch element",
      .formula = "y_b = x_b[id_b]",
      .examples =
          "pick({4}, ids=2); pick({4}x3, ids=[0,3,1]); pick({4,2}, ids=[1,1,0]); "
          "pick({2,3,2}x2, ids=[2,0], axis=1); pick({2,3}, ids=1, axis=-1)",
      .aliases = {"dynet.pick", "dynet.pick_batch"},
      .inputs = {"x"},
  };

  static Dim infer(const Attrs& a, Dims x) { return x[0].without(axis_of(a.axis, x[0])); }

  static void forward(const Attrs& a, const auto& f) {
    const auto x = f.x();
    const Split s = split(x.raw_dim(), axis_of(a.axis, x.dim()));
    for (std::uint32_t b = 0; b < f.batch(); ++b)
      copy_blocks(s.outer, s.inner, f.y().data(b), s.inner,
                  x.data(b) + static_cast<std::uint64_t>(a.ids[b]) * s.inner, s.n * s.inner);
  }
  static void backward(const Attrs& a, const auto& b) {
    const auto dx = b.dx_zeroed();
    if (!dx) return;
    const Split s = split(dx.raw_dim(), axis_of(a.axis, dx.dim()));
    for (std::uint32_t i = 0; i < b.batch(); ++i)
      add_blocks(s.outer, s.inner, dx.data(i) + static_cast<std::uint64_t>(a.ids[i]) * s.inner,
                 s.n * s.inner, b.dy().data(i), s.inner);
  }

  using uses = GradientOps;
  static Expr expand_grad(const Attrs& a, const auto& g) {
    const Dim x = g.shape(g.x());
    const std::uint32_t axis = axis_of(a.axis, x);
    return g.template apply<use::Scatter>({g.dy()}, g.attr(0), std::int64_t{x[axis]},
                                          std::int64_t{axis});
  }
};

struct Scatter {
  struct Attrs {
    Ids ids;
    std::int64_t size = 1, axis = 0;
  };
  static constexpr auto attrs =
      fields(field("ids", &Attrs::ids, "the place of each batch element"),
             field("size", &Attrs::size, "of the new axis", required(), in_range(1, 4294967295.0)),
             field("axis", &Attrs::axis, "where the new axis is inserted", in_range(0, 7)));
  static constexpr OpSpec spec{
      .name = "scatter",
      .summary = "x at one place of a new axis per batch element, zeros elsewhere",
      .doc = "The gradient of pick.",
      .formula = "y_b[id_b] = x_b, 0 elsewhere",
      .examples =
          "scatter({}, ids=2, size=4); scatter({}x3, ids=[0,3,1], size=4); scatter({2,2}x2, "
          "ids=[2,0], size=3, axis=1); scatter({2}, ids=[1,1,0], size=2, axis=1)",
      .inputs = {"x"},
  };

  static Dim infer(const Attrs& a, Dims x) {
    const Dim from = x[0];
    Dim to;
    for (std::uint32_t k = 0; k < from.rank || k <= a.axis; ++k) {
      if (k == a.axis) to.push(static_cast<std::uint32_t>(a.size));
      if (k < from.rank || k < a.axis) to.push(from[k]);
    }
    return to;
  }

  static void forward(const Attrs& a, const auto& f) {
    const auto y = f.y();
    const Split s = split(y.raw_dim(), static_cast<std::uint32_t>(a.axis));
    for (std::uint32_t b = 0; b < f.batch(); ++b) {
      TRL_REQUIRE(a.ids[b] >= 0 && a.ids[b] < a.size, "'ids' is out of bounds: ", a.ids[b],
                  ", batch element ", b, " (needs 0 to ", a.size - 1, ")");
      std::fill_n(y.data(b), y.size(), 0);
      copy_blocks(s.outer, s.inner, y.data(b) + static_cast<std::uint64_t>(a.ids[b]) * s.inner,
                  s.n * s.inner, f.x().data(b), s.inner);
    }
  }
  static void backward(const Attrs& a, const auto& b) {
    const auto dx = b.dx_zeroed();
    if (!dx) return;
    const Split s = split(b.dy().raw_dim(), static_cast<std::uint32_t>(a.axis));
    for (std::uint32_t i = 0; i < b.batch(); ++i)
      add_blocks(s.outer, s.inner, dx.data(i), s.inner,
                 b.dy().data(i) + static_cast<std::uint64_t>(a.ids[i]) * s.inner, s.n * s.inner);
  }

  using uses = GradientOps;
  static Expr expand_grad(const Attrs& a, const auto& g) {
    return g.template apply<use::Pick>({g.dy()}, g.attr(0), a.axis);
  }
};

struct Select {
  struct Attrs {
    Ints ids;
    std::int64_t axis = 0;
  };
  static constexpr auto attrs = fields(
      field("ids", &Attrs::ids, "entries to take, in order; may repeat", required(), each(1, ~0u)),
      field("axis", &Attrs::axis, "axis; negative counts from the last", in_range(-8, 7)));
  static constexpr OpSpec spec{
      .name = "select",
      .summary = "a list of entries of an axis",
      .formula = "y = x[ids]",
      .examples =
          "select({4}, ids=[2,0,2]); select({4,2}x3, ids=[1]); select({2,3}x2, ids=[2,1], axis=1); "
          "select({2,3,2}, ids=[0,0], axis=-2)",
      .aliases = {"dynet.select_rows"},
      .inputs = {"x"},
  };

  static Dim infer(const Attrs& a, Dims x) {
    const std::uint32_t axis = axis_of(a.axis, x[0]);
    for (const std::int64_t id : a.ids)
      if (id < 0 || id >= x[0][axis])
        fail(TRL_E_RANGE, "'ids' is out of bounds: ", id, " on axis ", axis, " of ",
             x[0].with_batch(1), " (needs 0 to ", x[0][axis] - 1, ")");
    return x[0].with(axis, static_cast<std::uint32_t>(a.ids.size()));
  }

  static void forward(const Attrs& a, const auto& f) {
    const auto x = f.x();
    const Split s = split(x.raw_dim(), axis_of(a.axis, x.dim()));
    for (std::uint32_t b = 0; b < f.batch(); ++b)
      for (std::size_t k = 0; k < a.ids.size(); ++k)
        copy_blocks(s.outer, s.inner, f.y().data(b) + k * s.inner, a.ids.size() * s.inner,
                    x.data(b) + static_cast<std::uint64_t>(a.ids[k]) * s.inner, s.n * s.inner);
  }
  static void backward(const Attrs& a, const auto& b) {
    const auto dx = b.dx_zeroed();
    if (!dx) return;
    const Split s = split(dx.raw_dim(), axis_of(a.axis, dx.dim()));
    for (std::uint32_t i = 0; i < b.batch(); ++i)
      for (std::size_t k = 0; k < a.ids.size(); ++k)
        add_blocks(s.outer, s.inner, dx.data(i) + static_cast<std::uint64_t>(a.ids[k]) * s.inner,
                   s.n * s.inner, b.dy().data(i) + k * s.inner, a.ids.size() * s.inner);
  }
};

TRL_OPS(pick, Pick, Scatter, Select)

}  // namespace trellis::ops
