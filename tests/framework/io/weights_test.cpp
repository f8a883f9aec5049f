// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <numeric>
#include <trellis/io.hpp>
#include <trellis/runtime.hpp>

#include "files.hpp"

using namespace trellis;
using test::Folder;

namespace {

std::vector<double> counting(uint64_t n, double from) {
  std::vector<double> v(n);
  std::iota(v.begin(), v.end(), from);
  return v;
}

// A model with one parameter, a child with one, and a table; numbers count up from `from`.
struct Small {
  explicit Small(const Runtime& runtime, DType dtype = DType::f32, double from = 0)
      : model(runtime, dtype) {
    model.add_parameter("w", {2, 3}, Init::from(counting(6, from)));
    model.sub("encoder").add_parameter("b", {4}, Init::from(counting(4, from + 10)));
    model.add_lookup("words", 5, {2}, Init::from(counting(10, from + 20)));
  }
  std::vector<double> numbers() const {
    std::vector<double> all;
    for (const Parameter& p : model.parameters()) append(all, p);
    for (const LookupParameter& p : model.lookups()) append(all, p);
    return all;
  }
  static void append(std::vector<double>& all, const Parameter& p) {
    const std::vector<double> v = p.value().as_doubles();
    all.insert(all.end(), v.begin(), v.end());
  }
  Model model;
};

std::string refusal(const Model& model, const std::filesystem::path& path) {
  try {
    load_weights(model, path);
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::io);
    return e.what();
  }
  return "read without complaint";
}

Runtime& runtime() {
  static Runtime r([] {
    RuntimeOptions options;
    options.no_plugins = true;
    return options;
  }());
  return r;
}

}  // namespace

TEST_CASE("weights: saved and loaded bit for bit, f32 and f64") {
  const Folder dir;
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Small from(runtime(), dtype, 0.1);
    const Small to(runtime(), dtype, 500);
    save_weights(from.model, dir.file("m.safetensors"), {{"note", "a b"}});
    load_weights(to.model, dir.file("m.safetensors"));
    CHECK(to.numbers() == from.numbers());
    CHECK(read_metadata(dir.file("m.safetensors")) == Metadata{{"note", "a b"}});
  }
  CHECK(dir.count() == 1);
}

TEST_CASE("weights: names are those below the model, shapes are reversed for row-major readers") {
  const Folder dir;
  const Small m(runtime());
  save_weights(m.model, dir.file("m"));
  const std::string bytes = test::read_bytes(dir.file("m"));
  CHECK(bytes.find("\"encoder/b\":{\"data_offsets\":[24,40],\"dtype\":\"F32\",\"shape\":[4]}") !=
        std::string::npos);
  CHECK(bytes.find("\"w\":{\"data_offsets\":[0,24],\"dtype\":\"F32\",\"shape\":[3,2]}") !=
        std::string::npos);
  CHECK(bytes.find("\"words\":{\"data_offsets\":[40,80],\"dtype\":\"F32\",\"shape\":[5,2]}") !=
        std::string::npos);
  CHECK(read_metadata(dir.file("m")).empty());
}

TEST_CASE("weights: a part of a model can be saved and put elsewhere") {
  const Folder dir;
  Small from(runtime(), DType::f32, 3);
  save_weights(from.model.sub("encoder"),
               dir.file("m"));  // the second child of that name: encoder_1, empty
  CHECK(refusal(from.model, dir.file("m")).find("missing 'encoder/b', 'w', 'words'") ==
        std::string::npos);

  Model whole(runtime());
  Model part = whole.sub("here");
  part.add_parameter("b", {2}, Init::from({1, 2}));
  save_weights(part, dir.file("part"));
  Model other(runtime());
  Parameter b = other.add_parameter("b", {2}, Init::from({0, 0}));
  load_weights(other, dir.file("part"));
  CHECK(b.value().as_doubles() == std::vector<double>{1, 2});
}

TEST_CASE("weights: what does not fit is named and nothing changes") {
  const Folder dir;
  const Small m(runtime());
  const std::vector<double> before = m.numbers();
  const auto path = dir.file("m");
  const std::string head = "[load_weights] '" + path.string() + "': does not fit the model: ";
  const auto saved = [&](auto&& fill) {
    Model other(runtime());
    fill(other);
    save_weights(other, path);
    const std::string text = refusal(m.model, path);
    CHECK(m.numbers() == before);
    REQUIRE(text.starts_with(head));
    return text.substr(head.size());
  };
  const auto zeros = [](uint64_t n) { return Init::from(std::vector<double>(n)); };
  CHECK(saved([&](Model& o) { o.add_parameter("x", {1}, zeros(1)); }) ==
        "missing 'w', 'encoder/b', 'words'; surplus 'x'");
  CHECK(saved([&](Model& o) {
          o.add_parameter("w", {3, 2}, zeros(6));
          o.sub("encoder").add_parameter("b", {4}, zeros(4));
          o.add_lookup("words", 6, {2}, zeros(12));
        }) == "'w' is F32 {3,2} (needed F32 {2,3}) and 1 more misfits");
  CHECK(saved([&](Model& o) {
          for (int i = 0; i < 8; ++i) o.add_parameter("p" + std::to_string(i), {1}, zeros(1));
          o.add_parameter("w", {2, 3}, zeros(6));
          o.sub("encoder").add_parameter("b", {4}, zeros(4));
          o.add_lookup("words", 5, {2}, zeros(10));
        }) == "surplus 'p0', 'p1', 'p2', 'p3', 'p4' and 3 more");

  const Small doubles(runtime(), DType::f64);
  save_weights(doubles.model, path);
  CHECK(refusal(m.model, path) == head + "'w' is F64 {2,3} (needed F32 {2,3}) and 2 more misfits");
}

TEST_CASE("weights: a file cut off anywhere is refused and nothing changes") {
  const Folder dir;
  const Small m(runtime());
  save_weights(m.model, dir.file("m"), {{"k", "v"}});
  const std::string whole = test::read_bytes(dir.file("m"));
  const std::vector<double> before = m.numbers();
  for (size_t n = 0; n < whole.size(); ++n) {
    CAPTURE(n);
    CHECK_THROWS_AS(load_weights(m.model, dir.write("cut", whole.substr(0, n))), Error);
  }
  CHECK(m.numbers() == before);
}

TEST_CASE("weights: a place that cannot be written leaves nothing behind") {
  const Folder dir;
  const Small m(runtime());
  const std::string path = dir.file("none/m").string();
  CHECK_THROWS_WITH_AS(
      save_weights(m.model, path),
      ("[save_weights] cannot write '" + path + "': No such file or directory").c_str(), Error);
  CHECK_THROWS_WITH_AS(save_weights(m.model, dir.file("m"), {{"k", "\xFF"}}),
                       "[save_weights] a name or a text of the metadata is not UTF-8", Error);
  CHECK(dir.count() == 0);
}
