// SPDX-License-Identifier: Apache-2.0
//
// The generic checks at the border, on the examples of an operator's own schema: gradient against
// central differences in f64, batched against single, store against add, every subset of wanted
// gradients, f32 against f64, results that do not depend on whether anybody will ask for gradients.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "stub_host.hpp"

namespace stub {

struct Example {
  std::string source;
  std::vector<std::pair<std::vector<uint32_t>, uint32_t>> in;  // sizes, batch
  Attrs attrs;
};

// "concat({2,3}x4, {2,1}, axis=1); ..." with numbers, true, words, [1,2] and [[1],[2,3]] as values.
class ExampleReader {
 public:
  ExampleReader(std::string s, const trl_op_desc& op) : s_(std::move(s)), op_(op) {}

  std::vector<Example> read() {
    std::vector<Example> all;
    while (skip(), at_ < s_.size()) {
      const size_t start = at_;
      Example e;
      word();
      need('(');
      while (skip(), !take(')')) {
        if (peek() == '{')
          input(e);
        else
          attribute(e);
        take(',');
      }
      e.source = s_.substr(start, at_ - start);
      all.push_back(std::move(e));
      if (skip(), at_ < s_.size()) need(';');
    }
    return all;
  }

 private:
  void skip() {
    while (at_ < s_.size() && std::isspace(static_cast<unsigned char>(s_[at_]))) ++at_;
  }
  char peek() { return skip(), at_ < s_.size() ? s_[at_] : '\0'; }
  bool take(char c) { return peek() == c ? ++at_, true : false; }
  void need(char c) {
    if (!take(c))
      throw std::runtime_error("example '" + s_ + "': no '" + c + "' at " + std::to_string(at_));
  }
  std::string word() {
    std::string w;
    skip();
    while (at_ < s_.size() && (std::isalnum(static_cast<unsigned char>(s_[at_])) || s_[at_] == '_'))
      w += s_[at_++];
    return w;
  }
  double number() {
    skip();
    size_t used = 0;
    const double v = std::stod(s_.substr(at_), &used);
    at_ += used;
    return v;
  }
  void input(Example& e) {
    std::vector<uint32_t> sizes;
    need('{');
    while (!take('}')) {
      sizes.push_back(static_cast<uint32_t>(number()));
      take(',');
    }
    uint32_t batch = 1;
    if (at_ < s_.size() && s_[at_] == 'x') ++at_, batch = static_cast<uint32_t>(number());
    e.in.push_back({sizes, batch});
  }
  void attribute(Example& e) {
    const std::string key = word();
    need('=');
    const trl_attr_spec* spec = nullptr;
    for (uint32_t i = 0; i < op_.n_attrs; ++i)
      if (text(op_.attrs[i]->key) == key) spec = op_.attrs[i];
    if (spec == nullptr)
      throw std::runtime_error("example '" + s_ + "': no attribute '" + key + "'");
    if (peek() != '[') {
      if (std::isalpha(static_cast<unsigned char>(peek()))) {
        const std::string w = word();
        if (w == "true" || w == "false")
          e.attrs[key] = w == "true" ? 1.0 : 0.0;
        else
          e.attrs[key] = w;
      } else if (const double v = number(); spec->flags & TRL_ATTR_PER_BATCH) {
        e.attrs[key] = Ragged{{static_cast<int64_t>(v)}};
      } else {
        e.attrs[key] = v;
      }
      return;
    }
    std::vector<double> flat;
    Ragged lists;
    need('[');
    while (!take(']')) {
      if (take('[')) {
        lists.emplace_back();
        while (!take(']')) lists.back().push_back(static_cast<int64_t>(number())), take(',');
      } else {
        flat.push_back(number());
      }
      take(',');
    }
    if (!(spec->flags & TRL_ATTR_PER_BATCH)) {
      e.attrs[key] = flat;
    } else {
      if (lists.empty() && spec->max_each == 1)
        for (const double v : flat) lists.push_back({static_cast<int64_t>(v)});
      else if (lists.empty())
        lists.emplace_back(flat.begin(), flat.end());
      e.attrs[key] = lists;
    }
  }

  std::string s_;
  const trl_op_desc& op_;
  size_t at_ = 0;
};

inline double draw(std::mt19937& rng, uint8_t domain) {
  std::uniform_real_distribution<double> unit(0.0, 1.0);
  const double u = unit(rng);
  switch (domain) {
    case TRL_DOMAIN_POSITIVE:
      return 0.2 + 2 * u;
    case TRL_DOMAIN_UNIT:
      return -0.9 + 1.8 * u;
    case TRL_DOMAIN_PROBABILITY:
      return 0.05 + 0.9 * u;
    case TRL_DOMAIN_ABOVE_ONE:
      return 1.2 + 2 * u;
    case TRL_DOMAIN_NONZERO:
      return (u < 0.5 ? -1 : 1) * (0.4 + u);
    default:
      return -1.5 + 3 * u;
  }
}

inline std::vector<Value> random_inputs(const trl_op_desc& op, const Example& e, uint32_t batch,
                                        std::mt19937& rng) {
  std::vector<Value> in;
  for (size_t i = 0; i < e.in.size(); ++i) {
    const trl_in_spec& spec = *op.in[i < op.n_in ? i : size_t(op.n_in) - 1u];
    Value v(e.in[i].first, {0}, e.in[i].second);
    v.shared = v.dim.batch == 1 && batch > 1 && spec.merge != TRL_IN_NEVER;
    for (double& x : v.data) x = draw(rng, spec.domain);
    in.push_back(std::move(v));
  }
  return in;
}

inline std::vector<Value> weights_like(const std::vector<Value>& out, std::mt19937& rng) {
  std::vector<Value> w = out;
  for (Value& v : w)
    for (double& x : v.data) x = draw(rng, TRL_DOMAIN_ANY);
  return w;
}

inline double close(double a, double b) {
  return std::fabs(a - b) / std::max({1.0, std::fabs(a), std::fabs(b)});
}

inline void check_close(const std::vector<double>& a, const std::vector<double>& b,
                        double tolerance, const std::string& what) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    const bool same =
        (std::isnan(a[i]) && std::isnan(b[i])) || a[i] == b[i] || close(a[i], b[i]) <= tolerance;
    if (!same) {
      INFO(what, " element ", i, ": ", a[i], " against ", b[i]);
      CHECK(same);
      return;
    }
  }
}

// The weighted sum of all visible outputs.
inline double loss(const std::vector<Value>& out, const std::vector<Value>& w, uint32_t n_visible) {
  double sum = 0;
  for (uint32_t o = 0; o < n_visible; ++o)
    for (size_t i = 0; i < out[o].data.size(); ++i) sum += out[o].data[i] * w[o].data[i];
  return sum;
}

inline void check_gradient(Host& host, const std::string& id, const std::vector<Value>& in,
                           const Attrs& attrs, std::mt19937& rng) {
  Application app(host, id, in, attrs);
  const std::vector<Value> out = app.forward();
  const std::vector<Value> w = weights_like(out, rng);
  std::vector<bool> wanted;
  for (size_t i = 0; i < in.size(); ++i) wanted.push_back((app.in_flags(i) & TRL_IN_NO_GRAD) == 0);
  const std::vector<Value> d = app.backward(w, wanted, true);
  for (size_t i = 0; i < in.size(); ++i) {
    if (!wanted[i]) continue;
    std::vector<double> numeric;
    for (size_t k = 0; k < in[i].data.size(); ++k) {
      constexpr double kStep = 1e-5;
      std::vector<Value> moved = in;
      moved[i].data[k] = in[i].data[k] + kStep;
      const double up = loss(Application(host, id, moved, attrs).forward(), w, app.n_visible());
      moved[i].data[k] = in[i].data[k] - kStep;
      const double down = loss(Application(host, id, moved, attrs).forward(), w, app.n_visible());
      numeric.push_back((up - down) / (2 * kStep));
    }
    if (text(app.op().unchecked).rfind("gradient:", 0) != 0)
      check_close(d[i].data, numeric, 2e-7, "gradient against central differences,");
  }
  // Adding to what is there, and every subset of wanted gradients.
  for (uint32_t subset = 0; subset < (1u << std::min<size_t>(in.size(), 4)); ++subset) {
    std::vector<bool> some = wanted;
    for (size_t i = 0; i < some.size(); ++i) some[i] = some[i] && (i >= 4 || (subset >> i & 1));
    const std::vector<Value> stored = app.backward(w, some, true),
                             added = app.backward(w, some, false, 0.5);
    for (size_t i = 0; i < in.size(); ++i) {
      if (!some[i]) continue;
      check_close(stored[i].data, d[i].data, 1e-13, "gradient of a subset,");
      std::vector<double> expected = d[i].data;
      for (double& x : expected) x += 0.5;
      check_close(added[i].data, expected, 1e-13, "added gradient,");
    }
  }
}

// Element b of a batched value as a value of its own.
inline Value element(const Value& v, uint32_t b) {
  if (v.dim.batch == 1) {
    Value to = v;
    to.shared = false;
    return to;
  }
  Value to = v;
  const auto n = static_cast<std::ptrdiff_t>(elements(v.dim));
  to.dim.batch = 1;
  to.data.assign(v.data.begin() + b * n, v.data.begin() + (b + 1) * n);
  return to;
}

inline void check_batched(Host& host, const std::string& id, const std::vector<Value>& in,
                          const Attrs& attrs, std::mt19937& rng) {
  Application all(host, id, in, attrs);
  const std::vector<Value> out = all.forward();
  const std::vector<Value> w = weights_like(out, rng);
  std::vector<bool> wanted;
  for (size_t i = 0; i < in.size(); ++i) wanted.push_back((all.in_flags(i) & TRL_IN_NO_GRAD) == 0);
  std::vector<Value> d, sums;
  if (all.has_backward()) d = all.backward(w, wanted, true);
  for (const Value& v : in) {
    sums.push_back(v);
    sums.back().data.assign(v.data.size(), 0);
  }
  for (uint32_t b = 0; b < all.batch(); ++b) {
    std::vector<Value> one_in, one_w;
    for (const Value& v : in) one_in.push_back(element(v, b));
    for (const Value& v : w) one_w.push_back(element(v, b));
    Attrs one_attrs = attrs;
    for (auto& [key, value] : one_attrs)
      if (auto* lists = std::get_if<Ragged>(&value); lists != nullptr && lists->size() > 1)
        value = Ragged{(*lists)[b]};
    Application one(host, id, one_in, one_attrs);
    one.set_streams({{{17, 4}, {b + 1, 99}}});
    const std::vector<Value> one_out = one.forward();
    for (size_t o = 0; o < out.size(); ++o)
      check_close(element(out[o], b).data, one_out[o].data, 1e-13,
                  "batched output against single,");
    if (!all.has_backward()) continue;
    const std::vector<Value> one_d = one.backward(one_w, wanted, true);
    for (size_t i = 0; i < in.size(); ++i) {
      if (!wanted[i]) continue;
      const size_t n = one_d[i].data.size(), first = in[i].dim.batch == 1 ? 0 : b * n;
      for (size_t k = 0; k < n; ++k) sums[i].data[first + k] += one_d[i].data[k];
    }
  }
  if (!all.has_backward()) return;
  for (size_t i = 0; i < in.size(); ++i)
    if (wanted[i]) check_close(d[i].data, sums[i].data, 1e-12, "batched gradient against single,");
}

inline void check_example(Host& host, const std::string& id, const Example& e, uint32_t seed) {
  INFO("example ", e.source);
  std::mt19937 rng(seed);
  const trl_op_desc& op = host.op(id);
  bool never = op.n_in == 0;
  for (uint32_t i = 0; i < op.n_in; ++i) never = never || op.in[i]->merge == TRL_IN_NEVER;
  uint32_t batch = 1;
  for (const auto& input : e.in) batch = std::max(batch, input.second);
  for (const auto& [key, value] : e.attrs)
    if (const auto* lists = std::get_if<Ragged>(&value))
      batch = std::max(batch, static_cast<uint32_t>(lists->size()));
  const std::vector<Value> in = random_inputs(op, e, batch, rng);
  Application app(host, id, in, e.attrs);
  const std::vector<Value> out = app.forward();
  // What nobody needs must not change what is returned.
  const std::vector<Value> again = app.forward(TRL_CALL_NO_BACKWARD);
  for (uint32_t o = 0; o < app.n_visible(); ++o)
    check_close(out[o].data, again[o].data, 0, "without backward,");
  const std::vector<Value> single = Application(host, id, in, e.attrs, TRL_F32).forward();
  for (uint32_t o = 0; o < app.n_visible(); ++o)
    check_close(out[o].data, single[o].data, 2e-5, "f32 against f64,");
  if (app.has_backward()) check_gradient(host, id, in, e.attrs, rng);
  if (never) return;
  check_batched(host, id, in, e.attrs, rng);
  if (batch != 1) return;
  // Three nodes in one call: parameters stay one, everything else follows one another.
  Example merged = e;
  for (size_t i = 0; i < merged.in.size(); ++i)
    if (op.in[i < op.n_in ? i : size_t(op.n_in) - 1u]->merge != TRL_IN_SHARED)
      merged.in[i].second = 3;
  check_batched(host, id, random_inputs(op, merged, 3, rng), e.attrs, rng);
  if (app.has_backward()) check_gradient(host, id, random_inputs(op, merged, 3, rng), e.attrs, rng);
}

inline void check_all_examples(Host& host) {
  for (uint32_t i = 0; i < host.plugin.n_ops; ++i) {
    const trl_op_desc& op = *host.plugin.ops[i];
    const std::string id = text(op.id);
    INFO("operator ", id);
    CHECK_MESSAGE(op.example.n != 0, id << " has no example");
    for (const Example& e : ExampleReader(text(op.example), op).read())
      check_example(host, id, e, 1234 + i);
  }
}

}  // namespace stub
