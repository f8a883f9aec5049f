// SPDX-License-Identifier: Apache-2.0
//
// All of Trellis for programs: a runtime loads plugins, models hold parameters, graphs compute,
// trainers update. Typed functions of the operators stand apart, one header a namespace:
// <trellis/ops/core.hpp>.
#pragma once

// clang-format off
#include <trellis/error.hpp>     // the one error type
#include <trellis/runtime.hpp>   // what is loaded, and the seed
#include <trellis/plugin.hpp>    // plugins on disk: search, inspect
#include <trellis/registry.hpp>  // what plugins provide, as plain data
#include <trellis/tensor.hpp>    // shapes, element types, views
#include <trellis/random.hpp>    // random numbers for the program itself
#include <trellis/model.hpp>     // parameters and lookup tables
#include <trellis/graph.hpp>     // nodes, values, gradients
#include <trellis/expr.hpp>      // + - * / on expressions
#include <trellis/ops.hpp>       // what typed functions stand on
#include <trellis/rnn.hpp>       // recurrent networks: chains, both directions, trees
#include <trellis/train.hpp>     // updates: clipping, decay, schedules
#include <trellis/io.hpp>        // text, corpora, weights
