// SPDX-License-Identifier: Apache-2.0
#include "registry/names.hpp"

#include <doctest/doctest.h>

#include "registry/registry.hpp"

using namespace trellis;
using namespace trellis::detail;

TEST_CASE("names: which texts are ids") {
  for (const char* good : {"core.tanh", "acme.sub.x_1", "a.b", "9.9"}) CHECK(is_id(good));
  for (const char* bad :
       {"", "tanh", ".tanh", "core.", "core..x", "Core.x", "core.x-y", "core.x y", "core.\xC3\xA9"})
    CHECK_FALSE(is_id(bad));
  CHECK(is_id("a." + std::string(61, 'x')));
  CHECK_FALSE(is_id("a." + std::string(62, 'x')));
  CHECK(is_name("x_1"));
  for (const char* bad : {"", "1x", "_x", "X", "a.b", "a b"}) CHECK_FALSE(is_name(bad));
  CHECK(name_of("acme.sub.x") == "x");
}

TEST_CASE("names: namespaces end at a dot") {
  CHECK(lies_in("acme.x", "acme"));
  CHECK(lies_in("acme.sub.x", "acme"));
  CHECK(lies_in("acme.sub.x", "acme.sub"));
  CHECK_FALSE(lies_in("acmes.x", "acme"));
  CHECK_FALSE(lies_in("acme", "acme"));
  CHECK(is_reserved("core.x"));
  CHECK(is_reserved("dynet.x"));
  CHECK_FALSE(is_reserved("corex.x"));
}

TEST_CASE("names: only well-formed UTF-8 passes") {
  for (const char* good :
       {"", "plain", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xF4\x8F\xBF\xBF"})
    CHECK(is_utf8(good));
  for (const char* bad : {"\x80", "\xC3", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80",
                          "\xF4\x90\x80\x80", "\xF8\x88\x80\x80", "\xE2\x82", "a\xFFz"})
    CHECK_FALSE(is_utf8(bad));
}

TEST_CASE("names: the nearest within two edits") {
  const std::vector<std::string> names{"tanh", "atanh", "sigmoid", "concat", "x"};
  CHECK(nearest("tahn", names) == "tanh");
  CHECK(nearest("tanh", names) == "tanh");
  CHECK(nearest("sigmid", names) == "sigmoid");
  CHECK(nearest("concatenate", names) == "");
  CHECK(nearest("y", names) == "");
  CHECK(nearest("", names) == "");
  CHECK(nearest("tanh", {}) == "");
}

TEST_CASE("names: roles and their names") {
  for (size_t i = 0; i < static_cast<size_t>(Role::kCount); ++i) {
    const Role role = static_cast<Role>(i);
    CHECK(role_from(role_name(role)) == role);
  }
  CHECK(role_name(Role::add) == "add");
  CHECK(role_name(Role::scale_shift) == "scale_shift");
  CHECK(role_name(Role::sum_batches) == "sum_batches");
  CHECK(role_name(Role::dropout) == "dropout");
  CHECK_FALSE(role_from("plus"));
  CHECK_FALSE(role_from(""));
}
