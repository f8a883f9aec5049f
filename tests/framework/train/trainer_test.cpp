// SPDX-License-Identifier: Apache-2.0

#include "train/trainer.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <trellis/train.hpp>

#include "framework/model/fake_plugin.hpp"

using namespace trellis;
using fake::error_text;

TEST_CASE("trainer: is made by full or bare id, and misses are explained") {
  const fake::Runtime runtime;
  Model model(runtime), wide(runtime, DType::f64);
  CHECK(Trainer(model, "slots").id() == "test.slots");
  CHECK(Trainer(wide, "test.slots").id() == "test.slots");
  CHECK(Trainer(model.sub("a"), "test.slots").model().name() == "/a/");
  CHECK(error_text(ErrorKind::argument, [&] { Trainer(model, "test.solts"); }).find("test.slots") !=
        std::string::npos);
  CHECK(error_text(ErrorKind::argument, [&] {
          Trainer(model, "test.slots", {{"rl", 1}});
        }).find("'lr'") != std::string::npos);
  CHECK(error_text(ErrorKind::dtype, [&] { Trainer(wide, "test.plain"); }) ==
        "[test.plain] no update kernel for the model's element type: f64 (f32; plugin test-plugin "
        "1.2.3)");
}

TEST_CASE("trainer: attributes are read and set by name") {
  const fake::Runtime runtime;
  Model model(runtime);
  Trainer trainer(model, "test.slots", {{"lr", 0.5}});
  CHECK(trainer.learning_rate() == 0.5);
  trainer.set_learning_rate(0.25);
  CHECK(trainer.get("lr") == 0.25);
  trainer.set("lr", 1);
  CHECK(trainer.learning_rate() == 1);
  CHECK(error_text(ErrorKind::argument, [&] {
          trainer.set_learning_rate(-1);
        }).find("[test.slots]") == 0);
  CHECK(error_text(ErrorKind::argument, [&] {
          trainer.set_learning_rate(std::numeric_limits<double>::quiet_NaN());
        }) != "");
  CHECK(trainer.learning_rate() == 1);
  CHECK(error_text(ErrorKind::argument, [&] { trainer.set("lt", 1); }).find("'lr'") !=
        std::string::npos);
  CHECK(error_text(ErrorKind::argument, [&] { trainer.get("lt"); }) ==
        "[test.slots] no attribute of this name: 'lt' (did you mean 'lr'?)");
  CHECK(error_text(ErrorKind::argument, [&] { trainer.get("momentum"); }) ==
        "[test.slots] no attribute of this name: 'momentum' (lr)");
}

TEST_CASE("trainer: a rule without a learning rate has rate 1 and refuses another") {
  const fake::Runtime runtime;
  Model model(runtime);
  Trainer trainer(model, "test.plain");
  CHECK(trainer.learning_rate() == 1);
  CHECK(error_text(ErrorKind::argument, [&] { trainer.set_learning_rate(2); }).find("lr") !=
        std::string::npos);
  CHECK(error_text(ErrorKind::argument, [&] { trainer.get("lr"); }) ==
        "[test.plain] no attribute of this name: 'lr' (note)");
  CHECK(error_text(ErrorKind::argument, [&] { trainer.get("note"); }) ==
        "[test.plain] attribute is no number: 'note' (a number)");
  CHECK(error_text(ErrorKind::argument, [&] { Trainer(model, "test.bare").get("lr"); }) ==
        "[test.bare] no attribute of this name: 'lr' (it has none)");
}

TEST_CASE("trainer: settings that make no sense are refused") {
  const fake::Runtime runtime;
  Model model(runtime);
  Trainer trainer(model, "test.slots");
  CHECK(trainer.clip_threshold() == 5);
  CHECK(trainer.weight_decay() == 0);
  CHECK(trainer.sparse_updates());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(error_text(ErrorKind::argument, [&] { trainer.set_clip_threshold(-1); }) ==
        "[test.slots] bad clip threshold: -1 (a positive number, or 0 for no clipping)");
  CHECK(error_text(ErrorKind::argument, [&] { trainer.set_clip_threshold(nan); }) != "");
  CHECK(error_text(ErrorKind::argument, [&] { trainer.set_weight_decay(1); }) ==
        "[test.slots] bad weight decay: 1 (0 <= decay < 1)");
  CHECK(error_text(ErrorKind::argument, [&] { trainer.set_weight_decay(-0.1); }) != "");
  CHECK(error_text(ErrorKind::argument, [&] { trainer.set_weight_decay(nan); }) != "");
  CHECK(trainer.clip_threshold() == 5);
  CHECK(trainer.weight_decay() == 0);
}

TEST_CASE("trainer: status counts since the last status") {
  const fake::Runtime runtime;
  Model model(runtime);
  Parameter p = model.add_parameter("p", {1});
  Trainer trainer(model, "test.slots");
  trainer.update();
  p.gradient().set(0, 100);
  trainer.update();
  CHECK(trainer.status() == "[lr=0.1 clips=1 updates=2]");
  trainer.set_learning_rate(0.5);
  trainer.update();
  CHECK(trainer.status() == "[lr=0.5 clips=0 updates=1]");
  CHECK(trainer.updates() == 3);
  CHECK(trainer.clips() == 1);
}

TEST_CASE("trainer: restart forgets slots and the rule's step, not the counts") {
  const fake::Runtime runtime;
  Model model(runtime);
  Parameter p = model.add_parameter("p", {1});
  LookupParameter t = model.add_lookup("t", 3, {1});
  Trainer trainer(model, "test.slots");
  const auto step = [&] {
    p.gradient().set(0, 1);
    reinterpret_cast<float*>(model.gradients().impl().sparse(t.record()).row(1))[0] = 1;
    trainer.update();
  };
  const auto slot = [&](const Parameter& of, uint32_t i, uint64_t k) {
    return reinterpret_cast<float*>(trainer.impl().slots_of(of.record())[i])[k];
  };
  step();
  step();
  CHECK(slot(p, 0, 0) == 2);
  CHECK(slot(t, 0, 1) == 2);
  CHECK(slot(t, 0, 2) == 0);
  CHECK(slot(t, 1, 2) == 2);
  CHECK(fake::last_update.step == 2);
  trainer.restart(0.75);
  CHECK(trainer.learning_rate() == 0.75);
  CHECK(trainer.updates() == 2);
  CHECK_FALSE(trainer.impl().has_slots(p.record()));
  step();
  CHECK(fake::last_update.step == 1);
  CHECK(slot(p, 0, 0) == 1);
  CHECK(slot(t, 0, 1) == 1);
  CHECK(slot(t, 1, 1) == 2);
  trainer.restart();
  CHECK(trainer.learning_rate() == 0.75);
  CHECK(trainer.updates() == 3);
}

TEST_CASE("trainer: keeps its model alive and moves") {
  const fake::Runtime runtime;
  auto model = std::make_unique<Model>(runtime);
  model->add_parameter("p", {1});
  Trainer first(*model, "test.slots");
  model.reset();
  Trainer trainer = std::move(first);
  trainer.update();
  CHECK(trainer.updates() == 1);
}
