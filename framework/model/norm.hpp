// SPDX-License-Identifier: Apache-2.0
//
// The L2 norm over many buffers. It is kept as scale * sqrt(sum), so finite elements never make it
// overflow or vanish.
#pragma once

#include <cstdint>
#include <trellis/tensor.hpp>

namespace trellis::detail {

class NormSum {
 public:
  // Adds n elements of a float type. False: one of them is NaN or Inf; then nothing was added.
  bool add(const void* data, uint64_t n, DType dtype);
  double value() const;  // Inf only where a double cannot hold the norm
  bool exceeds(double threshold) const;
  double factor(
      double threshold) const;  // threshold / norm; call it when the norm exceeds the threshold

 private:
  double scale_ = 1, sum_ = 0;
};

}  // namespace trellis::detail
