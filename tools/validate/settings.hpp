// SPDX-License-Identifier: Apache-2.0
//
// Attribute values for what is no operator (builders, softmax builders, initializers, trainers):
// their specs have no examples, so values that are required are made up from the declared range.
#pragma once

#include <trellis/abi/attr.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <trellis/attrs.hpp>
#include <vector>

namespace trellis::validate {

// One value as users write it, from one as plugins get it. CHOICE: its text. Offsets, where there
// are some, are those of `batch` lists.
AttrValue attr_value(const trl_attr_spec& spec, const trl_attr& value, uint32_t batch = 1);

class Settings {
 public:
  // Defaults; what is required gets a value of its own: the first integer 3, the second 4, ..,
  // within the declared range. Throws Skip when something can't be made up (a text).
  explicit Settings(std::span<const trl_attr_spec* const> specs);

  // As plugins get them: all, in the order of the specs.
  std::span<const trl_attr> all() const { return values_; }
  // As users write them: those that are not as declared.
  Attrs attrs() const;
  // "hidden=2, forget_bias=0", or empty.
  std::string text() const;

  size_t index(std::string_view key) const;  // of a spec; throws Failure
  void set(size_t i, int64_t v);             // I64, BOOL, CHOICE
  void set(size_t i, double v);              // F64

 private:
  void own(size_t i, std::vector<int64_t> v);
  void own(size_t i, std::vector<double> v);

  std::vector<const trl_attr_spec*> specs_;
  std::vector<trl_attr> values_;
  std::vector<bool> set_;
  std::vector<std::shared_ptr<const void>> memory_;
};

// The defaults, then one value changed at a time: every other choice and flag, and the ends of
// small declared ranges when `edges` asks for them.
std::vector<Settings> variants(std::span<const trl_attr_spec* const> specs, bool edges);

}  // namespace trellis::validate
