// SPDX-License-Identifier: Apache-2.0
//
// The plugin's own tables by id, and what they say in a form to compare and to print.
#pragma once

#include <trellis/abi/abi.h>

#include <string>
#include <string_view>
#include <trellis/tensor.hpp>

namespace trellis::validate {

// Throw Failure when there is none.
const trl_op_desc& op_desc(const trl_plugin& tables, std::string_view id);
const trl_builder_desc& builder_desc(const trl_plugin& tables, std::string_view id);
const trl_softmax_desc& softmax_desc(const trl_plugin& tables, std::string_view id);
const trl_initializer_desc& initializer_desc(const trl_plugin& tables, std::string_view id);
const trl_trainer_desc& trainer_desc(const trl_plugin& tables, std::string_view id);

// The shape that a plugin has given. Throws Failure "<what> has rank 9 (needed at most 8)".
Dim valid_dim(const trl_dim& dim, const std::string& what);

// "w {8,3} from core.constant(value=0)". Throws Failure when it can't be a parameter.
std::string param_text(const trl_param_spec& spec, const std::string& what);

}  // namespace trellis::validate
