// SPDX-License-Identifier: Apache-2.0
#include <trellis/error.hpp>

namespace trellis {

void fail(ErrorKind kind, const std::string& text) { throw Error(kind, text); }

}  // namespace trellis
