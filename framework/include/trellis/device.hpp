// SPDX-License-Identifier: Apache-2.0
//
// Where values lie and operators run. The number is the one tensors carry across the C interface;
// Runtime::devices() lists what is there, Runtime::device("cpu") finds one by name. Today that is
// the CPU.
#pragma once

#include <cstdint>

namespace trellis {

class Device {
 public:
  constexpr Device() = default;  // the CPU
  constexpr explicit Device(uint8_t number) : number_(number) {}
  constexpr uint8_t number() const { return number_; }
  friend constexpr bool operator==(const Device&, const Device&) = default;

 private:
  uint8_t number_ = 0;
};

}  // namespace trellis
