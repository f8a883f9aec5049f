// SPDX-License-Identifier: Apache-2.0
//
// Two operands, element by element, broadcasting over dimensions and batch: z = f(x, y). Each row
// says f and the two gradients as functions of x, y and dz; operators that keep no inputs see none.
// Where a gradient chooses, `share` says for expressions how much of dz goes to x: 0 or 1.

#include "kernels/simd.hpp"
#include "kernels/terms.hpp"

namespace trellis::ops {

template <class Row>
struct Binary {
  static constexpr OpSpec spec = Row::spec;

  static Dim infer(Dims x) { return broadcast(x); }
  static void forward(auto x, auto z) {
    zip(x[0], x[1], z, [](auto a, auto b) { return Row::f(a, b); });
  }
  static void backward(const auto& b) {
    if constexpr (Row::spec.keeps == Keep::none) {
      grad_zip(b.dy(), b.dx(0), [](auto dz) { return Row::dx(dz); });
      grad_zip(b.dy(), b.dx(1), [](auto dz) { return Row::dy(dz); });
    } else {
      grad_zip(b.x(0), b.x(1), b.dy(), b.dx(0),
               [](auto x, auto y, auto dz) { return Row::dx(x, y, dz); });
      grad_zip(b.x(0), b.x(1), b.dy(), b.dx(1),
               [](auto x, auto y, auto dz) { return Row::dy(x, y, dz); });
    }
  }

  using uses = GradientOps;
  static void expand_grad(const auto& g) {
    const auto x = term(g, g.x(0)), y = term(g, g.x(1)), dz = term(g, g.dy());
    if constexpr (requires { Row::share(x, y); }) {
      const auto share = Row::share(x, y);
      if (g.wants(0)) g.dx(0, dz * share);
      if (g.wants(1)) g.dx(1, dz * (1 - share));
    } else if constexpr (Row::spec.keeps == Keep::none) {
      if (g.wants(0)) g.dx(0, Row::dx(dz));
      if (g.wants(1)) g.dx(1, Row::dy(dz));
    } else {
      if (g.wants(0)) g.dx(0, Row::dx(x, y, dz));
      if (g.wants(1)) g.dx(1, Row::dy(x, y, dz));
    }
  }
};

struct AddRow {
  static constexpr OpSpec spec{
      .name = "add",
      .summary = "sum of two, element by element",
      .doc =
          "Shapes broadcast: missing trailing dimensions count as 1, so a "
          "vector is added to each column of a matrix. A second dimension is "
          "not the batch.",
      .formula = "z = x + y",
      .examples =
          "add({3}, {3}); add({2,3}x4, {2,3}x4); add({2,3}, {2}x2); "
          "add({1,3}, {2}); add({2,3}x4, {}); add({2,1,3}, {1,4})",
      .role = "add",
      .aliases = {"dynet.colwise_add"},
      .inputs = {"x", "y"},
      .outputs = {"z"},
      .batch = Batch::elementwise};
  static auto f(auto x, auto y) { return x + y; }
  static auto dx(auto dz) { return dz; }
  static auto dy(auto dz) { return dz; }
};

struct SubRow {
  static constexpr OpSpec spec{.name = "sub",
                               .summary = "difference, element by element",
                               .doc = "Shapes broadcast as for add.",
                               .formula = "z = x - y",
                               .examples =
                                   "sub({3}, {3}); sub({2,3}x4, {2,3}x4); sub({}, {2,3}x2); "
                                   "sub({2,3}, {1,3}x2)",
                               .role = "sub",
                               .inputs = {"x", "y"},
                               .outputs = {"z"},
                               .batch = Batch::elementwise};
  static auto f(auto x, auto y) { return x - y; }
  static auto dx(auto dz) { return dz; }
  static auto dy(auto dz) { return -dz; }
};

struct MulRow {
  static constexpr OpSpec spec{.name = "mul",
                               .summary = "product, element by element",
                               .doc = "Shapes broadcast as for add.",
                               .formula = "z = x * y",
                               .examples =
                                   "mul({3}, {3}); mul({2,3}x4, {2,3}x4); mul({1,2}, {3,2}); "
                                   "mul({}, {2,3}x2); mul({2,3}x2, {2})",
                               .role = "mul",
                               .aliases = {"dynet.cmult"},
                               .inputs = {"x", "y"},
                               .outputs = {"z"},
                               .batch = Batch::elementwise,
                               .keeps = Keep::input};
  static auto f(auto x, auto y) { return x * y; }
  static auto dx(auto, auto y, auto dz) { return dz * y; }
  static auto dy(auto x, auto, auto dz) { return dz * x; }
};

struct DivRow {
  static constexpr OpSpec spec{.name = "div",
                               .summary = "quotient, element by element",
                               .doc = "Shapes broadcast as for add, on both sides.",
                               .formula = "z = x / y",
                               .examples =
                                   "div({3}, {3}); div({2,3}x4, {2,3}x4); div({2,2}, {1,2}); "
                                   "div({}, {2,3}x2); div({2}, {2,3}x2)",
                               .role = "div",
                               .aliases = {"dynet.cdiv"},
                               .inputs = {"x", In("y").in(Domain::nonzero)},
                               .outputs = {"z"},
                               .batch = Batch::elementwise,
                               .keeps = Keep::input};
  static auto f(auto x, auto y) { return x / y; }
  static auto dx(auto, auto y, auto dz) { return dz / y; }
  static auto dy(auto x, auto y, auto dz) { return -dz * x / (y * y); }
};

struct MaximumRow {
  static constexpr OpSpec spec{
      .name = "maximum",
      .summary = "the larger of two, element by element",
      .doc =
          "NaN passes. Where both are equal the gradient goes to y. Shapes "
          "broadcast as for add.",
      .formula = "z = max(x, y)",
      .examples =
          "maximum({3}, {3}); maximum({2,3}x4, {2,3}x4); "
          "maximum({2,3}, {})",
      .aliases = {"dynet.max", "dynet.bmax"},
      .inputs = {"x", "y"},
      .outputs = {"z"},
      .batch = Batch::elementwise,
      .keeps = Keep::input};
  static auto f(auto x, auto y) { return x > y || x != x ? x : y; }
  static auto dx(auto x, auto y, auto dz) { return x > y ? dz : decltype(dz)(0); }
  static auto dy(auto x, auto y, auto dz) { return x > y ? decltype(dz)(0) : dz; }
  static auto share(auto x, auto y) { return simd::step(x - y); }
};

struct MinimumRow {
  static constexpr OpSpec spec{
      .name = "minimum",
      .summary = "the smaller of two, element by element",
      .doc =
          "NaN passes. Where both are equal the gradient goes to y. Shapes "
          "broadcast as for add.",
      .formula = "z = min(x, y)",
      .examples =
          "minimum({3}, {3}); minimum({2,3}x4, {2,3}x4); "
          "minimum({2,3}, {})",
      .aliases = {"dynet.min", "dynet.bmin"},
      .inputs = {"x", "y"},
      .outputs = {"z"},
      .batch = Batch::elementwise,
      .keeps = Keep::input};
  static auto f(auto x, auto y) { return x < y || x != x ? x : y; }
  static auto dx(auto x, auto y, auto dz) { return x < y ? dz : decltype(dz)(0); }
  static auto dy(auto x, auto y, auto dz) { return x < y ? decltype(dz)(0) : dz; }
  static auto share(auto x, auto y) { return simd::step(y - x); }
};

TRL_OPS(binary, Binary<AddRow>, Binary<SubRow>, Binary<MulRow>, Binary<DivRow>, Binary<MaximumRow>,
        Binary<MinimumRow>)

}  // namespace trellis::ops
