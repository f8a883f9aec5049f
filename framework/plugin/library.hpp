// SPDX-License-Identifier: Apache-2.0
//
// Opening shared objects, once a process and for ever.
#pragma once

#include <trellis/abi/plugin.h>

#include <filesystem>

#include "plugin/verify.hpp"

namespace trellis::detail {

// The entry function of a verified library. Opens it the first time (RTLD_NOW, local, never
// unloaded); later calls for the same file, by whatever name, return the same function. Throws
// Error(plugin): the loader's own text, no entry symbol, or a file that changed since it was
// verified. The caller holds load_mutex().
trl_entry_fn open_library(const VerifiedLibrary& library);

}  // namespace trellis::detail
