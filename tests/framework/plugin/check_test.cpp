// SPDX-License-Identifier: Apache-2.0
#include "plugin/check.hpp"

#include <trellis/abi/plugin.h>

#include <algorithm>
#include <cstring>

#include "plugin/note.hpp"
#include "support.hpp"

using namespace trellis;
using namespace trellis::detail;
using namespace trellis::test;

namespace {

PluginCheck check(const fs::path& path) { return check_plugin(path.native()); }

// "error exports", ...
std::vector<std::string> names_of(const PluginCheck& c) {
  std::vector<std::string> names;
  for (const CheckFinding& f : c.findings)
    names.push_back((f.severity == Severity::error ? "error " : "warning ") + f.name);
  return names;
}

// The fact of the only finding of a name; all of them, a line each, when there are several.
std::string fact(const PluginCheck& c, const std::string& name) {
  std::string text;
  for (const CheckFinding& f : c.findings)
    if (f.name == name) text += (text.empty() ? "" : "\n") + f.fact;
  return text;
}

// Everything but what fixtures lack on purpose.
PluginCheck check_complete(const TempFolder& folder, ManifestText m, const std::string& from = {}) {
  m.more += "[provides]\nops = [\"test.square\"]\n";
  const fs::path manifest = install(folder.path(), m, from);
  std::string text = read_file(manifest);
  text.replace(text.find("version ="), 0, "license = \"MIT\"\nsummary = \"a test\"\n");
  write_file(manifest, text);
  return check(manifest);
}

// Changes bytes of a library in place.
template <class T, class F>
void patch(std::string& bytes, size_t at, F&& change) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  change(value);
  std::memcpy(bytes.data() + at, &value, sizeof value);
}
template <class F>
void patch_headers(const fs::path& library, F&& change) {
  std::string bytes = read_file(library);
  Elf64_Ehdr e;
  std::memcpy(&e, bytes.data(), sizeof e);
  for (size_t i = 0; i < e.e_phnum; ++i)
    patch<Elf64_Phdr>(bytes, e.e_phoff + i * sizeof(Elf64_Phdr),
                      [&](Elf64_Phdr& h) { change(h, bytes); });
  write_file(library, bytes);
}

}  // namespace

TEST_CASE("check: a right plugin; its constructor is seen") {
  const TempFolder folder;
  const PluginCheck c = check_complete(folder, named("good"));
  CHECK(c.id == "good");
  CHECK(c.version == "1.0.0");
  CHECK(c.manifest == folder / "good.trellis.toml");
  CHECK(c.libraries == std::vector<fs::path>{folder / "good.so"});
  CHECK(c.errors() == 0);
  CHECK(fact(c, "constructors") ==
        "[check] good.so: runs code when it is opened: given 1 static constructor, "
        "fixture_announce (needed none: make things in init)");
}

TEST_CASE("check: the shipped plugins have no errors") {
  for (const char* id : {"ops-core", "ops-rnn", "trainers", "initializers", "linalg-native"}) {
    const PluginCheck c = check_plugin(id);
    for (const CheckFinding& f : c.findings) INFO(f.fact);
    CHECK(c.errors() == 0);
    CHECK_FALSE(c.libraries.empty());
  }
}

TEST_CASE("check: how a library is linked") {
  const TempFolder folder;
  const PluginCheck c = check_complete(folder, named("linked-badly"));
  const std::string lead = "[check] linked-badly.so: ";
  const std::string exports = fact(c, "exports");
  CHECK(contains(exports, lead + "exports more than its entry: given "));
  CHECK(contains(exports, "linked_badly_helper"));
  CHECK(contains(exports,
                 "(needed trl_plugin_entry_v1 alone: -fvisibility=hidden and the SDK's "
                 "version script)"));
  CHECK(fact(c, "flags") ==
        lead + "may be unloaded: no NODELETE (needed -Wl,-z,nodelete)\n" + lead +
            "binds symbols late: no NOW (needed -Wl,-z,now)\n" + lead +
            "its tables of addresses stay writable: no RELRO (needed -Wl,-z,relro)");
  CHECK(fact(c, "memory") ==
        lead + "makes the stack executable: no PT_GNU_STACK without X (needed -Wl,-z,noexecstack)");
  CHECK(contains(fact(c, "run-path"),
                 lead + "has a run path: given '/nowhere' (needed none: that folder is of the "
                        "machine it was built on)"));
  CHECK(contains(fact(c, "run-path"),
                 lead + "has a run path: given '$ORIGIN/lib' (needed none; libraries of its own "
                        "belong beside it)"));
  CHECK(contains(fact(c, "needed"), lead + "links libz.so.1 (needed on every machine that loads "
                                           "the plugin; usual are the C and C++ libraries)"));
#if !defined(__clang__)
  CHECK(fact(c, "unique") == lead +
                                 "has symbols that all libraries of a process share: given 1 "
                                 "symbol, _ZN6SharedIiE5countE (needed none: -fno-gnu-unique)");
#endif
  // Errors come first.
  const auto names = names_of(c);
  CHECK(std::is_sorted(names.begin(), names.end(),
                       [](const std::string& a, const std::string& b) { return a[0] < b[0]; }));
}

TEST_CASE("check: symbols that no library has") {
  const TempFolder folder;
  const PluginCheck c = check_complete(folder, named("undefined-symbol"));
  CHECK(contains(fact(c, "undefined"),
                 "[check] undefined-symbol.so: wants what no library that it links has: given 1 "
                 "symbol, "));
  CHECK(contains(fact(c, "undefined"), "(needed the libraries on the link line: -Wl,-z,defs)"));
}

TEST_CASE("check: text relocations, and code that can be written") {
  const TempFolder folder;
  check_complete(folder, named("good"));
  patch_headers(folder / "good.so", [](Elf64_Phdr& h, std::string& bytes) {
    if (h.p_type == PT_LOAD) h.p_flags |= PF_W | PF_X;
    if (h.p_type != PT_DYNAMIC) return;
    for (size_t at = h.p_offset; at < h.p_offset + h.p_filesz; at += sizeof(Elf64_Dyn))
      patch<Elf64_Dyn>(bytes, at, [](Elf64_Dyn& d) {
        if (d.d_tag == DT_FLAGS) d.d_un.d_val |= DF_TEXTREL;
      });
  });
  const PluginCheck c = check(folder / "good.trellis.toml");
  CHECK(fact(c, "relocations") ==
        "[check] good.so: its code is changed when it is loaded: TEXTREL (needed -fPIC)");
  CHECK(fact(c, "memory") ==
        "[check] good.so: has a segment that is writable and executable (needed one or the other)");
}

TEST_CASE("check: entry, note and manifest") {
  const TempFolder folder;
  CHECK(
      fact(check_complete(folder, named("no-entry")), "exports") ==
      "[check] no-entry.so: does not export its entry: given 1 symbol, trl_plugin_entry_v9 (needed "
      "trl_plugin_entry_v1: "
      "TRL_PLUGIN of the SDK, or the function)");
  CHECK(fact(check_complete(folder, named("no-note")), "note") ==
        "[check] no-note.so: has no plugin note (needed TRL_PLUGIN or TRL_PLUGIN_NOTE of the SDK)");
  CHECK(fact(check_complete(folder, named("good-too"), "good"), "note") ==
        "[check] good-too.so: the id in its note is 'good', in its manifest 'good-too'");
  ManifestText other = named("good");
  other.version = "2.0.0";
  CHECK(fact(check_complete(folder, other), "note") ==
        "[check] good.so: the version in its note is '1.0.0', in its manifest '2.0.0'");
  CHECK(contains(fact(check_complete(folder, named("wrong-major")), "abi"),
                 "[check] wrong-major.so: needs host ABI "));
}

TEST_CASE("check: what a manifest says and does not say") {
  const TempFolder folder;
  ManifestText m = named("good");
  m.namespaces = "\"core\"";
  m.more = "[requires]\ncolour = 1\n[provides]\nops = [\"other.square@1\"]\n";
  const fs::path manifest = install(folder.path(), m);
  const std::string lead = "[check] good.trellis.toml: ";
  const std::string facts = fact(check(manifest), "manifest");
  CHECK(contains(facts, lead + "declares a namespace of the shipped plugins: given 'core' (needed "
                               "one of your own)"));
  CHECK(contains(facts, lead + "provides 'other.square@1' outside its namespaces (needed one of "
                               "'plugin.namespaces')"));
  CHECK(contains(facts, lead + "line "));
  CHECK(contains(facts, "unknown key 'requires.colour'"));
  CHECK(contains(facts, lead + "does not say 'plugin.license' (needed the SPDX name of its "
                               "licence, for who passes it on)"));
  CHECK(contains(facts, lead + "does not say 'plugin.summary' (needed a line for who chooses a "
                               "plugin)"));

  m.namespaces = "";
  m.more = "";
  const std::string none = fact(check(install(folder.path(), m)), "manifest");
  CHECK(contains(none, lead + "declares no namespace (needed that of what it provides)"));
  CHECK(contains(none, lead + "has no [provides] (needed to list what is in it without running "
                              "it)"));

  write_file(manifest, "manifest = 1\n");
  CHECK(fact(check(manifest), "manifest") ==
        lead + "line 1, key 'plugin' is missing (needs a table)");
  CHECK(check(manifest).errors() == 1);
}

TEST_CASE("check: CPU levels and their files") {
  const TempFolder folder;
  const auto entry = [](const std::string& path, const std::string& cpu,
                        const std::string& target = TRL_TARGET) {
    return "[[library]]\ntarget = \"" + target + "\"\ncpu = \"" + cpu + "\"\npath = \"" + path +
           "\"\n";
  };
  ManifestText m = named("good");
  m.more = entry("good.v9.so", "x86-64-v9") + entry("good.v3.so", "x86-64-v3") +
           entry("good.again.so", m.cpu) + entry("gone.so", "", "other-linux-gnu");
  const PluginCheck c = check_complete(folder, m);
  const std::string lead = "[check] good.trellis.toml: ";
  CHECK(contains(fact(c, "levels"), lead + "names an unknown CPU level: given 'x86-64-v9' (needed "
                                           "x86-64-v2, x86-64-v3, x86-64-v4 or none)"));
  CHECK(contains(fact(c, "levels"), lead + "lists two libraries for " TRL_TARGET " cpu "));
  const std::string files = fact(c, "file");
  CHECK(contains(files, "[check] good.v3.so: no such file or directory"));
  CHECK(contains(files, "[check] gone.so: no such file or directory"));
  CHECK(contains(files,
                 "[check] gone.so: is not named after its plugin (needed 'good.so' or "
                 "'good.<level>.so')"));

  ManifestText high = named("good");
  high.cpu = "x86-64-v4";
  CHECK(fact(check_complete(folder, high), "levels") ==
        lead + "has no library for older machines (needed one for x86-64-v2, or without a level)");
  ManifestText foreign = named("good");
  foreign.target = "other-linux-gnu";
  CHECK(fact(check_complete(folder, foreign), "levels") ==
        lead + "has no library for this machine: needed one for " TRL_TARGET " cpu");
}

TEST_CASE("check: a library alone, one that is not listed, one that others may write") {
  const TempFolder folder;
  const fs::path manifest = install(folder.path(), named("good"));
  fs::copy_file(folder / "good.so", folder / "good.other.so");
  CHECK(contains(fact(check(folder / "good.other.so"), "manifest"),
                 "[check] good.trellis.toml: does not list 'good.other.so' (needed a [[library]] "
                 "for it)"));
  fs::permissions(folder / "good.so", fs::perms::others_write, fs::perm_options::add);
  CHECK(fact(check(manifest), "trust") ==
        "[check] good.so: everybody may write to it (needs mode 0755 or less, chmod o-w)");
  fs::remove(manifest);
  const PluginCheck alone = check(folder / "good.so");
  CHECK(alone.id == "good");
  CHECK(fact(alone, "manifest") ==
        "[check] good.so: has no manifest beside it: given none (needed 'good.trellis.toml')");
}

TEST_CASE("check: files that are no library") {
  const TempFolder folder;
  const fs::path manifest = install(folder.path(), named("good"));
  write_file(folder / "good.so", "this is no library");
  CHECK(fact(check(manifest), "file") == "[check] good.so: not a shared library: no ELF magic");
  fs::remove(folder / "good.so");
  fs::create_directory(folder / "good.so");
  CHECK(fact(check(manifest), "file") == "[check] good.so: not a regular file");
  CHECK(error_of([&] { check(folder / "none.so"); }) ==
        "[plugin] cannot check '" + (folder / "none.so").native() + "': no such file");
}

TEST_CASE("check: a system newer than most have") {
  CHECK(version_less(kBaselineGlibc, "2.37"));
  CHECK_FALSE(version_less(kBaselineGlibc, "2.36"));
  const TempFolder folder;
  check_complete(folder, named("good"));
  std::string bytes = read_file(folder / "good.so");
  const std::string old = "GLIBC_2.2.5";
  REQUIRE(bytes.find(old) != std::string::npos);
  for (size_t at = bytes.find(old); at != std::string::npos; at = bytes.find(old, at))
    bytes.replace(at, old.size(), "GLIBC_9.9.9");
  write_file(folder / "good.so", bytes);
  const std::string facts = fact(check(folder / "good.trellis.toml"), "runtime");
  CHECK(contains(facts, "[check] good.so: needs the C library GLIBC_9.9.9, this system has "));
  CHECK(contains(facts,
                 "[check] good.so: needs a new system: given GLIBC_9.9.9 (needed at most "
                 "2.36 to run on Debian 12)"));
}
