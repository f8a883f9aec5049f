// SPDX-License-Identifier: Apache-2.0
//
// What a runtime holds, as plain data: operators, builders, softmax builders, initializers,
// trainers and providers of matrix products, each with the plugin it comes from. Made from the
// schemas of the loaded plugins. All functions copy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <trellis/api.hpp>
#include <trellis/attrs.hpp>
#include <trellis/runtime.hpp>
#include <vector>

namespace trellis {

struct AttrInfo {
  std::string key, doc;
  std::string type;  // i64, f64, bool, choice, i64s, f64s, str
  bool required = false;
  bool per_batch = false;  // a list of ids for each batch element
  bool value = false;      // a number that may differ from node to node at no cost
  std::optional<AttrValue> default_value{};  // unset: required, or no value at all
  std::optional<double> lo{}, hi{};          // closed range of each value
  std::vector<std::string> choices{};
  std::string bound{};  // of ids: "0 <= id < size of x along axis 0"
};

struct InputInfo {
  std::string name, doc;
  std::string dtype;   // empty: the graph's float type
  std::string domain;  // any, positive, unit, probability, above_one, nonzero
  std::string merge;   // concat, shared, never: how it behaves when nodes are batched
  bool optional = false, variadic = false, gradient = true;
};

struct OutputInfo {
  std::string name, doc;
  std::string dtype;  // empty: the graph's float type
  bool gradient = true;
};

// What every kind has.
struct ComponentInfo {
  std::string kind;      // operator, builder, softmax_builder, initializer, trainer, linalg
  std::string id, name;  // "core.tanh", "tanh"
  uint32_t version = 0;  // of its meaning
  std::string summary, doc, formula;
  std::string source;  // the file that defines it
  std::vector<std::string> aliases;
  std::vector<AttrInfo> attrs;
  std::string plugin, plugin_version;  // "kernel" for leaves
};

struct OpInfo : ComponentInfo {
  uint32_t since_version = 0;
  std::string example, role;
  std::string unchecked;  // which generic check cannot apply, and why
  std::vector<InputInfo> inputs;
  std::vector<OutputInfo> outputs;  // those a user sees
  std::vector<std::string> dtypes;  // with a kernel on the CPU
  bool leaf =
      false;  // input, parameter, lookup, ..: made by a function of the graph, not by apply()
  bool differentiable = false, elementwise = false, stochastic = false, composite = false;
  bool expression_gradient = false;  // differentiate() goes through it
};

struct BuilderInfo : ComponentInfo {
  // Predecessor states of a step: 1 and 1 is a chain. 65535: any number.
  uint32_t min_predecessors = 1, max_predecessors = 1;
  // The attributes that hold the sizes of an input vector and of the output; empty: none does.
  std::string input_attr, hidden_attr;
};

// Operators in order of registration, after the leaves of the kernel.
TRELLIS_API std::vector<OpInfo> list_ops(const Runtime& runtime);
// By id, name, alias, or the name of a leaf. Throws Error(argument) with near misses.
TRELLIS_API OpInfo describe_op(const Runtime& runtime, std::string_view name);

// Everything that is no operator, by kind, then in order of registration.
TRELLIS_API std::vector<ComponentInfo> list_components(const Runtime& runtime);
// By id, name or alias. Throw Error(argument) with near misses.
TRELLIS_API BuilderInfo describe_builder(const Runtime& runtime, std::string_view name);
TRELLIS_API ComponentInfo describe_trainer(const Runtime& runtime, std::string_view name);

}  // namespace trellis
