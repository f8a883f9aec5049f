// SPDX-License-Identifier: Apache-2.0
#include "validate/descriptors.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "validate/bench_host.hpp"
#include "validate/test.hpp"

namespace trellis::validate {
namespace {

template <class D>
const D& find(const D* const* table, uint32_t n, std::string_view id, const char* kind) {
  for (uint32_t i = 0; i < n; ++i)
    if (view_of(table[i]->id) == id) return *table[i];
  throw Failure{fmt::format("the library provides no {} '{}'", kind, id)};
}

std::string text_of_attr(const trl_attr& a) {
  switch (a.type) {
    case TRL_ATTR_F64:
      return fmt::format("{}", a.v.f);
    case TRL_ATTR_I64S:
      return fmt::format("[{}]", fmt::join(a.v.is, a.v.is + a.count, ","));
    case TRL_ATTR_F64S:
      return fmt::format("[{}]", fmt::join(a.v.fs, a.v.fs + a.count, ","));
    case TRL_ATTR_STR:
      return std::string(view_of(a.v.s));
    default:
      return fmt::format("{}", a.v.i);
  }
}

}  // namespace

const trl_op_desc& op_desc(const trl_plugin& t, std::string_view id) {
  return find(t.ops, t.n_ops, id, "operator");
}
const trl_builder_desc& builder_desc(const trl_plugin& t, std::string_view id) {
  return find(t.builders, t.n_builders, id, "builder");
}
const trl_softmax_desc& softmax_desc(const trl_plugin& t, std::string_view id) {
  return find(t.softmaxes, t.n_softmaxes, id, "softmax builder");
}
const trl_initializer_desc& initializer_desc(const trl_plugin& t, std::string_view id) {
  return find(t.initializers, t.n_initializers, id, "initializer");
}
const trl_trainer_desc& trainer_desc(const trl_plugin& t, std::string_view id) {
  return find(t.trainers, t.n_trainers, id, "trainer");
}

Dim valid_dim(const trl_dim& dim, const std::string& what) {
  if (dim.rank > TRL_MAX_RANK)
    throw Failure{fmt::format("{} has rank {} (needed at most {})", what, dim.rank, TRL_MAX_RANK)};
  try {
    return Dim(dim).single_batch();
  } catch (const Error& e) {
    throw Failure{fmt::format("{} has no valid shape: {}", what, e.what())};
  }
}

std::string param_text(const trl_param_spec& spec, const std::string& what) {
  constexpr uint32_t kKnown = TRL_PARAM_LOOKUP | TRL_PARAM_CONSTANT | TRL_PARAM_EXTERNAL;
  const std::string_view name = view_of(spec.name);
  const auto plain = [](char ch) {
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
           ch == '.' || ch == '-' || ch == '_';
  };
  if (name.empty() || !std::all_of(name.begin(), name.end(), plain))
    throw Failure{fmt::format("{} is called '{}' (needed [A-Za-z0-9._-], not empty)", what, name)};
  if (spec.flags & ~kKnown)
    throw Failure{fmt::format("{} has unknown flags: {:#x}", what, spec.flags)};
  if (bool(spec.flags & TRL_PARAM_LOOKUP) != (spec.n_rows > 0))
    throw Failure{fmt::format("{} has {} rows and is {} table", what, spec.n_rows,
                              spec.flags & TRL_PARAM_LOOKUP ? "a" : "no")};
  std::string out = fmt::format("{} {}", name, valid_dim(spec.dim, what).to_string());
  if (spec.n_rows > 0) out += fmt::format(" x {} rows", spec.n_rows);
  if (spec.flags & TRL_PARAM_CONSTANT) out += " constant";
  if (spec.flags & TRL_PARAM_EXTERNAL) out += " external";
  if (spec.initializer.n == 0) {
    if (spec.n_init_attrs > 0)
      throw Failure{what + " has settings of an initializer but names none"};
    return out;
  }
  out += fmt::format(" from {}", view_of(spec.initializer));
  std::string attrs;
  for (uint32_t i = 0; i < spec.n_init_attrs; ++i)
    attrs += fmt::format("{}{}={}", attrs.empty() ? "" : ", ", view_of(spec.init_keys[i]),
                         text_of_attr(spec.init_attrs[i]));
  return out + "(" + attrs + ")";
}

}  // namespace trellis::validate
