// SPDX-License-Identifier: Apache-2.0
#include "registry/registry.hpp"

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "tables.hpp"

using namespace trellis;
using namespace trellis::tests;

namespace {

PluginRecord& add(Registry& registry, Tables& t) { return registry.add(t.record, t.table()); }

std::string refusal(Registry& registry, Tables& t) {
  const size_t plugins = registry.plugins().size(), ops = registry.ops().size();
  try {
    add(registry, t);
  } catch (const Error& e) {
    CHECK(registry.plugins().size() == plugins);
    CHECK(registry.ops().size() == ops);
    return e.what();
  }
  return "accepted";
}
template <class F>
std::string error(ErrorKind kind, F f) {
  try {
    f();
  } catch (const Error& e) {
    CHECK(e.kind() == kind);
    return e.what();
  }
  return "no error";
}

trl_status other_forward(const trl_fwd_args*) { return TRL_E_INTERNAL; }
trl_status third_forward(const trl_fwd_args*) { return TRL_E_INTERNAL; }
trl_status other_update(const trl_update_args*) { return TRL_E_INTERNAL; }

// A shipped plugin with the operators core.<names>.
void ship(Tables& t, const std::vector<std::string>& names) {
  t.record.namespaces = {"core"};
  t.record.shipped = true;
  for (const std::string& name : names) t.op("core." + name);
}

}  // namespace

TEST_CASE("registry: a plugin's things are found with who provided them") {
  Tables t("acme-act");
  trl_op_desc& op = t.op("acme.act");
  op.flags = TRL_OP_ELEMENTWISE | TRL_OP_STOCHASTIC;
  t.inputs(op, {"x", "rest"})[1].flags = TRL_IN_VARIADIC;
  t.outputs(op, {"y", "mask"})[1].flags = TRL_OUT_HIDDEN;
  t.attrs(op, {{"ids", TRL_ATTR_I64S}, {"p", TRL_ATTR_F64}})->flags = TRL_ATTR_PER_BATCH;
  t.builder("acme.cell");
  t.softmax("acme.soft");
  t.initializer("acme.fill");
  t.trainer("acme.sgd");
  t.linalg("acme.mm", TRL_F32);
  Registry registry;
  PluginRecord& plugin = add(registry, t);

  CHECK(plugin.id == "acme-act");
  CHECK(plugin.table.n_ops == 1);
  CHECK(registry.plugin("acme-act") == &plugin);
  CHECK(registry.plugin("other") == nullptr);
  const OpEntry& found = registry.op("acme.act");
  CHECK(&registry.op(found.handle) == &found);
  CHECK(found.plugin == &plugin);
  CHECK(found.name == "act");
  CHECK(found.variadic);
  CHECK(found.mergeable);
  CHECK(found.elementwise);
  CHECK(found.stochastic);
  CHECK(found.has_per_batch);
  CHECK(found.n_visible == 1);
  CHECK(found.in.size() == 2);
  CHECK(found.out.size() == 2);
  REQUIRE(found.attrs.size() == 2);
  CHECK(found.attrs[0].key == "ids");
  CHECK(found.attrs[0].per_batch());
  CHECK(found.attrs[1].type == TRL_ATTR_F64);
  CHECK(found.kernel(DType::f32).desc.dtype == TRL_F32);
  CHECK(found.kernel(DType::f64).desc.dtype == TRL_F64);
  CHECK(found.f32.plugin == &plugin);
  CHECK(registry.builder("cell").plugin == &plugin);
  CHECK(registry.softmax("acme.soft").name == "soft");
  CHECK((registry.initializer("fill").desc.fill == ok_fill));
  const TrainerEntry& trainer = registry.trainer("sgd");
  CHECK(trainer.lr_attr == 0);
  CHECK(trainer.slots.size() == 1);
  CHECK((trainer.f32.update == ok_update));
  CHECK(trainer.f64.dtype == TRL_F64);
  REQUIRE(registry.linalgs().size() == 1);
  CHECK(registry.linalgs()[0]->id == "acme.mm");
}

TEST_CASE("registry: an input that never merges makes the operator unmergeable") {
  Tables t("a");
  t.inputs(t.op("acme.x"), {"x"})->merge = TRL_IN_NEVER;
  Registry registry;
  add(registry, t);
  CHECK_FALSE(registry.op("acme.x").mergeable);
}

TEST_CASE("registry: a bare name is core's, else the only provider's") {
  Registry registry;
  Tables ours("ops-core"), a("a", {"aa"}), b("b", {"bb"});
  ship(ours, {"tanh", "sum"});
  ours.aliases(ours.ops[0], {"dynet.htan", "dynet.old"});
  ours.aliases(ours.ops[1], {"dynet.total"});
  for (const char* name : {"tanh", "gelu", "both", "total"}) a.op(std::string("aa.") + name);
  b.op("bb.both");
  add(registry, ours);
  add(registry, a);
  add(registry, b);
  CHECK(registry.op("tanh").id == "core.tanh");
  CHECK(registry.op("aa.tanh").id == "aa.tanh");
  CHECK(registry.op("gelu").id == "aa.gelu");
  CHECK(registry.op("dynet.htan").id == "core.tanh");
  CHECK(registry.op("htan").id == "core.tanh");
  CHECK(registry.op("total").id == "aa.total");
  CHECK(registry.op("dynet.total").id == "core.sum");
  CHECK(registry.find_op("nothing") == nullptr);
  CHECK(error(ErrorKind::argument, [&] { registry.find_op("both"); }) ==
        "[registry] more than one operator 'both': aa.both, bb.both (needed a full id)");
  CHECK(error(ErrorKind::argument, [&] { registry.op("both"); }) ==
        "[registry] more than one operator 'both': aa.both, bb.both (needed a full id)");
}

TEST_CASE("registry: a name that is unknown gets a suggestion") {
  Registry registry;
  CHECK(error(ErrorKind::argument, [&] { registry.op("tanh"); }) ==
        "[registry] no operator 'tanh' (loaded: no plugins)");
  Tables ours("ops-core"), a("acme-act");
  ship(ours, {"tanh"});
  a.builder("acme.lstm");
  a.softmax("acme.full");
  a.initializer("acme.normal");
  a.trainer("acme.adam");
  add(registry, ours);
  add(registry, a);
  const std::string loaded = "loaded: ops-core, acme-act)";
  CHECK(error(ErrorKind::argument, [&] { registry.op("tahn"); }) ==
        "[registry] no operator 'tahn' (did you mean 'tanh'? " + loaded);
  CHECK(error(ErrorKind::argument, [&] { registry.op("core.tahn"); }) ==
        "[registry] no operator 'core.tahn' (did you mean 'core.tanh'? " + loaded);
  CHECK(error(ErrorKind::argument, [&] { registry.op("softplus"); }) ==
        "[registry] no operator 'softplus' (" + loaded);
  CHECK(error(ErrorKind::argument, [&] { registry.builder("lstn"); }) ==
        "[registry] no builder 'lstn' (did you mean 'lstm'? " + loaded);
  CHECK(error(ErrorKind::argument, [&] { registry.softmax("ful"); }) ==
        "[registry] no softmax builder 'ful' (did you mean 'full'? " + loaded);
  CHECK(error(ErrorKind::argument, [&] { registry.initializer("norml"); }) ==
        "[registry] no initializer 'norml' (did you mean 'normal'? " + loaded);
  CHECK(error(ErrorKind::argument, [&] { registry.trainer("adams"); }) ==
        "[registry] no trainer 'adams' (did you mean 'adam'? " + loaded);
}

TEST_CASE("registry: roles") {
  Registry registry;
  CHECK(error(ErrorKind::plugin, [&] { registry.role(Role::neg); }) ==
        "[role] no operator plays 'neg' (load a plugin with one; loaded: no plugins)");
  Tables a("a", {"aa"}), b("b", {"bb"});
  trl_op_desc& x = a.op("aa.neg");
  x.role = a.text("neg");
  trl_op_desc& y = b.op("bb.neg");
  y.role = b.text("neg");
  add(registry, a);
  CHECK(registry.role(Role::neg).id == "aa.neg");
  add(registry, b);
  CHECK(error(ErrorKind::plugin, [&] { registry.role(Role::neg); }) ==
        "[role] more than one operator plays 'neg': 'aa.neg' of a, 'bb.neg' of b (settle it in "
        "trellis.toml: [override] "
        "\"role:neg\" = \"a\")");
  Registry settled;
  settled.set_override("role:neg", "b");
  add(settled, a);
  add(settled, b);
  CHECK(settled.role(Role::neg).id == "bb.neg");
}

TEST_CASE("registry: the default initializer") {
  Registry registry;
  CHECK(error(ErrorKind::plugin, [&] { registry.default_initializer(); }) ==
        "[registry] no default initializer (load a plugin with one, or name the initializer; "
        "loaded: no plugins)");
  Tables a("a", {"aa"}), b("b", {"bb"});
  a.initializer("aa.normal");
  a.initializer("aa.glorot", true);
  b.initializer("bb.glorot", true);
  add(registry, a);
  CHECK(registry.default_initializer().id == "aa.glorot");
  add(registry, b);
  CHECK(error(ErrorKind::plugin, [&] { registry.default_initializer(); }) ==
        "[registry] more than one default initializer: 'aa.glorot' of a, 'bb.glorot' of b (settle "
        "it in trellis.toml: "
        "[override] \"role:initializer\" = \"a\")");
  Registry settled;
  settled.set_override("role:initializer", "b");
  add(settled, a);
  add(settled, b);
  CHECK(settled.default_initializer().id == "bb.glorot");
}

TEST_CASE("registry: one id in two plugins names both files") {
  Registry registry;
  Tables a("a"), b("b"), again("a");
  a.aliases(a.op("acme.x"), {"acme.y"});
  add(registry, a);
  b.op("acme.x");
  CHECK(refusal(registry, b) ==
        "[plugin] cannot register '/p/b.so': operator 'acme.x' is also in '/p/a.so' (settle it in "
        "trellis.toml: [override] "
        "\"acme.x\" = \"b\")");
  Tables c("c"), d("d"), e("e");
  c.op("acme.y");
  CHECK(
      refusal(registry, c) ==
      "[plugin] cannot register '/p/c.so': operator 'acme.y' is an alias of 'acme.x' in '/p/a.so'");
  d.aliases(d.op("acme.z"), {"acme.y"});
  CHECK(refusal(registry, d) ==
        "[plugin] cannot register '/p/d.so': operator 'acme.z': the alias 'acme.y' means 'acme.x' "
        "of '/p/a.so' already");
  e.aliases(e.op("acme.z"), {"acme.x"});
  CHECK(refusal(registry, e) ==
        "[plugin] cannot register '/p/e.so': operator 'acme.z': the alias 'acme.x' means 'acme.x' "
        "of '/p/a.so' already");
  CHECK(refusal(registry, again) ==
        "[plugin] cannot register '/p/a.so': plugin 'a' is registered already, from '/p/a.so'");
  Tables builder("f"), builders("g");
  builder.builder("acme.x");  // another kind of thing
  add(registry, builder);
  builders.builder("acme.x");
  CHECK(refusal(registry, builders) ==
        "[plugin] cannot register '/p/g.so': builder 'acme.x' is also in '/p/f.so' (settle it in "
        "trellis.toml: [override] "
        "\"acme.x\" = \"g\")");
  Tables mm("h"), mm2("i");
  mm.linalg("acme.mm", TRL_F32);
  mm2.linalg("acme.mm", TRL_F32);
  add(registry, mm);
  CHECK(refusal(registry, mm2) ==
        "[plugin] cannot register '/p/i.so': linalg provider 'acme.mm' for cpu f32 is also in "
        "'/p/h.so'");
}

TEST_CASE("registry: an override decides between two plugins, whatever the order") {
  for (const std::string winner : {"a", "b"}) {
    Registry registry;
    registry.set_override("acme.x", winner);
    Tables a("a"), b("b");
    a.op("acme.x");
    b.op("acme.x");
    b.op("acme.only");
    b.kernels[0].forward = b.kernels[1].forward = other_forward;
    add(registry, a);
    const uint32_t handle = registry.op("acme.x").handle;
    PluginRecord& second = add(registry, b);
    CHECK(registry.op("acme.x").plugin->id == winner);
    CHECK(registry.op("acme.x").handle == handle);
    CHECK((registry.op("acme.x").f32.desc.forward == (winner == "a" ? ok_forward : other_forward)));
    CHECK(registry.op("acme.only").plugin == &second);
    registry.remove_last(second);
    CHECK(registry.op("acme.x").plugin->id == "a");
    CHECK((registry.op("acme.x").f32.desc.forward == ok_forward));
    CHECK(registry.find_op("acme.only") == nullptr);
  }
  Registry registry;
  registry.set_override("acme.x", "c");
  Tables a("a"), b("b");
  a.op("acme.x");
  b.op("acme.x");
  add(registry, a);
  CHECK(refusal(registry, b) ==
        "[plugin] cannot register '/p/b.so': operator 'acme.x' is also in '/p/a.so', and the "
        "override names 'c', which is "
        "neither");
}

TEST_CASE("registry: an override also drops the losing trainer's updates") {
  Registry registry;
  registry.set_override("acme.sgd", "a");
  Tables a("a"), b("b");
  a.trainer("acme.sgd");
  b.trainer("acme.sgd");
  add(registry, a);
  add(registry, b);
  CHECK(registry.trainers().size() == 1);
  CHECK(registry.trainer("sgd").all_updates.size() == 2);
}

TEST_CASE("registry: kernels of another plugin extend an operator") {
  Registry registry;
  Tables a("a"), gpu("gpu", {"gpu"}), fast("fast", {"fast"}), tie("tie", {"tie"}),
      slow("slow", {"slow"});
  a.op("acme.x");
  add(registry, a);
  gpu.kernel("acme.x", TRL_F32, "cuda").forward = other_forward;
  add(registry, gpu);
  CHECK(registry.op("acme.x").all_kernels.size() == 3);
  CHECK((registry.op("acme.x").f32.desc.forward == ok_forward));
  fast.kernel("acme.x", TRL_F32, "cpu", 5).forward = other_forward;
  PluginRecord& record = add(registry, fast);
  CHECK((registry.op("acme.x").f32.desc.forward == other_forward));
  CHECK(registry.op("acme.x").f32.plugin == &record);
  CHECK((registry.op("acme.x").f64.desc.forward == ok_forward));
  slow.kernel("acme.x", TRL_F32, "cpu", -5).forward = third_forward;
  PluginRecord& last = add(registry, slow);
  CHECK((registry.op("acme.x").f32.desc.forward == other_forward));
  registry.remove_last(last);
  CHECK(registry.op("acme.x").all_kernels.size() == 4);
  tie.kernel("acme.x", TRL_F32, "cpu", 5);
  CHECK(refusal(registry, tie) ==
        "[plugin] cannot register '/p/tie.so': operator 'acme.x': its kernel for cpu f32 rank 5 is "
        "also in '/p/fast.so'");
  Tables other("other", {"other"});
  other.kernel("acme.x", 300, "cuda");
  other.kernel("acme.x", 300, "cuda");
  CHECK(refusal(registry, other) ==
        "[plugin] cannot register '/p/other.so': operator 'acme.x': its kernel for cuda type 300 "
        "is there twice");
  Tables forward_only("fwd", {"fwd"});
  forward_only.kernel("acme.x", TRL_F64, "cuda").backward = nullptr;
  CHECK(refusal(registry, forward_only) ==
        "[plugin] cannot register '/p/fwd.so': operator 'acme.x': its kernel for cuda f64 declares "
        "a gradient for input 0 "
        "'x' but has no backward (write it, or mark the input TRL_IN_NO_GRAD)");
}

TEST_CASE("registry: a stranger's kernel for a core operator needs permission") {
  Registry registry;
  Tables ours("ops-core"), fast("fast", {"fast"});
  ship(ours, {"tanh"});
  add(registry, ours);
  fast.kernel("core.tanh", TRL_F32, "cpu", 9).forward = other_forward;
  CHECK(refusal(registry, fast) ==
        "[plugin] cannot register '/p/fast.so': operator 'core.tanh': its kernel for cpu f32 rank "
        "9 competes with "
        "'/p/ops-core.so' (set allow_core_override in trellis.toml)");
  fast.record.allow_core_override = true;
  add(registry, fast);
  CHECK((registry.op("tanh").f32.desc.forward == other_forward));
  Tables device("device", {"device"});
  device.kernel("core.tanh", TRL_F32, "cuda");
  CHECK(refusal(registry, device) == "accepted");
}

TEST_CASE("registry: updates of another plugin extend a trainer") {
  Registry registry;
  Tables a("a"), fast("fast", {"fast"}), tie("tie", {"tie"});
  a.trainer("acme.sgd");
  add(registry, a);
  fast.update("acme.sgd", TRL_F32, 2).update = other_update;
  PluginRecord& record = add(registry, fast);
  CHECK((registry.trainer("sgd").f32.update == other_update));
  CHECK((registry.trainer("sgd").f64.update == ok_update));
  tie.update("acme.sgd", TRL_F32, 2);
  CHECK(refusal(registry, tie) ==
        "[plugin] cannot register '/p/tie.so': trainer 'acme.sgd': its update for cpu f32 rank 2 "
        "is also in '/p/fast.so'");
  registry.remove_last(record);
  CHECK((registry.trainer("sgd").f32.update == ok_update));
  CHECK(registry.trainer("sgd").all_updates.size() == 2);
}

TEST_CASE("registry: all of a plugin or nothing") {
  Registry registry;
  Tables a("a"), b("b");
  a.op("acme.x");
  add(registry, a);
  b.op("acme.good");
  b.builder("acme.cell");
  b.trainer("acme.sgd");
  b.kernel("acme.x", TRL_F32, "cpu", 3).forward = other_forward;
  b.kernel("acme.missing", TRL_F32);
  CHECK(refusal(registry, b) ==
        "[plugin] cannot register '/p/b.so': kernel for cpu f32 of an unknown operator "
        "'acme.missing'");
  CHECK(registry.find_op("acme.good") == nullptr);
  CHECK(registry.builders().empty());
  CHECK(registry.trainers().empty());
  CHECK(registry.op("acme.x").all_kernels.size() == 2);
  CHECK((registry.op("acme.x").f32.desc.forward == ok_forward));
  b.kernels.pop_back();
  add(registry, b);
  CHECK(registry.op("acme.good").plugin->id == "b");
  CHECK((registry.op("acme.x").f32.desc.forward == other_forward));
}

TEST_CASE("registry: the newest plugin can be removed whole, and added again") {
  Registry registry;
  Tables a("a"), b("b");
  a.op("acme.x");
  PluginRecord& first = add(registry, a);
  b.op("acme.y");
  b.builder("acme.cell");
  b.softmax("acme.soft");
  b.initializer("acme.init", true);
  b.trainer("acme.sgd");
  b.linalg("acme.mm", TRL_F32);
  b.kernel("acme.x", TRL_F32, "cpu", 3).forward = other_forward;
  for (int round = 0; round < 3; ++round) {
    PluginRecord& record = add(registry, b);
    CHECK(registry.op("y").handle == 2);
    CHECK_THROWS_WITH_AS(registry.remove_last(first),
                         "[registry] cannot remove 'a': not the newest plugin", Error);
    registry.remove_last(record);
    CHECK(registry.plugins().size() == 1);
    CHECK(registry.ops().size() == 1);
    CHECK(registry.builders().empty());
    CHECK(registry.softmaxes().empty());
    CHECK(registry.initializers().empty());
    CHECK(registry.trainers().empty());
    CHECK(registry.linalgs().empty());
    CHECK((registry.op("acme.x").f32.desc.forward == ok_forward));
    CHECK(registry.find_op("y") == nullptr);
  }
  CHECK_THROWS_AS(registry.remove_last(first), Error);
}

TEST_CASE("registry: operators of one library are all listed, in order") {
  Registry registry;
  Tables t("abc");
  for (const char* name : {"acme.b", "acme.a", "acme.c"}) t.op(name);
  add(registry, t);
  std::vector<std::string> ids;
  for (const auto& op : registry.ops()) ids.push_back(op->id);
  CHECK(ids == std::vector<std::string>{"acme.b", "acme.a", "acme.c"});
}

TEST_CASE("registry: numbers of names are process-wide and resolve in each registry") {
  const uint32_t number = Registry::name_id("acme.numbered");
  CHECK(Registry::name_id("acme.numbered") == number);
  CHECK(Registry::name_id("acme.another") != number);
  Registry with, without;
  Tables t("a");
  t.op("acme.numbered");
  PluginRecord& record = add(with, t);
  CHECK(&with.op_by_name_id(number) == &with.op("acme.numbered"));
  CHECK(&with.op_by_name_id(number) == &with.op("acme.numbered"));
  CHECK(error(ErrorKind::argument, [&] { without.op_by_name_id(number); }) ==
        "[registry] no operator 'acme.numbered' (loaded: no plugins)");
  CHECK(error(ErrorKind::internal, [&] { with.op_by_name_id(4000000000u); }) ==
        "[registry] no name has the number 4000000000");
  with.remove_last(record);
  CHECK_THROWS_AS(with.op_by_name_id(number), Error);
}

TEST_CASE("registry: names beyond the table still resolve") {
  uint32_t number = 0;
  for (int i = 0; i < 4200; ++i) number = Registry::name_id("acme.many" + std::to_string(i));
  CHECK(number >= 4096);
  Registry registry;
  Tables t("a");
  t.op("acme.many4199");
  add(registry, t);
  CHECK(&registry.op_by_name_id(number) == &registry.op("many4199"));
}

TEST_CASE("registry: threads resolve names at the same time") {
  Registry registry;
  Tables t("a");
  for (int i = 0; i < 20; ++i) t.op("acme.thread" + std::to_string(i));
  add(registry, t);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (size_t k = 0; k < 4; ++k)
    threads.emplace_back([&, k] {
      for (int round = 0; round < 200; ++round)
        for (int i = 0; i < 20; ++i) {
          const std::string id = "acme.thread" + std::to_string(i);
          wrong[k] += registry.op_by_name_id(Registry::name_id(id)).id != id;
        }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4));
}
