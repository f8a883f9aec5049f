// SPDX-License-Identifier: Apache-2.0
//
// The one error type. Texts have the form "[who] fact: given (needed)"; who is the operator, plugin
// or function as the user typed it, shapes are printed as {3,4}x8 (x8: batch of 8).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <trellis/api.hpp>

namespace trellis {

// What went wrong, for programs that want to react.
enum class ErrorKind {
  argument,  // a wrong value, attribute or name
  shape,     // shapes that do not fit
  dtype,     // element types that do not fit
  range,     // an index out of its bound
  state,     // called at the wrong time (stale expression, gradient before backward)
  numeric,   // NaN or Inf where it is refused
  plugin,    // loading, a fault in a plugin
  abi,       // a plugin built for another host
  trust,     // a plugin file that somebody else may change
  io,        // files
  memory,    // out of memory
  internal,  // a fault of Trellis
};

class TRELLIS_API Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& text) : std::runtime_error(text), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

// Where in the program's own code a node was made: error texts end with it. Functions that make nodes
// take it as their last argument, whose default is the line that calls them.
struct SourceLine {
  const char* file = nullptr;  // as the compiler was given it; null: not known
  uint32_t line = 0;
  static constexpr SourceLine here(const char* file = __builtin_FILE(),
                                   uint32_t line = __builtin_LINE()) {
    return {file, line};
  }
};

// Throws Error{kind, text}.
[[noreturn]] TRELLIS_API void fail(ErrorKind kind, const std::string& text);

}  // namespace trellis
