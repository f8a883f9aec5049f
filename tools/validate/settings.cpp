// SPDX-License-Identifier: Apache-2.0
#include "validate/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "validate/test.hpp"

namespace trellis::validate {
namespace {

std::string string_of(const trl_str& s) { return std::string(s.p == nullptr ? "" : s.p, s.n); }

bool has_range(const trl_attr_spec& s) { return s.lo <= s.hi; }

double within(const trl_attr_spec& s, double v) {
  return has_range(s) ? std::clamp(v, s.lo, s.hi) : v;
}

std::string text_of_value(const AttrValue& value) {
  struct Print {
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(double v) const { return fmt::format("{}", v); }
    std::string operator()(const std::string& v) const { return v; }
    std::string operator()(const std::vector<int64_t>& v) const {
      return fmt::format("[{}]", fmt::join(v, ","));
    }
    std::string operator()(const std::vector<double>& v) const {
      return fmt::format("[{}]", fmt::join(v, ","));
    }
    std::string operator()(const AttrValue::Ragged& v) const {
      std::string text;
      for (const auto& list : v) text += (text.empty() ? "" : ",") + (*this)(list);
      return "[" + text + "]";
    }
  };
  return std::visit(Print{}, value.get());
}

}  // namespace

AttrValue attr_value(const trl_attr_spec& spec, const trl_attr& value, uint32_t batch) {
  switch (value.type) {
    case TRL_ATTR_BOOL:
      return value.v.i != 0;
    case TRL_ATTR_F64:
      return value.v.f;
    case TRL_ATTR_CHOICE:
      return string_of(spec.choices[value.v.i]);
    case TRL_ATTR_I64S:
      if (value.offsets != nullptr) {
        AttrValue::Ragged lists;
        for (uint32_t b = 0; b < batch; ++b)
          lists.emplace_back(value.v.is + value.offsets[b], value.v.is + value.offsets[b + 1]);
        return lists;
      }
      return std::vector<int64_t>(value.v.is, value.v.is + value.count);
    case TRL_ATTR_F64S:
      return std::vector<double>(value.v.fs, value.v.fs + value.count);
    case TRL_ATTR_STR:
      return string_of(value.v.s);
    default:
      return value.v.i;
  }
}

Settings::Settings(std::span<const trl_attr_spec* const> specs)
    : specs_(specs.begin(), specs.end()), set_(specs.size()) {
  int64_t next = 3;
  for (size_t i = 0; i < specs_.size(); ++i) {
    const trl_attr_spec& s = *specs_[i];
    trl_attr v = s.dflt;
    v.type = s.type;
    v.offsets = nullptr;
    values_.push_back(v);
    if (!(s.flags & TRL_ATTR_REQUIRED)) continue;
    switch (s.type) {
      case TRL_ATTR_I64:
        set(i, static_cast<int64_t>(within(s, static_cast<double>(next++))));
        break;
      case TRL_ATTR_F64:
        set(i, has_range(s) && s.hi - s.lo < 1e6 ? (s.lo + s.hi) / 2 : within(s, 0.5));
        break;
      case TRL_ATTR_BOOL:
      case TRL_ATTR_CHOICE:
        set(i, int64_t{0});
        break;
      case TRL_ATTR_I64S:
        own(i, std::vector<int64_t>(std::clamp(2u, s.min_each, s.max_each),
                                    static_cast<int64_t>(within(s, 2))));
        break;
      case TRL_ATTR_F64S:
        own(i, std::vector<double>(std::clamp(2u, s.min_each, s.max_each), within(s, 0.5)));
        break;
      default:
        throw Skip{fmt::format("the required attribute '{}' is a text that cannot be made up",
                               string_of(s.key))};
    }
  }
}

Attrs Settings::attrs() const {
  Attrs out;
  for (size_t i = 0; i < specs_.size(); ++i)
    if (set_[i]) out.push_back({string_of(specs_[i]->key), attr_value(*specs_[i], values_[i])});
  return out;
}

std::string Settings::text() const {
  std::string out;
  for (const Attr& a : attrs())
    out += (out.empty() ? "" : ", ") + a.key + "=" + text_of_value(a.value);
  return out;
}

size_t Settings::index(std::string_view key) const {
  for (size_t i = 0; i < specs_.size(); ++i)
    if (string_of(specs_[i]->key) == key) return i;
  throw Failure{fmt::format("no attribute '{}'", key)};
}

void Settings::set(size_t i, int64_t v) {
  values_[i] = trl_attr{specs_[i]->type, 1, {}, nullptr};
  values_[i].v.i = v;
  set_[i] = true;
}
void Settings::set(size_t i, double v) {
  values_[i] = trl_attr{TRL_ATTR_F64, 1, {}, nullptr};
  values_[i].v.f = v;
  set_[i] = true;
}
void Settings::own(size_t i, std::vector<int64_t> v) {
  const auto kept = std::make_shared<const std::vector<int64_t>>(std::move(v));
  values_[i] = trl_attr{TRL_ATTR_I64S, static_cast<uint32_t>(kept->size()), {}, nullptr};
  values_[i].v.is = kept->data();
  memory_.push_back(kept);
  set_[i] = true;
}
void Settings::own(size_t i, std::vector<double> v) {
  const auto kept = std::make_shared<const std::vector<double>>(std::move(v));
  values_[i] = trl_attr{TRL_ATTR_F64S, static_cast<uint32_t>(kept->size()), {}, nullptr};
  values_[i].v.fs = kept->data();
  memory_.push_back(kept);
  set_[i] = true;
}

std::vector<Settings> variants(std::span<const trl_attr_spec* const> specs, bool edges) {
  std::vector<Settings> out{Settings(specs)};
  const Settings plain = out[0];
  const auto add = [&](size_t i, auto v) {
    Settings other = plain;
    other.set(i, v);
    out.push_back(std::move(other));
  };
  for (size_t i = 0; i < specs.size(); ++i) {
    const trl_attr_spec& s = *specs[i];
    const int64_t now = plain.all()[i].v.i;
    if (s.type == TRL_ATTR_BOOL) add(i, int64_t{now == 0});
    if (s.type == TRL_ATTR_CHOICE)
      for (int64_t c = 0; c < int64_t{s.n_choices}; ++c)
        if (c != now) add(i, c);
    if (!edges || !has_range(s)) continue;
    for (const double end : {s.lo, s.hi}) {
      if (!(std::fabs(end) <= 1000)) continue;
      if (s.type == TRL_ATTR_F64) add(i, end);
      if (s.type == TRL_ATTR_I64 && !(s.flags & TRL_ATTR_REQUIRED))
        add(i, static_cast<int64_t>(end));
    }
  }
  return out;
}

}  // namespace trellis::validate
