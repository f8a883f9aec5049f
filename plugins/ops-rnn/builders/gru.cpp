// SPDX-License-Identifier: Apache-2.0
//
// Gated recurrent unit. The reset gate acts on the old state before the candidate's product, which
// is therefore a product of its own: four nodes a step.

#include <trellis/sdk/builder.hpp>

namespace trellis::ops {

struct Gru {
  struct Attrs {
    std::int64_t input = 0, hidden = 0;
  };
  static constexpr auto attrs =
      fields(field("input", &Attrs::input, "size of an input vector", required(), at_least(1)),
             field("hidden", &Attrs::hidden, "size of the output vector", required(), at_least(1)));

  static constexpr BuilderSpec spec{
      .name = "gru",
      .summary = "gated recurrent unit",
      .doc =
          "Blocks of w, u and b in the order update, reset. The update gate weights the candidate. "
          "Weights start "
          "from the default initializer, biases from 0. State: h.",
      .formula =
          "[z, r] = sigmoid(b + w x + u h)\n"
          "n = tanh(bn + wn x + un (r h))\n"
          "h' = (1 - z) h + z n",
      .input_attr = "input",
      .hidden_attr = "hidden",
  };

  using Affine = Use<"core.affine">;
  using Reset = Use<"core.gru_reset">;
  using Cell = Use<"core.gru_cell">;
  using uses = Uses<Affine, Reset, Cell>;

  static Params params(const Attrs& a) {
    const std::uint32_t n = size(a.hidden), m = size(a.input), gates = size(2 * a.hidden);
    return {Param("w", {gates, m}),
            Param("u", {gates, n}),
            Param("b", {gates}).init("core.constant", "value", 0),
            Param("wn", {n, m}),
            Param("un", {n, n}),
            Param("bn", {n}).init("core.constant", "value", 0)};
  }
  static std::vector<Dim> state(const Attrs& a) { return {Dim{size(a.hidden)}}; }

  static Expr step(const Attrs&, const auto& s) {
    const Expr x = s.in(), h = s.prev(0);
    const Expr a = s.template apply<Affine>({s.param(2), s.param(0), x, s.param(1), h});
    const Expr kept = s.template apply<Reset>({a, h});
    const Expr zn = s.template apply<Affine>({s.param(5), s.param(3), x, s.param(4), kept});
    return s.template apply<Cell>({a, zn, h});
  }

  // The products of the inputs wait for no state: named first, they run as one for all steps.
  static void sequence(const Attrs&, const auto& q) {
    const std::uint32_t steps = q.n_steps();
    std::vector<Expr> gates(steps), candidates(steps);
    for (std::uint32_t t = 0; t < steps; ++t) {
      gates[t] = q.template apply<Affine>({q.param(2), q.param(0), q.in_at(t)});
      candidates[t] = q.template apply<Affine>({q.param(5), q.param(3), q.in_at(t)});
    }
    Expr h = q.prev(0);
    for (std::uint32_t t = 0; t < steps; ++t) {
      const Expr a = q.template apply<Affine>({gates[t], q.param(1), h});
      const Expr kept = q.template apply<Reset>({a, h});
      h = q.template apply<Cell>(
          {a, q.template apply<Affine>({candidates[t], q.param(4), kept}), h});
      q.set(t, 0, h);
    }
  }
};

TRL_OPS(gru, Gru)

}  // namespace trellis::ops
