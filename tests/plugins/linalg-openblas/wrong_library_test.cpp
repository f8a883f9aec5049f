// SPDX-License-Identifier: Apache-2.0
//
// Run with a library path at whose front lies a libopenblas.so.0 of our own making.
#include "../linalg_plugin.hpp"

using namespace trellis::test;

TEST_CASE("linalg-openblas: a library that computes nonsense fails its check") {
  StubCall call;
  for (const trl_linalg_desc* p : open_linalg("linalg-openblas"))
    CHECK(p->check(&call) == TRL_E_INTERNAL);
  CHECK(call.text.starts_with("[openblas] computes "));
  CHECK(call.text.find(" of an f32 product 65x17x129, right is ") != std::string::npos);
  CHECK(call.text.ends_with(" (another OPENBLAS_CORETYPE may help)"));
}

TEST_CASE("linalg-openblas: a library without what is needed fails its check") {
  StubCall call;
  for (const trl_linalg_desc* p : open_linalg("linalg-openblas"))
    CHECK(p->check(&call) == TRL_E_UNSUPPORTED);
  CHECK(call.text == "[openblas] libopenblas.so.0 has no cblas_sgemv");
}
