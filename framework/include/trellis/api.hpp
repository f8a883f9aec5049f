// SPDX-License-Identifier: Apache-2.0
#pragma once

// Marks what libtrellis exports; everything else is hidden.
#define TRELLIS_API __attribute__((visibility("default")))
