// SPDX-License-Identifier: Apache-2.0
//
// Long short-term memory. A step is two nodes: the product of all four gates, then the cell.

#include <trellis/sdk/builder.hpp>

namespace trellis::ops {

struct Lstm {
  struct Attrs {
    std::int64_t input = 0, hidden = 0;
    double forget_bias = 1;
  };
  static constexpr auto attrs =
      fields(field("input", &Attrs::input, "size of an input vector", required(), at_least(1)),
             field("hidden", &Attrs::hidden, "size of the output vector", required(), at_least(1)),
             field("forget_bias", &Attrs::forget_bias,
                   "added to the forget gate at run time, not stored in b"));

  static constexpr BuilderSpec spec{
      .name = "lstm",
      .summary = "long short-term memory",
      .doc =
          "Blocks of w, u and b in the order input, forget, output, candidate. w and u start from "
          "the default "
          "initializer, b from 0. State: h, c.",
      .formula =
          "[zi, zf, zo, zg] = b + w x + u h\n"
          "[i, f, o] = sigmoid([zi, zf + forget_bias, zo]), g = tanh(zg)\n"
          "c' = f c + i g\n"
          "h' = o tanh(c')",
      .aliases = {"dynet.vanilla_lstm"},
      .input_attr = "input",
      .hidden_attr = "hidden",
  };

  using Affine = Use<"core.affine">;
  using Cell = Use<"core.lstm_cell", "forget_bias">;
  using uses = Uses<Affine, Cell>;

  static Params params(const Attrs& a) {
    const std::uint32_t n = size(a.hidden), gates = size(4 * a.hidden);
    return {Param("w", {gates, size(a.input)}), Param("u", {gates, n}),
            Param("b", {gates}).init("core.constant", "value", 0)};
  }
  static std::vector<Dim> state(const Attrs& a) {
    return {Dim{size(a.hidden)}, Dim{size(a.hidden)}};
  }

  static std::array<Expr, 2> step(const Attrs& a, const auto& s) {
    const Expr z =
        s.template apply<Affine>({s.param(2), s.param(0), s.in(), s.param(1), s.prev(0)});
    return s.template apply_all<Cell, 2>({z, s.prev(1)}, a.forget_bias);
  }

  // The products of the inputs wait for no state: named first, they run as one for all steps.
  static void sequence(const Attrs& a, const auto& q) {
    std::vector<Expr> inputs(q.n_steps());
    for (std::uint32_t t = 0; t < q.n_steps(); ++t)
      inputs[t] = q.template apply<Affine>({q.param(2), q.param(0), q.in_at(t)});
    std::array<Expr, 2> state{q.prev(0), q.prev(1)};
    for (std::uint32_t t = 0; t < q.n_steps(); ++t) {
      const Expr z = q.template apply<Affine>({inputs[t], q.param(1), state[0]});
      state = q.template apply_all<Cell, 2>({z, state[1]}, a.forget_bias);
      q.set(t, 0, state[0]);
      q.set(t, 1, state[1]);
    }
  }
};

TRL_OPS(lstm, Lstm)

}  // namespace trellis::ops
