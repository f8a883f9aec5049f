// SPDX-License-Identifier: Apache-2.0
//
// Binary tree-LSTM (Tai, Socher and Manning 2015, the N-ary form with N = 2). A node is two nodes
// of the graph: the product of all gates, then the cell. Leaves read an input only, inner nodes
// their children and, if given, an input.

#include <trellis/sdk/builder.hpp>

namespace trellis::ops {

struct TreeLstm {
  struct Attrs {
    std::int64_t input = 0, hidden = 0;
    double forget_bias = 1;
  };
  static constexpr auto attrs =
      fields(field("input", &Attrs::input, "size of an input vector", required(), at_least(1)),
             field("hidden", &Attrs::hidden, "size of the output vector", required(), at_least(1)),
             field("forget_bias", &Attrs::forget_bias,
                   "added to both forget gates at run time, not stored in b"));

  static constexpr BuilderSpec spec{
      .name = "tree_lstm",
      .summary = "long short-term memory over binary trees",
      .doc =
          "Blocks of w, ul, ur and b in the order input, output, candidate, forget left, forget "
          "right. Weights start from the default initializer, b from 0. State: h, c. A missing "
          "child or input drops its terms; a leaf has no forget gates.",
      .formula =
          "[zi, zo, zg, zl, zr] = b + w x + ul h_left + ur h_right\n"
          "[i, o, l, r] = sigmoid([zi, zo, zl + forget_bias, zr + forget_bias]), g = tanh(zg)\n"
          "c' = i g + l c_left + r c_right\n"
          "h' = o tanh(c')",
      .predecessors = {0, 2},
      .inputs = {0, 1},
      .input_attr = "input",
      .hidden_attr = "hidden",
  };

  using Affine = Use<"core.affine">;
  using Cell = Use<"core.tree_lstm_cell", "forget_bias">;
  using Rows = Use<"core.affine_rows", "rows">;
  using uses = Uses<Affine, Rows, Cell>;

  static Params params(const Attrs& a) {
    const std::uint32_t n = size(a.hidden), gates = size(5 * a.hidden);
    return {Param("w", {gates, size(a.input)}), Param("ul", {gates, n}), Param("ur", {gates, n}),
            Param("b", {gates}).init("core.constant", "value", 0)};
  }
  static std::vector<Dim> state(const Attrs& a) {
    return {Dim{size(a.hidden)}, Dim{size(a.hidden)}};
  }

  static std::array<Expr, 2> step(const Attrs& a, const auto& s) {
    if (s.n_in() == 0 && s.n_pred() == 0)
      fail(TRL_E_INVALID, "a node has neither an input nor children (needs one)");
    if (s.n_pred() == 0) {
      const Expr z = s.template apply<Rows>({s.param(3), s.param(0), s.in()}, 3 * a.hidden);
      return s.template apply_all<Cell, 2>({z}, a.forget_bias);
    }
    std::array<Expr, 7> terms{s.param(3)};
    std::array<Expr, 3> cell{};
    std::size_t n = 1;
    if (s.n_in() != 0) terms[n++] = s.param(0), terms[n++] = s.in();
    for (std::uint32_t k = 0; k < s.n_pred(); ++k) {
      terms[n++] = s.param(1 + k);
      terms[n++] = s.prev(0, k);
      cell[1 + k] = s.prev(1, k);
    }
    cell[0] = s.template apply<Affine>(std::span<const Expr>(terms.data(), n));
    return s.template apply_all<Cell, 2>(std::span<const Expr>(cell.data(), 1 + s.n_pred()),
                                         a.forget_bias);
  }
};

TRL_OPS(tree_lstm, TreeLstm)

}  // namespace trellis::ops
