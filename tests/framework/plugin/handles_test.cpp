// SPDX-License-Identifier: Apache-2.0
#include "plugin/handles.hpp"

#include <trellis/abi/abi.h>

#include "support.hpp"

using namespace trellis::detail;
using namespace trellis::test;
using trellis::PluginRecord;
using trellis::Registry;

namespace {

trl_status infer(trl_infer_args*) { return TRL_OK; }
trl_status forward(const trl_fwd_args*) { return TRL_OK; }

trl_attr_spec spec(trl_str key, uint32_t type, uint32_t flags, trl_attr dflt) {
  trl_attr_spec s{};
  s.struct_size = sizeof s;
  s.type = type;
  s.flags = flags;
  s.key = key;
  s.doc = TRL_STR("for a test");
  s.dflt = dflt;
  s.lo = 0;
  s.hi = 9;
  s.bound_input = s.bound_axis = s.bound_axis_attr = -1;
  s.min_each = s.max_each = 1;
  return s;
}

trl_attr integer(int64_t v) {
  trl_attr a{};
  a.type = TRL_ATTR_I64;
  a.count = 1;
  a.v.i = v;
  return a;
}

// test.op(axis required, keep = 3), without gradient.
struct Tables {
  trl_in_spec in{};
  trl_out_spec out{};
  const trl_in_spec* ins[1] = {&in};
  const trl_out_spec* outs[1] = {&out};
  trl_attr_spec axis = spec(TRL_STR("axis"), TRL_ATTR_I64, TRL_ATTR_REQUIRED, {});
  trl_attr_spec keep = spec(TRL_STR("keep"), TRL_ATTR_I64, 0, integer(3));
  const trl_attr_spec* attrs[2] = {&axis, &keep};
  trl_op_desc op{};
  trl_kernel_desc kernel{};
  const trl_op_desc* ops[1] = {&op};
  const trl_kernel_desc* kernels[1] = {&kernel};
  trl_plugin plugin{};

  Tables() {
    in.struct_size = sizeof in;
    in.name = TRL_STR("x");
    in.flags = TRL_IN_NO_GRAD;
    out.struct_size = sizeof out;
    out.name = TRL_STR("y");
    op.struct_size = sizeof op;
    op.id = TRL_STR("test.op");
    op.summary = TRL_STR("for a test");
    op.in = ins;
    op.out = outs;
    op.attrs = attrs;
    op.n_in = op.n_out = 1;
    op.n_attrs = 2;
    op.version = op.since_version = 1;
    op.infer = infer;
    kernel.struct_size = sizeof kernel;
    kernel.op_id = op.id;
    kernel.device = TRL_STR("cpu");
    kernel.dtype = TRL_F32;
    kernel.forward = forward;
    plugin.struct_size = sizeof plugin;
    plugin.ops = ops;
    plugin.n_ops = 1;
    plugin.kernels = kernels;
    plugin.n_kernels = 1;
  }
};

PluginRecord record() {
  PluginRecord r;
  r.id = "test";
  r.version = "1.0.0";
  r.namespaces = {"test"};
  return r;
}

}  // namespace

TEST_CASE("handles: values come in the order of the keys and go in the operator's order") {
  const Tables tables;
  Registry registry;
  registry.add(record(), tables.plugin);
  OpHandles handles;
  const trl_op_handle h = handles.resolve(registry, "a", "test.op", {"keep", "axis"});
  REQUIRE(handles.find(h));
  CHECK(handles.find(h)->op->id == "test.op");
  trl_attr out[2];
  const trl_attr given[] = {integer(7), integer(2)};
  OpHandles::arrange(*handles.find(h), given, out);
  CHECK(out[0].v.i == 2);
  CHECK(out[1].v.i == 7);
  const trl_op_handle one = handles.resolve(registry, "a", "test.op", {"axis"});
  CHECK(one != h);
  OpHandles::arrange(*handles.find(one), {given, 1}, out);
  CHECK(out[0].v.i == 7);
  CHECK(out[1].v.i == 3);
  CHECK(error_of([&] { OpHandles::arrange(*handles.find(one), given, out); }) ==
        "[test.op] 2 attribute values (needs 1, one for each key it was resolved with)");
  const trl_attr huge[] = {integer(70)};
  CHECK(contains(error_of([&] { OpHandles::arrange(*handles.find(one), huge, out); }),
                 "attribute 'axis': 70"));
}

TEST_CASE("handles: what cannot be resolved says why") {
  const Tables tables;
  Registry registry;
  registry.add(record(), tables.plugin);
  OpHandles handles;
  CHECK(contains(error_of([&] { handles.resolve(registry, "a", "test.no", {}); }), "'test.no'"));
  CHECK(error_of([&] { handles.resolve(registry, "a", "test.op", {"axes"}); }) ==
        "[test.op] no attribute 'axes' (did you mean 'axis'?)");
  CHECK(error_of([&] {
          handles.resolve(registry, "a", "test.op", {"axis", "axis"});
        }) == "[test.op] attribute 'axis' is named twice");
  CHECK(error_of([&] { handles.resolve(registry, "a", "test.op", {"keep"}); }) ==
        "[test.op] attribute 'axis' is missing (needs it among the keys)");
  CHECK(handles.find(0) == nullptr);
  CHECK(handles.find(1) == nullptr);
}

TEST_CASE("handles: they follow a registry that is made again, and tell whose operator is gone") {
  const Tables tables;
  Registry before, after, empty;
  before.add(record(), tables.plugin);
  after.add(record(), tables.plugin);
  OpHandles handles;
  const trl_op_handle h = handles.resolve(before, "a", "test.op", {"axis"});
  CHECK(handles.rebind(after).empty());
  CHECK(handles.find(h)->op == after.find_op("test.op"));
  CHECK(handles.rebind(empty) == std::vector<std::string>{"a"});
  handles.drop_owner("a");
  CHECK(handles.find(h)->op == nullptr);
  CHECK(handles.rebind(empty).empty());
}
