// SPDX-License-Identifier: Apache-2.0
//
// Between f32 and f64: the only place where element types meet. The kernel's type is that of the
// input.

#include "kernels/terms.hpp"

namespace trellis::ops {

struct Cast {
  enum class To { f32, f64 };
  struct Attrs {
    To dtype = To::f32;
  };
  static constexpr auto attrs = fields(field("dtype", &Attrs::dtype, "element type of the result",
                                             required(), choices("f32", "f64")));
  static constexpr OpSpec spec{.name = "cast",
                               .summary = "the same numbers in another element type",
                               .formula = "y = x",
                               .examples = "cast({3}, dtype=f64); cast({2,3}x4, dtype=f32)",
                               .inputs = {"x"},
                               .batch = Batch::elementwise,
                               .unchecked = "gradient: rounding to f32 has no central differences"};

  static Shape infer(const Attrs& a, Dims x) {
    return output_dtype(a, x) == x.dtype(0) ? Shape(x[0]).view(0) : Shape(x[0]);
  }
  static std::uint16_t output_dtype(const Attrs& a, Dims) {
    return a.dtype == To::f32 ? TRL_F32 : TRL_F64;
  }

  static void forward(const Attrs& a, const auto& f) {
    if (a.dtype == To::f32)
      convert(f.batch(), f.x(), f.template y_as<float>());
    else
      convert(f.batch(), f.x(), f.template y_as<double>());
  }
  static void backward(const Attrs& a, const auto& b) {
    if (!b.dx()) return;
    if (a.dtype == To::f32)
      add(b.batch(), b.template dy_as<float>(), b.dx_zeroed());
    else
      add(b.batch(), b.template dy_as<double>(), b.dx_zeroed());
  }

  using uses = GradientOps;
  static Expr expand_grad(const Attrs&, const auto& g) {
    return g.template apply<use::Cast>({g.dy()}, Choice{g.dtype(g.x()) == TRL_F32 ? 0 : 1});
  }

 private:
  template <class U, class V>
  static void convert(std::uint32_t batch, const Tensor<U>& from, const Tensor<V>& to) {
    const std::uint64_t n = to.size();
    for (std::uint32_t b = 0; b < batch; ++b)
      for (std::uint64_t i = 0; i < n; ++i) to.data(b)[i] = static_cast<V>(from.data(b)[i]);
  }
  template <class U, class V>
  static void add(std::uint32_t batch, const Tensor<U>& from, const Tensor<V>& to) {
    const std::uint64_t n = to.size();
    for (std::uint32_t b = 0; b < batch; ++b)
      for (std::uint64_t i = 0; i < n; ++i) to.data(b)[i] += static_cast<V>(from.data(b)[i]);
  }
};

TRL_OPS(cast, Cast)

}  // namespace trellis::ops
