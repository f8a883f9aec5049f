// SPDX-License-Identifier: Apache-2.0

#include <trellis/sdk/initializer.hpp>

TRL_PLUGIN("initializers", "0.1.0", "core", constant, uniform, normal, glorot, he, identity,
           orthogonal)
