// SPDX-License-Identifier: Apache-2.0
//
// The files of tools/template/, which are part of the program.
#pragma once

#include <span>
#include <string_view>

namespace trellis::tools {

struct TemplateFile {
  std::string_view layer;  // common, operator, operator-c++, ...
  std::string_view name;   // relative; NAME and ID at the head of a file's name stand for those
  std::string_view text;   // with @PLACEHOLDERS@
};

std::span<const TemplateFile> template_files();

}  // namespace trellis::tools
