// SPDX-License-Identifier: Apache-2.0
#include "allocations.hpp"
#include "calls.hpp"
#include "graph/graph_impl.hpp"

using namespace trellis;
using namespace trellis::detail;
using namespace trellis::test;

namespace {

struct GraphCall : HostCall {
  GraphCall() : HostCall(Phase::graph), graph(runtime.get()) { call.graph = &graph.impl(); }
  Graph graph;

  trl_expr c_expr(const Expr& e) { return graph.impl().to_c(graph.impl().id_of(e)); }
  Expr expr(trl_expr e) { return graph.impl().expr(graph.impl().from_c(e)); }
};

}  // namespace

TEST_CASE("graph_api: applies operators with attributes in the order of the keys") {
  GraphCall c;
  const std::vector<float> x = {1, 2, 3};
  trl_expr in = c.c_expr(c.graph.input(Dim({3}), x)), squared{}, part{};
  CHECK(kGraphApi.apply(c, c.resolve("test.square"), &in, 1, nullptr, 0, &squared, 1) == TRL_OK);
  const trl_attr start = integer(1);
  CHECK(kGraphApi.apply(c, c.resolve("test.part", {"start"}), &squared, 1, &start, 1, &part, 1) ==
        TRL_OK);
  CHECK(c.expr(part).value().as_vector() == std::vector<float>{4, 9});
  const std::vector<int64_t> ids = {2};
  const trl_attr id = integers(ids);
  trl_expr picked{};
  CHECK(kGraphApi.apply(c, c.resolve("test.pick", {"ids"}), &squared, 1, &id, 1, &picked, 1) ==
        TRL_OK);
  CHECK(c.expr(picked).scalar() == 9);
}

TEST_CASE("graph_api: several outputs, constants and shapes") {
  GraphCall c;
  const Dim dim({2}, 3);
  trl_expr one{}, two{}, both[2];
  CHECK(kGraphApi.constant(c, &dim, 0, 5, &one) == TRL_OK);
  CHECK(kGraphApi.constant(c, &dim, TRL_F32, 2, &two) == TRL_OK);
  const trl_expr in[] = {one, two};
  CHECK(kGraphApi.apply(c, c.resolve("test.both"), in, 2, nullptr, 0, both, 2) == TRL_OK);
  CHECK(c.expr(both[0]).value().at(5) == 7);
  CHECK(c.expr(both[1]).value().at(0) == 3);
  trl_dim out{};
  uint16_t dtype = 0;
  CHECK(kGraphApi.shape(c, both[1], &out, &dtype) == TRL_OK);
  CHECK(Dim(out) == dim);
  CHECK(dtype == TRL_F32);
  CHECK(kGraphApi.shape(c, one, nullptr, nullptr) == TRL_OK);
}

TEST_CASE("graph_api: what is refused has a text and adds nothing") {
  GraphCall c;
  const std::vector<float> x = {1, 2, 3};
  const trl_expr in = c.c_expr(c.graph.input(Dim({3}), x));
  const size_t size = c.graph.size();
  trl_expr out[3];
  const trl_op_handle square = c.resolve("test.square"), part = c.resolve("test.part", {"start"});
  CHECK(kGraphApi.apply(c, 999, &in, 1, nullptr, 0, out, 1) == TRL_E_INVALID);
  CHECK(c.text(TRL_E_INVALID) ==
        "[trl.graph/1] apply with handle 999 (needs one that resolve returned)");
  CHECK(kGraphApi.apply(c, square, &in, 1, nullptr, 0, out, 3) == TRL_E_INVALID);
  CHECK(c.text(TRL_E_INVALID) ==
        "[test.square] applied with 1 inputs and 3 outputs (has 1 outputs)");
  CHECK(kGraphApi.apply(c, part, &in, 1, nullptr, 0, out, 1) == TRL_E_INVALID);
  CHECK(c.text(TRL_E_INVALID).find("[test.part] 0 attribute values (needs 1") == 0);
  const trl_attr far = integer(200);
  CHECK(kGraphApi.apply(c, part, &in, 1, &far, 1, out, 1) == TRL_E_INVALID);
  CHECK(c.text(TRL_E_INVALID).find("attribute 'start': 200") != std::string::npos);
  trl_expr stale = in;
  ++stale.epoch;
  CHECK(kGraphApi.apply(c, square, &stale, 1, nullptr, 0, out, 1) < 0);
  CHECK(c.text(TRL_E_INVALID).find("older graph") != std::string::npos);
  CHECK(kGraphApi.shape(c, trl_expr{}, nullptr, nullptr) == TRL_E_INVALID);
  CHECK(c.text(TRL_E_INVALID) == "[trl.graph/1] shape of an absent expression");
  const Dim dim;
  CHECK(kGraphApi.constant(c, &dim, 77, 0, out) == TRL_E_DTYPE);
  CHECK(c.text(TRL_E_DTYPE) == "[trl.graph/1] constant of element type 77");
  trl_dim wide{};
  wide.rank = 99;
  wide.batch = 1;
  CHECK(kGraphApi.constant(c, &wide, 0, 0, out) == TRL_E_SHAPE);
  c.text(TRL_E_SHAPE);
  c.call.begin(Phase::exec, nullptr);
  CHECK(kGraphApi.apply(c, square, &in, 1, nullptr, 0, out, 1) == TRL_E_INVALID);
  CHECK(c.text(TRL_E_INVALID) == "[host] apply is not allowed in forward and backward");
  CHECK(c.graph.size() == size);
}

TEST_CASE("graph_api: applying allocates nothing in the steady state") {
  if (!kCountsAllocations) return;
  GraphCall c;
  const std::vector<float> x = {1, 2, 3};
  const trl_op_handle square = c.resolve("test.square");
  const auto build = [&] {
    c.graph.clear();
    trl_expr e = c.c_expr(c.graph.input(Dim({3}), x)), out{};
    for (int i = 0; i < 50; ++i) {
      kGraphApi.apply(c, square, &e, 1, nullptr, 0, &out, 1);
      e = out;
    }
  };
  build();
  build();
  CHECK(allocations_in(build) == 0);
}
