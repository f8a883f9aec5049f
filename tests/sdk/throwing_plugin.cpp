// SPDX-License-Identifier: Apache-2.0
//
// Throws from every callback, in every way: what the layer has to stop at the border.

#include <stdexcept>
#include <trellis/sdk/op.hpp>

namespace trellis::ops {

struct Thrower {
  enum class How { error, runtime, memory, number };
  enum class Where { infer, forward, backward };
  struct Attrs {
    Where where = Where::infer;
    How how = How::error;
  };
  static constexpr auto attrs = fields(
      field("where", &Attrs::where, "in which callback", choices("infer", "forward", "backward")),
      field("how", &Attrs::how, "what is thrown", choices("error", "runtime", "memory", "number")));
  static constexpr OpSpec spec{.name = "thrower", .summary = "throws", .inputs = {"x"}};

  static Dim infer(const Attrs& a, Dims x) {
    raise(a, Where::infer);
    return x[0];
  }
  static void forward(const Attrs& a, auto x, auto y) {
    raise(a, Where::forward);
    map(x, y, [](auto v) { return v; });
  }
  static void backward(const Attrs& a, const auto& b) {
    raise(a, Where::backward);
    grad_zip(b.dy(), b.dx(), [](auto v) { return v; });
  }

 private:
  static void raise(const Attrs& a, Where where) {
    if (a.where != where) return;
    switch (a.how) {
      case How::error:
        fail(TRL_E_UNSUPPORTED, "cannot do ", Dim({2, 3}, 4), ": given ", 7, " (need ", 0.5, ")");
      case How::runtime:
        throw std::runtime_error("went wrong");
      case How::memory:
        throw std::bad_alloc();
      case How::number:
        throw 42;
    }
  }
};

TRL_OPS(thrower, Thrower)

}  // namespace trellis::ops

TRL_PLUGIN("throwing-plugin", "0.1.0", "test", thrower)
