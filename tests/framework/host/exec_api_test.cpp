// SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"

using namespace trellis;
using namespace trellis::detail;
using namespace trellis::test;

namespace {

trl_status invoke(HostCall& c, trl_op_handle op, std::vector<trl_tensor> in,
                  std::vector<trl_tensor> out, std::vector<trl_attr> attrs = {},
                  const trl_stream* streams = nullptr) {
  return kExecApi.invoke(c, op, in.data(), uint32_t(in.size()), out.data(), uint32_t(out.size()),
                         attrs.data(), uint32_t(attrs.size()), streams);
}

}  // namespace

TEST_CASE("exec_api: parallel_for covers the range once and hands the status back") {
  HostCall c(Phase::exec);
  std::vector<int> seen(100);
  const auto mark = [](void* context, int64_t begin, int64_t end) -> trl_status {
    for (int64_t i = begin; i < end; ++i) ++(*static_cast<std::vector<int>*>(context))[i];
    return TRL_OK;
  };
  CHECK(kExecApi.parallel_for(c, 0, 100, 7, mark, &seen) == TRL_OK);
  CHECK(seen == std::vector<int>(100, 1));
  CHECK(kExecApi.parallel_for(c, 5, 5, 1, mark, &seen) == TRL_OK);
  CHECK(seen == std::vector<int>(100, 1));
  const auto refuse = [](void*, int64_t, int64_t) -> trl_status { return TRL_E_CANCELLED; };
  CHECK(kExecApi.parallel_for(c, 0, 1, 1, refuse, nullptr) == TRL_E_CANCELLED);
  CHECK(kExecApi.parallel_for(c, 3, 1, 1, mark, &seen) == TRL_E_INVALID);
  CHECK(c.text(TRL_E_INVALID) ==
        "[trl.exec/1] parallel_for over 3 to 1 in grains of 1 (needs a function, begin <= end, "
        "grain >= 1)");
}

TEST_CASE("exec_api: scratch is aligned, apart, and only for calls that run") {
  HostCall c(Phase::exec);
  char* const a = static_cast<char*>(kExecApi.scratch(c, 100));
  char* const b = static_cast<char*>(kExecApi.scratch(c, 0));
  REQUIRE(a);
  REQUIRE(b);
  CHECK(reinterpret_cast<uintptr_t>(a) % 64 == 0);
  CHECK((b >= a + 100 || b < a));
  CHECK(kExecApi.scratch(c, ~size_t{0} / 2) == nullptr);
  CHECK(c.call.status == TRL_E_OOM);
  c.text(TRL_E_OOM);
  c.call.begin(Phase::infer, nullptr);
  CHECK(kExecApi.scratch(c, 1) == nullptr);
  CHECK(c.text(TRL_E_INVALID) == "[host] scratch is not allowed in infer");
}

TEST_CASE("exec_api: invoke runs the forward kernel of another operator") {
  HostCall c(Phase::exec);
  std::vector<float> x = {1, 2, 3, 4}, y(4);
  CHECK(invoke(c, c.resolve("test.square"), {tensor(x, Dim({2}, 2))}, {tensor(y, Dim({2}, 2))}) ==
        TRL_OK);
  CHECK(y == std::vector<float>{1, 4, 9, 16});
}

TEST_CASE("exec_api: an input of one batch element serves a batch, hidden outputs need no room") {
  HostCall c(Phase::exec);
  std::vector<float> x = {1, 2, 3, 4}, w = {10, 20}, s(4), d(4);
  CHECK(invoke(c, c.resolve("test.both"), {tensor(x, Dim({2}, 2)), tensor(w, Dim({2}))},
               {tensor(s, Dim({2}, 2)), tensor(d, Dim({2}, 2))}) == TRL_OK);
  CHECK(s == std::vector<float>{11, 22, 13, 24});
  CHECK(d == std::vector<float>{-9, -18, -7, -16});
}

TEST_CASE("exec_api: per-batch attributes are laid out, repeated, defaulted and checked") {
  HostCall c(Phase::exec);
  std::vector<float> x = {1, 2, 3, 4, 5, 6}, y(2);
  const trl_op_handle pick = c.resolve("test.pick", {"ids"});
  const auto in = tensor(x, Dim({3}, 2)), out = tensor(y, Dim({}, 2));
  const std::vector<int64_t> both = {2, 0}, one = {1}, three = {0, 1, 2}, wrong = {0, 3};
  CHECK(invoke(c, pick, {in}, {out}, {integers(both)}) == TRL_OK);
  CHECK(y == std::vector<float>{3, 4});
  CHECK(invoke(c, pick, {in}, {out}, {integers(one)}) == TRL_OK);
  CHECK(y == std::vector<float>{2, 5});
  CHECK(invoke(c, pick, {in}, {out}, {integers(wrong)}) == TRL_E_RANGE);
  CHECK(c.text(TRL_E_RANGE) == "[test.pick] attribute 'ids' is out of bounds: 3 (needs 0 to 2)");
  CHECK(invoke(c, pick, {in}, {out}, {integers(three)}) == TRL_E_INVALID);
  CHECK(c.text(TRL_E_INVALID) == "[test.pick] attribute 'ids' has 3 values (needs 1 or 2)");
}

TEST_CASE("exec_api: a view is copied") {
  HostCall c(Phase::exec);
  std::vector<float> x = {1, 2, 3, 4, 5, 6}, y(4);
  CHECK(invoke(c, c.resolve("test.part", {"start"}), {tensor(x, Dim({3}, 2))},
               {tensor(y, Dim({2}, 2))}, {integer(1)}) == TRL_OK);
  CHECK(y == std::vector<float>{2, 3, 5, 6});
}

TEST_CASE("exec_api: random operators want their streams") {
  HostCall c(Phase::exec);
  std::vector<float> x = {1, 1}, y(2), z(2);
  const trl_op_handle noise = c.resolve("test.noise");
  CHECK(invoke(c, noise, {tensor(x, Dim({2}))}, {tensor(y, Dim({2}))}) == TRL_E_INVALID);
  CHECK(c.text(TRL_E_INVALID) ==
        "[test.noise] invoked without streams (needs one for each batch element)");
  const trl_stream stream{{1, 2}, {3, 4}};
  CHECK(invoke(c, noise, {tensor(x, Dim({2}))}, {tensor(y, Dim({2}))}, {}, &stream) == TRL_OK);
  CHECK(invoke(c, noise, {tensor(x, Dim({2}))}, {tensor(z, Dim({2}))}, {}, &stream) == TRL_OK);
  CHECK(y == z);
}

TEST_CASE("exec_api: an invoke that cannot be says why and touches nothing") {
  HostCall c(Phase::exec);
  std::vector<float> x = {1, 2, 3, 4}, y = {7, 7, 7, 7};
  const trl_tensor in = tensor(x, Dim({2}, 2)), out = tensor(y, Dim({2}, 2));
  const trl_op_handle square = c.resolve("test.square"), mul = c.resolve("test.mul");
  const auto refused = [&](trl_status want, trl_op_handle op, std::vector<trl_tensor> ins,
                           std::vector<trl_tensor> outs, std::vector<trl_attr> attrs = {}) {
    const trl_status st = invoke(c, op, std::move(ins), std::move(outs), std::move(attrs));
    CHECK(st == want);
    return c.text(st);
  };
  CHECK(refused(TRL_E_INVALID, 999, {in}, {out}) ==
        "[trl.exec/1] invoke with handle 999 (needs one that resolve returned, and tensors)");
  CHECK(refused(TRL_E_INVALID, square, {in, in}, {out}) ==
        "[test.square] invoked with 2 inputs (needs 1)");
  CHECK(refused(TRL_E_INVALID, square, {in}, {out, out}) ==
        "[test.square] invoked with 2 outputs (needs 1)");
  CHECK(refused(TRL_E_INVALID, square, {in}, {out}, {integer(1)}) ==
        "[test.square] 1 attribute values (needs 0, one for each key it was resolved with)");
  CHECK(refused(TRL_E_SHAPE, square, {in}, {tensor(y, Dim({2}))}) ==
        "[test.square] output 0 has room for {2} of element type 1 (needs {2}x2, 1)");
  CHECK(refused(TRL_E_SHAPE, mul, {in, tensor(x, Dim({1}, 4))}, {out}) ==
        "[test.mul] input 0 has a batch of 2 (needs 1 or 4)");
  trl_tensor apart = in, absent = in, f64 = in, device = in;
  apart.batch_stride = 3;
  absent.data = nullptr;
  f64.dtype = TRL_I32;
  device.device = 1;
  CHECK(refused(TRL_E_SHAPE, square, {apart}, {out}) ==
        "[test.square] input 0 has a batch stride of 3 (needs 2, packed)");
  CHECK(refused(TRL_E_INVALID, square, {absent}, {out}) == "[test.square] input 0 is absent");
  CHECK(refused(TRL_E_DTYPE, square, {f64}, {out}) ==
        "[test.square] input 0 has element type 3 (needs f32)");
  CHECK(refused(TRL_E_INVALID, square, {device}, {out}) ==
        "[test.square] input 0 is not a plain tensor of the CPU");
  CHECK(refused(TRL_E_INVALID, c.resolve("test.fourth"), {in}, {out}).find("[test.fourth] ") == 0);
  CHECK(y == std::vector<float>(4, 7));
  // What the operator itself says comes through.
  const trl_op_handle faulty = c.resolve("test.faulty", {"when"});
  CHECK(refused(TRL_E_SHAPE, faulty, {in}, {out}, {integer(1)})
            .find("[faulty] refused: as asked (infer)") != std::string::npos);
  CHECK(refused(TRL_E_SHAPE, faulty, {in}, {out}, {integer(2)})
            .find("[faulty] failed: as asked (forward)") != std::string::npos);
  c.call.depth = 8;
  CHECK(refused(TRL_E_INVALID, square, {in}, {out}) == "[test.square] invoked 9 deep (at most 8)");
  c.call.depth = 0;
  c.call.begin(Phase::graph, nullptr);
  CHECK(refused(TRL_E_INVALID, square, {in}, {out}) ==
        "[host] invoke is not allowed in graph building");
}
