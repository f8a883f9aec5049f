// SPDX-License-Identifier: Apache-2.0
//
// What a builder declares, and what of it is refused.
#include "rnn/layers.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "test_builders.hpp"

using namespace trellis;
using namespace test_builders;

namespace {

// A builder that declares what the test sets.
struct Declared {
  uint32_t n_params = 0, n_state = 1, h_index = 0, n_prepared = 0;
  trl_status status = TRL_OK;
  bool throws = false;
};
Declared declared;

trl_status describe(trl_call* call, const trl_attr*, uint32_t, trl_builder_info* to) {
  if (declared.throws) throw 1;
  if (declared.status != TRL_OK)
    return call->host->fail(call, declared.status, TRL_STR("no such size"));
  to->n_params = declared.n_params;
  to->n_state = declared.n_state;
  to->h_index = declared.h_index;
  to->n_prepared = declared.n_prepared;
  return TRL_OK;
}
trl_status param(trl_call*, const trl_attr*, uint32_t, uint32_t, trl_param_spec* to) {
  to->name = TRL_STR("p");
  to->dim = Dim{2};
  return TRL_OK;
}
trl_status state(trl_call*, const trl_attr*, uint32_t, uint32_t, trl_dim* to) {
  *to = Dim{2};
  return TRL_OK;
}
trl_status step(const trl_step_args* a) {
  if (declared.throws) throw 1;
  if (declared.status != TRL_OK)
    return a->call->host->fail(a->call, declared.status, TRL_STR("no such step"));
  return TRL_OK;  // leaves state_out as it is
}

Runtime& by_hand() {
  static TestRuntime* r = [] {
    auto* t = new TestRuntime;
    trl_builder_desc d{};
    d.struct_size = sizeof d;
    d.id = TRL_STR("test.declared");
    d.summary = TRL_STR("what the test sets");
    d.min_pred = d.max_pred = d.min_in = d.max_in = 1;
    d.input_attr = d.hidden_attr = -1;
    d.version = d.state_version = 1;
    d.describe = describe;
    d.param = param;
    d.state = state;
    d.step = step;
    t->add(d);
    return t;
  }();
  return r->get();
}

std::string refused(const Declared& d, uint32_t layers = 1) {
  declared = d;
  Model m(by_hand(), DType::f64);
  RnnOptions o;
  o.layers = layers;
  const std::string text = refusal([&] { Rnn(m, "test.declared", {}, o); });
  declared = {};
  return text;
}

}  // namespace

TEST_CASE("layers: what a builder declares is checked") {
  CHECK(refused({}) == "not refused");
  CHECK(refused({.n_state = 0}) ==
        "[declared] the builder declares 0 expressions in a state (need 1 to 64)");
  CHECK(refused({.n_params = 5000}) ==
        "[declared] the builder declares 5000 parameters (need 0 to 4096)");
  CHECK(refused({.n_prepared = 5000}) ==
        "[declared] the builder declares 5000 prepared expressions (need 0 to 4096)");
  CHECK(refused({.n_state = 2, .h_index = 2}) ==
        "[declared] the builder declares expression 2 of 2 as its output");
  CHECK(refused({.status = TRL_E_INVALID}) == "[declared] no such size");
  CHECK(refused({.throws = true}) ==
        "[declared] an exception left the builder (a plugin must stop its own)");
  CHECK(refused({}, 2) ==
        "[declared] cannot be stacked: the builder does not say which attributes hold its sizes");
  CHECK(refused({}, 0) == "[declared] number of layers: 0 (need at least 1)");
}

TEST_CASE(
    "layers: a step that fails, throws or forgets something is an error, and the graph goes on") {
  Model m(by_hand(), DType::f64);
  const Rnn rnn(m, "test.declared", {});
  Graph g(by_hand(), {.dtype = DType::f64});
  const Expr x = vec(g, {2}, {1, 2});
  const RnnState start = rnn.start(g);
  CHECK(refusal([&] { start.add(x); }) ==
        "[declared] a step of the builder left a part of the new state out");
  declared.status = TRL_E_SHAPE;
  CHECK(refusal([&] { start.add(x); }) == "[declared] no such step");
  declared = {};
  declared.throws = true;
  CHECK(refusal([&] { start.add(x); }) ==
        "[declared] an exception left the builder (a plugin must stop its own)");
  declared = {};
  CHECK(value(x + x) == Numbers{2, 4});
}

TEST_CASE("layers: parameters lie in a sub-model, one folder a layer") {
  Model m(runtime(), DType::f64);
  RnnOptions o;
  o.layers = 2;
  Rnn(m, "test.chain", {{"input", 3}, {"hidden", 2}}, o);
  o.name = "mine";
  const Rnn named(m, "test.chain", {{"input", 3}, {"hidden", 2}}, o);
  CHECK(named.model().name() == "/mine/");
  std::vector<std::string> names;
  for (const Parameter& p : m.parameters()) names.push_back(p.name());
  CHECK(names == std::vector<std::string>{"/chain/layer0/w", "/chain/layer0/u", "/chain/layer1/w",
                                          "/chain/layer1/u", "/mine/layer0/w", "/mine/layer0/u",
                                          "/mine/layer1/w", "/mine/layer1/u"});
  CHECK(m.parameter("/chain/layer0/w").dim() == Dim{2, 3});
  CHECK(m.parameter("/chain/layer1/w").dim() == Dim{2, 2});
}

TEST_CASE("layers: tables, constants and parameters from elsewhere") {
  Model m(runtime(), DType::f64);
  const Parameter elsewhere = m.add_parameter("tied", {2, 2}, Init::from({1, 0, 0, 2}));
  RnnOptions o;
  o.bind = {{"tied", elsewhere}};
  const Rnn rnn(m, "test.reader", {}, o);
  CHECK(m.parameters().size() == 2);  // tied, and fixed in the sub-model
  CHECK(m.lookups().size() == 1);
  CHECK_FALSE(m.parameter("/reader/layer0/fixed").trainable());

  Graph g = graph();
  const Expr x = vec(g, {2}, {0.5, 0.25});
  const Expr h = rnn.start(g).add(x).output();
  CHECK(value(h)[0] == doctest::Approx(std::tanh(2 + 0.5)));
  CHECK(value(h)[1] == doctest::Approx(std::tanh(2 + 0.5)));
  g.backward(roles::sum(h));
  CHECK(elsewhere.gradient().as_doubles()[0] != 0);

  o.bind = {{"tied", m.add_parameter("small", {1})}};
  CHECK(refusal([&] { Rnn(m, "test.reader", {}, o); }) ==
        "[reader] parameter 'tied' is bound to one of another shape: {1} (need {2,2})");
  o.bind = {{"fixed", elsewhere}};
  CHECK(refusal([&] { Rnn(m, "test.reader", {}, o); }) ==
        "[reader] no parameter 'fixed' that can be bound");
}

TEST_CASE("layers: prepare runs once a graph, or once a sequence where a context enters") {
  Model m(runtime(), DType::f64);
  const Rnn rnn(m, "test.reader", {});
  Graph g = graph();
  const Expr x = vec(g, {2}, {0.5, 0.25});
  counts = {};
  rnn.start(g).add(x).add(x);
  rnn.start(g).add(x);
  CHECK(counts.prepare == 1);
  const std::vector<Expr> memory{vec(g, {2}, {3, 4})};
  const Expr a = rnn.start(g, {}, memory).add(x).output();
  const Expr b = rnn.start(g, {}, memory).add(x).output();
  CHECK(counts.prepare == 3);
  CHECK(value(a) == value(b));
  CHECK(value(a) != value(rnn.start(g).add(x).output()));
  g.clear();
  const Expr y = vec(g, {2}, {0.5, 0.25});
  rnn.start(g).add(y);
  CHECK(counts.prepare == 4);
  const std::vector<Expr> two{y, y};
  CHECK(refusal([&] { rnn.start(g, {}, two); }) ==
        "[reader] wrong number of contexts: 2 (need 0 to 1)");
}
