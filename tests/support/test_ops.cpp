// SPDX-License-Identifier: Apache-2.0

#include "support/test_ops.hpp"

#include <array>
#include <trellis/sdk/initializer.hpp>
#include <trellis/sdk/op.hpp>

namespace trellis::test {
Counts counts;
}

namespace [[gnu::visibility("hidden")]] test_ops {

using trellis::test::counts;
using namespace trellis::sdk;

struct Square {
  static constexpr OpSpec spec{.name = "square",
                               .summary = "square",
                               .inputs = {"x"},
                               .batch = Batch::elementwise,
                               .keeps = Keep::input};
  static Dim infer(Dims x) { return x[0]; }
  static void forward(const auto& f) {
    ++counts.forward;
    map(f.x(), f.y(), [](auto v) { return v * v; });
  }
  static void backward(const auto& b) {
    ++counts.backward;
    grad_zip(b.x(0), b.dy(), b.dx(0), [](auto x, auto dy) { return 2 * x * dy; });
  }
};

// x * y with batch broadcasting and equal shapes.
struct Mul {
  static constexpr OpSpec spec{
      .name = "mul", .summary = "product", .inputs = {"x", "y"}, .keeps = Keep::input};
  static Dim infer(Dims x) {
    TRL_REQUIRE(x[0].rank == x[1].rank, "[mul] ranks differ");
    return x[0];
  }
  static void forward(const auto& f) {
    ++counts.forward;
    for (uint32_t b = 0; b < f.batch(); ++b)
      for (uint64_t i = 0; i < f.y().size(); ++i)
        f.y().data(b)[i] = f.x(0).data(b)[i] * f.x(1).data(b)[i];
  }
  static void backward(const auto& g) {
    ++counts.backward;
    for (int k = 0; k < 2; ++k) {
      if (!g.dx(k)) continue;
      const auto dx = g.dx_zeroed(k);
      for (uint32_t b = 0; b < g.batch(); ++b)
        for (uint64_t i = 0; i < g.dy().size(); ++i)
          dx.data(b)[i] += g.dy().data(b)[i] * g.x(1 - k).data(b)[i];
    }
  }
};

// w x for a matrix w that is shared when it is a parameter.
struct Apply {
  static constexpr OpSpec spec{.name = "apply",
                               .summary = "matrix times vector",
                               .inputs = {In("w").shared().keep(), In("x").keep()}};
  static Dim infer(Dims x) {
    TRL_REQUIRE(x[0].rank == 2 && x[1].rank == 1 && x[0].d[1] == x[1].d[0],
                "[apply] shapes do not fit");
    Dim y = x[1];
    y.d[0] = x[0].d[0];
    return y;
  }
  static void forward(const auto& f) {
    ++counts.forward;
    const uint64_t m = f.y().size(), k = f.x(1).size();
    for (uint32_t b = 0; b < f.batch(); ++b)
      for (uint64_t i = 0; i < m; ++i) {
        auto& y = f.y().data(b)[i];
        y = 0;
        for (uint64_t j = 0; j < k; ++j) y += f.x(0).data(b)[i + m * j] * f.x(1).data(b)[j];
      }
  }
  static void backward(const auto& g) {
    ++counts.backward;
    const uint64_t m = g.dy().size(), k = g.x(1).size();
    const auto dw = g.dx_zeroed(0), dx = g.dx_zeroed(1);
    for (uint32_t b = 0; b < g.batch(); ++b)
      for (uint64_t i = 0; i < m; ++i)
        for (uint64_t j = 0; j < k; ++j) {
          if (dw) dw.data(b)[i + m * j] += g.dy().data(b)[i] * g.x(1).data(b)[j];
          if (dx) dx.data(b)[j] += g.dy().data(b)[i] * g.x(0).data(b)[i + m * j];
        }
  }
};

// Sum of all elements of each example.
struct Total {
  static constexpr OpSpec spec{.name = "total", .summary = "sum of the elements", .inputs = {"x"}};
  static Dim infer(Dims) { return Dim{}; }
  static void forward(const auto& f) {
    ++counts.forward;
    for (uint32_t b = 0; b < f.batch(); ++b) {
      f.y().data(b)[0] = 0;
      for (uint64_t i = 0; i < f.x().size(); ++i) f.y().data(b)[0] += f.x().data(b)[i];
    }
  }
  static void backward(const auto& g) {
    const auto dx = g.dx_zeroed();
    for (uint32_t b = 0; b < g.batch(); ++b)
      for (uint64_t i = 0; i < dx.size(); ++i) dx.data(b)[i] += g.dy().data(b)[0];
  }
};

// Sum over the batch: changes the batch size.
struct TotalBatches {
  static constexpr OpSpec spec{.name = "total_batches",
                               .summary = "sum over the batch",
                               .inputs = {"x"},
                               .batch = Batch::never};
  static Dim infer(Dims x) {
    Dim y = x[0];
    y.batch = 1;
    return y;
  }
  static void forward(const auto& f) {
    for (uint64_t i = 0; i < f.y().size(); ++i) {
      f.y().data(0)[i] = 0;
      for (uint32_t b = 0; b < f.x().batch(); ++b) f.y().data(0)[i] += f.x().data(b)[i];
    }
  }
  static void backward(const auto& g) {
    const auto dx = g.dx_zeroed();
    for (uint32_t b = 0; b < dx.batch(); ++b)
      for (uint64_t i = 0; i < dx.size(); ++i) dx.data(b)[i] += g.dy().data(0)[i];
  }
};

// Sum and difference: two outputs and a hidden one (the sum again).
struct Both {
  static constexpr OpSpec spec{.name = "both",
                               .summary = "x + y and x - y",
                               .inputs = {"x", "y"},
                               .outputs = {"sum", "difference", Out("kept").hidden()}};
  static std::array<Dim, 3> infer(Dims x) { return {x[0], x[0], x[0]}; }
  static void forward(const auto& f) {
    ++counts.forward;
    for (uint32_t b = 0; b < f.batch(); ++b)
      for (uint64_t i = 0; i < f.x().size(); ++i) {
        f.y(0).data(b)[i] = f.x(0).data(b)[i] + f.x(1).data(b)[i];
        f.y(1).data(b)[i] = f.x(0).data(b)[i] - f.x(1).data(b)[i];
        if (f.y(2)) f.y(2).data(b)[i] = f.y(0).data(b)[i];
      }
  }
  static void backward(const auto& g) {
    const auto dx = g.dx_zeroed(0), dy = g.dx_zeroed(1);
    for (uint32_t b = 0; b < g.batch(); ++b)
      for (uint64_t i = 0; i < g.x(0).size() || i < g.y(2).size(); ++i) {
        const auto s = g.dy(0) ? g.dy(0).data(b)[i] : 0, d = g.dy(1) ? g.dy(1).data(b)[i] : 0;
        if (dx) dx.data(b)[i] += s + d;
        if (dy) dy.data(b)[i] += s - d;
      }
  }
};

// x times a random number in [0, 1) per element.
struct Noise {
  static constexpr OpSpec spec{
      .name = "noise", .summary = "random scaling", .inputs = {"x"}, .random = true};
  static Dim infer(Dims x) { return x[0]; }
  static void forward(const auto& f) {
    for (uint32_t b = 0; b < f.batch(); ++b) {
      using T = typename std::remove_cvref_t<decltype(f)>::value_type;
      Random(f.streams()[b]).uniform(f.y().data(b), f.x().size(), T(0), T(1));
      for (uint64_t i = 0; i < f.x().size(); ++i) f.y().data(b)[i] *= f.x().data(b)[i];
    }
  }
  static void backward(const auto& g) {
    const auto dx = g.dx_zeroed();
    for (uint32_t b = 0; b < g.batch(); ++b) {
      using T = typename std::remove_cvref_t<decltype(g)>::value_type;
      T* factor = g.scratch(dx.size());
      Random(g.streams()[b]).uniform(factor, dx.size(), T(0), T(1));
      for (uint64_t i = 0; i < dx.size(); ++i) dx.data(b)[i] += g.dy().data(b)[i] * factor[i];
    }
  }
};

// Element ids[b] of each example, times a free scalar.
struct Pick {
  struct Attrs {
    Ids ids;
    Scalars times = 1.0;
  };
  static constexpr auto attrs = fields(field("ids", &Attrs::ids, "which element", within(0, 0)),
                                       field("times", &Attrs::times, "factor"));
  static constexpr OpSpec spec{.name = "pick", .summary = "one element", .inputs = {"x"}};
  static Dim infer(const Attrs&, Dims x) {
    TRL_REQUIRE(x[0].rank == 1, "[pick] needs a vector");
    Dim y{};
    y.batch = x.batch();
    return y;
  }
  static void forward(const Attrs& a, const auto& f) {
    ++counts.forward;
    for (uint32_t b = 0; b < f.batch(); ++b)
      f.y().data(b)[0] = f.x().data(b)[a.ids[b]] *
                         static_cast<std::remove_cvref_t<decltype(f.y().data(b)[0])>>(a.times[b]);
  }
  static void backward(const Attrs& a, const auto& g) {
    const auto dx = g.dx_zeroed();
    for (uint32_t b = 0; b < g.batch(); ++b)
      dx.data(b)[a.ids[b]] +=
          g.dy().data(b)[0] * static_cast<std::remove_cvref_t<decltype(dx.data(b)[0])>>(a.times[b]);
  }
};

// Elements [start, start + 2): a view.
struct Part {
  struct Attrs {
    std::int64_t start = 0;
  };
  static constexpr auto attrs =
      fields(field("start", &Attrs::start, "first element", in_range(0, 100)));
  static constexpr OpSpec spec{.name = "part", .summary = "two elements", .inputs = {"x"}};
  static Shape infer(const Attrs& a, Dims x) {
    Dim y = x[0];
    y.d[0] = 2;
    return Shape(y).view(0, static_cast<std::uint64_t>(a.start));
  }
  static void forward(const Attrs&, const auto&) {}
  static void backward(const Attrs&, const auto&) {}
};

// Fails in the phase it is told to: 1 infer, 2 forward, 3 backward; 4 writes past its output.
struct Faulty {
  struct Attrs {
    std::int64_t when = 0;
  };
  static constexpr auto attrs = fields(field("when", &Attrs::when, "phase", in_range(0, 4)));
  static constexpr OpSpec spec{.name = "faulty", .summary = "fails on request", .inputs = {"x"}};
  static Dim infer(const Attrs& a, Dims x) {
    TRL_REQUIRE(a.when != 1, "[faulty] refused: as asked (infer)");
    return x[0];
  }
  static void forward(const Attrs& a, const auto& f) {
    TRL_REQUIRE(a.when != 2, "[faulty] failed: as asked (forward)");
    for (uint64_t i = 0; i < f.x().size() * f.batch(); ++i) f.y().data()[i] = f.x().data(0)[i];
    if (a.when == 4) f.y().data()[f.x().size() * f.batch()] = 0;
  }
  static void backward(const Attrs& a, const auto& b) {
    TRL_REQUIRE(a.when != 3, "[faulty] failed: as asked (backward)");
    grad_zip(b.dy(), b.dx(), [](auto v) { return v; });
  }
};

// Square of a square, as a composite.
struct Fourth {
  static constexpr OpSpec spec{.name = "fourth", .summary = "fourth power", .inputs = {"x"}};
  using Square = Use<"test.square">;
  using uses = Uses<Square>;
  static Expr expand(const auto& g) {
    return g.template apply<Square>({g.template apply<Square>({g.in(0)})});
  }
};

struct Zero {
  static constexpr InitializerSpec spec{.name = "zero", .summary = "zeros", .is_default = true};
  static void fill(const auto& f) { f.value().fill(0); }
};

TRL_OPS(all, Square, Mul, Apply, Total, TotalBatches, Both, Noise, Pick, Part, Faulty, Fourth, Zero)

}  // namespace test_ops

TRL_PLUGIN("test-ops", "1.0.0", "test", all)
