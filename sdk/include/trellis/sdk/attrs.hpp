// SPDX-License-Identifier: Apache-2.0
//
// Attributes as a plain struct. Declared once, as fields, they give the check, the default, the
// message, the keyword and the row in the reference:
//
//   struct Attrs { double p = 0.5; bool always = false; };
//   static constexpr auto attrs =
//       fields(field("p", &Attrs::p, "probability of dropping", in_range(0.0, 1.0)),
//              field("always", &Attrs::always, "drop in inference mode, too"));
//
//   member type        attribute
//   std::int64_t       integer
//   double             number
//   bool               flag
//   an enum            choice; needs choices("first", "second", ...), in the enumerators' order
//   Ints, Floats       list of integers, of numbers
//   Ids                ids that differ per batch element (never part of a batching key)
//   Scalars            a number that varies freely, one per batch element
//   std::string_view   text; builders, trainers and initializers only
#pragma once

#include <trellis/abi/attr.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <trellis/sdk/error.hpp>
#include <tuple>
#include <type_traits>

namespace trellis::sdk {
inline namespace [[gnu::visibility("hidden")]] v0 {

using Ints = std::span<const std::int64_t>;
using Floats = std::span<const double>;

// Integers per batch element: one id each, or a list of any length. Empty in infer.
class Ids {
 public:
  constexpr Ids() = default;
  Ids(const std::int64_t* values, const std::uint32_t* offsets)
      : values_(values), offsets_(offsets) {}

  std::int64_t operator[](std::uint32_t b) const { return values_[offsets_[b]]; }
  Ints of(std::uint32_t b) const {
    return {values_ + offsets_[b], static_cast<std::size_t>(offsets_[b + 1] - offsets_[b])};
  }

 private:
  const std::int64_t* values_ = nullptr;
  const std::uint32_t* offsets_ = nullptr;
};

// A number per batch element. Constructed with a number, that is the default.
class Scalars {
 public:
  constexpr Scalars(double fallback) : fallback_(fallback) {}
  Scalars(const double* values, const std::uint32_t* offsets)
      : values_(values), offsets_(offsets) {}

  double operator[](std::uint32_t b) const { return values_ ? values_[offsets_[b]] : fallback_; }
  constexpr double fallback() const { return fallback_; }

 private:
  const double* values_ = nullptr;
  const std::uint32_t* offsets_ = nullptr;
  double fallback_ = 0;
};

// A fixed-capacity list for constant tables: {"x", "y"}.
template <class T, std::size_t kMax>
struct List {
  constexpr List() = default;
  constexpr List(std::initializer_list<T> items) {
    for (const T& item : items) v[n++] = item;
  }
  constexpr const T* begin() const { return v; }
  constexpr const T* end() const { return v + n; }
  constexpr const T& operator[](std::size_t i) const { return v[i]; }
  constexpr std::size_t size() const { return n; }

  T v[kMax]{};
  std::size_t n = 0;
};

// One attribute: its key, the member that holds it and what is said about it.
template <class A, class M>
struct Field {
  using Attrs = A;
  using Member = M;

  std::string_view key;
  M A::*member = nullptr;
  std::string_view doc;
  double lo = 1, hi = 0;
  std::uint32_t flags = 0;
  List<std::string_view, 8> choices{};
  std::int16_t bound_input = -1, bound_axis = -1;
  std::string_view bound_axis_key{};
  std::uint32_t min_each = 0, max_each = ~0u;
};

// Options of a field.
inline constexpr double kNoLimit = 1.7976931348623157e308;
struct in_range {  // each value lies in [lo, hi]
  double lo, hi;
  constexpr in_range(double low, double high) : lo(low), hi(high) {}
  constexpr void operator()(auto& f) const { f.lo = lo, f.hi = hi; }
};
struct at_least {
  double lo;
  constexpr explicit at_least(double low) : lo(low) {}
  constexpr void operator()(auto& f) const { f.lo = lo, f.hi = kNoLimit; }
};
struct required {  // no default
  constexpr void operator()(auto& f) const { f.flags |= TRL_ATTR_REQUIRED; }
};
struct each {  // how many values: per batch element (Ids), or at all (Ints, Floats)
  std::uint32_t lo, hi;
  constexpr each(std::uint32_t low, std::uint32_t high) : lo(low), hi(high) {}
  constexpr void operator()(auto& f) const { f.min_each = lo, f.max_each = hi; }
};
// Ids lie in [0, size of an axis of an input); the host checks every one. `axis_key`: the attribute
// that holds the axis.
struct within {
  std::int16_t input, axis = -1;
  std::string_view axis_key{};
  constexpr within(int bound_input, int bound_axis)
      : input(static_cast<std::int16_t>(bound_input)),
        axis(static_cast<std::int16_t>(bound_axis)) {}
  constexpr within(int bound_input, std::string_view bound_axis_key)
      : input(static_cast<std::int16_t>(bound_input)), axis_key(bound_axis_key) {}
  constexpr void operator()(auto& f) const {
    f.bound_input = input, f.bound_axis = axis, f.bound_axis_key = axis_key;
  }
};
struct closed_bound {  // the bound itself is allowed: lengths, end positions
  constexpr void operator()(auto& f) const { f.flags |= TRL_ATTR_BOUND_CLOSED; }
};
struct choices {
  List<std::string_view, 8> names;
  template <class... N>
  constexpr explicit choices(N... n) : names{std::string_view(n)...} {}
  constexpr void operator()(auto& f) const { f.choices = names; }
};

template <class A, class M, class... Options>
constexpr Field<A, M> field(std::string_view key, M A::*member, std::string_view doc,
                            Options... options) {
  Field<A, M> f;
  f.key = key;
  f.member = member;
  f.doc = doc;
  if constexpr (std::is_same_v<M, Ids>) f.min_each = f.max_each = 1, f.flags = TRL_ATTR_REQUIRED;
  if constexpr (std::is_same_v<M, Scalars>) f.min_each = f.max_each = 1;
  (options(f), ...);
  return f;
}
template <class... F>
constexpr std::tuple<F...> fields(F... f) {
  return {f...};
}

// The attributes of things that have none.
struct NoAttrs {};

namespace detail {

template <class M>
constexpr std::uint32_t attr_type() {
  if constexpr (std::is_same_v<M, bool>)
    return TRL_ATTR_BOOL;
  else if constexpr (std::is_enum_v<M>)
    return TRL_ATTR_CHOICE;
  else if constexpr (std::is_integral_v<M>)
    return TRL_ATTR_I64;
  else if constexpr (std::is_floating_point_v<M>)
    return TRL_ATTR_F64;
  else if constexpr (std::is_same_v<M, Ints> || std::is_same_v<M, Ids>)
    return TRL_ATTR_I64S;
  else if constexpr (std::is_same_v<M, Floats> || std::is_same_v<M, Scalars>)
    return TRL_ATTR_F64S;
  else {
    static_assert(std::is_same_v<M, std::string_view>, "no attribute has this type");
    return TRL_ATTR_STR;
  }
}

template <class M>
void read_attr(const trl_attr& a, M& to) {
  if constexpr (std::is_same_v<M, bool>)
    to = a.v.i != 0;
  else if constexpr (std::is_enum_v<M> || std::is_integral_v<M>)
    to = static_cast<M>(a.v.i);
  else if constexpr (std::is_floating_point_v<M>)
    to = static_cast<M>(a.v.f);
  else if constexpr (std::is_same_v<M, Ints>)
    to = {a.v.is, a.count};
  else if constexpr (std::is_same_v<M, Floats>)
    to = {a.v.fs, a.count};
  else if constexpr (std::is_same_v<M, Ids>)
    to = a.count ? Ids(a.v.is, a.offsets) : Ids();
  else if constexpr (std::is_same_v<M, Scalars>) {
    if (a.count) to = Scalars(a.v.fs, a.offsets);
  } else
    to = view(a.v.s);
}

template <class X>
concept HasAttrs = requires {
  typename X::Attrs;
};
template <class X>
struct AttrsOf {
  using type = NoAttrs;
};
template <HasAttrs X>
struct AttrsOf<X> {
  using type = typename X::Attrs;
};

// The attributes of X out of the array the host hands over.
template <class X>
typename AttrsOf<X>::type read_attrs(const trl_attr* a) {
  typename AttrsOf<X>::type to{};
  if constexpr (HasAttrs<X>)
    std::apply([&](const auto&... f) { (read_attr(*a++, to.*f.member), ...); }, X::attrs);
  return to;
}
template <class X>
constexpr std::size_t attr_count() {
  if constexpr (HasAttrs<X>) return std::tuple_size_v<std::remove_const_t<decltype(X::attrs)>>;
  return 0;
}
// The place of an attribute among those of X; -1: there is none of this name.
template <class X>
constexpr int attr_index(std::string_view key) {
  int i = 0, found = -1;
  if constexpr (HasAttrs<X>)
    std::apply([&](const auto&... f) { ((f.key == key ? found = i : 0, ++i), ...); }, X::attrs);
  return found;
}

// A default as the host stores it. Lists must lie in static memory.
template <class M>
trl_attr attr_of(const M& value) {
  trl_attr a{};
  a.type = attr_type<M>();
  a.count = 1;
  if constexpr (std::is_same_v<M, bool>)
    a.v.i = value ? 1 : 0;
  else if constexpr (std::is_enum_v<M> || std::is_integral_v<M>)
    a.v.i = static_cast<std::int64_t>(value);
  else if constexpr (std::is_floating_point_v<M>)
    a.v.f = value;
  else if constexpr (std::is_same_v<M, Ints>)
    a.count = static_cast<std::uint32_t>(value.size()), a.v.is = value.data();
  else if constexpr (std::is_same_v<M, Floats>)
    a.count = static_cast<std::uint32_t>(value.size()), a.v.fs = value.data();
  else if constexpr (std::is_same_v<M, std::string_view>)
    a.v.s = str(value);
  else {
    static_assert(std::is_same_v<M, Ids>, "a default cannot be made of this");
    a.count = 0;
  }
  return a;
}

}  // namespace detail
}  // namespace gnu::visibility("hidden")]]v0
}  // namespace trellis::sdk
