// SPDX-License-Identifier: Apache-2.0
#include "plugin/experiment.hpp"

#include <trellis/abi/plugin.h>

#include "support.hpp"

using namespace trellis::detail;
using namespace trellis::test;

namespace {

std::string refusal_of(const std::string& text) {
  const TempFolder folder;
  write_file(folder / "trellis.toml", text);
  const std::string prefix = "[plugin] cannot read '" + (folder / "trellis.toml").native() + "': ";
  const std::string error = error_of([&] { read_experiment(folder / "trellis.toml"); });
  REQUIRE(error.substr(0, prefix.size()) == prefix);
  return error.substr(prefix.size());
}

}  // namespace

TEST_CASE("experiment: plugins, ranges, paths, options and overrides") {
  const TempFolder folder;
  write_file(folder / "trellis.toml", R"(
allow_core_override = true
[plugins]
ops-core = "^0.1"
acme-act = { version = "^1.4", path = "acme/acme-act.trellis.toml", options = { fast = true, size = 3, rate = 0.5, name = "x" } }
[override]
"acme.gelu" = "acme-act@^1.4"
"role:add" = "ops-core"
)");
  const Experiment e = read_experiment(folder / "trellis.toml");
  CHECK(e.allow_core_override);
  REQUIRE(e.plugins.size() == 2);
  CHECK(e.plugins[0].id == "acme-act");
  CHECK(e.plugins[0].range.text() == "^1.4");
  CHECK(e.plugins[0].path == folder / "acme/acme-act.trellis.toml");
  CHECK(e.plugins[0].options ==
        std::map<std::string, std::string>{
            {"fast", "true"}, {"name", "x"}, {"rate", "0.5"}, {"size", "3"}});
  CHECK(e.plugins[0].origin == "'" + (folder / "trellis.toml").native() + "', line 5");
  CHECK(e.plugins[1].id == "ops-core");
  CHECK(e.plugins[1].path.empty());
  REQUIRE(e.overrides.size() == 2);
  CHECK(e.overrides[0].target == "acme.gelu");
  CHECK(e.overrides[0].id == "acme-act");
  CHECK(e.overrides[0].range.text() == "^1.4");
  CHECK(e.overrides[1].range.text() == "*");
  CHECK(e.warnings.empty());
}

TEST_CASE("experiment: mistakes are told with line and key") {
  CHECK(refusal_of("") ==
        "line 1, key 'plugins' is missing (needs a table of plugin ids and version ranges)");
  CHECK(refusal_of("[plugins]\na = \"new\"\n") ==
        "line 2, key 'plugins.a' is 'new' (needs a range such as ^1.2, ~1.2, >=1.2, =1.2.0)");
  CHECK(refusal_of("[plugins]\nA = \"*\"\n") ==
        "line 2, key 'plugins.A' is no plugin's id (needs lower case letters, digits, dashes)");
  CHECK(refusal_of("[plugins]\na = 3\n") ==
        "line 2, key 'plugins.a' is neither (needs a range or a table)");
  CHECK(refusal_of("[plugins]\na = { path = 3 }\n") ==
        "line 2, key 'plugins.a.path' is an integer (needs a string)");
  CHECK(
      refusal_of("[plugins]\na = { options = { x = [1] } }\n") ==
      "line 2, key 'plugins.a.options.x' has no simple value (needs a string, number or boolean)");
  CHECK(refusal_of("[plugins]\na = \"*\"\n[override]\n\"x.y\" = \"b\"\n") ==
        "line 4, key 'override.x.y' names 'b' (needs a plugin listed in [plugins])");
  CHECK(contains(refusal_of("[plugins]\na = \"*\"\na = \"*\"\n"), "line 3: "));
  CHECK(refusal_of("allow_core_override = 1\n[plugins]\n") ==
        "line 1, key 'allow_core_override' is an integer (needs true or false)");
}

TEST_CASE("experiment: unknown keys are warnings") {
  const TempFolder folder;
  write_file(folder / "trellis.toml", "plugin = 1\n[plugins]\na = { verison = \"*\" }\n");
  const Experiment e = read_experiment(folder / "trellis.toml");
  REQUIRE(e.warnings.size() == 2);
  CHECK(contains(e.warnings[0], "line 3: unknown key 'plugins.a.verison'"));
  CHECK(contains(e.warnings[1], "line 1: unknown key 'plugin'"));
}

TEST_CASE("experiment: a wish is an id, an id with a range, or a path") {
  CHECK(parse_wish("ops-core").id == "ops-core");
  CHECK(parse_wish("ops-core").range.text() == "*");
  CHECK(parse_wish("ops-core@^0.1").range.text() == "^0.1");
  for (const char* path : {"./a", "x/a.trellis.toml", "a.trellis.toml", "a.so"}) {
    CHECK(parse_wish(path).id.empty());
    CHECK(parse_wish(path).path.is_absolute());
  }
  CHECK(error_of([] { parse_wish("Ops"); }) ==
        "[plugin] cannot load 'Ops': no plugin id (needs id, id@range or the path of a manifest)");
  CHECK(error_of([] { parse_wish("ops@new"); }) ==
        "[plugin] cannot load 'ops@new': 'new' is no version range (needs a range such as ^1.2, "
        "~1.2, >=1.2, =1.2.0)");
}
