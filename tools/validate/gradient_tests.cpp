// SPDX-License-Identifier: Apache-2.0
//
// Level 5: gradients, in f64.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "validate/op_tests.hpp"
#include "validate/tests.hpp"

namespace trellis::validate {
namespace {

// The outputs' projection on the gradients given to backward, and the sum of its terms' sizes.
struct Projection {
  double value = 0, size = 0;
};
Projection project(BenchHost& bench, const Case& c, const Values& v,
                   const std::vector<Numbers>& d_out) {
  KernelRun run(bench, c, v);
  run.forward();
  Projection p;
  for (uint32_t o = 0; o < run.n_visible(); ++o) {
    if (d_out[o].empty()) continue;
    const Numbers y = run.output(o);
    for (size_t e = 0; e < y.size(); ++e) {
      p.value += y[e] * d_out[o][e];
      p.size += std::abs(y[e] * d_out[o][e]);
    }
  }
  return p;
}

// Whether the slope along a direction in input i is `expected`: central differences of fourth
// order, at several steps, because a kink may lie within one of them. The last one is returned.
bool has_slope(BenchHost& bench, const Case& c, const Values& v, const std::vector<Numbers>& d_out,
               size_t i, const Numbers& direction, double expected, double* numeric) {
  const auto at = [&](double h) {
    Values moved = v;
    for (size_t k = 0; k < moved[i].size(); ++k) moved[i][k] += h * direction[k];
    return project(bench, c, moved, d_out);
  };
  for (const double h : {1e-4, 1e-5, 1e-6}) {
    const Projection a = at(h), b = at(-h), far = at(2 * h), near = at(-2 * h);
    *numeric = (8 * (a.value - b.value) - (far.value - near.value)) / (12 * h);
    const double noise = 1e-15 * (a.size + b.size + 1) / h;
    const double tolerance =
        1e-6 * std::max(std::abs(*numeric), std::abs(expected)) + 10 * noise + 1e-9;
    if (std::abs(*numeric - expected) <= tolerance) return true;
  }
  return false;
}

void gradient_difference(Context& ctx, const Subject& subject) {
  for_each_gradient(
      ctx, subject, "gradient.difference", [&](const Case& c, const Values& v, KernelRun& run) {
        // Among very many numbers some lie nearer to a kink than any step.
        if (c.numbers() > 4000) return;
        const std::vector<Numbers> d_out = draw_gradients(run, ctx.seed());
        run.backward(d_out, all_wanted(run, Wanted::add));
        const std::vector<Numbers> gradients = run.gradients();
        RandomEngine random(ctx.seed(), 5);
        for (size_t i = 0; i < gradients.size(); ++i) {
          if (gradients[i].empty()) continue;
          for (int trial = 0; trial < 2; ++trial) {
            Numbers direction(gradients[i].size());
            double expected = 0, numeric = 0;
            for (size_t k = 0; k < direction.size(); ++k) {
              direction[k] = 2 * random.uniform() - 1;
              expected += direction[k] * gradients[i][k];
            }
            if (has_slope(ctx.bench(), c, v, d_out, i, direction, expected, &numeric)) continue;
            // Which element it is: one at a time.
            for (size_t k = 0; k < direction.size() && k < 256; ++k) {
              Numbers unit(direction.size(), 0.0);
              unit[k] = 1;
              if (has_slope(ctx.bench(), c, v, d_out, i, unit, gradients[i][k], &numeric)) continue;
              ctx.fail(fmt::format(
                  "{}: gradient of input {} element {} is {} (differences give {}; input value {})",
                  run.text(), i, k, gradients[i][k], numeric, v[i][k]));
            }
            ctx.fail(fmt::format(
                "{}: gradient of input {} along a random direction is {} (differences give {})",
                run.text(), i, expected, numeric));
          }
        }
      });
}

// Adds to what is there; rounding of the sum aside.
void gradient_add(Context& ctx, const Subject& subject) {
  for_each_gradient(
      ctx, subject, "gradient.add", [&](const Case&, const Values& v, KernelRun& run) {
        const auto d_out = draw_gradients(run, ctx.seed());
        run.backward(d_out, all_wanted(run, Wanted::add));
        std::vector<Numbers> needed = run.gradients();
        Gradients g = all_wanted(run, Wanted::add);
        RandomEngine random(ctx.seed(), 6);
        for (const Numbers& numbers : v) {
          g.start.emplace_back(numbers.size());
          for (double& x : g.start.back()) x = 4 * random.uniform() - 2;
        }
        for (size_t i = 0; i < needed.size(); ++i)
          for (size_t k = 0; k < needed[i].size(); ++k) needed[i][k] += g.start[i][k];
        run.backward(d_out, g);
        if (const auto d = difference("gradient of input", run.gradients(), needed, 1e-11);
            !d.empty())
          ctx.fail(
              fmt::format("{}: does not add to the gradient that is there: {}", run.text(), d));
      });
}

void gradient_store(Context& ctx, const Subject& subject) {
  const Op op(ctx.bench(), subject.id);
  if (const trl_kernel_desc* k = op.kernel(DType::f64);
      k && k->backward && !(k->flags & TRL_KERNEL_CAN_STORE))
    ctx.skip("the kernel does not declare TRL_KERNEL_CAN_STORE: it is always asked to add");
  for_each_gradient(
      ctx, subject, "gradient.store", [&](const Case& c, const Values& v, KernelRun& run) {
        const auto d_out = draw_gradients(run, ctx.seed());
        run.backward(d_out, all_wanted(run, Wanted::add));
        const std::vector<Numbers> needed = run.gradients();
        for (const uint8_t poison : {uint8_t{0xFF}, uint8_t{0x3F}}) {  // NaN, and a number
          KernelRun stores(ctx.bench(), c, v, {.poison = poison});
          stores.forward();
          stores.backward(d_out, all_wanted(stores, Wanted::store));
          if (const auto d = difference("gradient of input", stores.gradients(), needed, 1e-11);
              !d.empty())
            ctx.fail(fmt::format("{}: asked to store over what is there: {}", run.text(), d));
        }
      });
}

// Every subset of the wanted inputs, up to 4 of them; of more: each alone and all but each.
std::vector<std::vector<bool>> subsets(const std::vector<size_t>& inputs, size_t n) {
  std::vector<std::vector<bool>> all;
  if (inputs.size() <= 4) {
    for (unsigned bits = 1; bits + 1 < (1u << inputs.size()); ++bits) {
      all.emplace_back(n, false);
      for (size_t k = 0; k < inputs.size(); ++k) all.back()[inputs[k]] = bits >> k & 1;
    }
    return all;
  }
  for (const size_t one : inputs) {
    all.emplace_back(n, false);
    all.back()[one] = true;
    all.emplace_back(n, true);
    all.back()[one] = false;
  }
  return all;
}

void gradient_unwanted(Context& ctx, const Subject& subject) {
  bool tried = false;
  for_each_gradient(
      ctx, subject, "gradient.unwanted", [&](const Case& c, const Values&, KernelRun& run) {
        std::vector<size_t> inputs;
        for (size_t i = 0; i < c.inputs.size(); ++i)
          if (run.takes_gradient(i)) inputs.push_back(i);
        if (inputs.size() < 2) return;
        tried = true;
        const auto d_out = draw_gradients(run, ctx.seed());
        run.backward(d_out, all_wanted(run, Wanted::add));
        const std::vector<Numbers> all = run.gradients();
        for (const auto& subset : subsets(inputs, c.inputs.size()))
          for (const Wanted how : {Wanted::add, Wanted::store}) {
            Gradients g = all_wanted(run, how);
            std::string names;
            for (size_t i = 0; i < subset.size(); ++i) {
              if (!subset[i]) g.wanted[i] = Wanted::no;
              if (subset[i] && run.takes_gradient(i)) names += fmt::format(" {}", i);
            }
            ctx.at(fmt::format("{}, only the gradients of inputs{} wanted", run.text(), names));
            run.backward(d_out, g);
            std::vector<Numbers> needed = all;
            for (size_t i = 0; i < needed.size(); ++i)
              if (!subset[i]) needed[i].clear();
            if (const auto d = difference("gradient of input", run.gradients(), needed, 1e-12);
                !d.empty())
              ctx.fail(fmt::format("{}, only the gradients of inputs{} wanted: {}", run.text(),
                                   names, d));
          }
      });
  if (!tried) ctx.skip("at most one input takes a gradient");
}

// A gradient of an output that is absent is zero: alone, and beside others.
void gradient_zero(Context& ctx, const Subject& subject) {
  bool tried = false;
  for_each_gradient(ctx, subject, "gradient.zero", [&](const Case&, const Values&, KernelRun& run) {
    const auto d_out = draw_gradients(run, ctx.seed());
    std::vector<size_t> outputs;
    for (size_t o = 0; o < d_out.size(); ++o)
      if (!d_out[o].empty()) outputs.push_back(o);
    // With one output the host does not call backward without its gradient.
    if (outputs.size() < 2) return;
    tried = true;
    for (const auto& subset : subsets(outputs, d_out.size())) {
      std::vector<Numbers> zeros = d_out;
      Gradients g = all_wanted(run, Wanted::add);
      g.given.assign(d_out.size(), false);
      std::string names;
      for (size_t o = 0; o < d_out.size(); ++o) {
        g.given[o] = subset[o];
        if (!subset[o]) std::fill(zeros[o].begin(), zeros[o].end(), 0.0);
        if (!subset[o]) names += fmt::format(" {}", o);
      }
      run.backward(zeros, all_wanted(run, Wanted::add));
      const std::vector<Numbers> needed = run.gradients();
      ctx.at(fmt::format("{}, gradient of outputs{} absent", run.text(), names));
      run.backward(d_out, g);
      if (const auto d = difference("gradient of input", run.gradients(), needed, 1e-12);
          !d.empty())
        ctx.fail(fmt::format("{}: an absent gradient of outputs{} is not zero: {}", run.text(),
                             names, d));
    }
  });
  if (!tried) ctx.skip("one output: backward is never called without its gradient");
}

void gradient_twice(Context& ctx, const Subject& subject) {
  for_each_gradient(
      ctx, subject, "gradient.twice", [&](const Case& c, const Values& v, KernelRun& run) {
        const auto d_out = draw_gradients(run, ctx.seed());
        const auto wanted = all_wanted(run, Wanted::add);
        KernelRun other(ctx.bench(), c, v);
        other.forward();
        other.backward(d_out, wanted);
        for (int i = 0; i < 3; ++i) {
          run.backward(d_out, wanted);
          if (const auto d = different_gradient_bits(other, run); !d.empty())
            ctx.fail(fmt::format("{}: backward again gives something else: {}", run.text(), d));
        }
      });
}

// An input that serves the whole batch receives the sum of what its copies would.
void gradient_shared(Context& ctx, const Subject& subject) {
  if (Op(ctx.bench(), subject.id).changes_batch())
    ctx.skip("it changes the batch: no input is shared by one");
  bool tried = false;
  for_each_gradient(
      ctx, subject, "gradient.shared", [&](const Case& c, const Values& v, KernelRun& run) {
        if (c.batch == 1) return;
        for (size_t i = 0; i < c.inputs.size(); ++i) {
          if (!run.takes_gradient(i)) continue;
          // The host does this to a node of batch 1, too, when it merges several with one input.
          Case shared = c, copies = c;
          shared.inputs[i]->batch = 1;
          copies.inputs[i]->batch = c.batch;
          const size_t n = c.inputs[i]->elements();
          Values once = v, repeated = v;
          once[i].resize(n);
          repeated[i].clear();
          for (uint32_t b = 0; b < c.batch; ++b)
            repeated[i].insert(repeated[i].end(), once[i].begin(), once[i].end());
          BenchCall call(ctx.bench());
          if (infer(call, shared, DType::f64, TRL_CALL_TRAIN).status != TRL_OK ||
              infer(call, copies, DType::f64, TRL_CALL_TRAIN).status != TRL_OK)
            continue;
          tried = true;
          KernelRun apart(ctx.bench(), copies, repeated), sums(ctx.bench(), shared, once);
          apart.forward();
          sums.forward();
          const auto d_out = draw_gradients(sums, ctx.seed());
          apart.backward(d_out, all_wanted(apart, Wanted::add));
          sums.backward(d_out, all_wanted(sums, Wanted::add));
          Numbers sum(n, 0.0);
          const Numbers each = apart.gradient(i);
          for (size_t k = 0; k < each.size(); ++k) sum[k % n] += each[k];
          if (const auto d = difference("sum", {sums.gradient(i)}, {sum}, 1e-11); !d.empty())
            ctx.fail(fmt::format(
                "{}: the gradient of input {}, which serves the whole batch, is not the sum over "
                "it: {}",
                sums.text(), i, d));
        }
      });
  if (!tried) ctx.skip("no case in which an input serves a batch");
}

constexpr Test kTests[] = {
    {"gradient.difference", 5, Kind::op,
     "backward agrees with central differences in f64, for every float input", gradient_difference},
    {"gradient.add", 5, Kind::op, "a gradient is added to what is there", gradient_add},
    {"gradient.store", 5, Kind::op,
     "a gradient that is to be stored is written whole, whatever lay there", gradient_store},
    {"gradient.unwanted", 5, Kind::op,
     "every subset of wanted gradients is the same, and nothing else is written",
     gradient_unwanted},
    {"gradient.zero", 5, Kind::op, "an absent gradient of an output counts as zero", gradient_zero},
    {"gradient.twice", 5, Kind::op, "backward twice gives the same bits and changes nothing else",
     gradient_twice},
    {"gradient.shared", 5, Kind::op,
     "an input that serves the whole batch receives the sum over it", gradient_shared},
};

}  // namespace

std::span<const Test> gradient_tests() { return kTests; }

}  // namespace trellis::validate
