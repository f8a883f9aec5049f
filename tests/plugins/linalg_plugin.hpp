// SPDX-License-Identifier: Apache-2.0
//
// A linalg plugin opened by hand: its tables under a host that records texts and offers nothing.
#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <trellis/abi/abi.h>

#include <cstdlib>
#include <string>

#include "validate/products.hpp"

namespace trellis::test {

using validate::awkward_shapes;
using validate::Operands;
using validate::Shape;

struct StubCall : trl_call {
  StubCall() : trl_call{&table(), nullptr} {}
  std::string text;

  static const trl_host& table() {
    static const trl_host host = [] {
      trl_host h{};
      h.struct_size = sizeof h;
      h.abi_major = TRL_ABI_MAJOR;
      h.abi_minor = TRL_ABI_MINOR;
      h.version = TRL_STR("test");
      h.fail = [](trl_call* call, trl_status status, trl_str text) {
        static_cast<StubCall*>(call)->text.assign(text.p, text.n);
        return status;
      };
      h.log = [](trl_call*, int32_t, trl_str) {};
      h.get_interface = [](trl_call*, trl_str, uint32_t*) -> const void* { return nullptr; };
      return h;
    }();
    return host;
  }
};

// The library `stem`.so of the first folder of TRELLIS_PLUGIN_PATH. Empty when it is not built or
// its level is not this processor's.
inline std::vector<const trl_linalg_desc*> open_linalg(const std::string& stem) {
#if defined(__x86_64__)
  if (stem.ends_with(".v3") && !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")))
    return {};
  if (stem.ends_with(".v4") &&
      !(__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")))
    return {};
#endif
  const char* folder = std::getenv("TRELLIS_PLUGIN_PATH");
  REQUIRE(folder != nullptr);
  void* library = dlopen((std::string(folder) + "/" + stem + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {};
  const auto entry = reinterpret_cast<trl_entry_fn>(dlsym(library, TRL_ENTRY_SYMBOL));
  REQUIRE(bool(entry));
  StubCall call;
  trl_plugin table{};
  table.struct_size = sizeof table;
  REQUIRE(entry(&call, &table) == TRL_OK);
  return {table.linalgs, table.linalgs + table.n_linalgs};
}

// Runs one product by gemv where it is one and the provider has it, else by gemm; empty: the result
// is right.
template <class T>
std::string try_product(const trl_linalg_desc& provider, const Shape& shape) {
  StubCall call;
  Operands<T> x(shape, &call);
  const bool vector = shape.n == 1 && !shape.trans_b && provider.gemv != nullptr;
  const trl_status status = vector ? provider.gemv(&x.args()) : provider.gemm(&x.args());
  return status == TRL_OK ? x.difference() : call.text;
}

inline std::string try_product(const trl_linalg_desc& provider, const Shape& shape) {
  return provider.dtype == TRL_F32 ? try_product<float>(provider, shape)
                                   : try_product<double>(provider, shape);
}

}  // namespace trellis::test
