// SPDX-License-Identifier: Apache-2.0
#include "attr_text.hpp"

#include <doctest/doctest.h>

using namespace trellis;
using namespace trellis::tools;

namespace {

AttrInfo attr(const char* key, const char* type) {
  AttrInfo info;
  info.key = key;
  info.type = type;
  return info;
}

AttrTarget target(const char* prefix, const char* id, std::vector<AttrInfo> attrs) {
  AttrTarget t;
  t.prefix = prefix;
  t.info.id = id;
  t.info.attrs = std::move(attrs);
  return t;
}

}  // namespace

TEST_CASE("attr text: every type is read as what it is") {
  AttrTarget t = target("trainer", "x.y",
                        {attr("i", "i64"), attr("f", "f64"), attr("b", "bool"), attr("c", "choice"),
                         attr("is", "i64s"), attr("fs", "f64s"), attr("s", "str")});
  assign_attrs("who", {"i=-3", "f=1e-3", "b=true", "c=mean", "is=1,2", "fs=0.5", "s=a=b"}, {&t});
  CHECK(attrs_to_json(t.attrs).dump() ==
        R"({"i":-3,"f":0.001,"b":true,"c":"mean","is":[1,2],"fs":[0.5],"s":"a=b"})");
}

TEST_CASE("attr text: the last value of a key counts, a prefix names its owner") {
  AttrTarget a = target("trainer", "x.a", {attr("lr", "f64")});
  AttrTarget b = target("builder", "x.b", {attr("lr", "f64")});
  assign_attrs("who", {"trainer.lr=1", "builder.lr=2", "trainer.lr=3"}, {&a, &b});
  CHECK(attrs_to_json(a.attrs).dump() == R"({"lr":3.0})");
  CHECK(attrs_to_json(b.attrs).dump() == R"({"lr":2.0})");
  CHECK_THROWS_WITH_AS(assign_attrs("who", {"lr=1"}, {&a, &b}),
                       "[who] --attr 'lr' fits x.a and x.b (write trainer.lr or builder.lr)",
                       Error);
}

TEST_CASE("attr text: refusals") {
  AttrTarget t =
      target("trainer", "x.y", {attr("n", "i64"), attr("on", "bool"), attr("l", "i64s")});
  CHECK_THROWS_WITH_AS(assign_attrs("who", {"n"}, {&t}),
                       "[who] --attr 'n' has no value (needed key=value)", Error);
  CHECK_THROWS_WITH_AS(assign_attrs("who", {"m=1"}, {&t}),
                       "[who] no attribute 'm' (x.y has n, on, l)", Error);
  for (const char* text : {"n=", "n=1.5", "n=99999999999999999999", "on=yes", "l=1,x", "l=1,,2"})
    CHECK_THROWS_AS(assign_attrs("who", {text}, {&t}), Error);
  CHECK_THROWS_WITH_AS(assign_attrs("who", {"n=1.5"}, {&t}),
                       "[who] attribute 'n' is '1.5' (needed i64)", Error);
  CHECK(t.attrs.empty());
}

TEST_CASE("attr text: json and back") {
  const char* text = R"({"a":1,"b":2.5,"c":true,"d":"x","e":[1,2],"f":[1.5,2.0]})";
  CHECK(attrs_to_json(attrs_from_json(Json::parse(text))).dump() == text);
  CHECK_THROWS_WITH(attrs_from_json(Json::parse("[]")), "attributes are no object");
  CHECK_THROWS_WITH(attrs_from_json(Json::parse(R"({"k":{}})")),
                    "attribute 'k' has a value of no known type");
}
