// SPDX-License-Identifier: Apache-2.0

#include <doctest/doctest.h>

#include <trellis/model.hpp>
#include <vector>

#include "framework/model/fake_plugin.hpp"
#include "model/records.hpp"

using namespace trellis;
using fake::error_text;

namespace {

using Floats = std::vector<float>;

float* grad_row(const Model& m, const LookupParameter& t, uint32_t row) {
  return reinterpret_cast<float*>(m.gradients().impl().sparse(t.record()).row(row));
}

}  // namespace

TEST_CASE("params: a default-made handle says so") {
  const Parameter none;
  CHECK_FALSE(none.valid());
  CHECK(error_text(ErrorKind::state, [&] { none.value(); }) ==
        "[parameter] handle without a parameter: default-made (one made by a model)");
}

TEST_CASE("params: values are set from floats and doubles, with the right count only") {
  const fake::Runtime runtime;
  for (const DType dtype : {DType::f32, DType::f64}) {
    Model root(runtime, dtype);
    Parameter w = root.add_parameter("w", {2, 2});
    CHECK(w.valid());
    CHECK(w.dtype() == dtype);
    CHECK(w.dim() == Dim{2, 2});
    w.set_value(Floats{1, 2, 3, 4});
    CHECK(w.value().as_vector() == Floats{1, 2, 3, 4});
    w.set_value(std::vector<double>{5, 6, 7, 8});
    CHECK(w.value().as_vector() == Floats{5, 6, 7, 8});
    CHECK(error_text(ErrorKind::shape, [&] {
            w.set_value(Floats{1, 2, 3});
          }) == "[set_value /w] wrong number of values: 3 (4 for {2,2})");
    CHECK(w.value().as_vector() == Floats{5, 6, 7, 8});
  }
}

TEST_CASE("params: zero, scale and clip act on all values") {
  const fake::Runtime runtime;
  Model root(runtime);
  Parameter w = root.add_parameter("w", {3}, Init::from({-3, 0.5, 9}));
  w.gradient().set(1, 4);
  w.clip(-1, 1);
  CHECK(w.value().as_vector() == Floats{-1, 0.5, 1});
  w.scale(2);
  CHECK(w.value().as_vector() == Floats{-2, 1, 2});
  CHECK(w.gradient().at(1) == 4);
  w.scale_gradient(0.5);
  CHECK(w.gradient().at(1) == 2);
  CHECK(w.value().as_vector() == Floats{-2, 1, 2});
  w.zero();
  CHECK(w.value().as_vector() == Floats{0, 0, 0});
  CHECK(w.gradient().as_vector() == Floats{0, 0, 0});
  CHECK(error_text(ErrorKind::argument, [&] { w.clip(1, -1); }) ==
        "[clip /w] empty range: 1..-1 (lower <= upper)");
  LookupParameter t = root.add_lookup("t", 1, {3}, Init::from({-3, 0.5, 9}));
  t.clip(-1, 1);
  CHECK(t.row(0).as_vector() == Floats{-1, 0.5, 1});
}

TEST_CASE("params: rows are read and written one by one") {
  const fake::Runtime runtime;
  Model root(runtime);
  LookupParameter t = root.add_lookup("t", 3, {5});
  CHECK(t.rows() == 3);
  CHECK(t.row(1).as_vector() == Floats{5, 6, 7, 8, 9});
  t.set_row(1, Floats{1, 1, 1, 1, 1});
  CHECK(t.row(0).as_vector() == Floats{0, 1, 2, 3, 4});
  CHECK(t.row(1).as_vector() == Floats{1, 1, 1, 1, 1});
  CHECK(t.row(2).at(0) == 10);
  CHECK(error_text(ErrorKind::range, [&] { t.row(3); }) == "[row /t] row out of range: 3 (0..2)");
  CHECK(error_text(ErrorKind::range, [&] { t.set_row(3, Floats(5)); }) ==
        "[set_row /t] row out of range: 3 (0..2)");
  CHECK(error_text(ErrorKind::range, [&] { t.row_gradient(7); }) ==
        "[row_gradient /t] row out of range: 7 (0..2)");
  CHECK(error_text(ErrorKind::shape, [&] { t.set_row(0, Floats(4)); }) ==
        "[set_row /t] wrong number of values: 4 (5 for {5})");
}

TEST_CASE("params: a table's gradient is kept by rows, and looking at it whole changes nothing") {
  const fake::Runtime runtime;
  Model root(runtime);
  LookupParameter t = root.add_lookup("t", 4, {2});
  CHECK(t.touched_rows().empty());
  CHECK(t.row_gradient(1).empty());
  grad_row(root, t, 2)[1] += 3;
  grad_row(root, t, 0)[0] += 1;
  grad_row(root, t, 2)[1] += 4;
  CHECK(std::vector<uint32_t>(t.touched_rows().begin(), t.touched_rows().end()) ==
        std::vector<uint32_t>{2, 0});
  CHECK(t.row_gradient(2).as_vector() == Floats{0, 7});
  CHECK(t.row_gradient(1).empty());
  CHECK(t.gradient().as_vector() == Floats{1, 0, 0, 0, 0, 7, 0, 0});
  CHECK(t.gradient().as_vector() == Floats{1, 0, 0, 0, 0, 7, 0, 0});
  CHECK(t.touched_rows().size() == 2);
  t.scale_gradient(2);
  CHECK(t.row_gradient(2).as_vector() == Floats{0, 14});
  t.zero();
  CHECK(t.touched_rows().empty());
  CHECK(t.gradient().as_vector() == Floats(8));
}

TEST_CASE("params: gradients of the whole table and of rows add up") {
  const fake::Runtime runtime;
  Model root(runtime);
  LookupParameter t = root.add_lookup("t", 2, {2});
  grad_row(root, t, 1)[0] = 5;
  reinterpret_cast<float*>(root.gradients().impl().dense(t.record()))[2] = 1;
  CHECK(t.row_gradient(1).as_vector() == Floats{6, 0});
  CHECK(t.row_gradient(0).as_vector() == Floats{0, 0});
  grad_row(root, t, 0)[1] = 2;
  CHECK(t.gradient().as_vector() == Floats{0, 2, 6, 0});
  CHECK(t.gradient().as_vector() == Floats{0, 2, 6, 0});
}
