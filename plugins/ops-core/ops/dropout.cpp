// SPDX-License-Identifier: Apache-2.0
//
// Dropout: in train mode each element is zero with probability p, the others grow by 1 / (1 - p).
//
//   y  = x * m           m = 0 or 1 / (1 - p)
//   dx = dy * m          the mask is made again from the streams, not kept

#include "kernels/terms.hpp"

namespace trellis::ops {

struct Dropout {
  struct Attrs {
    double p = 0.5;
    bool always = false;
  };
  static constexpr auto attrs =
      fields(field("p", &Attrs::p, "probability of dropping an element", in_range(0.0, 1.0)),
             field("always", &Attrs::always, "drop in inference mode, too"));
  static constexpr OpSpec spec{
      .name = "dropout",
      .summary = "zeroes elements at random in train mode",
      .doc =
          "In inference mode and with p = 0 the result is x itself. The mask depends on the seed, "
          "the "
          "graph, the node and the batch element, never on how nodes were merged.",
      .formula = "y = x * m, m = 0 with probability p, else 1 / (1 - p)",
      .examples =
          "dropout({5}); dropout({3,2}x4, p=0.25); dropout({4}, p=0); dropout({4}, p=1); "
          "dropout({2,3}x2, p=0.9, always=true)",
      .role = "dropout",
      .inputs = {"x"},
      .random = true,
      .mode = true,
  };

  static Shape infer(const Attrs& a, Dims x) {
    return drops(a, x.training()) ? Shape(x[0]) : Shape(x[0]).view(0);
  }
  static void forward(const Attrs& a, const auto& f) {
    if (drops(a, f.training()))
      mask<false>(a, f, f.x(), f.y());
    else
      map(f.x(), f.y(), [](auto v) { return v; });
  }
  static void backward(const Attrs& a, const auto& b) {
    if (!b.dx()) return;
    if (drops(a, b.training()))
      mask<true>(a, b, b.dy(), b.dx_zeroed());
    else
      grad_zip(b.dy(), b.dx(), [](auto v) { return v; });
  }

  // The same mask: within expand_grad the operator itself has the same random numbers.
  using uses = GradientOps;
  static Expr expand_grad(const Attrs&, const auto& g) {
    return g.template apply<use::Dropout>({g.dy()}, g.attr(0), g.attr(1));
  }

 private:
  static bool drops(const Attrs& a, bool training) { return a.p > 0 && (training || a.always); }

  template <bool kAdd, class T>
  static void mask(const Attrs& a, const auto& call, const Tensor<const T>& from,
                   const Tensor<T>& to) {
    const std::uint64_t dropped = Random::threshold(a.p), n = from.size();
    const T scale = a.p < 1 ? static_cast<T>(1 / (1 - a.p)) : T(0);
    for (std::uint32_t b = 0; b < call.batch(); ++b) {
      const T* x = from.data(b);
      T* y = to.data(b);
      Random(call.streams()[b])
          .each_run(n, [&](std::uint64_t first, const std::uint32_t* words, std::uint64_t m) {
            for (std::uint64_t i = 0; i < m; ++i) {
              const T v = words[i] < dropped ? T(0) : x[first + i] * scale;
              if constexpr (kAdd)
                y[first + i] += v;
              else
                y[first + i] = v;
            }
          });
    }
  }
};

TRL_OPS(dropout, Dropout)

}  // namespace trellis::ops
