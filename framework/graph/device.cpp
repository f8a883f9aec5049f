// SPDX-License-Identifier: Apache-2.0
//
// Where a node runs: where its inputs lie.

#include "graph/graph_impl.hpp"

namespace trellis::detail {

// Without inputs the graph's device. All present inputs lie on one, and the kernel must be for it.
Device GraphImpl::device_of(const OpEntry& op, std::span<const uint32_t> in) {
  Device device = options_.device;
  bool found = false;
  size_t first = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i] == kAbsent) continue;
    const Device d = cls_of(in[i]).device;
    if (!found) {
      device = d;
      found = true;
      first = i;
    } else if (d != device) {
      refuse(op, in, ErrorKind::argument,
             "inputs lie on two devices: input " + std::to_string(first) + " on " +
                 core_->devices[device.number()] + ", input " + std::to_string(i) + " on " +
                 core_->devices[d.number()] + " (all must lie on one)");
    }
  }
  if (device != Device())
    refuse(op, in, ErrorKind::plugin,
           "no kernel for " + core_->devices[device.number()] + " (has one for " +
               core_->devices[0] + ")");
  return device;
}

}  // namespace trellis::detail
