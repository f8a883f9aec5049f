// SPDX-License-Identifier: Apache-2.0
//
// Shape rules. Each returns the shape of the result or refuses with a text of the form "fact: given
// (needed)". Missing trailing dimensions count as 1 everywhere; the batch is the host's business.
#pragma once

#include <trellis/abi/op.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <trellis/sdk/attrs.hpp>
#include <trellis/sdk/tensor.hpp>

namespace trellis::sdk {
inline namespace [[gnu::visibility("hidden")]] v0 {

// The input shapes of an operator in infer.
class Dims {
 public:
  Dims(const trl_infer_args& args, const std::string_view* names, std::uint32_t n_names)
      : args_(&args), names_(names), n_names_(n_names) {}

  std::uint32_t size() const { return args_->n_in; }
  Dim operator[](std::uint32_t i) const { return args_->in[i]; }
  const trl_dim* begin() const { return args_->in; }
  const trl_dim* end() const { return args_->in + args_->n_in; }

  bool has(std::uint32_t i) const {
    return i < size() && args_->in_dtype[i] != 0;
  }  // optional inputs
  std::uint16_t dtype(std::uint32_t i) const { return args_->in_dtype[i]; }
  std::uint32_t batch() const { return args_->batch; }  // of the node, after broadcasting
  // The graph's mode; only for operators whose spec says `mode` or `random`.
  bool training() const { return (args_->flags & TRL_CALL_TRAIN) != 0; }

  // "x", or "x0", "x1", ... where there may be several.
  std::string name(std::uint32_t i) const {
    if (i + 1 < n_names_ || (i + 1 == n_names_ && size() == n_names_))
      return std::string(names_[i]);
    return std::string(names_[n_names_ - 1]) + std::to_string(i + 1 - n_names_);
  }

 private:
  const trl_infer_args* args_;
  const std::string_view* names_;
  std::uint32_t n_names_;
};

// What infer returns when the output is a run of an input's elements: Shape(dim).view(0).
struct Shape {
  Dim dim;
  std::int32_t view_of = -1;
  std::uint64_t view_offset = 0;
  bool stops_gradient = false;

  Shape(const Dim& d) : dim(d) {}
  // The output is the run of input i that starts at `offset`, in elements per example; the host
  // makes a view.
  Shape view(std::uint32_t i, std::uint64_t offset = 0) const {
    Shape to = *this;
    to.view_of = static_cast<std::int32_t>(i);
    to.view_offset = offset;
    return to;
  }
  Shape stop_gradient() const {
    Shape to = *this;
    to.stops_gradient = true;
    return to;
  }
};

namespace detail {

inline Dim one(const Dim& d) { return d.with_batch(1); }  // error texts show shapes of one example

}  // namespace detail

// All inputs have one shape, which is the result's.
inline Dim same_as(const Dims& x) {
  Dim to = x[0];
  for (std::uint32_t i = 1; i < x.size(); ++i) {
    TRL_REQUIRE(to.same_shape(x[i]), "shapes differ: ", x.name(0), " is ", detail::one(x[0]), ", ",
                x.name(i), " is ", detail::one(x[i]), " (must be equal)");
    if (x[i].rank > to.rank) to = x[i];
  }
  return to;
}

// On each axis sizes are equal or 1; the result has the larger ones.
inline Dim broadcast(const Dims& x) {
  Dim to = x[0];
  for (std::uint32_t i = 1; i < x.size(); ++i) {
    const Dim d = x[i];
    while (to.rank < d.rank) to.push(1);
    for (std::uint32_t axis = 0; axis < d.rank; ++axis) {
      TRL_REQUIRE(d[axis] == to[axis] || d[axis] == 1 || to[axis] == 1, "sizes differ on axis ",
                  axis, ": ", x.name(0), " is ", detail::one(x[0]), ", ", x.name(i), " is ",
                  detail::one(d), " (each axis must be equal or 1)");
      if (d[axis] != 1) to.d[axis] = d[axis];
    }
  }
  return to;
}

// x {m,k}, y {k} or {k,n}: the product's shape is {m} or {m,n}.
inline Dim matmul_dim(const Dim& x, const Dim& y, std::string_view x_name = "x",
                      std::string_view y_name = "y") {
  TRL_REQUIRE(x.rank <= 2 && y.rank <= 2, "takes matrices: ", x_name, " is ", detail::one(x), ", ",
              y_name, " is ", detail::one(y), " (need at most 2 dimensions)");
  TRL_REQUIRE(x[1] == y[0], "inner sizes differ: ", x_name, " is ", detail::one(x), ", ", y_name,
              " is ", detail::one(y), " (need columns of ", x_name, " == rows of ", y_name, ")");
  return y.rank < 2 ? Dim{x[0]} : Dim{x[0], y[1]};
}

// An axis as users write it: negative counts from the last dimension. Axes beyond the rank have
// size 1.
inline std::uint32_t axis_of(std::int64_t axis, const Dim& dim) {
  const std::int64_t a = axis < 0 ? axis + dim.rank : axis;
  TRL_REQUIRE(a >= 0 && a < TRL_MAX_RANK, "no such axis: ", axis, " of ", detail::one(dim),
              " (need from -", dim.rank, " to ", TRL_MAX_RANK - 1, ")");
  return static_cast<std::uint32_t>(a);
}
// A set of axes, bit i for axis i; an empty list means all.
inline std::uint32_t axes_of(Ints axes, const Dim& dim) {
  std::uint32_t set = axes.empty() ? (1u << TRL_MAX_RANK) - 1 : 0;
  for (const std::int64_t axis : axes) set |= 1u << axis_of(axis, dim);
  return set;
}

// The rank of x lies in [lo, hi].
inline void require_rank(const Dims& x, std::uint32_t i, std::uint32_t lo, std::uint32_t hi) {
  TRL_REQUIRE(x[i].rank >= lo && x[i].rank <= hi, "wrong number of dimensions: ", x.name(i), " is ",
              detail::one(x[i]), lo == hi ? " (need " : " (need from ", lo, lo == hi ? "" : " to ",
              lo == hi ? std::string() : std::to_string(hi), ")");
}

// A column: every size but the first is 1.
inline void require_vector(const Dims& x, std::uint32_t i) {
  TRL_REQUIRE(x[i].size() == x[i][0], "takes a vector: ", x.name(i), " is ", detail::one(x[i]),
              " (need one column; a second dimension is not the batch)");
}

// The shape of a list with one more or one less element on an axis: all inputs agree on every other
// axis.
inline Dim concat_dim(const Dims& x, std::uint32_t axis) {
  Dim to = x[0];
  std::uint32_t total = 0;
  for (std::uint32_t i = 0; i < x.size(); ++i) {
    const Dim d = x[i];
    const std::uint32_t n = d.rank > to.rank ? d.rank : to.rank;
    for (std::uint32_t a = 0; a < n; ++a)
      TRL_REQUIRE(a == axis || d[a] == to[a], "sizes differ on axis ", a, ": ", x.name(0), " is ",
                  detail::one(x[0]), ", ", x.name(i), " is ", detail::one(d), " (all but axis ",
                  axis, " must agree)");
    if (d.rank > to.rank) to = d;
    total += d[axis];
  }
  return to.with(axis, total);
}

}  // namespace gnu::visibility("hidden")]]v0
}  // namespace trellis::sdk
