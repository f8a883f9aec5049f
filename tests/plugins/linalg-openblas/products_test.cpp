// SPDX-License-Identifier: Apache-2.0
#include <fstream>

#include "../linalg_plugin.hpp"

using namespace trellis::test;

namespace {

bool openblas_is_open() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("libopenblas") != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("linalg-openblas: opened on first need, right and on one thread") {
  CHECK_FALSE(openblas_is_open());
  const auto providers = open_linalg("linalg-openblas");
  REQUIRE(providers.size() == 2);
  CHECK_FALSE(openblas_is_open());

  StubCall call;
  CHECK(providers[0]->check(&call) == TRL_OK);
  CHECK(call.text == "");
  REQUIRE(openblas_is_open());
  void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(library != nullptr);
  CHECK(reinterpret_cast<int (*)()>(dlsym(library, "openblas_get_num_threads"))() == 1);
}

TEST_CASE("linalg-openblas: products agree with plain loops") {
  const std::vector<Shape> shapes = awkward_shapes();
  for (const trl_linalg_desc* p : open_linalg("linalg-openblas"))
    for (const Shape& shape : shapes) CHECK(try_product(*p, shape) == "");
}

TEST_CASE("linalg-openblas: a size beyond its int is left to others") {
  StubCall call;
  for (const trl_linalg_desc* p : open_linalg("linalg-openblas")) {
    Operands<double> x({.m = 2, .n = 2, .k = 2}, &call);
    x.args().ldc = uint64_t(1) << 31;
    CHECK(p->gemm(&x.args()) == TRL_E_UNSUPPORTED);
    CHECK(call.text ==
          "[openblas] a size is larger than OpenBLAS can take: 2147483648 (at most 2147483647)");
  }
}
