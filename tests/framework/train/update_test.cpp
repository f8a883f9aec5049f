// SPDX-License-Identifier: Apache-2.0

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <trellis/train.hpp>
#include <vector>

#include "framework/model/fake_plugin.hpp"
#include "train/trainer.hpp"

using namespace trellis;
using doctest::Approx;
using fake::error_text;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

void add_row(GradientBlock& block, const LookupParameter& t, uint32_t row, double v) {
  char* const at = block.impl().sparse(t.record()).row(row);
  if (t.dtype() == DType::f32)
    *reinterpret_cast<float*>(at) += static_cast<float>(v);
  else
    *reinterpret_cast<double*>(at) += v;
}
void add_row(const Model& m, const LookupParameter& t, uint32_t row, double v) {
  add_row(m.gradients(), t, row, v);
}

}  // namespace

TEST_CASE("update: every parameter takes the step and gradients are cleared") {
  const fake::Runtime runtime;
  for (const DType dtype : {DType::f32, DType::f64}) {
    Model model(runtime, dtype);
    Parameter p = model.add_parameter("p", {2}, Init::from({1, 2}));
    LookupParameter t = model.add_lookup("t", 3, {1}, Init::from({1, 1, 1}));
    Trainer trainer(model, "test.slots");
    p.gradient().set(1, 2);
    add_row(model, t, 2, 1);
    trainer.update();
    CHECK(p.value().as_doubles()[0] == Approx(1));
    CHECK(p.value().as_doubles()[1] == Approx(1.8));
    CHECK(t.row(2).as_scalar() == Approx(0.9));
    CHECK(t.row(1).as_scalar() == 1);
    CHECK(trainer.gradient_norm() == Approx(std::sqrt(5.0)));
    CHECK(p.gradient().at(1) == 0);
    CHECK(t.touched_rows().empty());
    trainer.update();
    CHECK(p.value().at(1) == Approx(1.8));
    CHECK(t.row(2).as_scalar() == Approx(0.9));
  }
}

TEST_CASE("update: the rate can change between steps") {
  const fake::Runtime runtime;
  Model model(runtime);
  Parameter p = model.add_parameter("p", {1}, Init::from({1}));
  Trainer trainer(model, "test.slots");
  p.gradient().set(0, 1);
  trainer.update();
  CHECK(p.value().at(0) == Approx(0.9));
  trainer.set_learning_rate(0.5);
  p.gradient().set(0, 1);
  trainer.update();
  CHECK(p.value().at(0) == Approx(0.4));
}

TEST_CASE("update: a trainer of a sub-model leaves the rest alone, gradients too") {
  const fake::Runtime runtime;
  Model model(runtime);
  Model sub = model.sub("s");
  Parameter p1 = sub.add_parameter("p1", {1}, Init::from({1}));
  Parameter p2 = model.add_parameter("p2", {1}, Init::from({1}));
  Trainer of_sub(sub, "test.slots"), of_all(model, "test.slots");
  p1.gradient().set(0, 1);
  p2.gradient().set(0, kNan);  // not looked at either
  of_sub.update();
  CHECK(p1.value().at(0) == Approx(0.9));
  CHECK(p2.value().at(0) == 1);
  CHECK(std::isnan(p2.gradient().at(0)));
  p2.gradient().set(0, 1);
  of_all.update();
  CHECK(p1.value().at(0) == Approx(0.9));
  CHECK(p2.value().at(0) == Approx(0.9));
}

TEST_CASE("update: gradients may come from a worker's block") {
  const fake::Runtime runtime;
  Model model(runtime), other(runtime);
  Parameter p = model.add_parameter("p", {1}, Init::from({1}));
  Trainer trainer(model, "test.slots");
  GradientBlock block(model), foreign(other);
  reinterpret_cast<float*>(block.impl().dense(p.record()))[0] = 1;
  p.gradient().set(0, 7);
  trainer.update(block);
  CHECK(p.value().at(0) == Approx(0.9));
  CHECK(p.gradient().at(0) == 7);
  trainer.update(block);
  CHECK(p.value().at(0) == Approx(0.9));
  CHECK(error_text(ErrorKind::argument, [&] { trainer.update(foreign); }) ==
        "[test.slots] gradients of another model: a block of it (a block of the trainer's model)");
}

TEST_CASE("update: frozen parameters rest, do not count for clipping, and lose their gradients") {
  const fake::Runtime runtime;
  Model model(runtime);
  Parameter p = model.add_parameter("p", {1}, Init::from({1}));
  LookupParameter t = model.add_lookup("t", 2, {2}, Init::from({2, 3, 4, 5}));
  Trainer trainer(model, "test.slots");
  trainer.set_weight_decay(0.5);
  const auto gradients = [&] {
    p.gradient().set(0, 1);
    float* const g = reinterpret_cast<float*>(model.gradients().impl().dense(t.record()));
    for (int i = 0; i < 4; ++i) g[i] = 1;
  };
  t.set_trainable(false);
  CHECK_FALSE(t.trainable());
  gradients();
  add_row(model, t, 0, kInf);
  trainer.update();
  CHECK(t.value().as_vector() == std::vector<float>{2, 3, 4, 5});
  CHECK(t.gradient().as_vector() == std::vector<float>{0, 0, 0, 0});
  CHECK(p.value().at(0) == Approx(0.45));
  CHECK(trainer.gradient_norm() == 1);
  t.set_trainable(true);
  trainer.set_weight_decay(0);
  gradients();
  trainer.update();
  CHECK(t.value().at(0) == Approx(1.9));
  CHECK(t.value().at(3) == Approx(4.9));
}

TEST_CASE("update: NaN and Inf are refused by name and nothing changes") {
  const fake::Runtime runtime;
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const double clip : {0.0, 5.0}) {
      Model model(runtime, dtype);
      Parameter q = model.add_parameter("q", {1}, Init::from({1}));
      Parameter p = model.add_parameter("p", {2, 2}, Init::from({1, 1, 1, 1}));
      LookupParameter t = model.add_lookup("t", 9, {1}, Init::from(std::vector<double>(9, 1)));
      Trainer trainer(model, "test.slots");
      trainer.set_clip_threshold(clip);
      q.gradient().set(0, 1);
      trainer.update();
      const auto text = [&] { return error_text(ErrorKind::numeric, [&] { trainer.update(); }); };
      q.gradient().set(0, 1);
      p.gradient().set(3, kNan);
      add_row(model, t, 1, 1);
      CHECK(text() ==
            "[test.slots] bad gradient of /p {2,2}: nan at element 3 (finite numbers; "
            "nothing was updated, gradients are cleared)");
      q.gradient().set(0, 1);
      add_row(model, t, 4, 1);
      add_row(model, t, 7, -kInf);
      CHECK(text() ==
            "[test.slots] bad gradient of /t {1,9}: -inf at row 7 element 0 (finite "
            "numbers; nothing was updated, gradients are cleared)");
      CHECK(q.value().at(0) == Approx(0.9));
      CHECK(p.value().as_vector() == std::vector<float>(4, 1));
      CHECK(t.row(4).as_scalar() == 1);
      CHECK(trainer.updates() == 1);
      CHECK(trainer.impl().step == 1);
      CHECK(fake::get(fake::last_update.slots[0], 0) == 0);  // of p, from the first update
      CHECK(q.gradient().at(0) == 0);
      CHECK(std::isfinite(p.gradient().at(3)));
      CHECK(t.touched_rows().empty());
      q.gradient().set(0, 1);
      trainer.update();
      CHECK(q.value().at(0) == Approx(0.8));
    }
  }
}

TEST_CASE("update: clipping is by the norm of everything together") {
  const fake::Runtime runtime;
  struct Row {
    double threshold;
    float x, y;
    uint64_t clips;
  };
  for (const Row& row : {Row{5, 3, 4, 0}, Row{2.5, 1.5, 2, 1}, Row{0, 3, 4, 0}}) {
    CAPTURE(row.threshold);
    Model model(runtime);
    Parameter p = model.add_parameter("p", {1}, Init::from({0}));
    LookupParameter t = model.sub("s").add_lookup("t", 5, {1}, Init::from({0, 0, 0, 0, 0}));
    Trainer trainer(model, "test.slots", {{"lr", 1}});
    trainer.set_clip_threshold(row.threshold);
    p.gradient().set(0, 3);
    add_row(model, t, 3, 4);
    trainer.update();
    CHECK(p.value().at(0) == Approx(-row.x));
    CHECK(t.row(3).as_scalar() == Approx(-row.y));
    CHECK(trainer.clips() == row.clips);
    CHECK(trainer.gradient_norm() == Approx(5));
  }
}

TEST_CASE("update: a norm too large for a float clips right") {
  const fake::Runtime runtime;
  Model model(runtime);
  Parameter p = model.add_parameter("p", {100}, Init::from(std::vector<double>(100, 0)));
  Trainer trainer(model, "test.slots", {{"lr", 1}});
  trainer.set_clip_threshold(1);
  for (uint64_t i = 0; i < 100; ++i) p.gradient().set(i, 1e20);
  trainer.update();
  CHECK(p.value().at(0) == Approx(-0.1));
  CHECK(p.value().at(99) == Approx(-0.1));
}

TEST_CASE("update: unused parameters and models without parameters or tables do no harm") {
  const fake::Runtime runtime;
  for (int which = 0; which < 4; ++which) {
    Model model(runtime);
    Trainer trainer(model, "test.slots");
    trainer.set_clip_threshold(0.5);
    std::vector<Parameter> many;
    if (which == 1) model.add_lookup("t", 3, {2}, Init::from({1, 1, 1, 1, 1, 1}));
    if (which >= 2)
      for (int i = 0; i < (which == 2 ? 1 : 5); ++i)
        many.push_back(model.add_parameter("p", {3}, Init::from({1, 1, 1})));
    if (which == 3) many[2].gradient().set(0, 1);
    trainer.update();
    CHECK(trainer.updates() == 1);
    for (size_t i = 0; i < many.size(); ++i) CHECK(many[i].value().at(2) == 1);
    if (which == 3) CHECK(many[2].value().at(0) == Approx(0.95));
  }
}

TEST_CASE("update: sparse passes touched rows, dense the whole table") {
  const fake::Runtime runtime;
  Model model(runtime);
  LookupParameter t = model.add_lookup("t", 4, {1}, Init::from({1, 1, 1, 1}));
  Trainer trainer(model, "test.slots");
  add_row(model, t, 3, 1);
  add_row(model, t, 1, 1);
  add_row(model, t, 3, 1);  // the same row again: one row of gradient 2
  trainer.update();
  CHECK(fake::last_update.n_rows == 2);
  CHECK(t.value().as_vector() == std::vector<float>{1, 0.9f, 1, 0.8f});
  fake::last_update.n_rows = 77;
  trainer.update();
  CHECK(fake::last_update.n_rows == 77);  // no row, no call
  trainer.set_sparse_updates(false);
  CHECK_FALSE(trainer.sparse_updates());
  add_row(model, t, 0, 1);
  trainer.update();
  CHECK(fake::last_update.rows == nullptr);
  CHECK(t.value().as_vector() == std::vector<float>{0.9f, 0.9f, 1, 0.8f});
  trainer.update();
  CHECK(fake::last_update.step == 4);
  trainer.set_sparse_updates(true);
  CHECK(t.gradient().as_vector() == std::vector<float>{0, 0, 0, 0});
  add_row(model, t, 2, 1);
  trainer.update();
  CHECK(fake::last_update.n_rows == 1);
}

TEST_CASE("update: a table used whole and by rows gets one dense step with the sum") {
  const fake::Runtime runtime;
  Model model(runtime);
  LookupParameter t = model.add_lookup("t", 2, {1}, Init::from({1, 1}));
  Trainer trainer(model, "test.slots");
  reinterpret_cast<float*>(model.gradients().impl().dense(t.record()))[0] = 1;
  add_row(model, t, 0, 1);
  add_row(model, t, 1, 1);
  trainer.update();
  CHECK(fake::last_update.rows == nullptr);
  CHECK(t.value().as_vector() == std::vector<float>{0.8f, 0.9f});
}

TEST_CASE("update: weight decay comes after the step and reaches every row") {
  const fake::Runtime runtime;
  for (const DType dtype : {DType::f32, DType::f64}) {
    Model model(runtime, dtype);
    Model sub = model.sub("s");
    Parameter p = sub.add_parameter("p", {1}, Init::from({1}));
    Parameter rests = model.add_parameter("rests", {1}, Init::from({1}));
    LookupParameter t = sub.add_lookup("t", 2, {1}, Init::from({1, 1}));
    Trainer trainer(model, "test.slots");
    trainer.set_weight_decay(0.01);
    CHECK(trainer.weight_decay() == 0.01);
    p.gradient().set(0, 1);
    add_row(model, t, 0, 1);
    trainer.update();
    CHECK(p.value().at(0) == Approx(0.891));
    CHECK(t.row(0).as_scalar() == Approx(0.891));
    CHECK(t.row(1).as_scalar() == Approx(0.99));
    CHECK(rests.value().at(0) == Approx(0.99));
    trainer.update();
    trainer.update();
    CHECK(t.row(1).as_scalar() == Approx(0.970299));
    CHECK(rests.value().at(0) == Approx(0.970299));
    Trainer of_sub(sub, "test.slots");
    of_sub.set_weight_decay(0.5);
    of_sub.update();
    CHECK(rests.value().at(0) == Approx(0.970299));
    CHECK(t.row(1).as_scalar() == Approx(0.970299 / 2));
  }
}

TEST_CASE("update: parameters added later get their slots and the trainer's step") {
  const fake::Runtime runtime;
  Model model(runtime);
  Parameter p1 = model.add_parameter("p1", {1}, Init::from({1}));
  Trainer trainer(model, "test.slots");
  p1.gradient().set(0, 1);
  trainer.update();
  Parameter p2 = model.add_parameter("p2", {2}, Init::from({1, 1}));
  LookupParameter t = model.add_lookup("t", 2, {1}, Init::from({1, 1}));
  p1.gradient().set(0, 1);
  p2.gradient().set(0, 1);
  fake::steps_begun.clear();
  CHECK_FALSE(trainer.impl().has_slots(t.record()));
  trainer.update();
  CHECK_FALSE(trainer.impl().has_slots(t.record()));
  add_row(model, t, 1, 1);
  trainer.update();
  const auto slot = [&](const Parameter& p, size_t i) {
    return reinterpret_cast<float*>(trainer.impl().slots_of(p.record())[i]);
  };
  CHECK(slot(p1, 0)[0] == 2);
  CHECK(slot(p2, 0)[0] == 1);
  CHECK(slot(p2, 1)[1] == 2);
  CHECK(slot(t, 0)[1] == 1);
  CHECK(slot(t, 1)[0] == 2);
  CHECK(fake::steps_begun == std::vector<uint64_t>{2, 3});
}

TEST_CASE("update: a rule that fails is named with its plugin and the parameter") {
  const fake::Runtime runtime;
  Model model(runtime);
  Parameter first = model.add_parameter("first", {1}, Init::from({1}));
  Parameter second = model.add_parameter("second", {1}, Init::from({1}));
  Trainer trainer(model, "test.fails");
  fake::updates_before_failure = 1;
  first.gradient().set(0, 1);
  second.gradient().set(0, 1);
  CHECK(error_text(ErrorKind::argument, [&] { trainer.update(); }) ==
        "[test.fails] update of /second failed: no such luck (plugin test-plugin 1.2.3)");
  CHECK(first.value().at(0) == Approx(0.9));
  CHECK(second.value().at(0) == 1);
  CHECK(trainer.updates() == 0);
  CHECK(first.gradient().at(0) == 0);
  CHECK(second.gradient().at(0) == 0);
  fake::updates_before_failure = 2;
  trainer.update();
  CHECK(trainer.updates() == 1);
  CHECK(fake::last_update.step == 1);
}

TEST_CASE("update: a step that cannot begin changes nothing") {
  const fake::Runtime runtime;
  Model model(runtime);
  Parameter p = model.add_parameter("p", {1}, Init::from({1}));
  Trainer trainer(model, "test.late");
  p.gradient().set(0, 1);
  CHECK(error_text(ErrorKind::argument, [&] { trainer.update(); }) ==
        "[test.late] start of step 1 failed: not today (plugin test-plugin 1.2.3)");
  CHECK(p.value().at(0) == 1);
  CHECK(p.gradient().at(0) == 0);
  CHECK(trainer.updates() == 0);
}
