// SPDX-License-Identifier: Apache-2.0
//
// Levels 6 and 7: what the host does with nodes of a kind - merging them, in any order, flat, at the
// same time - changes no result.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "validate/op_tests.hpp"
#include "validate/tests.hpp"

namespace trellis::validate {
namespace {

constexpr uint32_t kNodes = 3;

// A node of its own: the same shapes, other numbers and ids.
struct Node {
  Case c;
  Values values;
  std::vector<trl_stream> streams;
};

std::vector<Node> make_nodes(Context& ctx, const Case& c, bool shares) {
  std::vector<Node> nodes;
  RandomEngine random(ctx.seed(), 9);
  for (uint32_t n = 0; n < kNodes; ++n) {
    Node node{c, draw_values(c, mix64(ctx.seed(), n)), {}};
    for (size_t i = 0; i < c.attrs.size(); ++i)
      if (is_per_batch(c.op->attr(i))) draw_attr(node.c, i, random);
    for (uint32_t b = 0; b < c.batch; ++b)
      node.streams.push_back({{11 + n, 5}, {static_cast<uint32_t>(ctx.seed()), b}});
    for (size_t i = 0; i < c.inputs.size() && shares && n > 0; ++i)
      if (c.op->in(i).merge == TRL_IN_SHARED && c.inputs[i] && c.inputs[i]->batch == 1)
        node.values[i] = nodes[0].values[i];
    nodes.push_back(std::move(node));
  }
  return nodes;
}

bool is_shared(const Case& c, size_t i, bool shares) {
  return shares && c.inputs[i] && c.op->in(i).merge == TRL_IN_SHARED && c.inputs[i]->batch == 1;
}

// The nodes as one call: inputs one after another, those that serve a batch repeated.
Node merge(const std::vector<Node>& nodes, bool shares) {
  const Case& c = nodes[0].c;
  Node all{c, Values(c.inputs.size()), {}};
  all.c.batch = c.batch * kNodes;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (!c.inputs[i]) continue;
    if (is_shared(c, i, shares)) {
      all.values[i] = nodes[0].values[i];
      continue;
    }
    all.c.inputs[i]->batch = all.c.batch;
    for (const Node& n : nodes)
      for (uint32_t r = 0; r < c.batch / c.inputs[i]->batch; ++r)
        all.values[i].insert(all.values[i].end(), n.values[i].begin(), n.values[i].end());
  }
  for (size_t i = 0; i < c.attrs.size(); ++i) {
    if (!is_per_batch(c.op->attr(i))) continue;
    CaseAttr& a = all.c.attrs[i];
    a.is.clear();
    a.fs.clear();
    a.offsets = {0};
    for (const Node& n : nodes) {
      const CaseAttr& from = n.c.attrs[i];
      const uint32_t base = a.offsets.back();
      a.is.insert(a.is.end(), from.is.begin(), from.is.end());
      a.fs.insert(a.fs.end(), from.fs.begin(), from.fs.end());
      for (size_t b = 1; b < from.offsets.size(); ++b) a.offsets.push_back(base + from.offsets[b]);
    }
  }
  for (const Node& n : nodes)
    all.streams.insert(all.streams.end(), n.streams.begin(), n.streams.end());
  return all;
}

void append(Numbers& to, const Numbers& from) { to.insert(to.end(), from.begin(), from.end()); }

// What the merged call's gradient of input i must be: that of each node, one after another, summed
// where the input is shared. The merged one is summed over what was repeated.
Numbers fold(const Numbers& merged, uint32_t repeats, size_t one) {
  if (repeats == 1) return merged;
  Numbers sum(merged.size() / repeats, 0.0);
  for (size_t k = 0; k < merged.size(); ++k) {
    const size_t node = k / (one * repeats);
    sum[node * one + k % one] += merged[k];
  }
  return sum;
}

void merged(Context& ctx, const Subject& subject) {
  if (Op(ctx.bench(), subject.id).changes_batch())
    ctx.skip("it changes the batch: its nodes are never merged");
  for_each_case(ctx, subject, "batch.merged", [&](const Case& c, const Values&, DType dtype) {
    if (dtype != DType::f64 && c.op->kernel(DType::f64)) return;
    if (c.numbers() > 20000) return;
    bool has_shared = false;
    for (size_t i = 0; i < c.inputs.size(); ++i) has_shared |= is_shared(c, i, true);
    for (const bool shares : {false, true}) {
      if (shares && !has_shared) continue;
      const std::vector<Node> nodes = make_nodes(ctx, c, shares);
      const Node all = merge(nodes, shares);
      BenchCall call(ctx.bench());
      const Inferred inferred = infer(call, all.c, dtype, TRL_CALL_TRAIN);
      if (inferred.status != TRL_OK)
        ctx.fail(
            fmt::format("{}: refused with batch {}: {}", c.text(), all.c.batch, inferred.text));
      for (const trl_dim& d : inferred.out)
        if (d.batch != all.c.batch)
          ctx.fail(
              fmt::format("{}: with batch {} an output has batch {} (an operator that changes "
                          "the batch declares TRL_IN_NEVER)",
                          c.text(), all.c.batch, d.batch));
      // All forward calls before any backward: nothing may be kept but by hidden outputs.
      std::vector<std::unique_ptr<KernelRun>> alone;
      std::vector<Numbers> needed;
      for (const Node& n : nodes) {
        alone.push_back(std::make_unique<KernelRun>(
            ctx.bench(), n.c, n.values, RunOptions{.dtype = dtype, .streams = n.streams}));
        alone.back()->forward();
        const auto outputs = alone.back()->outputs();
        needed.resize(outputs.size());
        for (size_t o = 0; o < outputs.size(); ++o) append(needed[o], outputs[o]);
      }
      KernelRun together(
          ctx.bench(), all.c, all.values,
          {.dtype = dtype, .flags = TRL_CALL_TRAIN | TRL_CALL_MERGED, .streams = all.streams});
      together.forward();
      const double close = dtype == DType::f64 ? 1e-11 : 2e-5;
      const std::string how = fmt::format("{} nodes of {} merged{}", kNodes, alone[0]->text(),
                                          shares ? ", one parameter for all" : "");
      if (const auto d = difference("output", together.outputs(), needed, close); !d.empty())
        ctx.fail(fmt::format("{}: {}", how, d));
      if (!c.op->kernel(dtype)->backward || !is_differentiable(*c.op, together)) continue;
      const auto d_out = draw_gradients(together, ctx.seed());
      std::vector<Numbers> d_needed(c.inputs.size());
      for (uint32_t n = 0; n < kNodes; ++n) {
        std::vector<Numbers> part;
        for (const Numbers& d : d_out) {
          const auto from = d.begin() + static_cast<std::ptrdiff_t>(n * d.size() / kNodes);
          part.emplace_back(from, from + static_cast<std::ptrdiff_t>(d.size() / kNodes));
        }
        alone[n]->backward(part, all_wanted(*alone[n], Wanted::add));
        const auto gradients = alone[n]->gradients();
        for (size_t i = 0; i < gradients.size(); ++i) {
          if (is_shared(c, i, shares) && n > 0)
            for (size_t k = 0; k < gradients[i].size(); ++k) d_needed[i][k] += gradients[i][k];
          else
            append(d_needed[i], gradients[i]);
        }
      }
      together.backward(d_out, all_wanted(together, Wanted::add));
      std::vector<Numbers> got = together.gradients();
      for (size_t i = 0; i < got.size(); ++i)
        if (!got[i].empty() && !is_shared(c, i, shares))
          got[i] = fold(got[i], c.batch / c.inputs[i]->batch, c.inputs[i]->elements());
      if (const auto d = difference("gradient of input", got, d_needed, close); !d.empty())
        ctx.fail(fmt::format("{}: {}", how, d));
    }
  });
}

// Rows of a list of numbers in another order.
Numbers permuted(const Numbers& v, const std::vector<uint32_t>& order) {
  const size_t one = v.size() / order.size();
  Numbers to;
  for (const uint32_t b : order)
    to.insert(to.end(), v.begin() + static_cast<std::ptrdiff_t>(b * one),
              v.begin() + static_cast<std::ptrdiff_t>((b + 1) * one));
  return to;
}

void order(Context& ctx, const Subject& subject) {
  if (Op(ctx.bench(), subject.id).changes_batch())
    ctx.skip("it changes the batch: its result may depend on the order");
  bool tried = false;
  for_each_case(ctx, subject, "batch.order", [&](const Case& c, const Values& v, DType dtype) {
    if (c.batch < 3 || c.numbers() > 20000) return;
    tried = true;
    std::vector<uint32_t> places(c.batch);
    std::iota(places.rbegin(), places.rend(), 0u);
    std::swap(places[0], places[1]);
    std::vector<trl_stream> streams;
    for (uint32_t b = 0; b < c.batch; ++b) streams.push_back({{3, 4}, {b, 9}});
    Case other = c;
    Values values = v;
    for (size_t i = 0; i < v.size(); ++i)
      if (c.inputs[i] && c.inputs[i]->batch > 1) values[i] = permuted(v[i], places);
    for (size_t i = 0; i < c.attrs.size(); ++i) {
      const CaseAttr& from = c.attrs[i];
      if (from.offsets.empty()) continue;
      CaseAttr& to = other.attrs[i];
      to.is.clear();
      to.fs.clear();
      to.offsets = {0};
      for (const uint32_t b : places) {
        for (uint32_t k = from.offsets[b]; k < from.offsets[b + 1]; ++k) {
          if (!from.is.empty()) to.is.push_back(from.is[k]);
          if (!from.fs.empty()) to.fs.push_back(from.fs[k]);
        }
        to.offsets.push_back(static_cast<uint32_t>(std::max(to.is.size(), to.fs.size())));
      }
    }
    std::vector<trl_stream> other_streams;
    for (const uint32_t b : places) other_streams.push_back(streams[b]);
    KernelRun first(ctx.bench(), c, v, {.dtype = dtype, .streams = streams});
    KernelRun second(ctx.bench(), other, values, {.dtype = dtype, .streams = other_streams});
    first.forward();
    second.forward();
    const double close = dtype == DType::f64 ? 1e-11 : 2e-5;
    std::vector<Numbers> needed = first.outputs();
    for (uint32_t o = 0; o < needed.size(); ++o)
      if (first.out_dim(o).batch == c.batch) needed[o] = permuted(needed[o], places);
    if (const auto d = difference("output", second.outputs(), needed, close); !d.empty())
      ctx.fail(fmt::format("{}: batch elements in another order: {}", first.text(), d));
    if (!c.op->kernel(dtype)->backward || !is_differentiable(*c.op, first)) return;
    auto d_out = draw_gradients(first, ctx.seed());
    first.backward(d_out, all_wanted(first, Wanted::add));
    for (uint32_t o = 0; o < d_out.size(); ++o)
      if (!d_out[o].empty() && first.out_dim(o).batch == c.batch)
        d_out[o] = permuted(d_out[o], places);
    second.backward(d_out, all_wanted(second, Wanted::add));
    needed = first.gradients();
    for (size_t i = 0; i < needed.size(); ++i)
      if (!needed[i].empty() && c.inputs[i]->batch > 1) needed[i] = permuted(needed[i], places);
    if (const auto d = difference("gradient of input", second.gradients(), needed, close);
        !d.empty())
      ctx.fail(fmt::format("{}: batch elements in another order: {}", first.text(), d));
  });
  if (!tried) ctx.skip("no case with a batch of 3 or more");
}

void elementwise(Context& ctx, const Subject& subject) {
  const Op op(ctx.bench(), subject.id);
  if (!op.has(TRL_OP_ELEMENTWISE)) ctx.skip("not declared element-wise");
  for (uint16_t i = 0; i < op.desc().n_attrs; ++i)
    if (is_per_batch(op.attr(i)))
      ctx.skip("it has per-batch attributes: the host does not flatten it");
  if (op.has(TRL_OP_STOCHASTIC)) ctx.skip("stochastic: the host does not flatten it");
  bool tried = false;
  for_each_case(ctx, subject, "batch.elementwise", [&](const Case& c, const Values&, DType dtype) {
    if (c.inputs.empty() || c.numbers() > 20000) return;
    for (const auto& d : c.inputs)
      if (!d || !(*d == *c.inputs[0])) return;
    std::vector<Numbers> needed;
    Values flat_values(c.inputs.size());
    std::vector<std::unique_ptr<KernelRun>> alone;
    for (uint32_t n = 0; n < kNodes; ++n) {
      const Values v = draw_values(c, mix64(ctx.seed(), n));
      alone.push_back(std::make_unique<KernelRun>(ctx.bench(), c, v, RunOptions{.dtype = dtype}));
      alone.back()->forward();
      const auto outputs = alone.back()->outputs();
      needed.resize(outputs.size());
      for (size_t o = 0; o < outputs.size(); ++o) append(needed[o], outputs[o]);
      for (size_t i = 0; i < v.size(); ++i) append(flat_values[i], v[i]);
    }
    Case flat = c;
    flat.batch = 1;
    const auto n = static_cast<uint32_t>(flat_values[0].size());
    for (auto& d : flat.inputs) d = Dim({n});
    BenchCall call(ctx.bench());
    if (infer(call, flat, dtype, TRL_CALL_TRAIN).status != TRL_OK) return;
    tried = true;
    KernelRun together(ctx.bench(), flat, flat_values,
                       {.dtype = dtype, .flags = TRL_CALL_TRAIN | TRL_CALL_MERGED});
    together.forward();
    const double close = dtype == DType::f64 ? 1e-12 : 1e-5;
    if (const auto d = difference("output", together.outputs(), needed, close); !d.empty())
      ctx.fail(fmt::format("{} nodes of {} as one run of {} elements: {}", kNodes, alone[0]->text(),
                           n, d));
    if (!op.kernel(dtype)->backward || !is_differentiable(op, together)) return;
    const auto d_out = draw_gradients(together, ctx.seed());
    together.backward(d_out, all_wanted(together, Wanted::add));
    std::vector<Numbers> d_needed(c.inputs.size());
    for (uint32_t k = 0; k < kNodes; ++k) {
      std::vector<Numbers> part;
      for (const Numbers& d : d_out) {
        const auto from = d.begin() + static_cast<std::ptrdiff_t>(k * d.size() / kNodes);
        part.emplace_back(from, from + static_cast<std::ptrdiff_t>(d.size() / kNodes));
      }
      alone[k]->backward(part, all_wanted(*alone[k], Wanted::add));
      for (size_t i = 0; i < d_needed.size(); ++i) append(d_needed[i], alone[k]->gradient(i));
    }
    if (const auto d = difference("gradient of input", together.gradients(), d_needed, close);
        !d.empty())
      ctx.fail(fmt::format("{} nodes of {} as one run of {} elements: {}", kNodes, alone[0]->text(),
                           n, d));
  });
  if (!tried) ctx.skip("no case whose inputs have one shape, or none accepted flat");
}

// The first example with a batch large enough for about this many numbers.
Case large_case(Context& ctx, const Op& op, uint64_t numbers) {
  const std::vector<Case> cases = make_cases(ctx.bench(), op, ctx.seed());
  Case c = cases.back();
  RandomEngine random(ctx.seed(), 12);
  const auto batch = static_cast<uint32_t>(
      std::clamp<uint64_t>(numbers / std::max<uint64_t>(1, c.numbers() / c.batch), 1, 4096));
  Case to = c;
  for (auto& d : to.inputs)
    if (d) d->batch = batch;
  if (!to.settle()) return c;
  to.batch = batch;
  for (size_t i = 0; i < to.attrs.size(); ++i)
    if (is_per_batch(op.attr(i))) draw_attr(to, i, random);
  BenchCall call(ctx.bench());
  return infer(call, to, DType::f64, TRL_CALL_TRAIN).status == TRL_OK ? to : c;
}

DType best_dtype(const Op& op) { return op.kernel(DType::f64) ? DType::f64 : DType::f32; }

// Leaves the test where there is no kernel to call.
void need_kernel(Context& ctx, const Op& op) {
  if (!op.kernel(DType::f64) && !op.kernel(DType::f32))
    ctx.skip("a composite: it has no kernel of its own");
  if (!op.kernel(best_dtype(op))->forward) ctx.skip("only a view: the host never calls its kernel");
}

void same_from_threads(Context& ctx, const Subject& subject) {
  const Op op(ctx.bench(), subject.id);
  need_kernel(ctx, op);
  if (op.has(TRL_OP_NONDETERMINISTIC)) ctx.skip("declared not deterministic");
  const DType dtype = best_dtype(op);
  constexpr size_t kThreads = 4;
  const std::vector<Case> cases = {make_cases(ctx.bench(), op, ctx.seed()).front(),
                                   large_case(ctx, op, 20000)};
  for (const Case& c : cases) {
    ctx.at(fmt::format("{} from {} threads at once", c.text(), kThreads));
    // Every thread has its own numbers, so that one that sees another's is noticed.
    std::vector<std::unique_ptr<KernelRun>> needed, runs;
    std::vector<std::vector<Numbers>> d_out;
    bool back = op.kernel(dtype)->backward != nullptr;
    for (size_t t = 0; t < kThreads; ++t) {
      const Values v = draw_values(c, mix64(ctx.seed(), t));
      for (auto* list : {&needed, &runs}) {
        list->push_back(std::make_unique<KernelRun>(ctx.bench(), c, v, RunOptions{.dtype = dtype}));
        list->back()->forward();
      }
      back &= is_differentiable(op, *runs[0]);
      if (needed[0]->call().counts.invoke > 0) ctx.runtime();
      d_out.push_back(draw_gradients(*runs[t], mix64(ctx.seed(), t)));
      if (back) needed[t]->backward(d_out[t], all_wanted(*needed[t], Wanted::add));
    }
    std::vector<std::string> failures(kThreads);
    std::atomic<size_t> ready{0};
    std::vector<std::thread> threads;
    const int rounds = c.numbers() > 5000 ? 12 : 200;
    for (size_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        ++ready;
        while (ready < kThreads) std::this_thread::yield();
        try {
          for (int round = 0; round < rounds && failures[t].empty(); ++round) {
            runs[t]->forward();
            failures[t] = different_bits(*needed[t], *runs[t]);
            if (!back || !failures[t].empty()) continue;
            runs[t]->backward(d_out[t], all_wanted(*runs[t], Wanted::add));
            failures[t] = different_gradient_bits(*needed[t], *runs[t]);
          }
        } catch (const Failure& f) {
          failures[t] = f.text;
        }
      });
    for (std::thread& t : threads) t.join();
    for (const std::string& f : failures)
      if (!f.empty())
        ctx.fail(fmt::format("{} from {} threads at once: {}", needed[0]->text(), kThreads, f));
  }
}

void any_split(Context& ctx, const Subject& subject) {
  const Op op(ctx.bench(), subject.id);
  need_kernel(ctx, op);
  const DType dtype = best_dtype(op);
  bool tried = false;
  for (const uint64_t numbers : {uint64_t{1000}, uint64_t{200000}}) {
    const Case c = large_case(ctx, op, numbers);
    const Values v = draw_values(c, ctx.seed());
    ctx.at(fmt::format("{}, parallel_for in parts", c.text()));
    KernelRun whole(ctx.bench(), c, v, {.dtype = dtype});
    whole.forward();
    int64_t loops = whole.call().counts.parallel;
    const bool back = op.kernel(dtype)->backward && is_differentiable(op, whole);
    const auto d_out = draw_gradients(whole, ctx.seed());
    if (back) {
      whole.backward(d_out, all_wanted(whole, Wanted::add));
      loops += whole.call().counts.parallel;
    }
    if (loops == 0) continue;
    tried = true;
    for (const auto& [split, name] :
         {std::pair{Split::grains, "in grains"}, std::pair{Split::backwards, "from its end"},
          std::pair{Split::threads, "on four threads"}}) {
      KernelRun parts(ctx.bench(), c, v, {.dtype = dtype, .split = split});
      parts.forward();
      std::string d = difference("output", parts.outputs(), whole.outputs(), 1e-12);
      if (d.empty() && back) {
        parts.backward(d_out, all_wanted(parts, Wanted::add));
        d = difference("gradient of input", parts.gradients(), whole.gradients(), 1e-11);
      }
      if (!d.empty()) ctx.fail(fmt::format("{}, parallel_for {}: {}", whole.text(), name, d));
    }
  }
  if (!tried) ctx.skip("it never calls parallel_for (tried up to 200,000 numbers)");
}

constexpr Test kTests[] = {
    {"batch.merged", 6, Kind::op,
     "nodes merged into one call give what each gives alone, values, gradients and masks", merged},
    {"batch.order", 6, Kind::op, "batch elements in another order give the results in that order",
     order},
    {"batch.elementwise", 6, Kind::op,
     "what is declared element-wise is right on any run of elements", elementwise},
    {"threads.same", 7, Kind::op, "several threads at once get what one gets", same_from_threads},
    {"threads.parallel-for", 7, Kind::op, "however parallel_for is cut, the result is the same",
     any_split},
};

}  // namespace

std::span<const Test> batch_tests() { return kTests; }

}  // namespace trellis::validate
