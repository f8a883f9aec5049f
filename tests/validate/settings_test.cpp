// SPDX-License-Identifier: Apache-2.0
#include "validate/settings.hpp"

#include <doctest/doctest.h>

#include "validate/test.hpp"

using namespace trellis;
using namespace trellis::validate;

namespace {

trl_attr_spec spec(uint32_t type, trl_str key, uint32_t flags = 0) {
  trl_attr_spec s{};
  s.struct_size = sizeof s;
  s.type = type;
  s.flags = flags;
  s.key = key;
  s.dflt.type = type;
  s.dflt.count = 1;
  s.lo = 1;
  s.hi = 0;
  s.min_each = 1;
  s.max_each = ~0u;
  return s;
}

const trl_str kWays[] = {TRL_STR("slow"), TRL_STR("fast"), TRL_STR("best")};

}  // namespace

TEST_CASE("settings: defaults, and values for what is required") {
  trl_attr_spec input = spec(TRL_ATTR_I64, TRL_STR("input"), TRL_ATTR_REQUIRED),
                hidden = spec(TRL_ATTR_I64, TRL_STR("hidden"), TRL_ATTR_REQUIRED),
                small = spec(TRL_ATTR_I64, TRL_STR("small"), TRL_ATTR_REQUIRED),
                rate = spec(TRL_ATTR_F64, TRL_STR("rate")),
                sizes = spec(TRL_ATTR_I64S, TRL_STR("sizes"), TRL_ATTR_REQUIRED);
  small.lo = 1, small.hi = 2;
  rate.dflt.v.f = 0.25;
  const trl_attr_spec* const all[] = {&input, &hidden, &small, &rate, &sizes};
  const Settings s{std::span<const trl_attr_spec* const>(all)};
  REQUIRE(s.all().size() == 5);
  CHECK(s.all()[0].v.i == 3);
  CHECK(s.all()[1].v.i == 4);
  CHECK(s.all()[2].v.i == 2);
  CHECK(s.all()[3].v.f == 0.25);
  CHECK(s.all()[4].count == 2);
  CHECK(s.text() == "input=3, hidden=4, small=2, sizes=[2,2]");
  CHECK(s.attrs().size() == 4);
  CHECK(s.index("rate") == 3);
  CHECK_THROWS_AS(s.index("none"), Failure);
}

TEST_CASE("settings: one value changed at a time, with the ends of a range where asked for") {
  trl_attr_spec on = spec(TRL_ATTR_BOOL, TRL_STR("on")),
                how = spec(TRL_ATTR_CHOICE, TRL_STR("how")),
                rate = spec(TRL_ATTR_F64, TRL_STR("rate"));
  how.choices = kWays;
  how.n_choices = 3;
  how.dflt.v.i = 1;
  rate.lo = 0, rate.hi = 1;
  const trl_attr_spec* const all[] = {&on, &how, &rate};
  const auto texts = [&](bool edges) {
    std::vector<std::string> out;
    for (const Settings& s : variants(std::span<const trl_attr_spec* const>(all), edges))
      out.push_back(s.text());
    return out;
  };
  CHECK(texts(false) == std::vector<std::string>{"", "on=true", "how=slow", "how=best"});
  CHECK(texts(true) ==
        std::vector<std::string>{"", "on=true", "how=slow", "how=best", "rate=0", "rate=1"});
}

TEST_CASE("settings: a required text cannot be made up") {
  const trl_attr_spec file = spec(TRL_ATTR_STR, TRL_STR("file"), TRL_ATTR_REQUIRED);
  const trl_attr_spec* const all[] = {&file};
  CHECK_THROWS_AS(Settings{std::span<const trl_attr_spec* const>(all)}, Skip);
}
