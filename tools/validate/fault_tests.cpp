// SPDX-License-Identifier: Apache-2.0
//
// Levels 8 to 10: kernels whose host fails, and what thousands of calls leave behind.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "validate/allocations.hpp"
#include "validate/op_tests.hpp"
#include "validate/process_state.hpp"
#include "validate/tests.hpp"

namespace trellis::validate {
namespace {

constexpr int kLeakRounds = 64;
constexpr uint64_t kLeak = 16 * kLeakRounds;  // a real one loses at least this in so many rounds

// The smallest case that asks the host for something in forward or backward, and what it asks.
struct Asking {
  std::unique_ptr<KernelRun> run;
  std::vector<Numbers> d_out;
  Gradients wanted;
  bool back = false;
  BenchCall::Counts forward, backward;
};
Asking ask(Context& ctx, const Case& c, const Values& v, DType dtype) {
  Asking a;
  a.run = std::make_unique<KernelRun>(ctx.bench(), c, v, RunOptions{.dtype = dtype});
  a.run->forward();
  a.forward = a.run->call().counts;
  a.back = c.op->kernel(dtype)->backward && is_differentiable(*c.op, *a.run);
  if (!a.back) return a;
  a.d_out = draw_gradients(*a.run, ctx.seed());
  a.wanted = all_wanted(*a.run, Wanted::add);
  a.run->backward(a.d_out, a.wanted);
  a.backward = a.run->call().counts;
  return a;
}

// Fails one request of one kind: the kernel reports it (or, where `may_cope`, does without and is
// right), leaks nothing, and works the next time.
void fail_request(Context& ctx, Asking& a, int64_t Faults::*which, int64_t n, bool in_backward,
                  bool may_cope, const std::string& what) {
  KernelRun& run = *a.run;
  const std::vector<Numbers> outputs = run.outputs(), gradients = run.gradients();
  const std::string how = fmt::format("{}, {} {} of {} fails", run.text(), what, n + 1,
                                      in_backward ? "backward" : "forward");
  ctx.at(how);
  const auto once = [&] {
    run.call().faults.*which = n;
    const trl_status st = in_backward ? run.try_backward(a.d_out, a.wanted) : run.try_forward();
    run.call().faults = {};
    return st;
  };
  const trl_status st = once();
  if (st == TRL_OK) {
    const std::string d = in_backward
                              ? difference("gradient of input", run.gradients(), gradients, 1e-9)
                              : difference("output", run.outputs(), outputs, 1e-9);
    if (!may_cope)
      ctx.fail(fmt::format("{}: it returns 0 (needed the status that it was given)", how));
    if (!d.empty()) ctx.fail(fmt::format("{}: it returns 0, and {}", how, d));
  } else if (run.call().text.empty()) {
    ctx.fail(fmt::format("{}: status {} and no text", how, st));
  }
  once();
  const uint64_t before = heap_bytes();
  for (int i = 0; i < kLeakRounds; ++i) once();
  if (const uint64_t after = heap_bytes(); after >= before + kLeak)
    ctx.fail(fmt::format("{}: {} such calls leak {} bytes", how, kLeakRounds, after - before));
  run.forward();
  if (const auto d = difference("output", run.outputs(), outputs, 1e-12); !d.empty())
    ctx.fail(fmt::format("{}: and the next call gives something else: {}", how, d));
  if (!a.back) return;
  run.backward(a.d_out, a.wanted);
  if (const auto d = difference("gradient of input", run.gradients(), gradients, 1e-12); !d.empty())
    ctx.fail(fmt::format("{}: and the next call gives something else: {}", how, d));
}

// All requests of one kind, of the smallest two cases that have some.
uint64_t fail_all(Context& ctx, const Subject& subject, std::string_view test,
                  int64_t Faults::*which, int64_t BenchCall::Counts::*count, bool may_cope,
                  const std::string& what) {
  uint64_t tried = 0;
  for_each_case(ctx, subject, test, [&](const Case& c, const Values& v, DType dtype) {
    if (tried >= 2 || c.numbers() > 200000) return;
    Asking a = ask(ctx, c, v, dtype);
    if (a.forward.*count == 0 && a.backward.*count == 0) return;
    ++tried;
    for (int64_t n = 0; n < std::min<int64_t>(a.forward.*count, 20); ++n)
      fail_request(ctx, a, which, n, false, may_cope, what);
    for (int64_t n = 0; n < std::min<int64_t>(a.backward.*count, 20); ++n)
      fail_request(ctx, a, which, n, true, may_cope, what);
  });
  return tried;
}

void scratch(Context& ctx, const Subject& subject) {
  if (fail_all(ctx, subject, "faults.scratch", &Faults::scratch, &BenchCall::Counts::scratch, true,
               "scratch request") == 0)
    ctx.skip("it asks for no scratch memory");
}

// The graph that an operator stands for, and its gradient, with one node refused.
uint64_t fail_graph(Context& ctx, const Subject& subject) {
  const Op op(ctx.bench(), subject.id);
  if (!op.desc().expand) return 0;
  const Case c = make_cases(ctx.bench(), op, ctx.seed()).front();
  const Values v = draw_values(c, ctx.seed());
  const auto expand = [&](BenchCall& call) {
    Graph g(ctx.runtime(), {.dtype = DType::f64});
    call.graph = &g;
    call.self = ctx.bench().self();
    call.exprs.resize(1);
    std::vector<trl_expr> in, out(op.n_visible());
    for (size_t i = 0; i < c.inputs.size(); ++i)
      in.push_back(c.inputs[i] ? call.to_c(g.input(*c.inputs[i], std::span<const double>(v[i])))
                               : trl_expr{});
    std::vector<trl_attr> attrs;
    for (const CaseAttr& a : c.attrs) attrs.push_back(a.c());
    trl_expand_args a{};
    a.struct_size = sizeof a;
    a.call = &call;
    a.attrs = attrs.data();
    a.in = in.data();
    a.out = out.data();
    a.n_attrs = static_cast<uint32_t>(attrs.size());
    a.n_in = static_cast<uint32_t>(in.size());
    a.n_out = static_cast<uint32_t>(out.size());
    a.batch = c.batch;
    const trl_status st = call.run("expand", [&] { return op.desc().expand(&a); });
    call.graph = nullptr;
    return st;
  };
  BenchCall good(ctx.bench());
  good.succeed("expand", expand(good));
  const int64_t requests = good.counts.graph;
  for (int64_t n = 0; n < requests; ++n) {
    BenchCall call(ctx.bench());
    call.faults.graph = n;
    ctx.at(fmt::format("{}, node {} of expand is refused", c.text(), n + 1));
    const trl_status st = expand(call);
    if (st == TRL_OK)
      ctx.fail(
          fmt::format("{}, node {} of expand is refused: it returns 0 (needed the status that "
                      "it was given)",
                      c.text(), n + 1));
  }
  return static_cast<uint64_t>(requests);
}

void services(Context& ctx, const Subject& subject) {
  const Op op(ctx.bench(), subject.id);
  uint64_t tried = fail_graph(ctx, subject);
  if (op.kernel(DType::f32) || op.kernel(DType::f64)) {
    tried += fail_all(ctx, subject, "faults.services", &Faults::linalg, &BenchCall::Counts::linalg,
                      false, "product");
    tried += fail_all(ctx, subject, "faults.services", &Faults::parallel,
                      &BenchCall::Counts::parallel, false, "parallel_for");
    tried += fail_all(ctx, subject, "faults.services", &Faults::invoke, &BenchCall::Counts::invoke,
                      false, "invoke");
  }
  if (tried == 0) ctx.skip("it uses no service of the host");
}

// Every call of this program catches what leaves a callback; here each is called, in good order and
// with a host that fails.
void exception(Context& ctx, const Subject& subject) {
  for_each_case(ctx, subject, "faults.exception", [&](const Case& c, const Values& v, DType dtype) {
    if (c.numbers() > 20000) return;
    KernelRun run(ctx.bench(), c, v, {.dtype = dtype});
    run.create();
    run.forward();
    const bool back = c.op->kernel(dtype)->backward && is_differentiable(*c.op, run);
    const auto d_out = draw_gradients(run, ctx.seed());
    if (back) run.backward(d_out, all_wanted(run, Wanted::add));
    for (const auto which :
         {&Faults::scratch, &Faults::linalg, &Faults::parallel, &Faults::invoke}) {
      run.call().faults.*which = 0;
      run.try_forward();
      if (back) run.try_backward(d_out, all_wanted(run, Wanted::add));
      run.call().faults = {};
    }
    run.destroy();
  });
}

void leaks(Context& ctx, const Subject& subject) {
  constexpr int kCycles = 10000;
  if (heap_bytes() == 0) ctx.skip("a sanitizer has the heap and looks for leaks itself");
  std::vector<DType> done;
  for_each_case(ctx, subject, "leaks.cycles", [&](const Case& c, const Values& v, DType dtype) {
    if (std::find(done.begin(), done.end(), dtype) != done.end()) return;
    done.push_back(dtype);
    Asking a = ask(ctx, c, v, dtype);
    ctx.at(fmt::format("{} cycles of {}", kCycles, a.run->text()));
    for (int i = 0; i < 200; ++i) a.run->cycle(a.back);
    const size_t files = open_files(), threads = running_threads();
    const uint64_t heap = heap_bytes(), resident = resident_bytes();
    for (int i = 0; i < kCycles; ++i) a.run->cycle(a.back);
    const std::string how =
        fmt::format("{}: {} cycles of create, forward, backward, destroy", a.run->text(), kCycles);
    if (const uint64_t now = heap_bytes(); now > heap + kCycles)
      ctx.fail(
          fmt::format("{} leak {} bytes ({} a cycle)", how, now - heap, (now - heap) / kCycles));
    if (const size_t now = open_files(); now > files)
      ctx.fail(fmt::format("{} leave {} files open", how, now - files));
    if (const size_t now = running_threads(); now > threads)
      ctx.fail(fmt::format("{} leave {} threads", how, now - threads));
    if (const uint64_t now = resident_bytes(); now > resident + (uint64_t{16} << 20))
      ctx.fail(fmt::format("{} make the process {} bytes larger", how, now - resident));
  });
}

void state(Context& ctx, const Subject& subject) {
  int tried = 0;
  for_each_case(ctx, subject, "process.state", [&](const Case& c, const Values& v, DType dtype) {
    if (tried++ >= 8) return;
    KernelRun run(ctx.bench(), c, v, {.dtype = dtype});
    const ProcessState before = ProcessState::now();
    const auto check = [&](const char* what) {
      if (const auto d = difference(before, ProcessState::now()); !d.empty())
        ctx.fail(fmt::format("{}, {}: {}", run.text(), what, d));
    };
    BenchCall call(ctx.bench());
    infer(call, c, dtype, TRL_CALL_TRAIN);
    check("infer");
    run.create();
    check("create");
    run.forward();
    check("forward");
    if (c.op->kernel(dtype)->backward && is_differentiable(*c.op, run)) {
      run.backward(draw_gradients(run, ctx.seed()), all_wanted(run, Wanted::add));
      check("backward");
    }
    run.destroy();
    check("destroy");
  });
}

// Between any two calls everything moves, and where it was nothing may be touched.
void retain(Context& ctx, const Subject& subject) {
  for_each_case(ctx, subject, "process.retain", [&](const Case& c, const Values& v, DType dtype) {
    if (c.numbers() > 5000) return;
    Asking a = ask(ctx, c, v, dtype);
    KernelRun moves(ctx.bench(), c, v, {.dtype = dtype});
    for (int round = 0; round < 2; ++round) {
      ctx.at(fmt::format("{}, all memory moved between calls", a.run->text()));
      moves.forward();
      if (const auto d = difference("output", moves.outputs(), a.run->outputs(), 1e-11); !d.empty())
        ctx.fail(fmt::format("{}, all memory moved between calls: {}", a.run->text(), d));
      moves.move_memory();
      if (!a.back) continue;
      moves.backward(a.d_out, a.wanted);
      if (const auto d =
              difference("gradient of input", moves.gradients(), a.run->gradients(), 1e-11);
          !d.empty())
        ctx.fail(fmt::format("{}, all memory moved between calls: {}", a.run->text(), d));
      moves.move_memory();
    }
  });
}

void allocations(Context& ctx, const Subject& subject) {
  if (!kCountsAllocations) ctx.skip("a sanitizer has the heap");
  for_each_case(ctx, subject, "cost.allocations", [&](const Case& c, const Values& v, DType dtype) {
    if (c.numbers() > 50000) return;
    Asking a = ask(ctx, c, v, dtype);  // the first calls may allocate
    a.run->bare_forward();
    if (const uint64_t n = a.run->call().counts.allocations; n > 0)
      ctx.fail(
          fmt::format("{}: a forward call takes memory from the heap {} times (needed 0: "
                      "trl.exec/1 has scratch)",
                      a.run->text(), n));
    if (!a.back) return;
    a.run->bare_backward();
    if (const uint64_t n = a.run->call().counts.allocations; n > 0)
      ctx.fail(
          fmt::format("{}: a backward call takes memory from the heap {} times (needed 0: "
                      "trl.exec/1 has scratch)",
                      a.run->text(), n));
  });
}

// The best of some rounds, in nanoseconds.
template <class F>
double time_of(F&& f) {
  using Clock = std::chrono::steady_clock;
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    const auto start = Clock::now();
    for (int i = 0; i < 200; ++i) f();
    const std::chrono::duration<double, std::nano> took = Clock::now() - start;
    best = std::min(best, took.count() / 200);
  }
  return best;
}

void cost(Context& ctx, const Subject& subject) {
  std::vector<DType> done;
  for_each_case(ctx, subject, "cost.time", [&](const Case& c, const Values& v, DType dtype) {
    if (std::find(done.begin(), done.end(), dtype) != done.end()) return;
    done.push_back(dtype);
    Asking a = ask(ctx, c, v, dtype);
    std::string figure = fmt::format("{}: {:.0f} ns forward", a.run->text(),
                                     time_of([&] { a.run->bare_forward(); }));
    if (a.back)
      figure += fmt::format(", {:.0f} ns backward", time_of([&] { a.run->bare_backward(); }));
    ctx.note(figure);
  });
}

constexpr Test kTests[] = {
    {"faults.scratch", 8, Kind::op,
     "without scratch memory: an error with a text, nothing leaked, the next call right", scratch},
    {"faults.services", 8, Kind::op,
     "a failed product, parallel_for, invoke or node is passed on, nothing leaked", services},
    {"faults.exception", 8, Kind::op, "no exception leaves a callback", exception},
    {"leaks.cycles", 9, Kind::op, "10,000 cycles leave no memory, file or thread", leaks},
    {"process.state", 9, Kind::op,
     "locale, floating-point mode, signals, threads, files, environment and folder stay as they "
     "are",
     state},
    {"process.retain", 9, Kind::op, "no pointer is kept from one call to the next", retain},
    {"cost.allocations", 10, Kind::op, "a call takes no memory from the heap", allocations},
    {"cost.time", 10, Kind::op, "time of a call, for information", cost},
};

}  // namespace

std::span<const Test> fault_tests() { return kTests; }

}  // namespace trellis::validate
