// SPDX-License-Identifier: Apache-2.0
//
// Every rule over three steps, dense and sparse, f32 and f64, against the rule written down again
// in doubles, and against numbers known from elsewhere.

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <trellis/train.hpp>
#include <vector>

#include "model/records.hpp"

using namespace trellis;
using doctest::Approx;

namespace {

const Runtime& runtime() {
  static const Runtime r([] {
    RuntimeOptions o;
    o.plugins = {"trainers"};
    return o;
  }());
  return r;
}

void add_row(const Model& m, const LookupParameter& t, uint32_t row, std::vector<double> g) {
  char* const at = m.gradients().impl().sparse(t.record()).row(row);
  for (size_t i = 0; i < g.size(); ++i)
    if (t.dtype() == DType::f32)
      reinterpret_cast<float*>(at)[i] += static_cast<float>(g[i]);
    else
      reinterpret_cast<double*>(at)[i] += g[i];
}

// One element under a rule: w, its slots, and the step.
struct Element {
  double w, a = 0, b = 0;
};
using Rule = std::function<void(Element&, double g, int t)>;

struct Case {
  const char* id;
  Attrs attrs;
  Rule rule;
};

std::vector<Case> cases() {
  return {
      {"sgd", {{"lr", 0.3}}, [](Element& e, double g, int) { e.w -= 0.3 * g; }},
      {"momentum",
       {{"lr", 0.3}, {"mu", 0.8}},
       [](Element& e, double g, int) {
         e.a = 0.8 * e.a - 0.3 * g;
         e.w += e.a;
       }},
      {"adagrad",
       {{"lr", 0.3}, {"epsilon", 0.01}},
       [](Element& e, double g, int) {
         e.a += g * g;
         e.w -= 0.3 * g / std::sqrt(e.a + 0.01);
       }},
      {"adam",
       {{"lr", 0.3}, {"beta1", 0.8}, {"beta2", 0.95}, {"epsilon", 0.01}},
       [](Element& e, double g, int t) {
         e.a = 0.8 * e.a + 0.2 * g;
         e.b = 0.95 * e.b + 0.05 * g * g;
         const double rate = 0.3 * std::sqrt(1 - std::pow(0.95, t)) / (1 - std::pow(0.8, t));
         e.w -= rate * e.a / (std::sqrt(e.b) + 0.01);
       }},
  };
}

constexpr double kGradients[3][2] = {{2, -0.5}, {0, 0.25}, {-1, 3}};

// One value that gets the gradients one after another; where there is none, nothing happens
// ("sparse") or the gradient is 0 ("dense").
std::vector<double> run_one(const char* id, const Attrs& attrs, std::vector<double> gradients,
                            bool sparse, double w = 1) {
  Model model(runtime());
  LookupParameter t = model.add_lookup("t", 3, {1}, Init::from({5, w, 7}));
  Trainer trainer(model, id, attrs);
  trainer.set_clip_threshold(0);
  trainer.set_sparse_updates(sparse);
  std::vector<double> values;
  for (const double g : gradients) {
    if (g != 0) add_row(model, t, 1, {g});
    trainer.update();
    values.push_back(t.row(1).as_scalar());
  }
  CHECK(t.row(0).as_scalar() == 5);
  CHECK(t.row(2).as_scalar() == 7);
  return values;
}

void check_near(const std::vector<double>& got, const std::vector<double>& want) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i] == Approx(want[i]).epsilon(1e-6));
  }
}

}  // namespace

TEST_CASE("rules: three dense steps follow the formula") {
  for (const Case& c : cases()) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      CAPTURE(c.id);
      CAPTURE(dtype_name(dtype));
      Model model(runtime(), dtype);
      constexpr uint32_t kSize = 37;  // whole vectors and a rest
      std::vector<double> start(kSize);
      for (uint32_t i = 0; i < kSize; ++i) start[i] = 1 - 0.1 * i;
      Parameter p = model.add_parameter("p", {kSize}, Init::from(start));
      Trainer trainer(model, c.id, c.attrs);
      trainer.set_clip_threshold(0);
      std::vector<Element> want(kSize);
      for (uint32_t i = 0; i < kSize; ++i) want[i].w = start[i];
      for (int t = 1; t <= 3; ++t) {
        for (uint32_t i = 0; i < kSize; ++i) {
          const double g = kGradients[t - 1][i % 2] * (1 + i);
          p.gradient().set(i, g);
          c.rule(want[i], g, t);
        }
        trainer.update();
        for (uint32_t i = 0; i < kSize; ++i)
          CHECK(p.value().at(i) == Approx(want[i].w).epsilon(dtype == DType::f32 ? 1e-5 : 1e-12));
      }
    }
  }
}

TEST_CASE("rules: three sparse steps follow the formula on touched rows, and other rows rest") {
  for (const Case& c : cases()) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      CAPTURE(c.id);
      CAPTURE(dtype_name(dtype));
      Model model(runtime(), dtype);
      constexpr uint32_t kRows = 5, kSize = 9;
      LookupParameter table =
          model.add_lookup("t", kRows, {kSize}, Init::from(std::vector<double>(kRows * kSize, 1)));
      Trainer trainer(model, c.id, c.attrs);
      trainer.set_clip_threshold(0);
      std::vector<Element> want(kRows * kSize, Element{1});
      const std::vector<std::vector<uint32_t>> touched{{4, 1}, {1}, {0, 4, 1}};
      for (int t = 1; t <= 3; ++t) {
        for (const uint32_t row : touched[static_cast<size_t>(t - 1)]) {
          std::vector<double> g(kSize);
          for (uint32_t k = 0; k < kSize; ++k) {
            g[k] = kGradients[t - 1][k % 2] * (1 + row);
            c.rule(want[row * kSize + k], g[k], t);
          }
          add_row(model, table, row, g);
        }
        trainer.update();
        for (uint32_t i = 0; i < kRows * kSize; ++i)
          CHECK(table.value().at(i) ==
                Approx(want[i].w).epsilon(dtype == DType::f32 ? 1e-5 : 1e-12));
      }
      CHECK(table.row(2).at(0) == 1);
    }
  }
}

TEST_CASE("rules: defaults are DyNet's") {
  Model model(runtime());
  const auto value = [&](const char* id, const char* key) { return Trainer(model, id).get(key); };
  CHECK(value("sgd", "lr") == 0.1);
  CHECK(value("momentum", "lr") == 0.01);
  CHECK(value("momentum", "mu") == 0.9);
  CHECK(value("adagrad", "lr") == 0.1);
  CHECK(value("adagrad", "epsilon") == 1e-20);
  CHECK(value("adam", "lr") == 0.001);
  CHECK(value("adam", "beta1") == 0.9);
  CHECK(value("adam", "beta2") == 0.999);
  CHECK(value("adam", "epsilon") == 1e-8);
}

TEST_CASE("rules: DyNet's names are known") {
  Model model(runtime());
  CHECK(Trainer(model, "simple_sgd").id() == "core.sgd");
  CHECK(Trainer(model, "dynet.simple_sgd").id() == "core.sgd");
  CHECK(Trainer(model, "momentum_sgd").id() == "core.momentum");
  CHECK(Trainer(model, "core.adam").id() == "core.adam");
}

TEST_CASE("rules: settings that would divide by zero are refused") {
  Model model(runtime());
  const auto refused = [&](const char* id, const char* key, double v) {
    try {
      Trainer(model, id, {{key, v}});
    } catch (const Error& e) {
      return e.kind() == ErrorKind::argument &&
             std::string(e.what()).find(key) != std::string::npos;
    }
    return false;
  };
  CHECK(refused("sgd", "lr", -0.1));
  CHECK(refused("momentum", "mu", 1.5));
  CHECK(refused("adagrad", "epsilon", 0));
  CHECK(refused("adam", "beta1", 1));
  CHECK(refused("adam", "beta2", 1));
  CHECK(refused("adam", "epsilon", 0));
}

TEST_CASE("momentum: untouched rows rest when sparse and move on when dense") {
  const Attrs attrs{{"lr", 0.1}, {"mu", 0.9}};
  check_near(run_one("momentum", attrs, {1, 0}, true), {0.9, 0.9});
  check_near(run_one("momentum", attrs, {1, 0}, false), {0.9, 0.81});
}

TEST_CASE("adam: the known numbers, dense and with the trainer's step count when sparse") {
  const Attrs attrs{{"lr", 0.1}};
  check_near(run_one("adam", attrs, {2, 0, 0}, false), {0.9, 0.8329942, 0.7811985});
  check_near(run_one("adam", attrs, {2, 0, 0}, true), {0.9, 0.9, 0.9});
  check_near(run_one("adam", attrs, {2, 0, 2}, false), {0.9, 0.8329942, 0.7511939});
  check_near(run_one("adam", attrs, {2, 0, 2}, true), {0.9, 0.9, 0.8141538});
  check_near(run_one("adam", {{"lr", 0.001}}, {2}, true), {0.999});
}

TEST_CASE("adagrad: a row used twice takes one step with the summed gradient") {
  Model model(runtime());
  LookupParameter t = model.add_lookup("t", 3, {1}, Init::from({0, 0, 0}));
  Trainer trainer(model, "adagrad", {{"lr", 1}});
  for (const uint32_t row : {1, 1, 2}) add_row(model, t, row, {1});
  CHECK(t.row_gradient(1).as_scalar() == 2);
  trainer.update();
  check_near(t.value().as_doubles(), {0, -1, -1});
}

TEST_CASE(
    "adam: a parameter added later starts at the trainer's step and leaves the others alone") {
  Model model(runtime());
  Parameter p1 = model.add_parameter("p1", {1}, Init::from({1}));
  Trainer trainer(model, "adam", {{"lr", 0.1}});
  p1.gradient().set(0, 1);
  trainer.update();
  Parameter p2 = model.add_parameter("p2", {1}, Init::from({1}));
  LookupParameter t = model.add_lookup("t", 2, {1}, Init::from({1, 1}));
  p1.gradient().set(0, 1);
  p2.gradient().set(0, 1);
  add_row(model, t, 0, {1});
  trainer.update();
  check_near(p1.value().as_doubles(), {0.8});
  CHECK(p2.value().at(0) == Approx(1 - 0.07441).epsilon(1e-4));
  CHECK(t.row(0).as_scalar() == p2.value().at(0));
  CHECK(t.row(1).as_scalar() == 1);
}

TEST_CASE("rules: restart makes the next step a first step") {
  for (const Case& c : cases()) {
    CAPTURE(c.id);
    Model model(runtime());
    Parameter p = model.add_parameter("p", {1}, Init::from({1}));
    Trainer trainer(model, c.id, c.attrs);
    const auto move = [&] {
      const double before = p.value().at(0);
      p.gradient().set(0, 0.5);
      trainer.update();
      return before - p.value().at(0);
    };
    const double first = move();
    move();
    trainer.restart();
    CHECK(move() == Approx(first).epsilon(1e-5));
    CHECK(trainer.updates() == 3);
  }
}

TEST_CASE("rules: every rule decreases a quadratic") {
  for (const Case& c : cases()) {
    CAPTURE(c.id);
    Model model(runtime());
    Parameter p = model.add_parameter("p", {2}, Init::from({3, -2}));
    Trainer trainer(model, c.id);
    const auto loss = [&] { return std::pow(p.value().at(0), 2) + std::pow(p.value().at(1), 2); };
    const double before = loss();
    for (int i = 0; i < 20; ++i) {
      for (uint64_t k = 0; k < 2; ++k) p.gradient().set(k, 2 * p.value().at(k));
      trainer.update();
    }
    CHECK(loss() < before);
  }
}
