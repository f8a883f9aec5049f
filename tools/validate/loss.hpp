// SPDX-License-Identifier: Apache-2.0
//
// A scalar of many outputs, so that one backward reaches them all. It stands on no operator of any
// plugin: what is under test is not used to test it.
#pragma once

#include <cstdint>
#include <span>
#include <trellis/graph.hpp>
#include <vector>

namespace trellis::validate {

// The sum over all float outputs of random weights (between -1 and 1) times the elements; one for
// each float type among them. Output i has the weights number `first` + i of this seed.
std::vector<Expr> projection(Graph& g, std::span<const Expr> outputs, uint64_t seed,
                             uint64_t first = 0);

}  // namespace trellis::validate
