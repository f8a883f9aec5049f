// SPDX-License-Identifier: Apache-2.0
//
// The border, seen from a host of a hundred lines: negotiation, batching, gradients, masks and
// exceptions of plugins that are opened as any other library. OPS_CORE, C_PLUGIN and
// THROWING_PLUGIN are their paths.

#include <doctest/doctest.h>

#include "checks.hpp"

using namespace stub;

TEST_CASE("boundary: the entry fills no more than the host has room for") {
  Host host(OPS_CORE);
  struct {
    trl_plugin plugin;
    unsigned char canary[64];
  } room;
  for (const uint32_t size :
       {uint32_t(TRL_SIZE_THRU(trl_plugin, kernels)), uint32_t(TRL_SIZE_THRU(trl_plugin, version)),
        uint32_t(sizeof(trl_plugin))}) {
    std::memset(&room, 0xA5, sizeof room);
    room.plugin.struct_size = size;
    CHECK(host.entry(&room.plugin) == TRL_OK);
    CHECK(room.plugin.struct_size == size);
    CHECK(text(room.plugin.id) == "ops-core");
    const auto* bytes = reinterpret_cast<const unsigned char*>(&room);
    for (size_t i = size; i < sizeof room; ++i) CHECK(bytes[i] == 0xA5);
  }
}

TEST_CASE("boundary: a larger struct of a future host is filled as far as the plugin knows it") {
  Host host(OPS_CORE);
  struct {
    trl_plugin plugin;
    void* later[4];
  } future{};
  future.plugin.struct_size = sizeof future;
  CHECK(host.entry(&future.plugin) == TRL_OK);
  CHECK(future.plugin.struct_size == sizeof(trl_plugin));
  CHECK(future.plugin.n_ops > 0);
  CHECK(TRL_HAS(&future.plugin, trl_plugin, ops));
}

TEST_CASE("boundary: a host below the plugin's target is refused with both versions named") {
  Host host(OPS_CORE, TRL_ABI_MINOR - 1);
  trl_plugin plugin{};
  plugin.struct_size = sizeof plugin;
  CHECK(host.entry(&plugin) == TRL_E_ABI);
  CHECK(host.error ==
        "[plugin] ops-core needs host ABI 0.1: this host has 0.0 (upgrade trellis, or rebuild the "
        "plugin with "
        "TRL_TARGET_MINOR=0)");
  Host c(C_PLUGIN, TRL_ABI_MINOR - 1);
  CHECK(c.entry(&plugin) == TRL_E_ABI);
}

TEST_CASE("boundary: the entry may be called again and gives the same tables") {
  Host host(OPS_CORE);
  trl_plugin first{}, second{};
  first.struct_size = second.struct_size = sizeof first;
  CHECK(host.entry(&first) == TRL_OK);
  CHECK(host.entry(&second) == TRL_OK);
  CHECK(first.ops == second.ops);
  CHECK(first.n_kernels == 2 * first.n_ops);
}

TEST_CASE("boundary: every operator names its file") {
  Host host(OPS_CORE);
  host.load();
  CHECK(text(host.op("core.tanh").source) == "plugins/ops-core/ops/tanh.cpp");
}

TEST_CASE("boundary: a shared weight is one product, forward and backward") {
  Host host(OPS_CORE);
  host.load();
  Value w({2, 3}, {1, 2, 3, 4, 5, 6}), x({3}, {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1}, 4);
  w.shared = true;
  Application product(host, "core.matmul", {w, x});
  CHECK(product.forward()[0].data == std::vector<double>{1, 2, 3, 4, 5, 6, 9, 12});
  CHECK(host.gemms == 1);
  const Value dz({2}, {1}, 4);
  const auto d = product.backward({dz}, {true, true}, true);
  CHECK(host.gemms == 3);
  CHECK(d[0].data == std::vector<double>{2, 2, 2, 2, 2, 2});
  CHECK(d[1].data == std::vector<double>{3, 7, 11, 3, 7, 11, 3, 7, 11, 3, 7, 11});
}

TEST_CASE("boundary: a mask is the same forward, backward, single and merged") {
  Host host(OPS_CORE);
  host.load();
  const Value x({100}, {1}, 3);
  Application merged(host, "core.dropout", {x}, {{"p", 0.5}});
  const auto y = merged.forward()[0].data;
  CHECK(merged.backward({x}, {true}, true)[0].data == y);  // x = dy = 1: both are the mask
  std::set<std::vector<double>> masks;
  for (uint32_t b = 0; b < 3; ++b) {
    Application one(host, "core.dropout", {Value({100}, {1})}, {{"p", 0.5}});
    one.set_streams({{{17, 4}, {b + 1, 99}}});
    const auto mask = one.forward()[0].data;
    CHECK(mask == std::vector<double>(y.begin() + b * 100, y.begin() + (b + 1) * 100));
    for (const double m : mask) CHECK((m == 0 || m == 2));
    masks.insert(mask);
  }
  CHECK(masks.size() == 3);
  Application single(host, "core.dropout", {x}, {{"p", 0.5}}, TRL_F32);
  CHECK(single.forward()[0].data == y);
}

TEST_CASE("boundary: dropout is a view of its input in inference mode and without probability") {
  Host host(OPS_CORE);
  host.load();
  Application train(host, "core.dropout", {Value({4}, {1})}, {{"p", 0.5}});
  Application infer(host, "core.dropout", {Value({4}, {1})}, {{"p", 0.5}}, TRL_F64, false);
  Application always(host, "core.dropout", {Value({4}, {1})}, {{"p", 0.5}, {"always", 1.0}},
                     TRL_F64, false);
  Application none(host, "core.dropout", {Value({4}, {1})}, {{"p", 0.0}});
  train.infer(), infer.infer(), always.infer(), none.infer();
  CHECK(train.view_of() == -1);
  CHECK(infer.view_of() == 0);
  CHECK(always.view_of() == -1);
  CHECK(none.view_of() == 0);
}

TEST_CASE("boundary: no exception leaves a callback, and its text arrives") {
  Host host(THROWING_PLUGIN);
  host.load();
  const std::pair<const char*, const char*> texts[] = {
      {"error", "[thrower] cannot do {2,3}x4: given 7 (need 0.5)"},
      {"runtime", "[thrower] went wrong"},
      {"memory", "out of memory"},
      {"number", "[thrower] threw something that is no std::exception"}};
  for (const char* where : {"infer", "forward", "backward"})
    for (const auto& text : texts) {
      const char *const how = text.first, *const message = text.second;
      CAPTURE(where);
      CAPTURE(how);
      Application app(host, "test.thrower", {Value({2}, {1})},
                      {{"where", std::string(where)}, {"how", std::string(how)}});
      const auto run = [&] {
        app.forward();
        app.backward({Value({2}, {1})}, {true}, true);
      };
      CHECK_THROWS_WITH(run(), message);
    }
  Application fine(host, "test.thrower", {Value({2}, {1})}, {{"where", std::string("backward")}});
  CHECK(fine.forward()[0].data == std::vector<double>{1, 1});
}

TEST_CASE("boundary: a refusal of infer names the operator and the shapes") {
  Host host(OPS_CORE);
  host.load();
  Application app(host, "core.matmul", {Value({3, 4}, {1}), Value({5, 2}, {1})});
  CHECK_THROWS_WITH(
      app.infer(),
      "[matmul] inner sizes differ: x is {3,4}, y is {5,2} (need columns of x == rows of y)");
}

TEST_CASE("boundary: a plugin in C passes the generic checks") {
  Host host(C_PLUGIN);
  host.load();
  Application app(host, "ctest.sum_squares", {Value({2}, {1, 2, 3, 4}, 2)});
  CHECK(app.forward()[0].data == std::vector<double>{5, 25});
  Application scalar(host, "ctest.sum_squares", {Value({}, {1})});
  CHECK_THROWS_WITH(scalar.infer(), "[sum_squares] x is a scalar (need a dimension)");
  check_all_examples(host);
}

TEST_CASE("boundary: every operator of ops-core passes the generic checks on its own examples") {
  Host host(OPS_CORE);
  host.load();
  check_all_examples(host);
}
