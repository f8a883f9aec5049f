#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trellis op list, trellis op describe."""

from command import CommandTest, main, trellis


class List(CommandTest):
    def test_operators_and_leaves_with_their_providers(self):
        ops = {op["id"]: op for op in trellis("op", "list", "--json").json()}
        self.assertEqual(ops["core.tanh"]["plugin"], "ops-core")
        self.assertEqual(ops["kernel.lookup"]["plugin"], "kernel")
        self.assertTrue(ops["kernel.lookup"]["leaf"])
        self.assertTrue(all(op["kind"] == "operator" and op["summary"] for op in ops.values()))

    def test_text_has_a_line_an_operator(self):
        lines = trellis("op", "list").out.splitlines()
        self.assertEqual(len(lines), len(trellis("op", "list", "--json").json()))
        self.assertRegex("\n".join(lines), r"(?m)^core\.tanh +ops-core +hyperbolic tangent")

    def test_other_kinds(self):
        self.assertIn("core.adam", [c["id"] for c in trellis("op", "list", "--kind", "trainer", "--json").json()])
        self.assertIn("core.lstm", [c["id"] for c in trellis("op", "list", "--kind", "builder", "--json").json()])
        kinds = {c["kind"] for c in trellis("op", "list", "--kind", "all", "--json").json()}
        self.assertLessEqual({"operator", "builder", "initializer", "trainer", "linalg"}, kinds)

    def test_without_plugins_only_the_leaves(self):
        self.assertEqual({op["plugin"] for op in trellis("--no-plugins", "op", "list", "--json").json()}, {"kernel"})


class Describe(CommandTest):
    def test_whole_schema(self):
        (op,) = trellis("op", "describe", "dropout", "--json").json()
        self.assertEqual((op["id"], op["plugin"], op["source"]),
                         ("core.dropout", "ops-core", "plugins/ops-core/ops/dropout.cpp"))
        self.assertEqual([i["name"] for i in op["inputs"]], ["x"])
        attrs = {a["key"]: a for a in op["attrs"]}
        self.assertEqual((attrs["p"]["type"], attrs["p"]["lo"], attrs["p"]["hi"]), ("f64", 0, 1))
        self.assertTrue(op["stochastic"] and op["differentiable"] and op["example"] and op["formula"])

    def test_text_shows_formula_attributes_example_and_file(self):
        text = trellis("op", "describe", "core.cross_entropy").out
        self.assertTrue(text.startswith("core.cross_entropy (operator): "))
        for line in ("  y = log sum_j exp(x_j) - x_id", "  ids  i64s per batch", "  plugin ", "  source ",
                     "  cross_entropy({4}, ids=2)", "  aliases "):
            self.assertIn(line, text)
        self.assertIn("0 <= ids < size of x along axis 0", text)

    def test_by_alias_and_leaves(self):
        self.assertEqual(trellis("op", "describe", "dynet.rectify", "--json").json()[0]["id"], "core.relu")
        self.assertEqual(trellis("op", "describe", "lookup", "--json").json()[0]["id"], "kernel.lookup")

    def test_trainers_and_builders_too(self):
        (adam,) = trellis("op", "describe", "adam", "--json").json()
        self.assertEqual((adam["kind"], adam["id"]), ("trainer", "core.adam"))
        self.assertIn("forget_bias", trellis("op", "describe", "core.lstm").out)

    def test_near_misses(self):
        result = trellis("op", "describe", "sigmod")
        self.assertEqual(result.code, 2)
        self.assertRegex(result.err, r"^trellis: \[registry\] no operator 'sigmod' \(did you mean 'sigmoid'\? loaded: .*\)\n$")


if __name__ == "__main__":
    main()
