// SPDX-License-Identifier: Apache-2.0
#include "validate/op_tests.hpp"

#include <fmt/format.h>

namespace trellis::validate {

void for_each_case(Context& ctx, const Subject& subject, std::string_view test,
                   const std::function<void(const Case&, const Values&, DType)>& body) {
  const Op op(ctx.bench(), subject.id);
  if (const std::string reason = op.unchecked(test); !reason.empty()) ctx.skip(reason);
  if (!op.kernel(DType::f32) && !op.kernel(DType::f64))
    ctx.skip("a composite: it has no kernel of its own");
  bool called = false;
  for (const Case& c : make_cases(ctx.bench(), op, ctx.seed())) {
    const Values values = draw_values(c, ctx.seed());
    for (const DType dtype : {DType::f64, DType::f32}) {
      const trl_kernel_desc* kernel = op.kernel(dtype);
      if (!kernel || !kernel->forward) continue;
      called = true;
      ctx.at(fmt::format("{} {}", c.text(), dtype_name(dtype)));
      body(c, values, dtype);
    }
  }
  if (!called) ctx.skip("only a view: the host never calls its kernel");
}

void for_each_gradient(Context& ctx, const Subject& subject, std::string_view test,
                       const std::function<void(const Case&, const Values&, KernelRun&)>& body) {
  const Op op(ctx.bench(), subject.id);
  if (const std::string reason = op.unchecked(test); !reason.empty()) ctx.skip(reason);
  const trl_kernel_desc* kernel = op.kernel(DType::f64);
  if (!kernel)
    ctx.skip(op.kernel(DType::f32) ? "no f64 kernel, which gradients are checked with"
                                   : "a composite: it has no kernel of its own");
  if (!kernel->backward) ctx.skip("declared without a gradient of its own");
  bool called = false;
  for (const Case& c : make_cases(ctx.bench(), op, ctx.seed())) {
    const Values values = draw_values(c, ctx.seed());
    ctx.at(fmt::format("{} f64", c.text()));
    KernelRun run(ctx.bench(), c, values);
    if (!is_differentiable(op, run)) continue;
    run.forward();
    called = true;
    body(c, values, run);
  }
  if (!called) ctx.skip("no case with a float output and an input that takes a gradient");
}

}  // namespace trellis::validate
