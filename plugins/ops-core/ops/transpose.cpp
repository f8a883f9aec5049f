// SPDX-License-Identifier: Apache-2.0
//
// Permutes axes: y[i0, i1, ...] = x[...] with axis k of y being axis dims[k] of x. Where only axes
// of size 1 move, a view.

#include "kernels/terms.hpp"

namespace trellis::ops {

namespace {

constexpr std::int64_t kSwap[] = {1, 0};

}  // namespace

struct Transpose {
  struct Attrs {
    Ints dims{kSwap};
  };
  static constexpr auto attrs =
      fields(field("dims", &Attrs::dims, "for each axis of the result the axis of x",
                   in_range(0, 7), each(1, 8)));
  static constexpr OpSpec spec{
      .name = "transpose",
      .summary = "permutes axes",
      .doc = "By default swaps rows and columns; a vector {n} becomes {1,n}.",
      .formula = "y[i, j] = x[j, i]",
      .examples =
          "transpose({2,3}); transpose({4}); transpose({17,9}x3); transpose({2,3,4}x2, "
          "dims=[2,0,1]); "
          "transpose({2,2,1,3}, dims=[0,2,3,1])",
      .aliases = {"dynet.transpose"},
      .inputs = {"x"},
  };

  static Shape infer(const Attrs& a, Dims x) {
    const Dim from = x[0];
    std::uint32_t seen = 0, last = 0;
    bool in_order = true;
    Dim to;
    for (const std::int64_t axis : a.dims) {
      const auto k = static_cast<std::uint32_t>(axis);
      TRL_REQUIRE(k < a.dims.size() && !(seen >> k & 1), "no permutation: axis ", axis,
                  " in a list of ", a.dims.size(), " (need each of 0 to ", a.dims.size() - 1,
                  " once)");
      seen |= 1u << k;
      to.push(from[k]);
      if (from[k] == 1) continue;
      in_order = in_order && k >= last;
      last = k;
    }
    TRL_REQUIRE(from.rank <= a.dims.size(), "too few axes: ", a.dims.size(), " for ",
                from.with_batch(1), " (need ", from.rank, ")");
    return in_order ? Shape(to).view(0) : Shape(to);
  }

  static void forward(const Attrs& a, const auto& f) {
    const auto x = f.x();
    const Walk w(a, x.dim());
    for (std::uint32_t b = 0; b < f.batch(); ++b) {
      auto* y = f.y().data(b);
      w.each_run([from = x.data(b), y](std::uint64_t n, std::uint64_t at, std::uint64_t step,
                                       std::uint64_t to) {
        for (std::uint64_t i = 0; i < n; ++i) y[to + i] = from[at + i * step];
      });
    }
  }

  static void backward(const Attrs& a, const auto& b) {
    const auto dx = b.dx_zeroed();
    if (!dx) return;
    const Walk w(a, dx.dim());
    for (std::uint32_t e = 0; e < b.batch(); ++e) {
      const auto* dy = b.dy().data(e);
      w.each_run([to = dx.data(e), dy](std::uint64_t n, std::uint64_t at, std::uint64_t step,
                                       std::uint64_t from) {
        for (std::uint64_t i = 0; i < n; ++i) to[at + i * step] += dy[from + i];
      });
    }
  }

  using uses = GradientOps;
  static Expr expand_grad(const Attrs& a, const auto& g) {
    std::int64_t back[TRL_MAX_RANK];
    for (std::size_t k = 0; k < a.dims.size(); ++k) back[a.dims[k]] = static_cast<std::int64_t>(k);
    return term(g, g.dy()).template to<use::Transpose>(Ints(back, a.dims.size()));
  }

 private:
  // The elements of y in order, with the places of x they come from.
  struct Walk {
    std::uint64_t size[TRL_MAX_RANK], step[TRL_MAX_RANK];
    std::size_t rank;

    Walk(const Attrs& a, const Dim& from) : rank(a.dims.size()) {
      std::uint64_t steps[TRL_MAX_RANK], run = 1;
      for (std::uint32_t i = 0; i < TRL_MAX_RANK; ++i) {
        steps[i] = run;
        run *= from[i];
      }
      for (std::size_t k = 0; k < rank; ++k) {
        const auto axis = static_cast<std::uint32_t>(a.dims[k]);
        size[k] = from[axis];
        step[k] = steps[axis];
      }
    }
    // f(n, place in x, step in x, place in y) for each run along the first axis of y.
    template <class F>
    void each_run(F&& f) const {
      std::uint64_t at[TRL_MAX_RANK] = {}, x = 0, y = 0;
      for (;;) {
        f(size[0], x, step[0], y);
        y += size[0];
        std::size_t k = 1;
        for (; k < rank; ++k) {
          x += step[k];
          if (++at[k] < size[k]) break;
          x -= step[k] * size[k];
          at[k] = 0;
        }
        if (k >= rank) return;
      }
    }
  };
};

TRL_OPS(transpose, Transpose)

}  // namespace trellis::ops
