// SPDX-License-Identifier: Apache-2.0

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <trellis/model.hpp>

#include "framework/model/fake_plugin.hpp"
#include "model/records.hpp"

using namespace trellis;
using fake::error_text;

namespace {

size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  size_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

TEST_CASE("model: names are paths, and later ones of the same name get a suffix") {
  const fake::Runtime runtime;
  Model root(runtime);
  CHECK(root.name() == "/");
  CHECK(root.add_parameter("w", {2}).name() == "/w");
  CHECK(root.add_lookup("w", 3, {2}).name() == "/w_1");
  CHECK(root.add_parameter("w", {2}).name() == "/w_2");
  Model child = root.sub("w");  // sub-models count apart
  CHECK(child.name() == "/w/");
  CHECK(root.sub("w").name() == "/w_1/");
  CHECK(child.add_parameter("w", {2}).name() == "/w/w");
  CHECK(child.sub("x").sub("y").name() == "/w/x/y/");
  CHECK(root.add_parameter("it.is-9_fine", {1}).name() == "/it.is-9_fine");
}

TEST_CASE("model: a generated name never meets a given one") {
  const fake::Runtime runtime;
  Model root(runtime);
  root.add_parameter("w_1", {1});
  root.add_parameter("w", {1});
  CHECK(root.add_parameter("w", {1}).name() == "/w_2");
  root.sub("s_1");
  root.sub("s");
  CHECK(root.sub("s").name() == "/s_2/");
}

TEST_CASE("model: bad names are refused") {
  const fake::Runtime runtime;
  Model root(runtime);
  for (const char* name : {"", "a/b", "_a", "a_", "_", "a b", "\xc3\xa4"}) {
    CAPTURE(name);
    const std::string end =
        std::string("bad name: '") + name + "' (letters, digits, '.', '-', and '_' inside)";
    CHECK(error_text(ErrorKind::argument, [&] { root.sub(name); }) == "[sub] " + end);
    CHECK(error_text(ErrorKind::argument, [&] { root.add_parameter(name, {1}); }) ==
          "[add_parameter] " + end);
    CHECK(error_text(ErrorKind::argument, [&] { root.add_lookup(name, 2, {1}); }) ==
          "[add_lookup] " + end);
  }
  CHECK(root.size() == 0);
}

TEST_CASE("model: a sub-model sees its subtree, in order of creation") {
  const fake::Runtime runtime;
  Model root(runtime);
  Model a = root.sub("a"), ab = root.sub("ab");
  root.add_parameter("p", {4});
  a.add_parameter("q", {2, 3});
  ab.add_parameter("r", {5});
  a.sub("deep").add_parameter("s", {7});
  LookupParameter t = a.add_lookup("t", 10, {3});
  CHECK(root.size() == 5);
  CHECK(a.size() == 3);
  REQUIRE(a.parameters().size() == 2);
  CHECK(a.parameters()[0].name() == "/a/q");
  CHECK(a.parameters()[1].name() == "/a/deep/s");
  REQUIRE(a.lookups().size() == 1);
  CHECK(a.lookups()[0].name() == "/a/t");
  CHECK(root.element_count() == 4 + 6 + 5 + 7 + 30);
  CHECK(a.element_count() == 6 + 7 + 30);
  t.set_trainable(false);
  CHECK(a.trainable_element_count() == 13);
}

TEST_CASE("model: parameters are found by full or relative name, and misses are explained") {
  const fake::Runtime runtime;
  Model root(runtime);
  Model encoder = root.sub("encoder");
  const auto miss = [&](const Model& m, const char* name) {
    return error_text(ErrorKind::argument, [&] { m.parameter(name); });
  };
  CHECK(miss(root, "w") == "[parameter] no such name under '/': 'w' (it has no parameters)");
  Parameter weight = encoder.add_parameter("weight", {2});
  LookupParameter words = encoder.add_lookup("words", 4, {2});
  root.add_parameter("bias", {2});
  CHECK(root.parameter("/encoder/weight").value().data() == weight.value().data());
  CHECK(root.parameter("encoder/weight").name() == "/encoder/weight");
  CHECK(encoder.parameter("weight").name() == "/encoder/weight");
  CHECK(encoder.lookup("words").rows() == 4);
  CHECK(miss(encoder, "wieght") ==
        "[parameter] no such name under '/encoder/': 'wieght' (did you "
        "mean '/encoder/weight'?)");
  CHECK(miss(encoder, "/bias") ==
        "[parameter] no such name under '/encoder/': '/bias' (one of its 1, the first is "
        "'/encoder/weight')");
  CHECK(miss(encoder, "words") ==
        "[parameter] /encoder/words is a lookup table: 'words' (a parameter)");
  CHECK(error_text(ErrorKind::argument, [&] { encoder.lookup("weight"); }) ==
        "[lookup] /encoder/weight is a parameter: 'weight' (a lookup table)");
  CHECK(error_text(ErrorKind::argument, [&] { root.sub("empty").lookup("x"); }) ==
        "[lookup] no such name under '/empty/': 'x' (it has no lookup tables)");
}

TEST_CASE("model: a handle keeps the whole model alive") {
  const fake::Runtime runtime;
  Parameter w;
  LookupParameter t;
  {
    Model root(runtime);
    w = root.add_parameter("w", {3});
    t = root.add_lookup("t", 2, {3});
  }
  CHECK(w.value().as_vector() == std::vector<float>{0, 1, 2});
  w = Parameter();
  CHECK(t.row(1).as_vector() == std::vector<float>{3, 4, 5});
}

TEST_CASE("model: values never move") {
  const fake::Runtime runtime;
  Model root(runtime);
  Parameter first = root.add_parameter("first", {5});
  const void* const at = first.value().data();
  for (int i = 0; i < 2000; ++i) root.add_parameter("w", {300});
  CHECK(first.value().data() == at);
  CHECK(first.value().at(4) == 4);
  CHECK(root.parameter("w_1999").value().at(299) == 299);
}

TEST_CASE("model: parameters are filled by the default initializer, a named one, or values") {
  const fake::Runtime runtime;
  Model root(runtime, DType::f64);
  CHECK(root.dtype() == DType::f64);
  CHECK(root.add_parameter("a", {2, 2}).value().as_doubles() == std::vector<double>{0, 1, 2, 3});
  CHECK(root.add_parameter("b", {2}, {"test.count", {{"start", 7}}}).value().as_doubles() ==
        std::vector<double>{7, 8});
  CHECK(root.add_parameter("c", {2}, {"count", {{"start", 7}}}).value().at(1) == 8);
  CHECK(root.add_parameter("d", {2}, Init::from({5, 6})).value().as_doubles() ==
        std::vector<double>{5, 6});
  LookupParameter t = root.add_lookup("t", 2, {3}, Init::from({0, 1, 2, 3, 4, 5}));
  CHECK(t.dim() == Dim{3, 2});
  CHECK(t.row_dim() == Dim{3});
  CHECK(t.row(1).as_doubles() == std::vector<double>{3, 4, 5});
}

TEST_CASE("model: initializers are told fans and whether it is a table") {
  const fake::Runtime runtime;
  Model root(runtime);
  const auto fans = [] { return std::pair(fake::last_fill.fan_in, fake::last_fill.fan_out); };
  using Fans = std::pair<uint64_t, uint64_t>;
  root.add_parameter("scalar", {});
  CHECK(fans() == Fans{1, 1});
  root.add_parameter("vector", {12});
  CHECK(fans() == Fans{12, 12});
  root.add_parameter("matrix", {4, 2});
  CHECK(fans() == Fans{2, 4});
  root.add_parameter("tensor", {4, 2, 3});
  CHECK(fans() == Fans{6, 4});
  root.add_parameter("filter", {3, 5, 7, 11});
  CHECK(fans() == Fans{3 * 5 * 7, 3 * 5 * 11});
  CHECK(fake::last_fill.lookup == 0);
  root.add_lookup("table", 100, {8});
  CHECK(fans() == Fans{8, 8});
  CHECK(fake::last_fill.lookup == 1);
}

TEST_CASE("model: a parameter's random stream depends on seed and full name only") {
  const auto stream = [](uint64_t seed, const char* before, const char* sub, const char* name) {
    const fake::Runtime runtime(seed);
    Model root(runtime);
    if (*before) root.add_parameter(before, {1});
    root.sub(sub).add_parameter(name, {1});
    const trl_stream& s = fake::last_fill.stream;
    return std::vector<uint32_t>{s.key[0], s.key[1], s.counter_hi[0], s.counter_hi[1]};
  };
  const auto s = stream(1, "", "a", "w");
  CHECK(s == stream(1, "other", "a", "w"));
  CHECK(s != stream(2, "", "a", "w"));
  CHECK(s != stream(1, "", "b", "w"));
  CHECK(s != stream(1, "", "a", "v"));
}

TEST_CASE("model: a parameter that cannot be filled is not added and its name stays free") {
  const fake::Runtime runtime;
  Model root(runtime);
  const auto add = [&](ErrorKind kind, const Init& init) {
    return error_text(kind, [&] { root.add_parameter("w", {3, 4}, init); });
  };
  CHECK(add(ErrorKind::shape, Init::from({1, 2})) ==
        "[init /w] wrong number of values: 2 (12 for {3,4})");
  CHECK(add(ErrorKind::shape, "test.fails") ==
        "[test.fails for /w] only squares: {3,4} (a square matrix) (plugin test-plugin 1.2.3)");
  CHECK(add(ErrorKind::plugin, "test.silent") ==
        "[test.silent for /w] no text given (status -6) (plugin test-plugin 1.2.3)");
  CHECK(add(ErrorKind::argument, "test.cuont").find("test.count") != std::string::npos);
  const std::string unknown = add(ErrorKind::argument, {"test.count", {{"stert", 1}}});
  CHECK(unknown.find("test.count for /w") != std::string::npos);
  CHECK(unknown.find("start") != std::string::npos);
  CHECK(root.size() == 0);
  CHECK(root.root().values.used() == 0);
  CHECK(root.add_parameter("w", {1}).name() == "/w");
}

TEST_CASE("model: shapes that parameters cannot have are refused") {
  const fake::Runtime runtime;
  Model root(runtime);
  CHECK(error_text(ErrorKind::shape, [&] { root.sub("a").add_parameter("w", Dim({3}, 2)); }) ==
        "[add_parameter /a/w] parameters have no batch: {3}x2 (batch 1)");
  CHECK(error_text(ErrorKind::shape, [&] { root.add_lookup("t", 2, Dim({3}, 2)); }) ==
        "[add_lookup /t] rows have no batch: {3}x2 (batch 1)");
  CHECK(error_text(ErrorKind::shape, [&] { root.add_lookup("t", 0, {3}); }) ==
        "[add_lookup /t] too few rows: 0 (at least 1)");
  CHECK(error_text(ErrorKind::shape, [&] {
          root.add_lookup("t", 2, {1, 1, 1, 1, 1, 1, 1, 1});
        }) == "[add_lookup /t] too many dimensions of a row: 8 (at most 7)");
  CHECK(error_text(ErrorKind::dtype, [&] { Model(runtime, DType::i64); }) ==
        "[model] element type of parameters: i64 (f32 or f64)");
}

TEST_CASE("model: norms cover the subtree, skip frozen gradients and cannot overflow") {
  const fake::Runtime runtime;
  Model root(runtime);
  Model a = root.sub("a");
  Parameter p = a.add_parameter("p", {2}, Init::from({3e30, 0}));
  LookupParameter t = a.add_lookup("t", 9, {1}, Init::from({0, 4e30, 0, 0, 0, 0, 0, 0, 0}));
  Parameter q = root.add_parameter("q", {1}, Init::from({1}));
  CHECK(a.value_norm() == doctest::Approx(5e30));
  CHECK(a.gradient_norm() == 0);
  p.gradient().set(1, 3e30);
  GradientBlock::Impl& block = root.gradients().impl();
  reinterpret_cast<float*>(block.sparse(t.record()).row(4))[0] = -4e30f;
  q.gradient().set(0, std::numeric_limits<double>::infinity());
  CHECK(a.gradient_norm() == doctest::Approx(5e30));
  CHECK(std::isnan(root.gradient_norm()));
  q.set_trainable(false);
  CHECK(root.gradient_norm() == doctest::Approx(5e30));
  p.set_trainable(false);
  CHECK(root.gradient_norm() == doctest::Approx(4e30));
}

TEST_CASE("model: reset_gradient clears the subtree and nothing else") {
  const fake::Runtime runtime;
  Model root(runtime);
  Model a = root.sub("a");
  Parameter p = root.add_parameter("p", {1}), q = a.add_parameter("q", {1});
  p.gradient().set(0, 1);
  q.gradient().set(0, 1);
  a.reset_gradient();
  CHECK(p.gradient().at(0) == 1);
  CHECK(q.gradient().at(0) == 0);
}

TEST_CASE("model: memory comes back when a model goes") {
  const fake::Runtime runtime;
  const auto once = [&] {
    Model root(runtime);
    Parameter w = root.add_parameter("w", {1000, 1000});
    w.gradient().set(0, 1);
  };
  once();
  const size_t before = resident_bytes();
  for (int i = 0; i < 50; ++i) once();
  CHECK(resident_bytes() < before + (size_t{16} << 20));
}

TEST_CASE("model: a table costs the rows in use") {
  const fake::Runtime runtime;
  Model root(runtime);
  const size_t before = resident_bytes();
  LookupParameter t = root.add_lookup("t", 4'000'000, {64}, "test.nothing");  // 1 GB of values
  GradientBlock::Impl& block = root.gradients().impl();
  for (uint32_t i = 0; i < 100; ++i) block.sparse(t.record()).row(i * 39'999)[0] = 1;
  CHECK(t.touched_rows().size() == 100);
  CHECK(resident_bytes() < before + (size_t{64} << 20));
}
