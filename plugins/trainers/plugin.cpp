// SPDX-License-Identifier: Apache-2.0

#include <trellis/sdk/trainer.hpp>

TRL_PLUGIN("trainers", PLUGIN_VERSION, "core", sgd, momentum, adagrad, adam)
