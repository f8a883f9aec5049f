// SPDX-License-Identifier: Apache-2.0
//
// Every way in which a plugin's own tables may be wrong, and what is said about it.
#include "registry/checks.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "registry/names.hpp"
#include "tables.hpp"

using namespace trellis;
using namespace trellis::tests;

namespace {

const std::string kPrefix = "[plugin] cannot register '/p/bad.so': ";

// The text of the refusal without its prefix. Nothing may be registered.
std::string refusal(Tables& t) {
  Registry registry;
  try {
    registry.add(t.record, t.table());
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::plugin);
    CHECK(registry.plugins().empty());
    CHECK(registry.ops().empty());
    const std::string text = e.what();
    CHECK(text.substr(0, kPrefix.size()) == kPrefix);
    return text.substr(kPrefix.size());
  }
  return "accepted";
}
// A plugin with one operator, changed by `change(tables, operator)`.
template <class F>
std::string op_refusal(F change) {
  Tables t("bad");
  change(t, t.op("acme.x"));
  return refusal(t);
}
// An operator with one attribute "a" of a type, changed by `change(spec)`.
template <class F>
std::string attr_refusal(uint32_t type, F change) {
  Tables t("bad");
  trl_attr_spec* s = t.attrs(t.op("acme.x"), {{"a", type}});
  change(t, *s);
  const std::string text = refusal(t);
  const std::string what = "operator 'acme.x' attribute 'a': ";
  return text.substr(0, what.size()) == what ? text.substr(what.size()) : text;
}
using Op = trl_op_desc&;
using Spec = trl_attr_spec&;

}  // namespace

TEST_CASE("checks: a sound table passes") {
  CHECK(op_refusal([](Tables&, Op) {}) == "accepted");
}

TEST_CASE("checks: ids are namespace.name in a declared namespace") {
  const auto with_id = [](const std::string& id) {
    Tables t("bad");
    t.op(id);
    return refusal(t);
  };
  const std::string form = "' (needed namespace.name of [a-z0-9_.], at most 63 bytes)";
  CHECK(with_id("x") == "operator 0: the id is 'x" + form);
  CHECK(with_id("") == "operator 0: the id is '" + form);
  CHECK(with_id("acme.X") == "operator 0: the id is 'acme.X" + form);
  CHECK(with_id("acme." + std::string(500, 'x')) ==
        "operator 0: the id is 'acme." + std::string(75, 'x') + form);
  CHECK(with_id("other.x") ==
        "operator 'other.x': 'other.x' lies in no namespace of the manifest (it declares: acme)");
  CHECK(with_id("acme.sub.x") == "accepted");
  Tables none("bad", {});
  none.op("acme.x");
  CHECK(refusal(none) ==
        "operator 'acme.x': 'acme.x' lies in no namespace of the manifest (it declares: none)");
}

TEST_CASE("checks: core and dynet are reserved for shipped plugins") {
  for (const std::string name : {"core", "dynet"}) {
    Tables t("bad", {"core", "dynet"});
    t.op(name + ".x");
    CHECK(refusal(t) == "operator '" + name + ".x': '" + name +
                            ".x' lies in a reserved namespace (core and dynet belong to the "
                            "plugins shipped with trellis)");
    t.record.shipped = true;
    CHECK(refusal(t) == "accepted");
  }
  CHECK(op_refusal([](Tables& t, Op op) { t.aliases(op, {"dynet.x"}); }) ==
        "operator 'acme.x': 'dynet.x' lies in a reserved namespace (core and dynet belong to the "
        "plugins shipped with "
        "trellis)");
  Tables shipped("ours", {"core"});
  shipped.record.shipped = true;
  shipped.aliases(shipped.op("core.x"), {"dynet.y"});
  CHECK(refusal(shipped) == "accepted");
}

TEST_CASE("checks: an override of a core operator needs permission") {
  Tables t("bad", {"acme"});
  t.op("core.x");
  Registry registry;
  registry.set_override("core.x", "bad");
  CHECK_THROWS_AS(registry.add(t.record, t.table()), Error);
  t.record.allow_core_override = true;
  CHECK_NOTHROW(registry.add(t.record, t.table()));
}

TEST_CASE("checks: aliases are ids and unique") {
  CHECK(
      op_refusal([](Tables& t, Op op) { t.aliases(op, {"y"}); }) ==
      "operator 'acme.x': an alias is 'y' (needed namespace.name of [a-z0-9_.], at most 63 bytes)");
  CHECK(op_refusal([](Tables& t, Op op) {
          t.aliases(op, {"acme.y", "acme.y"});
        }) == "operator 'acme.x': the alias 'acme.y' is there twice");
  CHECK(op_refusal([](Tables& t, Op op) { t.aliases(op, {"acme.x"}); }) ==
        "operator 'acme.x': the alias 'acme.x' is there twice");
  CHECK(op_refusal([](Tables&, Op op) { op.n_aliases = 3; }) ==
        "operator 'acme.x': 3 aliases but no table");
}

TEST_CASE("checks: huge counts and null tables") {
  Tables t("bad");
  t.op("acme.x");
  const auto with_table = [&](auto change) {
    trl_plugin table = t.table();
    change(table);
    Registry registry;
    try {
      registry.add(t.record, table);
    } catch (const Error& e) {
      return std::string(e.what()).substr(kPrefix.size());
    }
    return std::string("accepted");
  };
  CHECK(with_table([](trl_plugin& p) { p.n_ops = 4000000000u; }) ==
        "table: 4000000000 operators (at most 4096)");
  CHECK(with_table([](trl_plugin& p) { p.n_kernels = 65537; }) ==
        "table: 65537 kernels (at most 65536)");
  CHECK(with_table([](trl_plugin& p) { p.n_builders = 5000; }) ==
        "table: 5000 builders (at most 4096)");
  CHECK(with_table([](trl_plugin& p) { p.n_softmaxes = 5000; }) ==
        "table: 5000 softmax builders (at most 4096)");
  CHECK(with_table([](trl_plugin& p) { p.n_initializers = 5000; }) ==
        "table: 5000 initializers (at most 4096)");
  CHECK(with_table([](trl_plugin& p) { p.n_trainers = 5000; }) ==
        "table: 5000 trainers (at most 4096)");
  CHECK(with_table([](trl_plugin& p) { p.n_updates = 70000; }) ==
        "table: 70000 updates (at most 65536)");
  CHECK(with_table([](trl_plugin& p) { p.n_linalgs = 5000; }) ==
        "table: 5000 linalg providers (at most 4096)");
  CHECK(with_table([](trl_plugin& p) { p.ops = nullptr; }) == "table: 1 operators but no table");
  CHECK(with_table([](trl_plugin& p) { p.struct_size = 0; }).substr(0, 32) ==
        "table: struct_size is 0 (needed ");
  const trl_op_desc* const hole[] = {nullptr};
  CHECK(with_table([&](trl_plugin& p) { p.ops = hole; }) ==
        "operator 0: no descriptor (the pointer is null)");
  // A plugin built for an older host leaves the rest of the table away.
  CHECK(with_table([](trl_plugin& p) {
          p.struct_size = TRL_SIZE_THRU(trl_plugin, kernels);
          p.n_builders = 4000000000u;
        }) == "accepted");
}

TEST_CASE("checks: struct_size is plausible, larger structs are welcome") {
  CHECK(op_refusal([](Tables&, Op op) { op.struct_size = 0; }) ==
        "operator 0: struct_size is 0 (needed 192 to 65536)");
  CHECK(op_refusal([](Tables&, Op op) { op.struct_size = 0xDEADBEEF; }) ==
        "operator 0: struct_size is 3735928559 (needed 192 to 65536)");
  Tables t("future");
  struct Larger {
    trl_op_desc desc;
    char more[40];
  } larger{t.op("acme.x"), {}};
  larger.desc.struct_size = sizeof larger;
  const trl_op_desc* const ops[] = {&larger.desc};
  trl_plugin table = t.table();
  table.ops = ops;
  Registry registry;
  registry.add(t.record, table);
  CHECK(registry.op("acme.x").desc.struct_size == sizeof(trl_op_desc));
}

TEST_CASE("checks: missing fields of a smaller struct read as zero") {
  Tables t("past");
  trl_op_desc& op = t.op("acme.x");
  op.expand = ok_expand;
  op.struct_size = TRL_SIZE_THRU(trl_op_desc, infer);
  Registry registry;
  registry.add(t.record, t.table());
  CHECK((registry.op("acme.x").desc.infer == ok_infer));
  CHECK((registry.op("acme.x").desc.expand == nullptr));
}

TEST_CASE("checks: texts are there, short and UTF-8") {
  CHECK(op_refusal([](Tables&, Op op) {
          op.doc = {nullptr, 5};
        }) == "operator 'acme.x': doc has 5 bytes but no text");
  CHECK(op_refusal([](Tables&, Op op) { op.summary.n = size_t{1} << 40; }) ==
        "operator 'acme.x': summary has 1099511627776 bytes (at most 65536)");
  CHECK(op_refusal([](Tables& t, Op op) { op.formula = t.text("\xFF"); }) ==
        "operator 'acme.x': formula is not UTF-8");
  CHECK(op_refusal([](Tables& t, Op op) { op.source = t.text("\xFF"); }) ==
        "operator 'acme.x': source is not UTF-8");
  CHECK(op_refusal([](Tables& t, Op op) { op.example = t.text("\xFF"); }) ==
        "operator 'acme.x': example is not UTF-8");
  CHECK(op_refusal([](Tables& t, Op op) { op.unchecked = t.text("\xFF"); }) ==
        "operator 'acme.x': unchecked is not UTF-8");
  CHECK(op_refusal([](Tables& t, Op op) { op.role = t.text("\xFF"); }) ==
        "operator 'acme.x': role is not UTF-8");
  CHECK(op_refusal([](Tables& t, Op op) { op.doc = t.text("Größe"); }) == "accepted");
}

TEST_CASE("checks: inputs") {
  const auto inputs = [](const std::vector<std::string>& names, auto change) {
    return op_refusal([&](Tables& t, Op op) { change(t.inputs(op, names)); });
  };
  using In = trl_in_spec*;
  CHECK(inputs({"x", "X"}, [](In) {}) ==
        "operator 'acme.x' input 1: the name is 'X' (needed [a-z][a-z0-9_]*)");
  CHECK(inputs({"x", "x"}, [](In) {}) == "operator 'acme.x': two inputs 'x'");
  CHECK(inputs({"x"}, [](In in) { in[0].dtype = 77; }) ==
        "operator 'acme.x' input 0: unknown element type 77");
  CHECK(inputs({"x"}, [](In in) { in[0].merge = 9; }) ==
        "operator 'acme.x' input 0: unknown merge 9");
  CHECK(inputs({"x"}, [](In in) { in[0].domain = 9; }) ==
        "operator 'acme.x' input 0: unknown domain 9");
  CHECK(inputs({"x", "y"}, [](In in) { in[0].flags = TRL_IN_VARIADIC; }) ==
        "operator 'acme.x' input 0: variadic but not the last input");
  CHECK(inputs({"x", "y"}, [](In in) { in[0].flags = TRL_IN_OPTIONAL; }) ==
        "operator 'acme.x' input 1: needed, but follows an optional input");
  CHECK(inputs({"x"}, [](In in) { in[0].flags = TRL_IN_OPTIONAL | TRL_IN_VARIADIC; }) ==
        "operator 'acme.x' input 0: both optional and variadic (variadic means one or more)");
  CHECK(inputs({"x"}, [](In in) {
          in[0].doc = {nullptr, 1};
        }) == "operator 'acme.x' input 0: doc has 1 bytes but no text");
  CHECK(inputs({"x"}, [](In in) { in[0].struct_size = 1; }).substr(0, 40) ==
        "operator 'acme.x' input 0: struct_size i");
  CHECK(inputs(std::vector<std::string>(65, "x"), [](In) {}) ==
        "operator 'acme.x': 65 inputs (at most 64)");
  CHECK(op_refusal([](Tables&, Op op) { op.in = nullptr; }) ==
        "operator 'acme.x': 1 inputs but no table");
}

TEST_CASE("checks: outputs") {
  const auto outputs = [](const std::vector<std::string>& names, auto change) {
    return op_refusal([&](Tables& t, Op op) { change(t.outputs(op, names)); });
  };
  using Out = trl_out_spec*;
  CHECK(outputs({}, [](Out) {}) == "operator 'acme.x': no visible output");
  CHECK(outputs({"mask"}, [](Out out) { out[0].flags = TRL_OUT_HIDDEN; }) ==
        "operator 'acme.x': no visible output");
  CHECK(outputs({"mask", "y"}, [](Out out) { out[0].flags = TRL_OUT_HIDDEN; }) ==
        "operator 'acme.x' output 1: visible, but follows a hidden output");
  CHECK(outputs({"1"}, [](Out) {}) ==
        "operator 'acme.x' output 0: the name is '1' (needed [a-z][a-z0-9_]*)");
  CHECK(outputs({"y", "y"}, [](Out) {}) == "operator 'acme.x': two outputs 'y'");
  CHECK(outputs({"y"}, [](Out out) { out[0].dtype = 7; }) ==
        "operator 'acme.x' output 0: unknown element type 7");
  CHECK(outputs(std::vector<std::string>(65, "y"), [](Out) {}) ==
        "operator 'acme.x': 65 outputs (at most 64)");
}

TEST_CASE("checks: keys and types of attributes") {
  CHECK(op_refusal([](Tables& t, Op op) {
          t.attrs(op, {{"A", TRL_ATTR_I64}});
        }) == "operator 'acme.x' attribute 0: the key is 'A' (needed [a-z][a-z0-9_]*)");
  CHECK(op_refusal([](Tables& t, Op op) {
          t.attrs(op, {{"a", TRL_ATTR_I64}, {"a", TRL_ATTR_I64}});
        }) == "operator 'acme.x': two attributes 'a'");
  CHECK(attr_refusal(TRL_ATTR_I64, [](Tables&, Spec s) { s.doc = {}; }) ==
        "no doc (say in a few words what it does)");
  CHECK(attr_refusal(99, [](Tables&, Spec) {}) == "unknown type 99");
  CHECK(attr_refusal(0, [](Tables&, Spec) {}) == "unknown type 0");
  CHECK(attr_refusal(TRL_ATTR_STR, [](Tables&, Spec) {}) ==
        "text in an operator (needed a choice)");
  CHECK(attr_refusal(TRL_ATTR_F64, [](Tables&, Spec s) { s.lo = std::nan(""); }) ==
        "the range is not a number");
  CHECK(attr_refusal(TRL_ATTR_F64S, [](Tables&, Spec s) { s.flags = TRL_ATTR_PER_BATCH; }) ==
        "per batch but of type 6 (needed a list of integers)");
  CHECK(attr_refusal(TRL_ATTR_F64, [](Tables&, Spec s) { s.flags = TRL_ATTR_VALUE; }) ==
        "a free value but of type 2 (needed a list of numbers)");
  CHECK(attr_refusal(TRL_ATTR_I64S, [](Tables&, Spec s) { s.min_each = 3, s.max_each = 2; }) ==
        "takes 3 to 2 values");
  CHECK(attr_refusal(TRL_ATTR_I64S, [](Tables&, Spec s) { s.max_each = 0; }) ==
        "takes 0 to 0 values");
}

TEST_CASE("checks: choices") {
  static const trl_str choices[] = {TRL_STR("sum"), TRL_STR("mean"), TRL_STR("sum"), {nullptr, 0}};
  const auto with = [](const trl_str* list, uint32_t n) {
    return attr_refusal(TRL_ATTR_CHOICE,
                        [&](Tables&, Spec s) { s.choices = list, s.n_choices = n; });
  };
  CHECK(with(choices, 2) == "accepted");
  CHECK(with(choices, 0) == "type 4 with 0 choices");
  CHECK(with(nullptr, 2) == "2 choices but no table");
  CHECK(with(choices, 100) == "100 choices (at most 64)");
  CHECK(with(choices, 3) == "two choices 'sum'");
  CHECK(with(choices + 3, 1) == "an empty choice");
  CHECK(attr_refusal(TRL_ATTR_I64, [](Tables&, Spec s) { s.choices = choices, s.n_choices = 2; }) ==
        "type 1 with 2 choices");
}

TEST_CASE("checks: defaults pass their own checks") {
  const std::string own = "the default does not pass its own check: [default] attribute 'a': ";
  CHECK(attr_refusal(TRL_ATTR_F64, [](Tables&, Spec s) { s.dflt.type = TRL_ATTR_I64; }) ==
        "the default is of type 1 (needed 2)");
  CHECK(attr_refusal(TRL_ATTR_F64, [](Tables&, Spec s) { s.lo = 1, s.hi = 2; }) ==
        own + "0 (needed 1 to 2)");
  CHECK(attr_refusal(TRL_ATTR_F64, [](Tables&, Spec s) {
          s.lo = 1, s.hi = 2, s.flags = TRL_ATTR_REQUIRED;
        }) == "accepted");
  CHECK(attr_refusal(TRL_ATTR_BOOL, [](Tables&, Spec s) { s.dflt.v.i = 2; }) ==
        own + "2 (needed true or false)");
  CHECK(attr_refusal(TRL_ATTR_I64S, [](Tables&, Spec s) { s.min_each = 1; }) ==
        own + "0 values (needed at least 1)");
  CHECK(attr_refusal(TRL_ATTR_I64S, [](Tables&, Spec s) { s.dflt.count = 3; }) ==
        own + "no values (needed integers)");
  CHECK(attr_refusal(TRL_ATTR_I64S, [](Tables&, Spec s) { s.dflt.count = 2000; }) ==
        "the default has 2000 values (at most 1024)");
  static const trl_str choices[] = {TRL_STR("sum"), TRL_STR("mean")};
  CHECK(attr_refusal(TRL_ATTR_CHOICE, [](Tables&, Spec s) {
          s.choices = choices, s.n_choices = 2, s.dflt.v.i = 2;
        }) == own + "number 2 (needed one of sum, mean)");
  CHECK(attr_refusal(TRL_ATTR_F64S, [](Tables&, Spec s) { s.flags = TRL_ATTR_VALUE; }) ==
        "no default for 1 value (needed one, or TRL_ATTR_REQUIRED)");
  static const double two[] = {1, 2};
  CHECK(attr_refusal(TRL_ATTR_F64S, [](Tables&, Spec s) {
          s.flags = TRL_ATTR_VALUE, s.dflt.count = 2, s.dflt.v.fs = two;
        }) == "the default has 2 values (needed 1 or none)");
  CHECK(attr_refusal(TRL_ATTR_F64S, [](Tables&, Spec s) {
          s.flags = TRL_ATTR_VALUE, s.dflt.count = 1, s.dflt.v.fs = two;
        }) == "accepted");
}

TEST_CASE("checks: bounds of ids") {
  const auto bound = [](int16_t input, int16_t axis, int16_t axis_attr,
                        uint32_t flags = TRL_ATTR_PER_BATCH) {
    Tables t("bad");
    trl_attr_spec* s = t.attrs(t.op("acme.x"),
                               {{"a", TRL_ATTR_I64S}, {"axis", TRL_ATTR_I64}, {"p", TRL_ATTR_F64}});
    s->flags = flags;
    s->bound_input = input, s->bound_axis = axis, s->bound_axis_attr = axis_attr;
    return refusal(t);
  };
  const std::string what = "operator 'acme.x' attribute 'a': ";
  CHECK(bound(0, 0, -1) == "accepted");
  CHECK(bound(0, -1, 1) == "accepted");
  CHECK(bound(-1, 99, 99) == "accepted");
  CHECK(bound(99, 0, -1, 0) == "accepted");  // says nothing unless per batch
  CHECK(bound(1, 0, -1) == what + "bound_input is 1 (the operator has 1 inputs)");
  CHECK(bound(-2, 0, -1) == what + "bound_input is -2 (the operator has 1 inputs)");
  CHECK(bound(0, 8, -1) == what + "bound_axis is 8 (needed -1 to 7)");
  CHECK(bound(0, -1, -1) == what + "bound_axis_attr is -1 (the operator has 3 attributes)");
  CHECK(bound(0, -1, 3) == what + "bound_axis_attr is 3 (the operator has 3 attributes)");
  CHECK(bound(0, -1, 2) == what + "bound_axis_attr is 2, which is no integer attribute");
}

TEST_CASE("checks: an operator can do something") {
  CHECK(op_refusal([](Tables&, Op op) { op.infer = nullptr; }) ==
        "operator 'acme.x': no infer and no expand (needed one of them)");
  CHECK(op_refusal([](Tables&, Op op) { op.infer = nullptr, op.expand = ok_expand; }) ==
        "operator 'acme.x': its kernel for cpu f32 needs infer, and there is none");
  CHECK(op_refusal([](Tables& t, Op) { t.op("acme.y", true); }) ==
        "operator 'acme.y': no kernel and no expand (needed one of them)");
  CHECK(op_refusal([](Tables& t, Op) {
          trl_op_desc& y = t.op("acme.y", true);
          y.infer = nullptr;
          y.expand = ok_expand;
        }) == "accepted");
  CHECK(op_refusal([](Tables&, Op op) { op.since_version = 2; }) ==
        "operator 'acme.x': since_version is 2 (at most its version, 1)");
  CHECK(op_refusal([](Tables& t, Op) { t.op("acme.x", true); }) ==
        "operator 'acme.x': is there twice");
}

TEST_CASE("checks: a declared gradient has a backward") {
  const auto forward_only = [](auto change) {
    return op_refusal([&](Tables& t, Op op) {
      for (trl_kernel_desc& kernel : t.kernels) kernel.backward = nullptr;
      change(t, op);
    });
  };
  CHECK(forward_only([](Tables&, Op) {}) ==
        "operator 'acme.x': its kernel for cpu f32 declares a gradient for input 0 'x' but has no "
        "backward (write it, or "
        "mark the input TRL_IN_NO_GRAD)");
  CHECK(forward_only([](Tables& t, Op) { t.kernels[0].backward = ok_backward; }) ==
        "operator 'acme.x': its kernel for cpu f64 declares a gradient for input 0 'x' but has no "
        "backward (write it, or "
        "mark the input TRL_IN_NO_GRAD)");
  CHECK(forward_only([](Tables& t, Op op) { t.inputs(op, {"x"})->flags = TRL_IN_NO_GRAD; }) ==
        "accepted");
  CHECK(forward_only([](Tables& t, Op op) { t.inputs(op, {"ids"})->dtype = TRL_I64; }) ==
        "accepted");
  CHECK(forward_only([](Tables& t, Op op) { t.outputs(op, {"y"})->flags = TRL_OUT_NO_GRAD; }) ==
        "accepted");
  CHECK(forward_only([](Tables& t, Op op) { t.outputs(op, {"y"})->dtype = TRL_I64; }) ==
        "accepted");
  CHECK(forward_only([](Tables&, Op op) { op.expand_grad = ok_expand; }) == "accepted");
  CHECK(forward_only([](Tables&, Op op) { op.expand = ok_expand; }) == "accepted");
}

TEST_CASE("checks: nothing is kept for a backward that is not there") {
  const auto forward_only = [](auto change) {
    return op_refusal([&](Tables& t, Op op) {
      for (trl_kernel_desc& kernel : t.kernels) kernel.backward = nullptr;
      change(t, op);
    });
  };
  CHECK(forward_only([](Tables& t, Op op) {
          t.inputs(op, {"x"})->flags = TRL_IN_NO_GRAD | TRL_IN_KEEP;
        }) == "operator 'acme.x': input 'x' is kept for backward, but no kernel has one");
  CHECK(forward_only([](Tables& t, Op op) {
          t.outputs(op, {"y"})->flags = TRL_OUT_NO_GRAD | TRL_OUT_KEEP;
        }) == "operator 'acme.x': output 'y' is kept for backward, but no kernel has one");
  CHECK(forward_only([](Tables& t, Op op) {
          t.outputs(op, {"y", "m"})[1].flags = TRL_OUT_HIDDEN;
        }) == "operator 'acme.x': output 'm' is kept for backward, but no kernel has one");
}

TEST_CASE("checks: roles are known and can be called") {
  const auto role = [](const std::string& name, const std::vector<std::string>& inputs,
                       const std::vector<std::pair<std::string, uint32_t>>& attrs,
                       uint32_t flags = 0) {
    return op_refusal([&](Tables& t, Op op) {
      op.role = t.text(name);
      t.inputs(op, inputs)->flags = flags;
      t.attrs(op, attrs);
    });
  };
  CHECK(role("plus", {"x"}, {}) ==
        "operator 'acme.x': unknown role 'plus' (known: add, sub, mul, div, neg, matmul, "
        "scale_shift, sum, sum_batches, "
        "concat, slice, reshape, dropout)");
  CHECK(role("add", {"a", "b"}, {}) == "accepted");
  CHECK(role("add", {"a"}, {}, TRL_IN_VARIADIC) == "accepted");
  CHECK(role("add", {"a"}, {}) ==
        "operator 'acme.x': role 'add' is called with 2 inputs: it has 1");
  CHECK(role("neg", {"a", "b"}, {}) ==
        "operator 'acme.x': role 'neg' is called with 1 input: it has 2");
  CHECK(role("concat", {"a"}, {{"axis", TRL_ATTR_I64}}) ==
        "operator 'acme.x': role 'concat' needs a variadic input");
  CHECK(role("concat", {"a"}, {{"axis", TRL_ATTR_I64}}, TRL_IN_VARIADIC) == "accepted");
  CHECK(role("dropout", {"a"}, {}) == "operator 'acme.x': role 'dropout' needs an attribute 'p'");
  CHECK(role("dropout", {"a"}, {{"p", TRL_ATTR_I64}}) ==
        "operator 'acme.x': role 'dropout' needs attribute 'p' of type 2: it has type 1");
}

TEST_CASE("checks: kernels") {
  const auto kernel = [](auto change) {
    return op_refusal([&](Tables& t, Op) { change(t, t.kernels[1]); });
  };
  using Kernel = trl_kernel_desc&;
  CHECK(kernel([](Tables& t, Kernel k) { k.op_id = t.text("x"); }) ==
        "kernel 1: op_id is 'x' (needed namespace.name of [a-z0-9_.], at most 63 bytes)");
  CHECK(kernel([](Tables& t, Kernel k) { k.op_id = t.text("acme.y"); }) ==
        "kernel for cpu f64 of an unknown operator 'acme.y'");
  CHECK(kernel([](Tables& t, Kernel k) { k.device = t.text("C P U"); }) ==
        "kernel 1 of 'acme.x': the device is 'C P U' (needed a name such as cpu)");
  CHECK(kernel([](Tables&, Kernel k) { k.dtype = 0; }) ==
        "kernel 1 of 'acme.x': unknown element type 0");
  CHECK(kernel([](Tables&, Kernel k) { k.forward = nullptr; }) ==
        "kernel 1 of 'acme.x': no forward");
  CHECK(kernel([](Tables&, Kernel k) { k.create = ok_create; }) ==
        "kernel 1 of 'acme.x': only one of create and destroy (needed both or neither)");
  CHECK(kernel([](Tables&, Kernel k) { k.destroy = ok_destroy; }) ==
        "kernel 1 of 'acme.x': only one of create and destroy (needed both or neither)");
  CHECK(kernel([](Tables&, Kernel k) { k.dtype = TRL_F32; }) ==
        "operator 'acme.x': its kernel for cpu f32 is there twice");
  CHECK(kernel([](Tables&, Kernel k) { k.dtype = TRL_F32, k.rank = 3; }) == "accepted");
}

TEST_CASE("checks: builders") {
  const auto builder = [](auto change) {
    Tables t("bad");
    change(t, t.builder("acme.cell"));
    return refusal(t);
  };
  using Desc = trl_builder_desc&;
  const std::string what = "builder 'acme.cell': ";
  CHECK(builder([](Tables&, Desc) {}) == "accepted");
  CHECK(builder([](Tables&, Desc d) { d.describe = nullptr; }) == what + "no describe");
  CHECK(builder([](Tables&, Desc d) { d.param = nullptr; }) == what + "no param");
  CHECK(builder([](Tables&, Desc d) { d.state = nullptr; }) == what + "no state");
  CHECK(builder([](Tables&, Desc d) { d.step = nullptr; }) == what + "no step");
  CHECK(builder([](Tables&, Desc d) { d.min_pred = 2; }) ==
        what + "takes 2 to 1 predecessor states");
  CHECK(builder([](Tables&, Desc d) { d.min_in = 2; }) == what + "takes 2 to 1 inputs");
  CHECK(builder([](Tables&, Desc d) { d.min_context = 2; }) == what + "takes 2 to 0 contexts");
  CHECK(builder([](Tables&, Desc d) { d.input_attr = 0; }) ==
        what + "input_attr is 0, which is no integer attribute (-1: none)");
  CHECK(builder([](Tables& t, Desc d) {
          t.attrs(d, {{"p", TRL_ATTR_F64}});
          d.hidden_attr = 0;
        }) == what + "hidden_attr is 0, which is no integer attribute (-1: none)");
  CHECK(builder([](Tables& t, Desc d) {
          t.attrs(d, {{"ids", TRL_ATTR_I64S}})->flags = TRL_ATTR_PER_BATCH;
        }) ==
        "builder 'acme.cell' attribute 'ids': per batch (only operators have such attributes)");
  CHECK(builder([](Tables& t, Desc d) { t.attrs(d, {{"file", TRL_ATTR_STR}}); }) == "accepted");
  CHECK(builder([](Tables& t, Desc d) {
          t.attrs(d, {{"file", TRL_ATTR_STR}})->dflt.v.s = {nullptr, 4};
        }) == "builder 'acme.cell' attribute 'file': the default has 4 bytes but no text");
  CHECK(builder([](Tables& t, Desc) { t.builder("acme.cell"); }) == what + "is there twice");
}

TEST_CASE("checks: softmax builders, initializers, linalg providers") {
  const auto softmax = [](auto change) {
    Tables t("bad");
    change(t.softmax("acme.s"));
    return refusal(t);
  };
  CHECK(softmax([](trl_softmax_desc&) {}) == "accepted");
  CHECK(softmax([](trl_softmax_desc& d) { d.n_params = nullptr; }) ==
        "softmax builder 'acme.s': no n_params");
  CHECK(softmax([](trl_softmax_desc& d) { d.param = nullptr; }) ==
        "softmax builder 'acme.s': no param");
  CHECK(softmax([](trl_softmax_desc& d) { d.loss = nullptr; }) ==
        "softmax builder 'acme.s': no loss");
  CHECK(softmax([](trl_softmax_desc& d) { d.scores = nullptr; }) ==
        "softmax builder 'acme.s': no scores");
  Tables t("bad");
  t.initializer("acme.i").fill = nullptr;
  CHECK(refusal(t) == "initializer 'acme.i': no fill");
  const auto linalg = [](auto change) {
    Tables l("bad");
    change(l, l.linalg("acme.l", TRL_F32));
    return refusal(l);
  };
  using Linalg = trl_linalg_desc&;
  CHECK(linalg([](Tables& l, Linalg) { l.linalg("acme.l", TRL_F64); }) == "accepted");
  CHECK(linalg([](Tables&, Linalg d) { d.gemm = nullptr; }) == "linalg provider 'acme.l': no gemm");
  CHECK(linalg([](Tables&, Linalg d) { d.classes = 0; }) ==
        "linalg provider 'acme.l': serves no shape class");
  CHECK(linalg([](Tables&, Linalg d) { d.dtype = 9; }) ==
        "linalg provider 'acme.l': unknown element type 9");
  CHECK(linalg([](Tables& l, Linalg) { l.linalg("acme.l", TRL_F32); }) ==
        "linalg provider 'acme.l' for cpu f32 is there twice");
}

TEST_CASE("checks: trainers and updates") {
  const auto trainer = [](auto change) {
    Tables t("bad");
    change(t, t.trainer("acme.sgd"));
    return refusal(t);
  };
  using Desc = trl_trainer_desc&;
  CHECK(trainer([](Tables&, Desc) {}) == "accepted");
  CHECK(trainer([](Tables& t, Desc) { t.updates.clear(); }) == "trainer 'acme.sgd': no update");
  CHECK(trainer([](Tables& t, Desc d) {
          t.attrs(d, {{"lr", TRL_ATTR_I64}});
        }) == "trainer 'acme.sgd': attribute 'lr' is of type 1 (needed a number)");
  CHECK(trainer([](Tables& t, Desc) { t.slots[0].name = {}; }) ==
        "trainer 'acme.sgd' slot 0: the name is '' (needed [a-z][a-z0-9_]*)");
  CHECK(trainer([](Tables& t, Desc d) {
          static const trl_slot_spec* two[2];
          two[0] = two[1] = &t.slots[0];
          d.slots = two, d.n_slots = 2;
        }) == "trainer 'acme.sgd': two slots 'm'");
  CHECK(trainer([](Tables&, Desc d) { d.slots = nullptr; }) ==
        "trainer 'acme.sgd': 1 slots but no table");
  CHECK(trainer([](Tables& t, Desc) { t.update("acme.adam", TRL_F32); }) ==
        "update for cpu f32 of an unknown trainer 'acme.adam'");
  CHECK(trainer([](Tables& t, Desc) { t.update("sgd", TRL_F32); }) ==
        "update 2: trainer_id is 'sgd' (needed namespace.name of [a-z0-9_.], at most 63 bytes)");
  CHECK(trainer([](Tables& t, Desc) { t.updates[0].update = nullptr; }) ==
        "update 0 of 'acme.sgd': no update");
  CHECK(trainer([](Tables& t, Desc) { t.update("acme.sgd", TRL_F32); }) ==
        "trainer 'acme.sgd': its update for cpu f32 is there twice");
}
