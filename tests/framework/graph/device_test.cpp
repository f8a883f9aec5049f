// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "support/test_ops.hpp"

using namespace trellis;
using test::apply;
using test::TestRuntime;

namespace {
const std::vector<float> kTwo{1, 2};
constexpr Device kCpu, kOther(1), kNone(7);
}  // namespace

TEST_CASE("device: what is there, by number and by name") {
  TestRuntime rt;
  const Runtime& runtime = rt.get();
  CHECK(runtime.devices() == std::vector<Device>{kCpu});
  CHECK(runtime.device("cpu") == kCpu);
  CHECK(runtime.device_name(kCpu) == "cpu");
  CHECK_THROWS_WITH_AS(runtime.device("gpu:0"), "[device] no device 'gpu:0' (has: cpu)", Error);
  CHECK_THROWS_WITH_AS(runtime.device_name(kNone), "[device_name] no device 7 (has: cpu)", Error);
}

TEST_CASE("device: leaves are placed, other nodes follow their inputs") {
  TestRuntime rt;
  Model m(rt, {.device = rt.get().device("cpu")});
  Parameter p = m.add_parameter("p", Dim({2}));
  LookupParameter t = m.add_lookup("t", 3, Dim({2}), {}, kCpu);
  Graph g(rt, {.device = kCpu});
  CHECK(p.device() == kCpu);
  const Expr x = g.input(Dim({2}), kTwo, kCpu), y = g.constant(Dim({2}), 3, kCpu);
  for (const Expr& e : {x, y, g.input(Tensor(Dim({2})), kCpu), g.parameter(p), g.lookup(t, 1),
                        apply(g, "mul", {x, y}), apply(g, "part", {g.table(t)}, {{"start", 0}})})
    CHECK(e.device() == kCpu);
  CHECK(apply(g, "mul", {x, y}).value().as_vector() == std::vector<float>{3, 6});
}

TEST_CASE("device: one that is not there is refused by name of what asked for it") {
  TestRuntime rt;
  Model m(rt);
  Graph g(rt);
  const std::vector<double> wide{1, 2};
  CHECK_THROWS_WITH_AS(g.input(Dim({2}), kTwo, kNone), "[input] no device 7 (has: cpu)", Error);
  CHECK_THROWS_WITH_AS(g.input(Dim({2}), wide, kNone), "[input] no device 7 (has: cpu)", Error);
  CHECK_THROWS_WITH_AS(g.input(Tensor(Dim({2})), kNone), "[input] no device 7 (has: cpu)", Error);
  CHECK_THROWS_WITH_AS(g.constant(Dim({2}), 1, kNone), "[constant] no device 7 (has: cpu)", Error);
  CHECK(g.size() == 0);
  CHECK_THROWS_WITH_AS(Graph(rt, {.device = kNone}), "[graph] no device 7 (has: cpu)", Error);
  CHECK_THROWS_WITH_AS(Model(rt, {.device = kNone}), "[model] no device 7 (has: cpu)", Error);
  CHECK_THROWS_WITH_AS(m.add_parameter("p", Dim({2}), {}, kNone),
                       "[add_parameter /p] no device 7 (has: cpu)", Error);
  CHECK_THROWS_WITH_AS(m.sub("a").add_lookup("t", 3, Dim({2}), {}, kNone),
                       "[add_lookup /a/t] no device 7 (has: cpu)", Error);
  CHECK(m.size() == 0);
}

// As on a machine that has a second device, where no plugin has a kernel for it.
TEST_CASE("device: nodes stay where their inputs are, which must be one device with a kernel") {
  TestRuntime rt;
  rt.get().core().devices.push_back("far:0");
  CHECK(rt.get().device("far:0") == kOther);
  Graph g(rt);
  const Expr here = g.input(Dim({2}), kTwo), there = g.input(Dim({2}), kTwo, kOther);
  CHECK(here.device() == kCpu);
  CHECK(there.device() == kOther);
  const size_t size = g.size();
  CHECK_THROWS_WITH_AS(apply(g, "mul", {here, there}),
                       "[mul] inputs lie on two devices: input 0 on cpu, input 1 on far:0 (all "
                       "must lie on one); test-ops 1.0.0, inputs {2} {2}",
                       Error);
  CHECK_THROWS_WITH_AS(apply(g, "square", {there}),
                       "[square] no kernel for far:0 (has one for cpu); test-ops 1.0.0, inputs {2}",
                       Error);
  CHECK(g.size() == size);
  CHECK(apply(g, "square", {here}).value().as_vector() == std::vector<float>{1, 4});
}
