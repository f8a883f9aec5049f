// SPDX-License-Identifier: Apache-2.0
//
// The examples of an operator's schema as cases: "concat({2,3}x4, {2,1}, axis=1); ..." - {..} is
// the shape of an input, xN its batch, - an absent input.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <trellis/attrs.hpp>
#include <trellis/tensor.hpp>
#include <vector>

namespace trellis::validate {

struct Example {
  std::string text;
  std::vector<std::optional<Dim>> inputs;
  Attrs attrs;
};

// Throws Error(argument) naming what cannot be read.
std::vector<Example> parse_examples(std::string_view text);

}  // namespace trellis::validate
