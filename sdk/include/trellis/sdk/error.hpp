// SPDX-License-Identifier: Apache-2.0
//
// Errors of a plugin: exceptions inside, a status and a text at the boundary.
//
// Form of a text: "[operator] fact: given (needed)", lower case, no final period, shapes as
// {3,4}x8. The part in brackets is put in front by the layer where an author leaves it out.
#pragma once

#include <trellis/abi/host.h>

#include <charconv>
#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace trellis::sdk {
inline namespace [[gnu::visibility("hidden")]] v0 {

// What a plugin throws. An empty text means that the host has recorded one already.
struct Error : std::exception {
  Error(trl_status error_status, std::string error_text)
      : status(error_status), text(std::move(error_text)) {}
  const char* what() const noexcept override { return text.c_str(); }

  trl_status status;
  std::string text;
};

namespace detail {

constexpr std::uint32_t flag(bool on, std::uint32_t bits) { return on ? bits : 0; }
constexpr trl_str str(std::string_view s) { return {s.data(), s.size()}; }
constexpr std::string_view view(const trl_str& s) { return {s.p, s.n}; }

inline void append(std::string& to, std::string_view s) { to += s; }
inline void append(std::string& to, const trl_dim& dim) {
  to += '{';
  for (std::uint32_t i = 0; i < dim.rank; ++i) {
    if (i != 0) to += ',';
    to += std::to_string(dim.d[i]);
  }
  to += '}';
  if (dim.batch != 1) to += 'x' + std::to_string(dim.batch);
}
template <class N>
requires std::is_arithmetic_v<N>
void append(std::string& to, N number) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number).ptr;
  to.append(buffer, end);
}

// Calls host->fail for the exception in flight. Out of line: one copy serves every callback.
[[gnu::noinline, gnu::cold]] inline trl_status report(trl_call* call,
                                                      std::string_view who) noexcept {
  const auto fail = [call](trl_status status, std::string_view text) {
    return call->host->fail(call, status, str(text));
  };
  try {
    try {
      throw;
    } catch (const Error& e) {
      if (e.text.empty()) return e.status;
      if (who.empty() || e.text.front() == '[') return fail(e.status, e.text);
      return fail(e.status, "[" + std::string(who) + "] " + e.text);
    } catch (const std::bad_alloc&) {
      return fail(TRL_E_OOM, "out of memory");
    } catch (const std::exception& e) {
      return fail(TRL_E_INTERNAL, "[" + std::string(who) + "] " + e.what());
    } catch (...) {
      return fail(TRL_E_INTERNAL,
                  "[" + std::string(who) + "] threw something that is no std::exception");
    }
  } catch (...) {
    return fail(TRL_E_OOM, "out of memory");
  }
}

}  // namespace detail

// The parts one after another: texts, numbers and shapes.
template <class... Parts>
std::string text(const Parts&... parts) {
  std::string s;
  (detail::append(s, parts), ...);
  return s;
}

// Throws Error(status) with the parts as its text.
template <class... Parts>
[[noreturn, gnu::noinline, gnu::cold]] void fail(trl_status status, const Parts&... parts) {
  throw Error(status, text(parts...));
}

// The only place where exceptions stop: runs f and turns what it throws into a status, the text
// going to the host. `who` is put in front of texts that do not name anybody.
template <class F>
trl_status guard(trl_call* call, std::string_view who, F&& f) noexcept {
  try {
    f();
    return TRL_OK;
  } catch (...) {
    return detail::report(call, who);
  }
}

}  // namespace gnu::visibility("hidden")]]v0
}  // namespace trellis::sdk

// Refuses with TRL_E_SHAPE unless the condition holds: TRL_REQUIRE(x[0].rank > 0, "x is a scalar
// (need a dimension)"). More arguments - texts, numbers, shapes - are joined.
#define TRL_REQUIRE(condition, ...) \
  ((condition) ? (void)0 : ::trellis::sdk::fail(TRL_E_SHAPE, __VA_ARGS__))
