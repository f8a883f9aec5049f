// SPDX-License-Identifier: Apache-2.0
#include "plugin/manifest.hpp"

#include <trellis/abi/plugin.h>

#include "support.hpp"

using namespace trellis::detail;
using namespace trellis::test;

namespace {

const char* const kFull = R"(manifest = 1
[plugin]
id = "acme-act"
version = "1.4.0"
license = "Apache-2.0"
authors = ["Ada <ada@acme.example>"]
summary = "Fused activations"
namespaces = ["acme"]
replaces = ["acme.old_gelu@1"]
[abi]
major = 0
min_host_minor = 1
built_with_minor = 3
extra = ""
[requires]
plugins = [{ id = "acme-base", version = "^1.2" }, { id = "acme-more" }]
glibc = "2.31"
[[library]]
target = "x86_64-linux-gnu"
device = "cpu"
cpu = "x86-64-v2"
path = "acme-act.so"
[[library]]
target = "x86_64-linux-gnu"
device = "cuda12"
path = "sub/acme-act.cuda12.so"
[provides]
ops = ["acme.square@1"]
[validate]
seeds = 64
tol.f32 = { rtol = 2e-3, atol = 1e-5 }
[env]
disable = "TRELLIS_DISABLE_ACME_ACT"
)";

// The text with one part of it replaced.
std::string changed(std::string from, const std::string& to) {
  std::string text = kFull;
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// The error for this text, without "[plugin] cannot read '<path>': ".
std::string refusal_of(const std::string& text, const std::string& name = "acme-act.trellis.toml") {
  const TempFolder folder;
  write_file(folder / name, text);
  const std::string prefix = "[plugin] cannot read '" + (folder / name).native() + "': ";
  const std::string error = error_of([&] { read_manifest(folder / name); });
  REQUIRE(error.substr(0, prefix.size()) == prefix);
  return error.substr(prefix.size());
}

}  // namespace

TEST_CASE("manifest: everything it may say is read") {
  const TempFolder folder;
  write_file(folder / "acme-act.trellis.toml", kFull);
  const Manifest m = read_manifest(folder / "acme-act.trellis.toml");
  CHECK(m.id == "acme-act");
  CHECK(m.version.to_string() == "1.4.0");
  CHECK(m.license == "Apache-2.0");
  CHECK(m.summary == "Fused activations");
  CHECK(m.authors.size() == 1);
  CHECK(m.namespaces == std::vector<std::string>{"acme"});
  CHECK(m.replaces == std::vector<std::string>{"acme.old_gelu@1"});
  CHECK(m.min_host_minor == 1);
  CHECK(m.built_with_minor == 3);
  REQUIRE(m.required.size() == 2);
  CHECK(m.required[0].range.text() == "^1.2");
  CHECK(m.required[1].range.text() == "*");
  CHECK(m.glibc == "2.31");
  REQUIRE(m.libraries.size() == 2);
  CHECK(m.libraries[0].cpu == "x86-64-v2");
  CHECK(m.libraries[1].device == "cuda12");
  CHECK(m.libraries[1].cpu.empty());
  CHECK(m.provides.given);
  CHECK(m.provides.ops == std::vector<std::string>{"acme.square@1"});
  CHECK(m.disable_variable == "TRELLIS_DISABLE_ACME_ACT");
  CHECK(m.warnings.empty());
}

TEST_CASE("manifest: unknown keys are warnings with their line") {
  const TempFolder folder;
  const fs::path file = folder / "acme-act.trellis.toml";
  write_file(file, changed("glibc = \"2.31\"", "glibcc = \"2.31\"") + "speed = 3\n[extra]\n");
  const Manifest m = read_manifest(file);
  const std::string prefix = "[plugin] '" + file.native() + "': line ";
  REQUIRE(m.warnings.size() == 3);
  CHECK(m.warnings[0] == prefix + "17: unknown key 'requires.glibcc'");
  CHECK(m.warnings[1] == prefix + "34: unknown key 'env.speed'");
  CHECK(m.warnings[2] == prefix + "35: unknown key 'extra'");
}

TEST_CASE("manifest: wrong types and values are errors with line and key") {
  CHECK(refusal_of(changed("\"1.4.0\"", "14")) ==
        "line 4, key 'plugin.version' is an integer (needs a string)");
  CHECK(refusal_of(changed("\"1.4.0\"", "\"1.4\"")) ==
        "line 4, key 'plugin.version' is '1.4' (needs a version such as 1.4.0)");
  CHECK(refusal_of(changed("id = \"acme-act\"", "id = \"acme_act\"")) ==
        "line 3, key 'plugin.id' is 'acme_act' (needs lower case letters, digits, dashes)");
  CHECK(refusal_of(changed("id = \"acme-act\"", "id = \"acme-tok\"")) ==
        "line 3, key 'plugin.id' is 'acme-tok' (needs 'acme-act', as the file is named)");
  CHECK(refusal_of(changed("[\"acme\"]", "\"acme\"")) ==
        "line 8, key 'plugin.namespaces' is a string (needs an array of strings)");
  CHECK(refusal_of(changed("[\"acme\"]", "[1]")) ==
        "line 8, key 'plugin.namespaces' holds an integer (needs strings only)");
  CHECK(refusal_of(changed("[\"acme\"]", "[\"Acme\"]")) ==
        "line 8, key 'plugin.namespaces' holds 'Acme' (needs [a-z0-9_.])");
  CHECK(refusal_of(changed("major = 0", "major = -1")) ==
        "line 11, key 'abi.major' is -1 (needs 0 to 65535)");
  CHECK(refusal_of(changed("major = 0", "major = 0.0")) ==
        "line 11, key 'abi.major' is a float (needs an integer)");
  CHECK(refusal_of(changed("major = 0\n", "")) ==
        "line 10, key 'abi.major' is missing (needs an integer)");
  CHECK(refusal_of(changed("\"^1.2\"", "\"new\"")) ==
        "line 16, key 'requires.plugins.version' is 'new' (needs a range such as ^1.2, ~1.2, "
        ">=1.2, =1.2.0)");
  CHECK(refusal_of(changed("{ id = \"acme-more\" }", "{ id = \"acme-act\" }")) ==
        "line 16, key 'requires.plugins.id' is 'acme-act' (needs another plugin)");
  CHECK(refusal_of(changed("manifest = 1", "manifest = 2")) ==
        "line 1, key 'manifest' is 2 (needs 1, the format this version reads)");
  CHECK(refusal_of(changed("manifest = 1\n", "")) ==
        "line 1, key 'manifest' is missing (needs an integer)");
  CHECK(refusal_of("manifest = 1\nplugin = 3\n") ==
        "line 2, key 'plugin' is an integer (needs a table)");
  CHECK(refusal_of("manifest = 1\n") == "line 1, key 'plugin' is missing (needs a table)");
  std::string none = kFull;
  none.erase(none.find("[[library]]"), none.find("[provides]") - none.find("[[library]]"));
  CHECK(refusal_of(none) == "line 1, key 'library' is missing (needs at least one [[library]])");
}

TEST_CASE("manifest: a library lies inside the manifest's folder") {
  for (const char* path : {"../acme-act.so", "/usr/lib/acme-act.so", "sub/../../x.so", "", "sub/"})
    CHECK(refusal_of(changed("\"acme-act.so\"", "\"" + std::string(path) + "\"")) ==
          "line 22, key 'library.path' is '" + std::string(path) +
              "' (needs a file inside the manifest's folder)");
}

TEST_CASE("manifest: what is not TOML, too long or no file is told") {
  CHECK(contains(refusal_of("manifest = 1\n[plugin\n"), "line 2: "));
  CHECK(contains(refusal_of("manifest = 1\nmanifest = 1\n"), "line 2: "));
  CHECK(refusal_of(std::string(64 * 1024 + 1, '#')) == "longer than 64 KiB");
  CHECK(contains(refusal_of(std::string("id = \"\xff\xfe\"")), "line 1: "));
  const TempFolder folder;
  CHECK(error_of([&] { read_manifest(folder / "a.trellis.toml"); }) ==
        "[plugin] cannot read '" + (folder / "a.trellis.toml").native() +
            "': no such file or directory");
  fs::create_directory(folder / "b.trellis.toml");
  CHECK(contains(error_of([&] { read_manifest(folder / "b.trellis.toml"); }),
                 "': not a regular file"));
}

TEST_CASE("manifest: ids and file names") {
  for (const char* good : {"a", "ops-core", "a1", "7z"}) CHECK_MESSAGE(is_plugin_id(good), good);
  for (const char* bad : {"", "-a", "a-", "a--b", "A", "a_b", "a.b", "ü"})
    CHECK_MESSAGE(!is_plugin_id(bad), bad);
  CHECK_FALSE(is_plugin_id(std::string(64, 'a')));
  CHECK(manifest_id("ops-core.trellis.toml") == "ops-core");
  CHECK(manifest_id("trellis.toml").empty());
  CHECK(manifest_id(".trellis.toml").empty());
  CHECK(manifest_id("ops-core.so").empty());
}
