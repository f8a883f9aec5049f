// SPDX-License-Identifier: Apache-2.0

#include <doctest/doctest.h>

#include <trellis/model.hpp>
#include <vector>

#include "framework/model/fake_plugin.hpp"
#include "model/records.hpp"

using namespace trellis;
using fake::error_text;

namespace {

float* dense(GradientBlock& b, const Parameter& p) {
  return reinterpret_cast<float*>(b.impl().dense(p.record()));
}
float* row(GradientBlock& b, const Parameter& p, uint32_t r) {
  return reinterpret_cast<float*>(b.impl().sparse(p.record()).row(r));
}

}  // namespace

TEST_CASE("gradients: memory is zero at the first use after clear") {
  const fake::Runtime runtime;
  Model root(runtime);
  Parameter p = root.add_parameter("p", {2});
  LookupParameter t = root.add_lookup("t", 3, {2});
  GradientBlock block(root);
  for (int i = 0; i < 3; ++i) {
    CHECK(dense(block, p)[1] == 0);
    CHECK(row(block, t, 1)[0] == 0);
    dense(block, p)[1] += 1;
    row(block, t, 1)[0] += 1;
    CHECK(dense(block, p)[1] == 1);
    CHECK(row(block, t, 1)[0] == 1);
    block.clear();
  }
  CHECK(block.impl().sparse(t.record()).touched().empty());
  CHECK(block.impl().sparse(t.record()).find(1) == nullptr);
  CHECK(p.gradient().at(1) == 0);  // the model's own block was not used
}

TEST_CASE("gradients: rows keep their sums while their number grows") {
  const fake::Runtime runtime;
  Model root(runtime);
  LookupParameter t = root.add_lookup("t", 50'000, {8}, "test.nothing");
  detail::SparseRows rows(t.record());
  for (uint32_t i = 0; i < 50'000; ++i)
    reinterpret_cast<float*>(rows.row((i * 7919) % 50'000))[3] += static_cast<float>(i);
  CHECK(rows.touched().size() == 50'000);
  CHECK(rows.elements() == 400'000);
  for (uint32_t i = 0; i < 50'000; i += 997)
    CHECK(reinterpret_cast<const float*>(rows.find((i * 7919) % 50'000))[3] ==
          static_cast<float>(i));
  CHECK(rows.find(50'000) == nullptr);
}

TEST_CASE("gradients: blocks add up parameter by parameter and row by row") {
  const fake::Runtime runtime;
  for (const DType dtype : {DType::f32, DType::f64}) {
    Model root(runtime, dtype);
    Parameter p = root.add_parameter("p", {2}), unused = root.add_parameter("unused", {2});
    LookupParameter t = root.add_lookup("t", 5, {1});
    GradientBlock a(root), b(root);
    const auto add = [&](GradientBlock& to, uint32_t r, double v) {
      char* const at = to.impl().sparse(t.record()).row(r);
      if (dtype == DType::f32)
        *reinterpret_cast<float*>(at) += static_cast<float>(v);
      else
        *reinterpret_cast<double*>(at) += v;
    };
    TensorView(a.impl().dense(p.record()), p.dim(), dtype).set(0, 1);
    TensorView(b.impl().dense(p.record()), p.dim(), dtype).set(0, 2);
    add(a, 3, 1);
    add(b, 4, 5);
    add(b, 3, 2);
    root.gradients().add(a);
    root.gradients().add(b);
    CHECK(p.gradient().as_vector() == std::vector<float>{3, 0});
    CHECK(t.row_gradient(3).as_scalar() == 3);
    CHECK(t.row_gradient(4).as_scalar() == 5);
    CHECK(t.touched_rows()[0] == 3);
    CHECK(t.touched_rows()[1] == 4);
    CHECK(unused.gradient().as_vector() == std::vector<float>{0, 0});
  }
}

TEST_CASE("gradients: blocks of two models do not add, nor a block to itself") {
  const fake::Runtime runtime;
  Model one(runtime), two(runtime);
  GradientBlock a(one), b(two);
  CHECK(error_text(ErrorKind::argument, [&] { a.add(b); }) ==
        "[gradient block] blocks of two models cannot be added: another model (the same model)");
  CHECK(error_text(ErrorKind::argument, [&] { a.add(a); }) ==
        "[gradient block] a block cannot be added to itself: itself (another block of the same "
        "model)");
}

TEST_CASE("gradients: a block serves parameters added later, moves, and keeps its model alive") {
  const fake::Runtime runtime;
  auto model = std::make_unique<Model>(runtime);
  GradientBlock first(*model);
  LookupParameter t = model->add_lookup("t", 3, {1});
  row(first, t, 2)[0] = 4;
  GradientBlock block = std::move(first);
  t = LookupParameter();
  model.reset();
  block.clear();
  GradientBlock other(Model{runtime});
  block = std::move(other);
}
