// SPDX-License-Identifier: Apache-2.0
//
// Level 4: what a forward kernel writes, and what it may depend on.

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "validate/op_tests.hpp"
#include "validate/tests.hpp"

namespace trellis::validate {
namespace {

// Fills the stack below with a byte, so that a kernel that reads what it never set finds that.
[[gnu::noinline]] void dirty_stack(uint8_t byte) {
  volatile char room[32768];
  for (volatile char& c : room) c = static_cast<char>(byte);
}

// Every element of every output, and nothing else (KernelRun looks at the rest). An element that
// holds the poison of two runs was not written.
void writes(Context& ctx, const Subject& subject) {
  for_each_case(ctx, subject, "forward.writes", [&](const Case& c, const Values& v, DType dtype) {
    KernelRun first(ctx.bench(), c, v, {.dtype = dtype, .poison = 0xA5});
    first.forward();
    const auto left = first.unwritten();
    if (left.empty()) return;
    KernelRun second(ctx.bench(), c, v, {.dtype = dtype, .poison = 0x5A});
    second.forward();
    const auto left_again = second.unwritten();
    for (const std::string& element : left)
      if (std::find(left_again.begin(), left_again.end(), element) != left_again.end())
        ctx.fail(fmt::format("{}: {} is not written", first.text(), element));
  });
}

// Outputs, scratch, the readable bytes behind buffers, new heap memory and the stack hold one
// pattern in one run (no number) and another one in the next.
void unset(Context& ctx, const Subject& subject) {
  for_each_case(ctx, subject, "forward.unset", [&](const Case& c, const Values& v, DType dtype) {
    const auto run_with = [&](KernelRun& run, uint8_t byte) {
      ::mallopt(M_PERTURB, byte);
      dirty_stack(byte);
      run.forward();
      const bool can = c.op->kernel(dtype)->backward && is_differentiable(*c.op, run);
      if (can) {
        const auto d_out = draw_gradients(run, ctx.seed());
        const auto wanted = all_wanted(run, Wanted::store);
        dirty_stack(byte);
        run.backward(d_out, wanted);
      }
      ::mallopt(M_PERTURB, 0);
      return can;
    };
    KernelRun a(ctx.bench(), c, v, {.dtype = dtype, .poison = 0xFF, .around = 0xFF});
    KernelRun b(ctx.bench(), c, v, {.dtype = dtype, .poison = 0x3F, .around = 0x11});
    const bool has_gradients = run_with(a, 0xFF);
    run_with(b, 0x3F);
    std::string d = different_bits(a, b);
    if (d.empty() && has_gradients) d = different_gradient_bits(a, b);
    if (!d.empty()) ctx.fail(fmt::format("{}: depends on memory that nobody set: {}", a.text(), d));
  });
}

double close_in(DType dtype) { return dtype == DType::f64 ? 1e-11 : 1e-4; }

void views(Context& ctx, const Subject& subject) {
  for_each_case(ctx, subject, "forward.views", [&](const Case& c, const Values& v, DType dtype) {
    KernelRun plain(ctx.bench(), c, v, {.dtype = dtype});
    plain.forward();
    for (const size_t shift : {dtype_size(dtype), size_t{16}, size_t{32}}) {
      KernelRun moved(ctx.bench(), c, v, {.dtype = dtype, .shift = shift});
      moved.forward();
      if (const auto d = difference("output", moved.outputs(), plain.outputs(), close_in(dtype));
          !d.empty())
        ctx.fail(fmt::format("{}, {} bytes off an alignment of 64: {}", plain.text(), shift, d));
    }
    if (c.op->has(TRL_OP_STRIDED)) {
      KernelRun scattered(ctx.bench(), c, v, {.dtype = dtype, .pointers = true});
      scattered.forward();
      if (const auto d =
              difference("output", scattered.outputs(), plain.outputs(), close_in(dtype));
          !d.empty())
        ctx.fail(fmt::format("{}, one pointer per batch element: {}", plain.text(), d));
    }
    if (c.op->changes_batch() || c.batch == 1) return;
    // An input of batch 1 serves all, as its copies do.
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      if (!c.inputs[i] || c.inputs[i]->batch == 1) continue;
      Case one = c;
      one.inputs[i]->batch = 1;
      one.batch = c.batch;
      Values repeated = v, single = v;
      const size_t n = v[i].size() / c.batch;
      single[i].resize(n);
      for (size_t k = 0; k < repeated[i].size(); ++k) repeated[i][k] = v[i][k % n];
      BenchCall call(ctx.bench());
      if (infer(call, one, dtype, TRL_CALL_TRAIN).status != TRL_OK) continue;
      KernelRun shared(ctx.bench(), one, single, {.dtype = dtype});
      KernelRun copies(ctx.bench(), c, repeated, {.dtype = dtype});
      shared.forward();
      copies.forward();
      if (const auto d = difference("output", shared.outputs(), copies.outputs(), close_in(dtype));
          !d.empty())
        ctx.fail(fmt::format("{}: input {} with batch stride 0 and its copies differ: {}",
                             shared.text(), i, d));
    }
  });
}

void inference(Context& ctx, const Subject& subject) {
  for_each_case(ctx, subject, "forward.inference",
                [&](const Case& c, const Values& v, DType dtype) {
                  const auto compare = [&](uint32_t a_flags, uint32_t b_flags, const char* what) {
                    KernelRun a(ctx.bench(), c, v, {.dtype = dtype, .flags = a_flags});
                    KernelRun b(ctx.bench(), c, v, {.dtype = dtype, .flags = b_flags});
                    a.forward();
                    b.forward();
                    if (const auto d = different_bits(a, b); !d.empty())
                      ctx.fail(fmt::format("{}: {} changes the result: {}", a.text(), what, d));
                  };
                  compare(TRL_CALL_TRAIN, TRL_CALL_TRAIN | TRL_CALL_NO_BACKWARD,
                          "TRL_CALL_NO_BACKWARD (no hidden outputs)");
                  compare(0, TRL_CALL_NO_BACKWARD, "TRL_CALL_NO_BACKWARD (no hidden outputs)");
                  compare(TRL_CALL_TRAIN, TRL_CALL_TRAIN | TRL_CALL_MERGED, "TRL_CALL_MERGED");
                  if (!c.op->has(TRL_OP_MODE | TRL_OP_STOCHASTIC))
                    compare(TRL_CALL_TRAIN, 0, "the mode (TRL_OP_MODE is not declared)");
                });
}

void repeat(Context& ctx, const Subject& subject) {
  if (Op(ctx.bench(), subject.id).has(TRL_OP_NONDETERMINISTIC))
    ctx.skip("declared not deterministic");
  for_each_case(ctx, subject, "forward.repeat", [&](const Case& c, const Values& v, DType dtype) {
    KernelRun first(ctx.bench(), c, v, {.dtype = dtype}),
        again(ctx.bench(), c, v, {.dtype = dtype});
    first.forward();
    for (int i = 1; i < 3; ++i) {
      again.forward();
      if (const auto d = different_bits(first, again); !d.empty())
        ctx.fail(fmt::format("{}: call {} of the same differs: {}", first.text(), i + 1, d));
    }
  });
}

void near_f64(Context& ctx, const Subject& subject) {
  const Op op(ctx.bench(), subject.id);
  if (!op.kernel(DType::f32)) ctx.skip("no f32 kernel");
  if (!op.kernel(DType::f64)) ctx.skip("no f64 kernel to compare with");
  for_each_case(ctx, subject, "forward.f32", [&](const Case& c, const Values& given, DType dtype) {
    if (dtype != DType::f32) return;
    Values v = given;
    for (Numbers& numbers : v)
      for (double& x : numbers) x = static_cast<float>(x);
    KernelRun exact(ctx.bench(), c, v, {.dtype = DType::f64});
    KernelRun single(ctx.bench(), c, v, {.dtype = DType::f32});
    exact.forward();
    single.forward();
    // Errors of sums grow with the number of terms.
    const double grow = std::max(1.0, std::sqrt(double(c.numbers())) / 16);
    if (const auto d = difference("output", single.outputs(), exact.outputs(), 2e-5 * grow);
        !d.empty())
      ctx.fail(fmt::format("{}: f32 is far from f64: {}", single.text(), d));
    if (!op.kernel(DType::f32)->backward || !op.kernel(DType::f64)->backward ||
        !is_differentiable(op, exact))
      return;
    auto d_out = draw_gradients(exact, ctx.seed());
    for (Numbers& numbers : d_out)
      for (double& x : numbers) x = static_cast<float>(x);
    exact.backward(d_out, all_wanted(exact, Wanted::add));
    single.backward(d_out, all_wanted(single, Wanted::add));
    if (const auto d =
            difference("gradient of input", single.gradients(), exact.gradients(), 2e-4 * grow);
        !d.empty())
      ctx.fail(fmt::format("{}: f32 is far from f64: {}", single.text(), d));
  });
}

// Numbers at the ends of the type, and none: the kernel may refuse with a text; it may not crash,
// hang, write elsewhere or leave something unwritten.
void extreme(Context& ctx, const Subject& subject) {
  for_each_case(ctx, subject, "forward.extreme", [&](const Case& c, const Values& v, DType dtype) {
    if (c.numbers() > 2000) return;
    const bool single = dtype == DType::f32;
    using F = std::numeric_limits<float>;
    using D = std::numeric_limits<double>;
    const double inf = D::infinity(), huge = single ? double(F::max()) : D::max(),
                 denormal = single ? double(F::denorm_min()) : D::denorm_min();
    const std::vector<std::pair<const char*, Numbers>> fills = {
        {"zeros", {0.0}},
        {"negative zeros", {-0.0}},
        {"denormal numbers", {denormal, -denormal}},
        {"infinities", {inf, -inf}},
        {"infinity", {inf}},
        {"no numbers (NaN)", {D::quiet_NaN()}},
        {"the largest numbers", {huge, -huge}},
        {"all of them", {0.0, inf, D::quiet_NaN(), -huge, denormal, -inf, 1.0}}};
    for (const auto& [name, numbers] : fills) {
      Values extreme_values = v;
      for (size_t i = 0; i < v.size(); ++i)
        for (size_t k = 0; k < v[i].size(); ++k)
          if (const uint16_t t = c.op->in(i).dtype; t == 0 || t == TRL_F32 || t == TRL_F64)
            extreme_values[i][k] = numbers[k % numbers.size()];
      KernelRun run(ctx.bench(), c, extreme_values, {.dtype = dtype});
      ctx.at(fmt::format("{} on {}", run.text(), name));
      const trl_status st = run.try_forward();
      if (st != TRL_OK) {
        if (run.call().text.empty())
          ctx.fail(fmt::format("{} on {}: fails with status {} and no text", run.text(), name, st));
        continue;
      }
      if (!c.op->kernel(dtype)->backward || !is_differentiable(*c.op, run)) continue;
      const trl_status back =
          run.try_backward(draw_gradients(run, ctx.seed()), all_wanted(run, Wanted::add));
      if (back != TRL_OK && run.call().text.empty())
        ctx.fail(fmt::format("{} on {}: backward fails with status {} and no text", run.text(),
                             name, back));
    }
  });
}

constexpr Test kTests[] = {
    {"forward.writes", 4, Kind::op,
     "every output element is written, nothing outside; inputs and scratch stay intact", writes},
    {"forward.unset", 4, Kind::op, "no result depends on memory that nobody set", unset},
    {"forward.views", 4, Kind::op,
     "inputs may be mis-aligned, shared by the batch (stride 0) or, where declared, one pointer "
     "per element",
     views},
    {"forward.inference", 4, Kind::op,
     "what is not kept for backward changes no bit, nor does the mode unless declared", inference},
    {"forward.repeat", 4, Kind::op, "the same call gives the same bits", repeat},
    {"forward.f32", 4, Kind::op, "f32 is near f64, values and gradients", near_f64},
    {"forward.extreme", 4, Kind::op,
     "zeros, denormal, infinite, huge and no numbers: no crash, no hang, a status with a text",
     extreme},
};

}  // namespace

std::span<const Test> forward_tests() { return kTests; }

}  // namespace trellis::validate
