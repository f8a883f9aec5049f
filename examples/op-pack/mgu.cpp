// SPDX-License-Identifier: Apache-2.0
//
// Minimal gated unit (Zhou et al., 2016): a recurrent network with one gate, made of operators of
// another plugin, which the manifest therefore requires. A builder only adds nodes: batching and
// gradients need nothing more.

#include <trellis/sdk/builder.hpp>

namespace acme {

using namespace trellis::sdk;

struct Mgu {
  struct Attrs {
    std::int64_t input = 0, hidden = 0;
  };
  static constexpr auto attrs =
      fields(field("input", &Attrs::input, "size of an input vector", required(), at_least(1)),
             field("hidden", &Attrs::hidden, "size of the output vector", required(), at_least(1)));
  static constexpr BuilderSpec spec{.name = "mgu",
                                    .summary = "minimal gated unit",
                                    .formula =
                                        "f = sigmoid(bf + wf x + uf h)\n"
                                        "n = tanh(bn + wn x + un (f h))\n"
                                        "h' = h + f (n - h)",
                                    .input_attr = "input",
                                    .hidden_attr = "hidden"};

  using Affine = Use<"core.affine">;
  using Sigmoid = Use<"core.sigmoid">;
  using Tanh = Use<"core.tanh">;
  using Add = Use<"core.add">;
  using Sub = Use<"core.sub">;
  using Mul = Use<"core.mul">;
  using uses = Uses<Affine, Sigmoid, Tanh, Add, Sub, Mul>;

  static Params params(const Attrs& a) {
    const std::uint32_t n = size(a.hidden), m = size(a.input);
    return {Param("wf", {n, m}),
            Param("uf", {n, n}),
            Param("bf", {n}).init("core.constant", "value", 0),
            Param("wn", {n, m}),
            Param("un", {n, n}),
            Param("bn", {n}).init("core.constant", "value", 0)};
  }
  static std::vector<Dim> state(const Attrs& a) { return {Dim{size(a.hidden)}}; }

  static Expr step(const Attrs&, const auto& s) {
    const Expr x = s.in(), h = s.prev(0);
    const auto affine = [&](std::uint32_t first, Expr state) {
      return s.template apply<Affine>(
          {s.param(first + 2), s.param(first), x, s.param(first + 1), state});
    };
    const Expr f = s.template apply<Sigmoid>({affine(0, h)});
    const Expr n = s.template apply<Tanh>({affine(3, s.template apply<Mul>({f, h}))});
    const Expr change = s.template apply<Mul>({f, s.template apply<Sub>({n, h})});
    return s.template apply<Add>({h, change});
  }
};

TRL_OPS(mgu, Mgu)

}  // namespace acme
