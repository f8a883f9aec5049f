// SPDX-License-Identifier: Apache-2.0
//
// Attribute values as users write them: {{"axis", 1}, {"p", 0.5}, {"ids", {3, 1, 4}}}.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <trellis/api.hpp>
#include <variant>
#include <vector>

namespace trellis {

// One value of any attribute type. Integers convert to float attributes; a single number serves a
// list attribute. For per-batch attributes a flat list of n numbers is one value for each of n
// batch elements where the attribute takes one value each, and one list for every batch element
// where it takes lists; a single number serves every batch element.
class AttrValue {
 public:
  using Ragged =
      std::vector<std::vector<int64_t>>;  // per-batch lists of ids, one list per batch element

  AttrValue(bool v) : v_(v) {}
  AttrValue(int v) : v_(static_cast<int64_t>(v)) {}
  AttrValue(unsigned v) : v_(static_cast<int64_t>(v)) {}
  AttrValue(int64_t v) : v_(v) {}
  TRELLIS_API AttrValue(uint64_t v);  // throws Error(argument) from 2^63 on
  AttrValue(double v) : v_(v) {}
  AttrValue(const char* v) : v_(std::string(v)) {}
  AttrValue(std::string_view v) : v_(std::string(v)) {}
  AttrValue(std::string v) : v_(std::move(v)) {}
  AttrValue(std::vector<int64_t> v) : v_(std::move(v)) {}
  AttrValue(std::vector<double> v) : v_(std::move(v)) {}
  AttrValue(std::initializer_list<int> v) : v_(std::vector<int64_t>(v.begin(), v.end())) {}
  AttrValue(Ragged v) : v_(std::move(v)) {}

  using Variant = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                               std::vector<double>, Ragged>;
  const Variant& get() const { return v_; }

 private:
  Variant v_;
};

struct Attr {
  std::string key;
  AttrValue value;
};
using Attrs = std::vector<Attr>;

}  // namespace trellis
