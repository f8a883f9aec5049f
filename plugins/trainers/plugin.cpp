// SPDX-License-Identifier: Apache-2.0

#include <trellis/sdk/trainer.hpp>

TRL_PLUGIN("trainers", "0.1.0", "core", sgd, momentum, adagrad, adam)
