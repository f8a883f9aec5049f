// SPDX-License-Identifier: Apache-2.0
#include "rnn/roles.hpp"

#include <doctest/doctest.h>

#include <trellis/ops.hpp>

#include "test_builders.hpp"

using namespace trellis;
using namespace test_builders;
using detail::apply_role;
using detail::attr_of;

TEST_CASE("roles: attributes are named, others take their defaults") {
  Graph g = graph();
  detail::GraphImpl& impl = g.impl();
  const Expr x = vec(g, {4}, {1, 2, 3, 4});
  const uint32_t part = apply_role(impl, Role::slice, {x.id()},
                                   {{"start", attr_of(int64_t{1})}, {"end", attr_of(int64_t{3})}});
  CHECK(value(impl.expr(part)) == Numbers{2, 3});
}

TEST_CASE("roles: a provider that lacks an attribute is named") {
  Graph g = graph();
  const Expr x = vec(g, {1}, {1});
  CHECK(refusal([&] {
          apply_role(g.impl(), Role::neg, {x.id()}, {{"axis", attr_of(int64_t{0})}});
        }) == "[core.neg] has the role 'neg' but no attribute 'axis'");
}
