// SPDX-License-Identifier: Apache-2.0
//
// The operators that plugins of one runtime resolved while they were initialised: trl_op_handle is
// a position here.
#pragma once

#include <trellis/abi/host.h>

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "registry/registry.hpp"

namespace trellis::detail {

struct OpHandle {
  const OpEntry* op = nullptr;
  std::string op_id;               // as asked for
  std::vector<std::string> keys;   // values arrive in this order
  std::vector<uint16_t> places;    // places[i]: attribute number of keys[i]
  std::vector<trl_attr> defaults;  // of all attributes of the operator, in its order
  std::string owner;               // plugin that resolved it
};

class OpHandles {
 public:
  // Throws Error(argument): unknown operator or key, the same key twice, a required attribute that
  // no key names.
  trl_op_handle resolve(const Registry& registry, std::string owner, std::string op_id,
                        std::vector<std::string> keys);
  // Null: no such handle.
  const OpHandle* find(trl_op_handle handle) const {
    return handle == 0 || handle > handles_.size() ? nullptr : &handles_[handle - 1];
  }
  // Writes all attributes in the operator's order (handle.defaults.size() of them): defaults, and
  // `given` in the order of the keys. Throws Error(argument): another number of values, or a value
  // its spec does not allow.
  static void arrange(const OpHandle& handle, std::span<const trl_attr> given, trl_attr* out);

  // After the registry was made again without some plugins: points handles at its entries. Returns
  // the owners of handles whose operator is gone.
  std::vector<std::string> rebind(const Registry& registry);
  void drop_owner(const std::string& plugin_id);  // its handles answer find() with null

 private:
  std::deque<OpHandle> handles_;
};

}  // namespace trellis::detail
