// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "registry/registry.hpp"

namespace trellis {

AttrValue::AttrValue(uint64_t v) : v_(static_cast<int64_t>(v)) {
  if (v > static_cast<uint64_t>(INT64_MAX))
    fail(ErrorKind::argument, fmt::format("[attributes] value too large: {} (below 2^63)", v));
}

namespace detail {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

template <class T>
std::string show_list(const std::vector<T>& values) {
  constexpr size_t kShown = 8;
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i != 0) text += ", ";
    if (i == kShown) {
      text += "...";
      break;
    }
    if constexpr (std::is_arithmetic_v<T>)
      text += fmt::format("{}", values[i]);
    else
      text += show_list(values[i]);
  }
  return text + "]";
}

std::string show(const AttrValue& value) {
  return std::visit(Overloaded{[](const std::string& v) { return fmt::format("'{}'", v); },
                               [](const std::vector<int64_t>& v) { return show_list(v); },
                               [](const std::vector<double>& v) { return show_list(v); },
                               [](const AttrValue::Ragged& v) { return show_list(v); },
                               [](const auto& v) { return fmt::format("{}", v); }},
                    value.get());
}

std::string range_text(const AttrSpec& spec) {
  constexpr double kLimit = std::numeric_limits<double>::max();
  if (spec.hi >= kLimit) return fmt::format("at least {}", spec.lo);
  if (spec.lo <= -kLimit) return fmt::format("at most {}", spec.hi);
  return fmt::format("{} to {}", spec.lo, spec.hi);
}

std::string type_text(const AttrSpec& spec) {
  switch (spec.type) {
    case TRL_ATTR_I64:
      return "an integer";
    case TRL_ATTR_F64:
      return "a number";
    case TRL_ATTR_BOOL:
      return "true or false";
    case TRL_ATTR_CHOICE:
      return fmt::format("one of {}", fmt::join(spec.choices, ", "));
    case TRL_ATTR_I64S:
      if (!spec.per_batch()) return "integers";
      return spec.max_each == 1 ? "an integer for each batch element"
                                : "integers for each batch element";
    case TRL_ATTR_F64S:
      return spec.per_batch() ? "a number for each batch element" : "numbers";
    default:
      return "a text";
  }
}

class Checker {
 public:
  Checker(std::string_view who, const AttrSpec& spec) : who_(who), spec_(spec) {}

  [[noreturn]] void refuse(const std::string& given, const std::string& needed) const {
    fail(ErrorKind::argument,
         fmt::format("[{}] attribute '{}': {} (needed {})", who_, spec_.key, given, needed));
  }

  template <class T>
  void value(T v) const {
    if (spec_.lo <= spec_.hi &&
        !(static_cast<double>(v) >= spec_.lo && static_cast<double>(v) <= spec_.hi))
      refuse(fmt::format("{}", v), range_text(spec_));
  }

  void count(size_t n) const {
    if (n >= spec_.min_each && n <= spec_.max_each) return;
    const std::string each = spec_.per_batch() ? " for each batch element" : "";
    const char* plural = n == 1 ? "" : "s";
    if (spec_.min_each == spec_.max_each)
      refuse(fmt::format("{} value{}", n, plural), fmt::format("{}{}", spec_.min_each, each));
    if (n < spec_.min_each)
      refuse(fmt::format("{} value{}", n, plural),
             fmt::format("at least {}{}", spec_.min_each, each));
    refuse(fmt::format("{} value{}", n, plural), fmt::format("at most {}{}", spec_.max_each, each));
  }

  // Everything but the counts of per-batch lists, whose number of batch elements is not known here.
  void attr(const trl_attr& a) const {
    if (a.type != spec_.type) refuse(fmt::format("a value of type {}", a.type), type_text(spec_));
    switch (a.type) {
      case TRL_ATTR_I64:
        return value(a.v.i);
      case TRL_ATTR_F64:
        return value(a.v.f);
      case TRL_ATTR_BOOL:
        if (a.v.i != 0 && a.v.i != 1) refuse(fmt::format("{}", a.v.i), type_text(spec_));
        return;
      case TRL_ATTR_CHOICE:
        if (a.v.i < 0 || static_cast<size_t>(a.v.i) >= spec_.choices.size())
          refuse(fmt::format("number {}", a.v.i), type_text(spec_));
        return;
      case TRL_ATTR_STR:
        if (a.v.s.p == nullptr && a.v.s.n != 0) refuse("no text", type_text(spec_));
        return;
      default:
        break;
    }
    if (a.count != 0 && a.v.is == nullptr) refuse("no values", type_text(spec_));
    if (!spec_.per_batch()) count(a.count);
    for (uint32_t i = 0; i < a.count; ++i)
      a.type == TRL_ATTR_I64S ? value(a.v.is[i]) : value(a.v.fs[i]);
  }

 private:
  std::string_view who_;
  const AttrSpec& spec_;
};

using Memory = std::vector<std::unique_ptr<char[]>>;

template <class T>
const T* keep(Memory& memory, std::span<const T> values) {
  if (values.empty()) return nullptr;
  memory.push_back(std::make_unique<char[]>(values.size_bytes()));
  std::memcpy(memory.back().get(), values.data(), values.size_bytes());
  return reinterpret_cast<const T*>(memory.back().get());
}

// An integer or list of integers as numbers, and the other way round where nothing is lost.
template <class T>
bool numbers(const AttrValue& value, std::vector<T>& out) {
  const auto& v = value.get();
  if (const auto* one = std::get_if<int64_t>(&v)) return out.assign(1, static_cast<T>(*one)), true;
  if (const auto* list = std::get_if<std::vector<int64_t>>(&v))
    return out.assign(list->begin(), list->end()), true;
  if constexpr (std::is_same_v<T, double>) {
    if (const auto* one = std::get_if<double>(&v)) return out.assign(1, *one), true;
    if (const auto* list = std::get_if<std::vector<double>>(&v)) return out = *list, true;
  }
  return false;
}

trl_attr convert(const Checker& check, const AttrSpec& spec, const AttrValue& value,
                 Memory& memory) {
  trl_attr a{};
  a.type = spec.type;
  a.count = 1;
  const auto& v = value.get();
  bool fits = false;
  switch (spec.type) {
    case TRL_ATTR_I64:
      if (const auto* i = std::get_if<int64_t>(&v)) a.v.i = *i, fits = true;
      break;
    case TRL_ATTR_F64:
      if (const auto* i = std::get_if<int64_t>(&v)) a.v.f = static_cast<double>(*i), fits = true;
      if (const auto* f = std::get_if<double>(&v)) a.v.f = *f, fits = true;
      break;
    case TRL_ATTR_BOOL:
      if (const auto* b = std::get_if<bool>(&v)) a.v.i = *b, fits = true;
      if (const auto* i = std::get_if<int64_t>(&v)) a.v.i = *i, fits = *i == 0 || *i == 1;
      break;
    case TRL_ATTR_CHOICE:
      if (const auto* s = std::get_if<std::string>(&v)) {
        const auto at = std::find(spec.choices.begin(), spec.choices.end(), *s);
        fits = at != spec.choices.end();
        a.v.i = at - spec.choices.begin();
      }
      break;
    case TRL_ATTR_I64S: {
      std::vector<int64_t> list;
      fits = numbers(value, list);
      a.count = static_cast<uint32_t>(list.size());
      a.v.is = keep<int64_t>(memory, list);
      break;
    }
    case TRL_ATTR_F64S: {
      std::vector<double> list;
      fits = numbers(value, list);
      a.count = static_cast<uint32_t>(list.size());
      a.v.fs = keep<double>(memory, list);
      break;
    }
    default:
      if (const auto* s = std::get_if<std::string>(&v)) {
        a.v.s = {keep<char>(memory, *s), s->size()};
        fits = true;
      }
  }
  if (!fits) check.refuse(show(value), type_text(spec));
  check.attr(a);
  return a;
}

// The lists of a per-batch attribute, one after another: values[offsets[b]] up to values[offsets[b
// + 1]].
struct Lists {
  std::vector<int64_t> ids;
  std::vector<double> numbers;
  std::vector<uint32_t> offsets{0};
  uint32_t batch() const { return static_cast<uint32_t>(offsets.size() - 1); }
};

Lists lists_of(const Checker& check, const AttrSpec& spec, const AttrValue& value) {
  Lists lists;
  bool fits;
  size_t total;
  if (spec.type == TRL_ATTR_I64S) {
    if (const auto* ragged = std::get_if<AttrValue::Ragged>(&value.get())) {
      for (const std::vector<int64_t>& list : *ragged) {
        check.count(list.size());
        lists.ids.insert(lists.ids.end(), list.begin(), list.end());
        lists.offsets.push_back(static_cast<uint32_t>(lists.ids.size()));
      }
      if (ragged->empty()) check.refuse("[]", type_text(spec));
      return lists;
    }
    fits = numbers(value, lists.ids);
    total = lists.ids.size();
  } else {
    fits = numbers(value, lists.numbers);
    total = lists.numbers.size();
  }
  if (!fits) check.refuse(show(value), type_text(spec));
  if (spec.max_each == 1) {
    if (total == 0) check.refuse("[]", type_text(spec));
    for (uint32_t i = 1; i <= total; ++i) lists.offsets.push_back(i);
  } else {
    check.count(total);
    lists.offsets.push_back(static_cast<uint32_t>(total));
  }
  return lists;
}

// One list for every batch element where one was given for all.
void repeat(Lists& lists, uint32_t batch) {
  if (lists.batch() == batch) return;
  const std::vector<int64_t> ids = lists.ids;
  const std::vector<double> numbers = lists.numbers;
  for (uint32_t b = 1; b < batch; ++b) {
    lists.ids.insert(lists.ids.end(), ids.begin(), ids.end());
    lists.numbers.insert(lists.numbers.end(), numbers.begin(), numbers.end());
    lists.offsets.push_back(lists.offsets.back() + lists.offsets[1]);
  }
}

size_t find_spec(std::string_view who, std::span<const AttrSpec> specs, std::string_view key) {
  std::vector<std::string> keys;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].key == key) return i;
    keys.push_back(specs[i].key);
  }
  const std::string near = nearest(key, keys);
  fail(
      ErrorKind::argument,
      fmt::format("[{}] no attribute '{}' ({}{})", who, key,
                  near.empty() ? "" : fmt::format("did you mean '{}'? ", near),
                  keys.empty() ? "it has none" : fmt::format("it has: {}", fmt::join(keys, ", "))));
}

}  // namespace

BoundAttrs::BoundAttrs(std::string_view who, std::span<const AttrSpec> specs, const Attrs& given) {
  std::vector<const AttrValue*> values(specs.size());
  for (const Attr& attr : given) {
    const AttrValue*& value = values[find_spec(who, specs, attr.key)];
    if (value != nullptr)
      fail(ErrorKind::argument, fmt::format("[{}] attribute '{}' is given twice", who, attr.key));
    value = &attr.value;
  }
  std::vector<Lists> lists(specs.size());
  size_t widest = 0;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (values[i] == nullptr || !specs[i].per_batch()) continue;
    lists[i] = lists_of(Checker(who, specs[i]), specs[i], *values[i]);
    if (lists[i].batch() <= batch_) continue;
    batch_ = lists[i].batch();
    widest = i;
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    const AttrSpec& spec = specs[i];
    const Checker check(who, spec);
    if (values[i] == nullptr) {
      if (spec.required())
        fail(ErrorKind::argument, fmt::format("[{}] attribute '{}' is missing (needed {}: {})", who,
                                              spec.key, type_text(spec), spec.doc));
      trl_attr a = spec.dflt;
      if (spec.per_batch()) a = trl_attr{spec.type, 0, {}, nullptr};
      attrs_.push_back(a);
    } else if (spec.per_batch()) {
      if (lists[i].batch() != 1 && lists[i].batch() != batch_)
        fail(ErrorKind::argument,
             fmt::format("[{}] attributes '{}' and '{}' are for {} and {} batch elements (needed "
                         "equal, or 1)",
                         who, specs[widest].key, spec.key, batch_, lists[i].batch()));
      repeat(lists[i], batch_);
      trl_attr a{};
      a.type = spec.type;
      a.count = lists[i].offsets.back();
      if (spec.type == TRL_ATTR_I64S)
        a.v.is = keep<int64_t>(memory_, lists[i].ids);
      else
        a.v.fs = keep<double>(memory_, lists[i].numbers);
      a.offsets = keep<uint32_t>(memory_, lists[i].offsets);
      check.attr(a);
      attrs_.push_back(a);
    } else {
      attrs_.push_back(convert(check, spec, *values[i], memory_));
    }
  }
}

void BoundAttrs::set(std::string_view who, std::span<const AttrSpec> specs, std::string_view key,
                     const AttrValue& v) {
  const size_t i = find_spec(who, specs, key);
  const Checker check(who, specs[i]);
  if (specs[i].per_batch()) check.refuse(show(v), "when the node is made");
  attrs_.at(i) = convert(check, specs[i], v, memory_);
}

void check_attrs(std::string_view who, std::span<const AttrSpec> specs,
                 std::span<const trl_attr> attrs) {
  if (attrs.size() != specs.size())
    fail(ErrorKind::argument, fmt::format("[{}] wrong number of attributes: {} (needed {})", who,
                                          attrs.size(), specs.size()));
  for (size_t i = 0; i < specs.size(); ++i) Checker(who, specs[i]).attr(attrs[i]);
}

}  // namespace detail
}  // namespace trellis
