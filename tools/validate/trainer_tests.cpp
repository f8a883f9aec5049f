// SPDX-License-Identifier: Apache-2.0
//
// Trainers: update kernels called directly on guarded memory, and rules as users run them.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <trellis/train.hpp>

#include "validate/bench_host.hpp"
#include "validate/descriptors.hpp"
#include "validate/numbers.hpp"
#include "validate/settings.hpp"
#include "validate/tests.hpp"

namespace trellis::validate {
namespace {

// A rule with settings, and its update kernels on the CPU.
struct Rule {
  const trl_trainer_desc* desc = nullptr;
  Settings settings;
  std::string text;  // "acme.lion(beta1=0)"
  double lr = 1;
  std::vector<const trl_update_desc*> kernels;
};

std::vector<Rule> rules(Context& c, const Subject& subject) {
  const trl_plugin& tables = c.bench().tables();
  const trl_trainer_desc& d = trainer_desc(tables, subject.id);
  std::vector<Rule> out;
  for (const Settings& s : variants({d.attrs, d.n_attrs}, false)) {
    Rule r{&d, s, fmt::format("{}({})", subject.id, s.text()), 1, {}};
    for (size_t i = 0; i < s.all().size(); ++i)
      if (view_of(d.attrs[i]->key) == "lr" && d.attrs[i]->type == TRL_ATTR_F64)
        r.lr = s.all()[i].v.f;
    for (uint32_t i = 0; i < tables.n_updates; ++i) {
      const trl_update_desc& u = *tables.updates[i];
      if (view_of(u.trainer_id) == subject.id && (u.device.n == 0 || view_of(u.device) == "cpu"))
        r.kernels.push_back(&u);
    }
    if (r.kernels.empty()) c.fail(subject.id + ": no update kernel for the CPU");
    out.push_back(std::move(r));
  }
  return out;
}

// A parameter (the last dimension counts rows) with its slots.
class Bench {
 public:
  Bench(Context& c, const Rule& rule, const trl_update_desc& kernel, const Dim& dim)
      : c_(c),
        rule_(rule),
        kernel_(kernel),
        dim_(dim),
        dtype_(static_cast<DType>(kernel.dtype)),
        call_(c.bench()),
        value_(bytes(), "the parameter " + dim.to_string()) {
    call_.self = c.bench().self();
    for (uint16_t i = 0; i < rule.desc->n_slots; ++i) {
      const trl_slot_spec& slot = *rule.desc->slots[i];
      slots_.emplace_back(bytes(),
                          fmt::format("slot '{}' {}", view_of(slot.name), dim.to_string()));
      tensor_tools::fill(view(slots_.back()), slot.init);
    }
  }

  void set_value(std::span<const double> v) { tensor_tools::set_elements(view(value_), v); }
  Numbers value() const { return view(value_).as_doubles(); }
  // Value and slots, bit by bit.
  std::vector<std::vector<char>> state() const {
    std::vector<std::vector<char>> out;
    for (const Guarded* g : parts()) out.emplace_back(g->data<char>(), g->data<char>() + g->size());
    return out;
  }
  void restore(const std::vector<std::vector<char>>& state) {
    size_t i = 0;
    for (const Guarded* g : parts()) std::memcpy(g->data(), state[i++].data(), g->size());
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const Guarded* g : parts()) out.push_back(g->name());
    return out;
  }
  size_t row_bytes() const { return bytes() / (dim_.rank == 0 ? 1 : dim_.d[dim_.rank - 1]); }

  // One step with these gradients, of the whole parameter or of rows.
  void step(std::span<const double> gradient, uint64_t number,
            const std::vector<uint32_t>* rows = nullptr, double scale = 1) {
    const size_t size = dtype_size(dtype_);
    Guarded grad(gradient.size() * size, "the gradient");
    Dim shape = dim_;
    if (rows) shape.d[shape.rank - 1] = static_cast<uint32_t>(rows->size());
    tensor_tools::set_elements(TensorView(grad.data(), shape, dtype_), gradient);
    const std::vector<char> given(grad.data<char>(), grad.data<char>() + grad.size());
    Guarded ids((rows ? rows->size() : 1) * sizeof(uint32_t), "the list of rows");
    if (rows) std::memcpy(ids.data(), rows->data(), ids.size());

    trl_tensor value = tensor(value_, dim_);
    const trl_tensor g = tensor(grad, shape);
    std::vector<trl_tensor> slots;
    for (const Guarded& s : slots_) slots.push_back(tensor(s, dim_));
    trl_update_args args{};
    args.struct_size = sizeof args;
    args.call = &call_;
    args.attrs = rule_.settings.all().data();
    args.n_attrs = static_cast<uint32_t>(rule_.settings.all().size());
    args.value = &value;
    args.grad = &g;
    args.slots = slots.data();
    args.n_slots = static_cast<uint32_t>(slots.size());
    args.rows = rows ? ids.data<uint32_t>() : nullptr;
    args.n_rows = rows ? static_cast<uint32_t>(rows->size()) : 0;
    args.lr = rule_.lr;
    args.grad_scale = scale;
    args.step = number;
    if (rule_.desc->begin_step != nullptr)
      call_.must("begin_step",
                 [&] { return rule_.desc->begin_step(&call_, args.attrs, args.n_attrs, number); });
    call_.must(text() + ": update", [&] { return kernel_.update(&args); });
    for (const Guarded* part : parts()) check(*part);
    check(grad);
    check(ids);
    if (std::memcmp(given.data(), grad.data(), given.size()) != 0)
      c_.fail(text() + ": the gradient was written");
    if (rows && std::memcmp(ids.data(), rows->data(), ids.size()) != 0)
      c_.fail(text() + ": the list of rows was written");
  }
  std::string text() const {
    return fmt::format("{} of {} {}", rule_.text, dim_.to_string(), dtype_name(dtype_));
  }

 private:
  size_t bytes() const { return dim_.total() * dtype_size(dtype_); }
  TensorView view(const Guarded& g) const { return TensorView(g.data(), dim_, dtype_); }
  trl_tensor tensor(const Guarded& g, const Dim& dim) const {
    return {g.data(), dim.total(), dim, static_cast<uint16_t>(dtype_), TRL_CPU, 6, 0};
  }
  std::vector<const Guarded*> parts() const {
    std::vector<const Guarded*> out{&value_};
    for (const Guarded& s : slots_) out.push_back(&s);
    return out;
  }
  void check(const Guarded& g) const {
    if (const std::string damage = g.damage(); !damage.empty()) c_.fail(text() + ": " + damage);
  }

  Context& c_;
  const Rule& rule_;
  const trl_update_desc& kernel_;
  Dim dim_;
  DType dtype_;
  BenchCall call_;
  Guarded value_;
  std::vector<Guarded> slots_;
};

double tolerance(const trl_update_desc& kernel) { return kernel.dtype == TRL_F32 ? 1e-5 : 1e-12; }

void finite(Context& c, const Bench& bench, const Numbers& v, const char* when) {
  for (size_t i = 0; i < v.size(); ++i)
    if (!std::isfinite(v[i]))
      c.fail(fmt::format("{}: element {} is {} {}", bench.text(), i, v[i], when));
}

// ---- trainer.writes

void check_writes(Context& c, const Subject& subject) {
  for (const Rule& rule : rules(c, subject))
    for (const trl_update_desc* kernel : rule.kernels) {
      for (const uint32_t n :
           {1u, 2u, 3u, 4u, 5u, 7u, 8u, 9u, 15u, 16u, 17u, 31u, 33u, 64u, 67u, 257u}) {
        Bench bench(c, rule, *kernel, Dim{n});
        c.at(bench.text());
        RandomEngine random(c.seed(), n);
        bench.set_value(uniform_numbers(n, random));
        // The second step has no gradient: what divides by its size must bear that.
        for (uint64_t t = 1; t <= 3; ++t) {
          bench.step(t == 2 ? Numbers(n, 0.0) : uniform_numbers(n, random), t);
          finite(c, bench, bench.value(), t == 2 ? "after a gradient of 0" : "after a step");
        }
      }
      Bench scalar(c, rule, *kernel, Dim{});
      scalar.set_value(Numbers{0.5});
      scalar.step(Numbers{0.25}, 1);

      // A step in which nothing has a gradient yet.
      Bench still(c, rule, *kernel, Dim{9});
      still.set_value(Numbers(9, 1.0));
      still.step(Numbers(9, 0.0), 1);
      finite(c, still, still.value(), "after a first gradient of 0");

      for (const Dim& dim : {Dim{1, 6}, Dim{5, 6}, Dim{16, 6}, Dim{3, 2, 6}}) {
        Bench bench(c, rule, *kernel, dim);
        c.at(bench.text() + ", by rows");
        RandomEngine random(c.seed(), dim.total());
        bench.set_value(uniform_numbers(dim.total(), random));
        const std::vector<std::vector<uint32_t>> touched{{4, 1}, {5}, {0, 1, 2, 3, 4, 5}, {3, 0}};
        for (uint64_t t = 0; t < touched.size(); ++t) {
          const auto before = bench.state();
          bench.step(uniform_numbers(dim.total() / 6 * touched[t].size(), random), t + 1,
                     &touched[t]);
          finite(c, bench, bench.value(), "after a step by rows");
          const auto after = bench.state();
          for (size_t part = 0; part < after.size(); ++part)
            for (uint32_t row = 0; row < 6; ++row) {
              const size_t at = row * bench.row_bytes();
              const bool rests =
                  std::find(touched[t].begin(), touched[t].end(), row) == touched[t].end();
              if (rests && std::memcmp(before[part].data() + at, after[part].data() + at,
                                       bench.row_bytes()) != 0)
                c.fail(fmt::format(
                    "{}: row {} has no gradient and {} was written there (rows "
                    "with one: {})",
                    bench.text(), row, bench.names()[part], fmt::join(touched[t], ", ")));
            }
        }
      }
    }
}

// ---- trainer.quadratic

// The rule on w^2, by direct calls.
Numbers descend(Context& c, const Rule& rule, const trl_update_desc& kernel, int steps,
                double grad_scale) {
  Bench bench(c, rule, kernel, Dim{5});
  Numbers w{3, -2, 1, 0.5, -4};
  bench.set_value(w);
  for (int t = 1; t <= steps; ++t) {
    for (double& x : w) x = 2 * x / grad_scale;
    bench.step(w, static_cast<uint64_t>(t), nullptr, grad_scale);
    w = bench.value();
  }
  return w;
}

void check_quadratic(Context& c, const Subject& subject) {
  for (const Rule& rule : rules(c, subject)) {
    std::vector<Numbers> ends;
    for (const trl_update_desc* kernel : rule.kernels) {
      const Numbers plain = descend(c, rule, *kernel, 5, 1);
      // Clipping reaches a rule as a factor of the gradient.
      const Numbers scaled = descend(c, rule, *kernel, 5, 0.25);
      if (const std::string d = difference("the parameter", scaled, plain, 10 * tolerance(*kernel),
                                           tolerance(*kernel));
          !d.empty())
        c.fail(
            fmt::format("{} {}: a gradient four times as large with grad_scale 0.25 moves "
                        "otherwise: {}",
                        rule.text, dtype_name(static_cast<DType>(kernel->dtype)), d));
      ends.push_back(plain);
    }
    if (ends.size() > 1)
      if (const std::string d = difference("the parameter", ends[1], ends[0], 1e-4, 1e-5);
          !d.empty())
        c.fail(fmt::format("{}: after 5 steps the float types differ: {}", rule.text, d));

    for (const DType dtype : {DType::f32, DType::f64}) {
      const std::string text = fmt::format("{} {}", rule.text, dtype_name(dtype));
      c.at(text);
      Model model(c.runtime(), dtype);
      Parameter p = model.add_parameter("w", Dim{5}, Init::from({3, -2, 1, 0.5, -4}));
      Trainer trainer(model, subject.id, rule.settings.attrs());
      const auto loss = [&] {
        double sum = 0;
        for (const double x : p.value().as_doubles()) sum += x * x;
        return sum;
      };
      const double before = loss();
      for (int t = 0; t < 20; ++t) {
        const Numbers w = p.value().as_doubles();
        for (size_t i = 0; i < w.size(); ++i) p.gradient().set(i, 2 * w[i]);
        trainer.update();
        if (!std::isfinite(loss()))
          c.fail(fmt::format("{}: the sum of squares is {} after {} steps", text, loss(), t + 1));
      }
      const double after = loss();
      if (!(after < before))
        c.fail(fmt::format("{}: the sum of squares is {} after 20 steps of descent (it was {})",
                           text, after, before));
      if (dtype == DType::f64)
        c.note(fmt::format("{}: {:.4g} to {:.4g} in 20 steps", rule.text, before, after));
    }
  }
}

// ---- trainer.sparse

void check_sparse(Context& c, const Subject& subject) {
  for (const Rule& rule : rules(c, subject))
    for (const trl_update_desc* kernel : rule.kernels)
      for (const uint32_t size : {1u, 5u, 8u, 19u}) {
        constexpr uint32_t kRows = 7;
        Bench table(c, rule, *kernel, Dim{size, kRows}), rows(c, rule, *kernel, Dim{size, 3});
        c.at(table.text() + ", by rows");
        RandomEngine random(c.seed(), size);
        const Numbers start = uniform_numbers(size * kRows, random);
        table.set_value(start);
        const std::vector<uint32_t> touched{5, 0, 3};  // in an order of their own
        Numbers own;
        for (const uint32_t r : touched)
          own.insert(own.end(), start.begin() + r * size, start.begin() + (r + 1) * size);
        rows.set_value(own);
        for (uint64_t t = 1; t <= 4; ++t) {
          const Numbers gradient = uniform_numbers(size * touched.size(), random);
          table.step(gradient, t, &touched);
          rows.step(gradient, t);
          const Numbers all = table.value(), needed = rows.value();
          for (size_t i = 0; i < touched.size(); ++i)
            for (uint32_t k = 0; k < size; ++k) {
              const double got = all[touched[i] * size + k], dense = needed[i * size + k];
              if (!close(got, dense, tolerance(*kernel), tolerance(*kernel)))
                c.fail(fmt::format(
                    "{}: element {} of row {} is {} after step {} by rows {} "
                    "(dense: {})",
                    table.text(), k, touched[i], got, t, fmt::join(touched, ", "), dense));
            }
        }
      }
}

// ---- trainer.resume

void check_resume(Context& c, const Subject& subject) {
  for (const Rule& rule : rules(c, subject)) {
    for (const trl_update_desc* kernel : rule.kernels) {
      constexpr uint64_t kSteps = 8, kSaved = 4;
      const Dim dim{21};
      std::vector<Numbers> gradients;
      RandomEngine random(c.seed());
      for (uint64_t t = 0; t < kSteps; ++t) gradients.push_back(uniform_numbers(21, random));
      Bench whole(c, rule, *kernel, dim);
      c.at(whole.text());
      whole.set_value(uniform_numbers(21, random));
      std::vector<std::vector<char>> saved;
      for (uint64_t t = 1; t <= kSteps; ++t) {
        whole.step(gradients[t - 1], t);
        if (t == kSaved) saved = whole.state();
      }
      // Only value, slots and the step's number are kept: by now the rule has seen more steps, and
      // it sees others in between.
      Bench resumed(c, rule, *kernel, dim), other(c, rule, *kernel, Dim{5});
      resumed.restore(saved);
      other.set_value(Numbers(5, 2.0));
      for (uint64_t t = kSaved + 1; t <= kSteps; ++t) {
        other.step(Numbers(5, 0.5), t);
        resumed.step(gradients[t - 1], t);
      }
      const auto got = resumed.state(), needed = whole.state();
      for (size_t part = 0; part < got.size(); ++part)
        if (got[part] != needed[part])
          c.fail(
              fmt::format("{}: {} after {} steps and {} more from what was saved is not what it "
                          "is after {} (a rule keeps everything in its slots)",
                          whole.text(), whole.names()[part], kSaved, kSteps - kSaved, kSteps));
    }
    // restart() makes the next step a first step.
    for (const DType dtype : {DType::f32, DType::f64}) {
      Model model(c.runtime(), dtype);
      Parameter p = model.add_parameter("w", Dim{3});
      Trainer trainer(model, subject.id, rule.settings.attrs());
      Numbers first;
      for (int again = 0; again < 2; ++again) {
        p.set_value(std::span<const double>(Numbers{1, -2, 0.5}));
        for (int t = 0; t < 3; ++t) {
          for (uint64_t k = 0; k < 3; ++k) p.gradient().set(k, 0.25 * double(k + 1) - 0.1 * t);
          trainer.update();
        }
        const Numbers now = p.value().as_doubles();
        if (again == 0)
          first = now;
        else if (const std::string d = difference("the parameter", now, first, 0, 0); !d.empty())
          c.fail(fmt::format("{} {}: after restart() three steps are not the first three: {}",
                             rule.text, dtype_name(dtype), d));
        trainer.restart();
      }
    }
  }
}

constexpr Test kTests[] = {
    {"trainer.writes", 4, Kind::trainer,
     "an update writes value and slots of the rows it is given, nothing else, and finite numbers",
     check_writes},
    {"trainer.quadratic", 5, Kind::trainer,
     "a sum of squares falls; clipped gradients and both float types agree", check_quadratic},
    {"trainer.sparse", 6, Kind::trainer, "touched rows move as a dense parameter does",
     check_sparse},
    {"trainer.resume", 8, Kind::trainer,
     "everything a rule remembers is in its slots: a run resumed from them gives the same bits",
     check_resume},
};

}  // namespace

std::span<const Test> trainer_tests() { return kTests; }

}  // namespace trellis::validate
