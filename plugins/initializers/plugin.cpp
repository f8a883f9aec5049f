// SPDX-License-Identifier: Apache-2.0

#include <trellis/sdk/initializer.hpp>

TRL_PLUGIN("initializers", PLUGIN_VERSION, "core", constant, uniform, normal, glorot, he, identity,
           orthogonal)
