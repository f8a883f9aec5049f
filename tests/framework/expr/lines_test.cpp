// SPDX-License-Identifier: Apache-2.0
//
// Error texts end with the line of the program that made the node: when it is refused, and when it
// fails later.

#include <doctest/doctest.h>

#include <string>
#include <trellis/expr.hpp>
#include <trellis/model.hpp>
#include <trellis/ops/core.hpp>
#include <trellis/rnn.hpp>

using namespace trellis;

namespace {

Runtime& runtime() {
  static Runtime r;
  return r;
}

Expr vec(Graph& g, const Dim& d, double value = 1) {
  return g.input(d, std::vector<double>(d.total(), value));
}

std::string here(uint32_t line) { return std::string(__FILE__) + ":" + std::to_string(line); }

bool ends_with_line(const std::string& text, const std::string& before, uint32_t line) {
  INFO(text);
  return text.ends_with(before + here(line));
}

template <class F>
std::string text_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("lines: a node that is refused names the line that asked for it") {
  Graph g(runtime());
  const Expr x = vec(g, {3}), y = vec(g, {4});
  uint32_t line = 0;
  const auto refused = [&](auto&& f) {
    const std::string text = text_of(f);  // sets the line
    return ends_with_line(text, ", at ", line);
  };
  CHECK(refused([&] { line = __LINE__, g.apply1("core.add", {x, y}); }));
  CHECK(refused([&] { line = __LINE__, x + y; }));
  CHECK(refused([&] { line = __LINE__, x * y; }));
  CHECK(refused([&] { line = __LINE__, ops::add(x, y); }));
  CHECK(refused([&] { line = __LINE__, ops::concat(x, vec(g, {3, 2}), y); }));
  CHECK(refused([&] { line = __LINE__, ops::concat({x, vec(g, {3, 2}), y}); }));
  CHECK(refused([&] { line = __LINE__, ops::pick(x, 7); }));
  CHECK(refused([&] { line = __LINE__, roles::reshape(x, {4}); }));
  Expr z = x;
  CHECK(refused([&] { line = __LINE__, z += y; }));
}

TEST_CASE("lines: a node that fails when it is computed names the line that made it") {
  GraphOptions options;
  options.check_validity = true;
  Graph g(runtime(), options);
  const Expr x = vec(g, {3}, -1);
  const uint32_t line = __LINE__ + 1;
  const Expr y = ops::log(x);
  const Expr z = y + x;
  CHECK(ends_with_line(text_of([&] { z.value(); }), ", made at ", line));

  const uint32_t custom = __LINE__ + 1;
  const Expr bad = g.custom({x}, x.dim(), [](auto, auto&) { throw std::runtime_error("no"); });
  CHECK(ends_with_line(text_of([&] { bad.value(); }), ", made at ", custom));
}

TEST_CASE("lines: what builders and composites make is laid to the line that called them") {
  Graph g(runtime());
  Model m(runtime());
  Rnn rnn(m, "lstm", {{"input", 4}, {"hidden", 5}});
  const Expr x = vec(g, {3});
  const RnnState s = rnn.start(g);
  uint32_t line = __LINE__ + 1;
  CHECK(ends_with_line(text_of([&] { s.add(x); }), ", at ", line));
  const std::vector<Expr> xs = {x, x};
  line = __LINE__ + 1;
  CHECK(ends_with_line(text_of([&] { s.transduce(xs); }), ", at ", line));
  // ... and no longer than it lasts.
  line = __LINE__ + 1;
  CHECK(ends_with_line(text_of([&] { x + vec(g, {4}); }), ", at ", line));
}

TEST_CASE("lines: without one nothing is said") {
  Graph g(runtime());
  const Expr x = vec(g, {3});
  const std::string text = text_of([&] { g.apply1("core.add", {x, vec(g, {4})}, {}, {}); });
  INFO(text);
  CHECK(text.find(", at ") == std::string::npos);
  CHECK(text.ends_with("inputs {3} {4}"));
}
