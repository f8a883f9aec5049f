// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "registry/registry.hpp"

using namespace trellis;
using trellis::detail::BoundAttrs;
using trellis::detail::check_attrs;

namespace {

AttrSpec spec(std::string key, uint32_t type, uint32_t flags = 0) {
  AttrSpec s;
  s.key = std::move(key);
  s.doc = "what " + s.key + " does";
  s.type = s.dflt.type = type;
  s.flags = flags;
  const bool is_list = type == TRL_ATTR_I64S || type == TRL_ATTR_F64S;
  s.dflt.count = is_list ? 0 : 1;
  s.min_each = is_list ? 0 : 1;
  s.max_each = is_list ? ~0u : 1;
  return s;
}
AttrSpec in_range(AttrSpec s, double lo, double hi) {
  s.lo = lo;
  s.hi = hi;
  return s;
}
AttrSpec each(AttrSpec s, uint32_t lo, uint32_t hi) {
  s.min_each = lo;
  s.max_each = hi;
  return s;
}
BoundAttrs bind(const std::vector<AttrSpec>& specs, const Attrs& given) {
  return BoundAttrs("op", specs, given);
}

std::string error(const std::vector<AttrSpec>& specs, const Attrs& given) {
  try {
    bind(specs, given);
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::argument);
    return e.what();
  }
  return "no error";
}
std::vector<int64_t> ids(const trl_attr& a) { return {a.v.is, a.v.is + a.count}; }
std::vector<double> numbers(const trl_attr& a) { return {a.v.fs, a.v.fs + a.count}; }
std::vector<uint32_t> offsets(const trl_attr& a, uint32_t batch) {
  return {a.offsets, a.offsets + batch + 1};
}

}  // namespace

TEST_CASE("attributes: values of every type, in the order of the specs") {
  AttrSpec mode = spec("mode", TRL_ATTR_CHOICE);
  mode.choices = {"sum", "mean"};
  const std::vector<AttrSpec> specs{spec("axis", TRL_ATTR_I64),    spec("p", TRL_ATTR_F64),
                                    spec("always", TRL_ATTR_BOOL), mode,
                                    spec("shape", TRL_ATTR_I64S),  spec("weights", TRL_ATTR_F64S),
                                    spec("file", TRL_ATTR_STR)};
  const BoundAttrs b = bind(specs, {{"file", "a.txt"},
                                    {"weights", std::vector<double>{0.5, 1.5}},
                                    {"shape", {3, 4}},
                                    {"mode", "mean"},
                                    {"always", true},
                                    {"p", 0.25},
                                    {"axis", -1}});
  const auto a = b.all();
  REQUIRE(a.size() == 7);
  for (size_t i = 0; i < 7; ++i) {
    CHECK(a[i].type == specs[i].type);
    CHECK(a[i].offsets == nullptr);
  }
  CHECK(a[0].v.i == -1);
  CHECK(a[1].v.f == 0.25);
  CHECK(a[2].v.i == 1);
  CHECK(a[3].v.i == 1);
  CHECK(ids(a[4]) == std::vector<int64_t>{3, 4});
  CHECK(numbers(a[5]) == std::vector<double>{0.5, 1.5});
  CHECK(std::string(a[6].v.s.p, a[6].v.s.n) == "a.txt");
  CHECK(b.batch() == 0);
}

TEST_CASE("attributes: what is not given takes its default") {
  AttrSpec p = spec("p", TRL_ATTR_F64);
  p.dflt.v.f = 0.5;
  static const int64_t shape[] = {2, 3};
  AttrSpec s = spec("shape", TRL_ATTR_I64S);
  s.dflt.count = 2;
  s.dflt.v.is = shape;
  const BoundAttrs b = bind({p, s, spec("ids", TRL_ATTR_I64S, TRL_ATTR_PER_BATCH)}, {});
  CHECK(b.all()[0].v.f == 0.5);
  CHECK(ids(b.all()[1]) == std::vector<int64_t>{2, 3});
  CHECK(b.all()[2].count == 0);
  CHECK(b.all()[2].offsets == nullptr);
  CHECK(b.batch() == 0);
}

TEST_CASE("attributes: an integer serves where a number or a list is wanted") {
  const BoundAttrs b = bind({spec("p", TRL_ATTR_F64), spec("shape", TRL_ATTR_I64S),
                             spec("weights", TRL_ATTR_F64S), spec("always", TRL_ATTR_BOOL)},
                            {{"p", 2}, {"shape", 7}, {"weights", {1, 2}}, {"always", 0}});
  CHECK(b.all()[0].v.f == 2);
  CHECK(ids(b.all()[1]) == std::vector<int64_t>{7});
  CHECK(numbers(b.all()[2]) == std::vector<double>{1, 2});
  CHECK(b.all()[3].v.i == 0);
  CHECK(numbers(bind({spec("weights", TRL_ATTR_F64S)}, {{"weights", 0.5}}).all()[0]) ==
        std::vector<double>{0.5});
}

TEST_CASE("attributes: per-batch values get one list for each batch element") {
  const AttrSpec one = each(spec("ids", TRL_ATTR_I64S, TRL_ATTR_PER_BATCH), 1, 1);
  const AttrSpec many = spec("labels", TRL_ATTR_I64S, TRL_ATTR_PER_BATCH);
  const AttrSpec value = each(spec("scale", TRL_ATTR_F64S, TRL_ATTR_VALUE), 1, 1);

  const BoundAttrs flat = bind({one}, {{"ids", {3, 1, 4}}});
  CHECK(flat.batch() == 3);
  CHECK(ids(flat.all()[0]) == std::vector<int64_t>{3, 1, 4});
  CHECK(offsets(flat.all()[0], 3) == std::vector<uint32_t>{0, 1, 2, 3});

  const BoundAttrs single = bind({one}, {{"ids", 5}});
  CHECK(single.batch() == 1);
  CHECK(offsets(single.all()[0], 1) == std::vector<uint32_t>{0, 1});

  const BoundAttrs ragged = bind({many}, {{"labels", AttrValue::Ragged{{1, 2}, {}, {3}}}});
  CHECK(ragged.batch() == 3);
  CHECK(ids(ragged.all()[0]) == std::vector<int64_t>{1, 2, 3});
  CHECK(offsets(ragged.all()[0], 3) == std::vector<uint32_t>{0, 2, 2, 3});

  const BoundAttrs shared = bind({many}, {{"labels", {1, 2}}});
  CHECK(shared.batch() == 1);
  CHECK(offsets(shared.all()[0], 1) == std::vector<uint32_t>{0, 2});

  const BoundAttrs scaled = bind({value}, {{"scale", std::vector<double>{0.5, 0.25}}});
  CHECK(scaled.batch() == 2);
  CHECK(numbers(scaled.all()[0]) == std::vector<double>{0.5, 0.25});
  CHECK(offsets(scaled.all()[0], 2) == std::vector<uint32_t>{0, 1, 2});
  CHECK(numbers(bind({value}, {{"scale", 3}}).all()[0]) == std::vector<double>{3});

  const BoundAttrs both =
      bind({one, value, many}, {{"ids", {3, 1, 4}}, {"scale", 0.5}, {"labels", {7, 8}}});
  CHECK(both.batch() == 3);
  CHECK(numbers(both.all()[1]) == std::vector<double>{0.5, 0.5, 0.5});
  CHECK(ids(both.all()[2]) == std::vector<int64_t>{7, 8, 7, 8, 7, 8});
  CHECK(offsets(both.all()[2], 3) == std::vector<uint32_t>{0, 2, 4, 6});

  const BoundAttrs empty = bind({many}, {{"labels", AttrValue::Ragged{{}, {}}}});
  CHECK(empty.batch() == 2);
  CHECK(empty.all()[0].count == 0);
  CHECK(offsets(empty.all()[0], 2) == std::vector<uint32_t>{0, 0, 0});
}

TEST_CASE("attributes: unknown, missing and repeated keys") {
  const std::vector<AttrSpec> specs{spec("axis", TRL_ATTR_I64, TRL_ATTR_REQUIRED),
                                    spec("p", TRL_ATTR_F64)};
  CHECK(error(specs, {{"axs", 1}}) ==
        "[op] no attribute 'axs' (did you mean 'axis'? it has: axis, p)");
  CHECK(error(specs, {{"width", 1}}) == "[op] no attribute 'width' (it has: axis, p)");
  CHECK(error({}, {{"axis", 1}}) == "[op] no attribute 'axis' (it has none)");
  CHECK(error(specs, {}) == "[op] attribute 'axis' is missing (needed an integer: what axis does)");
  CHECK(error(specs, {{"axis", 1}, {"axis", 2}}) == "[op] attribute 'axis' is given twice");
}

TEST_CASE("attributes: values of the wrong type say what is needed") {
  AttrSpec mode = spec("a", TRL_ATTR_CHOICE);
  mode.choices = {"sum", "mean"};
  const AttrSpec id = each(spec("a", TRL_ATTR_I64S, TRL_ATTR_PER_BATCH), 1, 1);
  const AttrSpec labels = spec("a", TRL_ATTR_I64S, TRL_ATTR_PER_BATCH);
  const AttrSpec value = each(spec("a", TRL_ATTR_F64S, TRL_ATTR_VALUE), 1, 1);
  const struct {
    AttrSpec spec;
    AttrValue given;
    const char* text;
  } cases[] = {
      {spec("a", TRL_ATTR_I64), 1.5, "1.5 (needed an integer)"},
      {spec("a", TRL_ATTR_I64), true, "true (needed an integer)"},
      {spec("a", TRL_ATTR_I64), "x", "'x' (needed an integer)"},
      {spec("a", TRL_ATTR_F64), "x", "'x' (needed a number)"},
      {spec("a", TRL_ATTR_F64), std::vector<double>{1, 2}, "[1, 2] (needed a number)"},
      {spec("a", TRL_ATTR_BOOL), 2, "2 (needed true or false)"},
      {spec("a", TRL_ATTR_BOOL), "yes", "'yes' (needed true or false)"},
      {mode, "max", "'max' (needed one of sum, mean)"},
      {mode, 1, "1 (needed one of sum, mean)"},
      {spec("a", TRL_ATTR_I64S), 1.5, "1.5 (needed integers)"},
      {spec("a", TRL_ATTR_I64S), AttrValue::Ragged{{1}, {2, 3}}, "[[1], [2, 3]] (needed integers)"},
      {spec("a", TRL_ATTR_F64S), false, "false (needed numbers)"},
      {spec("a", TRL_ATTR_STR), 3, "3 (needed a text)"},
      {id, "x", "'x' (needed an integer for each batch element)"},
      {id, std::vector<int64_t>{}, "[] (needed an integer for each batch element)"},
      {labels, 0.5, "0.5 (needed integers for each batch element)"},
      {labels, AttrValue::Ragged{}, "[] (needed integers for each batch element)"},
      {value, "x", "'x' (needed a number for each batch element)"},
      {spec("a", TRL_ATTR_F64), std::vector<int64_t>(20, 1),
       "[1, 1, 1, 1, 1, 1, 1, 1, ...] (needed a number)"},
  };
  for (const auto& c : cases)
    CHECK(error({c.spec}, {{"a", c.given}}) == std::string("[op] attribute 'a': ") + c.text);
}

TEST_CASE("attributes: values and counts out of range") {
  constexpr double kLimit = std::numeric_limits<double>::max();
  CHECK(error({in_range(spec("p", TRL_ATTR_F64), 0, 1)}, {{"p", 1.5}}) ==
        "[op] attribute 'p': 1.5 (needed 0 to 1)");
  CHECK(error({in_range(spec("p", TRL_ATTR_F64), 0, 1)}, {{"p", std::nan("")}}) ==
        "[op] attribute 'p': nan (needed 0 to 1)");
  CHECK(error({in_range(spec("n", TRL_ATTR_I64), 1, kLimit)}, {{"n", 0}}) ==
        "[op] attribute 'n': 0 (needed at least 1)");
  CHECK(error({in_range(spec("n", TRL_ATTR_I64), -kLimit, 4)}, {{"n", 5}}) ==
        "[op] attribute 'n': 5 (needed at most 4)");
  CHECK(error({in_range(spec("n", TRL_ATTR_I64S), 0, 9)}, {{"n", {1, 10}}}) ==
        "[op] attribute 'n': 10 (needed 0 to 9)");
  CHECK(error({in_range(each(spec("n", TRL_ATTR_I64S, TRL_ATTR_PER_BATCH), 1, 1), 0, 9)},
              {{"n", {1, -1}}}) == "[op] attribute 'n': -1 (needed 0 to 9)");
  CHECK(error({in_range(each(spec("v", TRL_ATTR_F64S, TRL_ATTR_VALUE), 1, 1), 0, 9)},
              {{"v", 9.5}}) == "[op] attribute 'v': 9.5 (needed 0 to 9)");
  CHECK(error({each(spec("n", TRL_ATTR_I64S), 2, 2)}, {{"n", {1}}}) ==
        "[op] attribute 'n': 1 value (needed 2)");
  CHECK(error({each(spec("n", TRL_ATTR_I64S), 2, 3)}, {{"n", {1}}}) ==
        "[op] attribute 'n': 1 value (needed at least 2)");
  CHECK(error({each(spec("n", TRL_ATTR_F64S), 1, 2)}, {{"n", {1, 2, 3}}}) ==
        "[op] attribute 'n': 3 values (needed at most 2)");
  const AttrSpec labels = each(spec("n", TRL_ATTR_I64S, TRL_ATTR_PER_BATCH), 1, 2);
  CHECK(error({labels}, {{"n", AttrValue::Ragged{{1}, {}}}}) ==
        "[op] attribute 'n': 0 values (needed at least 1 for each batch element)");
  CHECK(error({labels}, {{"n", AttrValue::Ragged{{1}, {1, 2, 3}}}}) ==
        "[op] attribute 'n': 3 values (needed at most 2 for each batch element)");
  CHECK(error({each(spec("n", TRL_ATTR_I64S, TRL_ATTR_PER_BATCH), 1, 1)},
              {{"n", AttrValue::Ragged{{1, 2}}}}) ==
        "[op] attribute 'n': 2 values (needed 1 for each batch element)");
}

TEST_CASE("attributes: per-batch attributes agree on the batch") {
  const std::vector<AttrSpec> specs{each(spec("a", TRL_ATTR_I64S, TRL_ATTR_PER_BATCH), 1, 1),
                                    each(spec("b", TRL_ATTR_F64S, TRL_ATTR_VALUE), 1, 1)};
  CHECK(error(specs, {{"a", {1, 2, 3}}, {"b", {1, 2}}}) ==
        "[op] attributes 'a' and 'b' are for 3 and 2 batch elements (needed equal, or 1)");
}

TEST_CASE("attributes: a number that no int64 holds") {
  CHECK_THROWS_WITH_AS(AttrValue(UINT64_MAX),
                       "[attributes] value too large: 18446744073709551615 (below 2^63)", Error);
  CHECK(std::get<int64_t>(AttrValue(uint64_t{INT64_MAX}).get()) == INT64_MAX);
}

TEST_CASE("attributes: set replaces one value, checked") {
  const std::vector<AttrSpec> specs{in_range(spec("lr", TRL_ATTR_F64), 0, 1),
                                    spec("shape", TRL_ATTR_I64S),
                                    spec("ids", TRL_ATTR_I64S, TRL_ATTR_PER_BATCH)};
  BoundAttrs b = bind(specs, {{"lr", 0.5}});
  b.set("op", specs, "lr", 1);
  CHECK(b.all()[0].v.f == 1);
  b.set("op", specs, "shape", {5, 6});
  CHECK(ids(b.all()[1]) == std::vector<int64_t>{5, 6});
  CHECK_THROWS_WITH_AS(b.set("op", specs, "lr", 2), "[op] attribute 'lr': 2 (needed 0 to 1)",
                       Error);
  CHECK(b.all()[0].v.f == 1);
  CHECK_THROWS_WITH_AS(b.set("op", specs, "lrr", 1),
                       "[op] no attribute 'lrr' (did you mean 'lr'? it has: lr, shape, ids)",
                       Error);
  CHECK_THROWS_WITH_AS(b.set("op", specs, "ids", 1),
                       "[op] attribute 'ids': 1 (needed when the node is made)", Error);
}

TEST_CASE("attributes: ordered arrays are checked against their specs") {
  AttrSpec mode = spec("mode", TRL_ATTR_CHOICE);
  mode.choices = {"sum", "mean"};
  const std::vector<AttrSpec> specs{in_range(spec("p", TRL_ATTR_F64), 0, 1),
                                    mode,
                                    spec("on", TRL_ATTR_BOOL),
                                    each(spec("shape", TRL_ATTR_I64S), 1, 2),
                                    spec("file", TRL_ATTR_STR),
                                    in_range(spec("ids", TRL_ATTR_I64S, TRL_ATTR_PER_BATCH), 0, 9)};
  static const int64_t three[] = {1, 2, 30};
  const auto good = [&] {
    std::vector<trl_attr> a(6);
    for (size_t i = 0; i < 6; ++i) a[i] = {specs[i].type, 1, {}, nullptr};
    a[3].v.is = three;
    a[5].v.is = three;
    return a;
  };
  CHECK_NOTHROW(check_attrs("op", specs, good()));
  const auto text = [&](auto change) {
    std::vector<trl_attr> a = good();
    change(a);
    try {
      check_attrs("op", specs, a);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  using A = std::vector<trl_attr>&;
  CHECK(text([](A a) { a.pop_back(); }) == "[op] wrong number of attributes: 5 (needed 6)");
  CHECK(text([](A a) { a[0].type = TRL_ATTR_I64; }) ==
        "[op] attribute 'p': a value of type 1 (needed a number)");
  CHECK(text([](A a) { a[0].v.f = -1; }) == "[op] attribute 'p': -1 (needed 0 to 1)");
  CHECK(text([](A a) { a[1].v.i = 2; }) ==
        "[op] attribute 'mode': number 2 (needed one of sum, mean)");
  CHECK(text([](A a) { a[1].v.i = -1; }) ==
        "[op] attribute 'mode': number -1 (needed one of sum, mean)");
  CHECK(text([](A a) { a[2].v.i = 7; }) == "[op] attribute 'on': 7 (needed true or false)");
  CHECK(text([](A a) { a[3].count = 3; }) == "[op] attribute 'shape': 3 values (needed at most 2)");
  CHECK(text([](A a) { a[3].v.is = nullptr; }) ==
        "[op] attribute 'shape': no values (needed integers)");
  CHECK(text([](A a) {
          a[4].v.s = {nullptr, 3};
        }) == "[op] attribute 'file': no text (needed a text)");
  CHECK(text([](A a) { a[5].count = 3; }) == "[op] attribute 'ids': 30 (needed 0 to 9)");
  CHECK(text([](A a) { a[5].count = 0; }) == "no error");
}
