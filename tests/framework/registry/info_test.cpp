// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <trellis/registry.hpp>

#include "runtime/core.hpp"
#include "tables.hpp"

using namespace trellis;
using namespace trellis::tests;

namespace {

// A runtime that holds what `tables` declare and nothing else.
struct Loaded {
  explicit Loaded(Tables& t)
      : runtime([] {
          RuntimeOptions options;
          options.no_plugins = true;
          return options;
        }()) {
    runtime.core().registry->add(t.record, t.table());
  }
  Runtime runtime;
};

}  // namespace

TEST_CASE("info: an operator with all it says of itself") {
  Tables t("acme-act");
  trl_op_desc& op = t.op("acme.act");
  op.formula = t.text("y = x");
  op.doc = t.text("more");
  op.example = t.text("act({3})");
  op.source = t.text("act.cpp");
  op.unchecked = t.text("gradient: no");
  op.flags = TRL_OP_STOCHASTIC;
  op.version = 3;
  op.since_version = 2;
  t.aliases(op, {"acme.old_act"});
  trl_in_spec* in = t.inputs(op, {"x", "rest"});
  in[0].doc = t.text("the input");
  in[0].domain = TRL_DOMAIN_POSITIVE;
  in[0].merge = TRL_IN_SHARED;
  in[1].flags = TRL_IN_VARIADIC | TRL_IN_NO_GRAD;
  in[1].dtype = TRL_I64;
  t.outputs(op, {"y", "mask"})[1].flags = TRL_OUT_HIDDEN;
  const Loaded loaded(t);

  const OpInfo info = describe_op(loaded.runtime, "act");
  CHECK(info.kind == "operator");
  CHECK(info.id == "acme.act");
  CHECK(info.name == "act");
  CHECK(info.summary == "an operator");
  CHECK(info.formula == "y = x");
  CHECK(info.doc == "more");
  CHECK(info.example == "act({3})");
  CHECK(info.source == "act.cpp");
  CHECK(info.unchecked == "gradient: no");
  CHECK(info.version == 3);
  CHECK(info.since_version == 2);
  CHECK(info.aliases == std::vector<std::string>{"acme.old_act"});
  CHECK(info.plugin == "acme-act");
  CHECK(info.plugin_version == "1.0.0");
  CHECK(info.dtypes == std::vector<std::string>{"f32", "f64"});
  CHECK(info.differentiable);
  CHECK(info.stochastic);
  CHECK_FALSE(info.elementwise);
  CHECK_FALSE(info.composite);
  CHECK_FALSE(info.expression_gradient);
  CHECK_FALSE(info.leaf);
  REQUIRE(info.inputs.size() == 2);
  CHECK(info.inputs[0].doc == "the input");
  CHECK(info.inputs[0].domain == "positive");
  CHECK(info.inputs[0].merge == "shared");
  CHECK(info.inputs[0].dtype.empty());
  CHECK(info.inputs[0].gradient);
  CHECK(info.inputs[1].variadic);
  CHECK_FALSE(info.inputs[1].gradient);
  CHECK(info.inputs[1].dtype == "i64");
  REQUIRE(info.outputs.size() == 1);
  CHECK(info.outputs[0].name == "y");
  CHECK(describe_op(loaded.runtime, "acme.old_act").id == "acme.act");
}

TEST_CASE("info: attributes of every type with default, range and bound") {
  static const trl_str choices[] = {TRL_STR("mean"), TRL_STR("sum")};
  static const int64_t ints[] = {1, 2};
  Tables t("acme-act");
  trl_op_desc& op = t.op("acme.act");
  trl_attr_spec* a = t.attrs(op, {{"ids", TRL_ATTR_I64S},
                                  {"p", TRL_ATTR_F64},
                                  {"how", TRL_ATTR_CHOICE},
                                  {"on", TRL_ATTR_BOOL},
                                  {"shape", TRL_ATTR_I64S},
                                  {"axis", TRL_ATTR_I64}});
  a[0].flags = TRL_ATTR_PER_BATCH | TRL_ATTR_REQUIRED | TRL_ATTR_BOUND_CLOSED;
  a[0].bound_input = 0;
  a[0].bound_axis_attr = 5;
  a[1].dflt.v.f = 0.5;
  a[1].lo = 0;
  a[1].hi = 1;
  a[2].choices = choices;
  a[2].n_choices = 2;
  a[2].dflt.v.i = 1;
  a[3].dflt.v.i = 1;
  a[4].dflt.v.is = ints;
  a[4].dflt.count = 2;
  const Loaded loaded(t);

  const std::vector<AttrInfo> attrs = describe_op(loaded.runtime, "act").attrs;
  REQUIRE(attrs.size() == 6);
  CHECK(attrs[0].type == "i64s");
  CHECK(attrs[0].required);
  CHECK(attrs[0].per_batch);
  CHECK_FALSE(attrs[0].default_value);
  CHECK(attrs[0].bound == "0 <= ids <= size of x along axis 'axis'");
  CHECK(attrs[1].type == "f64");
  CHECK(std::get<double>(attrs[1].default_value->get()) == 0.5);
  CHECK(attrs[1].lo == 0);
  CHECK(attrs[1].hi == 1);
  CHECK(attrs[2].choices == std::vector<std::string>{"mean", "sum"});
  CHECK(std::get<std::string>(attrs[2].default_value->get()) == "sum");
  CHECK(std::get<bool>(attrs[3].default_value->get()));
  CHECK(std::get<std::vector<int64_t>>(attrs[4].default_value->get()) ==
        std::vector<int64_t>{1, 2});
  CHECK(std::get<int64_t>(attrs[5].default_value->get()) == 0);
  CHECK_FALSE(attrs[5].lo);
}

TEST_CASE("info: every other kind, in order") {
  Tables t("acme-act");
  t.trainer("acme.sgd");
  trl_builder_desc& cell = t.builder("acme.cell");
  t.attrs(cell, {{"in", TRL_ATTR_I64}, {"out", TRL_ATTR_I64}});
  cell.input_attr = 0;
  cell.hidden_attr = 1;
  t.softmax("acme.soft");
  t.initializer("acme.fill");
  t.linalg("acme.mm", TRL_F32);
  t.linalg("acme.mm", TRL_F64);
  const Loaded loaded(t);

  std::vector<std::string> ids;
  for (const ComponentInfo& c : list_components(loaded.runtime)) ids.push_back(c.kind + " " + c.id);
  CHECK(ids == std::vector<std::string>{"builder acme.cell", "softmax_builder acme.soft",
                                        "initializer acme.fill", "trainer acme.sgd",
                                        "linalg acme.mm"});
  const BuilderInfo builder = describe_builder(loaded.runtime, "cell");
  CHECK(builder.input_attr == "in");
  CHECK(builder.hidden_attr == "out");
  CHECK(builder.min_predecessors == 1);
  CHECK(builder.max_predecessors == 1);
  CHECK(describe_trainer(loaded.runtime, "sgd").attrs.at(0).key == "lr");
  CHECK_THROWS_AS(describe_trainer(loaded.runtime, "cell"), Error);
}

TEST_CASE("info: leaves stand before the operators, and a plugin's name goes first") {
  Tables t("acme-act");
  t.op("acme.lookup");
  const Loaded loaded(t);
  const std::vector<OpInfo> ops = list_ops(loaded.runtime);
  CHECK(ops.front().id == "kernel.input");
  CHECK(ops.front().leaf);
  CHECK(ops.front().plugin == "kernel");
  CHECK(ops.back().id == "acme.lookup");
  CHECK(describe_op(loaded.runtime, "lookup").id == "acme.lookup");
  CHECK(describe_op(loaded.runtime, "kernel.lookup").leaf);
  CHECK(describe_op(loaded.runtime, "table").id == "kernel.table");
  CHECK_THROWS_AS(describe_op(loaded.runtime, "tabel"), Error);
}
