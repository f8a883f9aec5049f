// SPDX-License-Identifier: Apache-2.0
//
// Every plugin is loaded in a process of its own by tests/fixtures/driver.cpp; its exit status and
// words are looked at.
#include "plugin/loader.hpp"

#include <trellis/abi/plugin.h>

#include "support.hpp"

using namespace trellis::test;

namespace {

constexpr const char* kHostAbi = "this host has 0.1";

// Loads one fixture by its manifest; what is wrong is in the library or in the manifest.
struct Bad {
  std::string library;  // fixture that is installed
  ManifestText manifest;
  std::string error;  // part of the message; %: the library's path
  bool runs = false;  // whether code of the library runs before it is refused
  Environment environment;
};

std::string with_path(std::string text, const std::string& path) {
  for (size_t at; (at = text.find('%')) != std::string::npos;) text.replace(at, 1, path);
  return text;
}

ManifestText with(ManifestText m, std::string ManifestText::*field, const std::string& value) {
  m.*field = value;
  return m;
}

void check(const Bad& bad) {
  CAPTURE(bad.library);
  CAPTURE(bad.error);
  const TempFolder folder;
  const fs::path manifest = install(folder.path(), bad.manifest, bad.library);
  const Outcome o = drive({"--plugin", manifest}, bad.environment);
  CAPTURE(o.out);
  CHECK(o.status == 1);
  const std::string library = (folder / (bad.manifest.id + ".so")).native();
  CHECK(o.says(with_path("error: [plugin] cannot " + bad.error, library)));
  CHECK(o.says("code of " + bad.library + " runs") == bad.runs);
  CHECK(o.count("loaded ") == 0);
}

}  // namespace

TEST_CASE("loader: a plugin whose bytes do not fit is refused before any of it runs") {
  const std::string v = "load '%': ";
  for (const Bad& bad : {
           Bad{"no-note",
               named("no-note"),
               v + "has no plugin note (needs TRL_PLUGIN or TRL_PLUGIN_NOTE of the SDK)",
               false,
               {}},
           Bad{"wrong-major",
               named("wrong-major"),
               v + "needs host ABI 7.1, " + kHostAbi + " (rebuild the plugin with this host's SDK)",
               false,
               {}},
           Bad{"newer-minimum",
               named("newer-minimum"),
               v + "needs host ABI 0.2, " + kHostAbi +
                   " (upgrade trellis, or rebuild the plugin with TRL_TARGET_MINOR=1)",
               false,
               {}},
           Bad{"older-draft",
               named("older-draft"),
               v + "needs host ABI 0.0, " + kHostAbi +
                   " (rebuild the plugin with this host's SDK: drafts fit exactly or not at all)",
               false,
               {}},
           Bad{"good",
               named("renamed"),
               v + "the id in its note is 'good', in its manifest 'renamed'",
               false,
               {}},
           Bad{"good",
               with(named("good"), &ManifestText::version, "1.0.1"),
               v + "the version in its note is '1.0.0', in its manifest '1.0.1'",
               false,
               {}},
           Bad{"good",
               with(named("good"), &ManifestText::cpu, ""),
               v + "the cpu level in its note is '" TRL_CPU_LEVEL "', in its manifest none",
               false,
               {}},
           Bad{"good",
               with(named("good"), &ManifestText::more, "[requires]\nglibc = \"9.1\"\n"),
               v + "needs the C library GLIBC_9.1, this system has ",
               false,
               {}},
           Bad{"undefined-symbol",
               named("undefined-symbol"),
               v + "%: undefined symbol: function_of_nobody",
               false,
               {}},
       })
    check(bad);
}

TEST_CASE("loader: a plugin whose manifest does not fit is refused before its library is opened") {
  const TempFolder folder;
  const auto refused = [&](const ManifestText& m) {
    const fs::path manifest = install(folder.path(), m, "good");
    const Outcome o = drive({"--plugin", manifest});
    CHECK(o.status == 1);
    CHECK_FALSE(o.says("code of"));
    return o.out;
  };
  const std::string path = "'" + (folder / "good.trellis.toml").native() + "'";
  CHECK(
      contains(refused(with(named("good"), &ManifestText::abi, "major = 1\nmin_host_minor = 4\n")),
               "cannot load " + path + ": needs host ABI 1.4, this host has 0.1"));
  CHECK(contains(refused(with(named("good"), &ManifestText::target, "riscv64-linux-gnu")),
                 "cannot load " + path + ": no library for " TRL_TARGET " cpu "));
  CHECK(
      contains(refused(with(named("good"), &ManifestText::abi, "major = \"0\"\n")),
               "cannot read " + path + ": line 7, key 'abi.major' is a string (needs an integer)"));
}

TEST_CASE("loader: a plugin that opens but lies in its tables is refused whole") {
  const std::string v = "load '%': ";
  for (const Bad& bad : {
           Bad{"no-entry",
               named("no-entry"),
               v + "does not export trl_plugin_entry_v1 (needs TRL_PLUGIN of the SDK, or the "
                   "function)",
               true,
               {}},
           Bad{"other-id",
               named("other-id"),
               v + "the id in its table is 'somebody-else', in its note 'other-id'",
               true,
               {}},
           Bad{"small-table",
               named("small-table"),
               v + "its table has 24 bytes (needs 48 to 168)",
               true,
               {}},
           Bad{"writes-past",
               named("writes-past"),
               v + "its entry function writes past the host's table (needs TRL_FILL)",
               true,
               {}},
           Bad{"core-op",
               with(named("core-op"), &ManifestText::namespaces, "\"core\""),
               "register '%': operator 'core.square': 'core.square' lies in a reserved namespace",
               true,
               {}},
           Bad{"good",
               with(named("good"), &ManifestText::namespaces, "\"acme\""),
               "register '%': operator 'test.square': 'test.square' lies in no namespace of the "
               "manifest (it declares: acme)",
               true,
               {}},
           Bad{"good",
               with(named("good"), &ManifestText::more,
                    "[provides]\nops = [\"test.cube@1\", \"test.square@1\"]\n"),
               v + "its manifest promises the operator 'test.cube', the library has none of that "
                   "id",
               true,
               {}},
           Bad{"good",
               with(named("good"), &ManifestText::more, "[provides]\nops = []\n"),
               v + "the library has the operator 'test.square', its manifest does not list it",
               true,
               {}},
           Bad{"init-fails",
               named("init-fails"),
               v + "its init fails: [init-fails] no such device: gpu7 (needed cpu)",
               true,
               {}},
       })
    check(bad);
}

TEST_CASE("loader: huge and inconsistent counts are refused") {
  const std::string v = "load '%': its table of ", r = "register '%': operator 'test.square'";
  const std::pair<const char*, std::string> cases[] = {
      {"ops", v + "operators has 4294967295 entries (at most 4096)"},
      {"kernels", v + "kernels has 5000 entries (at most 4096)"},
      {"builders", v + "builders has 1 entries and no address"},
      {"null_op", v + "operators has no entry 0"},
      {"inputs", r + ": 65535 inputs (at most "},
      {"outputs", r + ": no visible output"},
      {"attrs", r + ": 3 attributes but no table"},
      {"aliases", r + ": 65535 aliases (at most "},
      {"op_size", "register '%': operator 0: struct_size is 8 (needed "},
      {"summary", r + ": summary has 18446744073709551615 bytes (at most "},
      {"forward", "register '%': kernel 0 of 'test.square': no forward"},
      {"kernel_op", "register '%': "},
  };
  for (const auto& [which, error] : cases)
    check({"bad-counts", named("bad-counts"), error, true, {{"FIXTURE_COUNTS", which}}});
}

TEST_CASE("loader: exceptions that leave entry or init cost a message") {
  const std::pair<const char*, const char*> kinds[] = {
      {"exception", "boom"},
      {"private", "boom of its own"},
      {"int", "of a type this host does not know"}};
  for (const auto& [kind, text] : kinds) {
    for (const char* where : {"entry", "init"}) {
      const std::string what =
          std::string(where) == "entry" ? "its entry function fails" : "its init fails";
      check({"throws",
             named("throws"),
             "load '%': " + what + ": an exception left the plugin: " + text,
             true,
             {{"FIXTURE_THROW", std::string(where) + ":" + kind}}});
    }
    const TempFolder folder;
    const fs::path manifest = install(folder.path(), named("throws"));
    const Outcome o =
        drive({"--plugin", manifest}, {{"FIXTURE_THROW", std::string("fini:") + kind}});
    CHECK(o.status == 0);
    CHECK(o.says("log 4: [plugin] throws: its fini fails: an exception left the plugin"));
  }
}

TEST_CASE("loader: exceptions that leave infer, forward or backward do not end the process") {
  const TempFolder folder;
  const fs::path manifest = install(folder.path(), named("throws"));
  for (const char* where : {"infer", "forward", "backward"})
    for (const char* kind : {"exception", "private", "int"}) {
      const std::string wish = std::string(where) + ":" + kind;
      const Outcome o =
          drive({"--plugin", manifest, "--apply", "test.square"}, {{"FIXTURE_THROW", wish}});
      CAPTURE(wish);
      CAPTURE(o.out);
      CHECK(o.status == 0);
      CHECK(o.says("refused: "));
      CHECK(o.says("test.square"));
      CHECK(o.says("still there: 2"));
    }
}

TEST_CASE(
    "loader: a plugin built with the other std::string works, as only C crosses the boundary") {
  const TempFolder folder;
  const fs::path manifest = install(folder.path(), named("other-strings"));
  const Outcome good = drive({"--plugin", manifest, "--apply", "test.square"});
  CAPTURE(good.out);
  CHECK(good.status == 0);
  CHECK_FALSE(good.says("refused: "));
  CHECK(good.says("test.square(3) = 9"));
  const Outcome bad = drive({"--plugin", manifest, "--apply", "test.square"},
                            {{"FIXTURE_THROW", "forward:exception"}});
  CHECK(bad.status == 0);
  CHECK(bad.says("refused: "));
  CHECK(bad.says("still there: 2"));
}

TEST_CASE("loader: files that are not libraries of this machine are refused without opening them") {
  const TempFolder folder;
  const fs::path manifest = install(folder.path(), named("good"));
  const fs::path library = folder / "good.so";
  const std::string bytes = read_file(library);
  const auto refused = [&](const std::string& content, const std::string& error) {
    CAPTURE(error);
    write_file(library, content);
    const Outcome o = drive({"--plugin", manifest});
    CAPTURE(o.out);
    CHECK(o.status == 1);
    CHECK(o.says("error: [plugin] cannot load '" + library.native() + "': " + error));
    CHECK_FALSE(o.says("code of"));
  };
  const auto patched = [&](size_t at, char value) {
    std::string copy = bytes;
    copy[at] = value;
    return copy;
  };
  refused("", "not a shared library: no ELF magic");
  refused("#!/bin/sh\necho no\n", "not a shared library: no ELF magic");
  refused(
      "\x7f"
      "ELF",
      "damaged or truncated library: the ELF header lies outside the file");
  refused(patched(1, 'e'), "not a shared library: no ELF magic");
  refused(patched(4, 1), "a 32-bit library (needs 64-bit)");
  refused(patched(5, 2), "a big-endian library (needs little-endian)");
  refused(patched(18, 3), "a library for i386 (needs ");
  refused(patched(16, 2), "not a shared library: ELF type 2");
  refused(patched(56, 65), "damaged library: 65 program headers (at most 64)");
  refused(bytes.substr(0, 100),
          "damaged or truncated library: a program header lies outside the file");
  refused(bytes.substr(0, 4096), "damaged or truncated library: a segment lies outside the file");
}

TEST_CASE("loader: a library that others may write to, or that is no file, is refused") {
  const TempFolder folder;
  const fs::path manifest = install(folder.path(), named("good"));
  const std::string start = "error: [plugin] cannot load '" + (folder / "good.so").native() + "': ";
  fs::permissions(folder / "good.so", fs::perms::others_write, fs::perm_options::add);
  CHECK(drive({"--plugin", manifest})
            .says(start + "everybody may write to it (needs mode 0755 or less, chmod o-w)"));
  fs::remove(folder / "good.so");
  CHECK(drive({"--plugin", manifest}).says(start + "no such file or directory"));
  fs::create_directory(folder / "good.so");
  CHECK(drive({"--plugin", manifest}).says(start + "not a regular file"));
}

TEST_CASE("loader: a right plugin loads, works, and is named with its file") {
  const TempFolder folder;
  const fs::path manifest = install(folder.path(), named("good"));
  const Outcome o = drive({"--plugin", manifest, "--apply", "test.square"});
  CAPTURE(o.out);
  CHECK(o.status == 0);
  CHECK(o.says("loaded good 1.0.0 " + (folder / "good.so").native() + " test.square@1"));
  CHECK(o.says("test.square(3) = 9"));
  CHECK(o.says("d test.square(3) = 6"));
}

TEST_CASE("loader: a plugin of a later minor loads when its minimum fits") {
  const TempFolder folder;
  const Outcome o =
      drive({"--plugin", install(folder.path(), named("long-table")), "--apply", "test.square"});
  CHECK(o.status == 0);
  CHECK(o.says("test.square(3) = 9"));
}

TEST_CASE("loader: two plugins with one operator are refused with both files, unless overridden") {
  const TempFolder folder;
  install(folder / "a", named("good"));
  install(folder / "b", named("good-too"));
  const fs::path file = folder / "trellis.toml";
  const std::string plugins =
      "[plugins]\ngood = { path = \"a/good.trellis.toml\" }\ngood-too = { path = "
      "\"b/good-too.trellis.toml\" }\n";
  write_file(file, plugins);
  const Outcome refused = drive({"--file", file});
  CAPTURE(refused.out);
  CHECK(refused.status == 1);
  CHECK(refused.says("cannot register '" + (folder / "b/good-too.so").native() +
                     "': operator 'test.square' is also in '" + (folder / "a/good.so").native() +
                     "'"));
  write_file(file, plugins + "[override]\n\"test.square\" = \"good-too\"\n");
  const Outcome o = drive({"--file", file, "--apply", "test.square"});
  CAPTURE(o.out);
  CHECK(o.status == 0);
  CHECK(o.says("loaded good 1.0.0 " + (folder / "a/good.so").native() + "\n"));
  CHECK(o.says("good-too.so test.square@1"));
  CHECK(o.says("test.square(3) = 9"));
}

TEST_CASE(
    "loader: paths with spaces, letters of other scripts, quotes and line breaks work and come "
    "back whole") {
  for (const char* name : {"dir with space", "디버그", "ünï", "it's", "line\nbreak"}) {
    const TempFolder folder;
    CAPTURE(name);
    const fs::path manifest = install(folder / name, named("good"));
    const Outcome o = drive({"--plugin", manifest, "--apply", "test.square"});
    CAPTURE(o.out);
    CHECK(o.status == 0);
    CHECK(o.says("test.square(3) = 9"));
    write_file(manifest, "manifest = 2\n");
    const Outcome refused = drive({"--plugin", manifest});
    CHECK(refused.status == 1);
    std::string shown = name;
    if (const size_t at = shown.find('\n'); at != std::string::npos) shown.replace(at, 1, "\\x0a");
    CHECK(refused.says("cannot read '" + (folder / shown / "good.trellis.toml").native() + "'"));
  }
}

TEST_CASE("loader: one file loads once, however often and by whatever name it is asked for") {
  const TempFolder folder;
  const fs::path manifest = install(folder / "real", named("good"));
  fs::create_directory_symlink(folder / "real", folder / "link");
  const Outcome o = drive({"--plugin", manifest, "--plugin", folder / "link/good.trellis.toml",
                           "--plugin", "good", "--plugin", folder / "real/good.so", "--search",
                           folder / "real", "--again", "--apply", "test.square"});
  CAPTURE(o.out);
  CHECK(o.status == 0);
  CHECK(o.count("code of good runs") == 1);
  CHECK(o.count("loaded good") == 2);
  CHECK(o.count("test.square(3) = 9") == 2);
  const Outcome linked = drive({"--plugin", folder / "link/good.trellis.toml"});
  CHECK(linked.status == 0);
  CHECK(linked.says("loaded good 1.0.0 " + (folder / "link/good.so").native()));
}

TEST_CASE("loader: the same id from two files is refused") {
  const TempFolder folder;
  const fs::path a = install(folder / "a", named("good")), b = install(folder / "b", named("good"));
  const Outcome o = drive({"--plugin", a, "--plugin", b});
  CHECK(o.status == 1);
  CHECK(
      o.says("cannot load 'good' from two places: '" + a.native() + "' and '" + b.native() + "'"));
  CHECK_FALSE(o.says("code of"));
}

TEST_CASE(
    "loader: a load that failed leaves nothing behind: fails, fails, succeeds when replaced") {
  const TempFolder folder;
  const fs::path manifest = install(folder.path(), named("good"), "undefined-symbol");
  Child child({environment("TRELLIS_LOAD_DRIVER"), "--wait", "--plugin", manifest, "--apply",
               "test.square"},
              {{"TRELLIS_PLUGIN_PATH", ""}});
  const auto attempt = [&](const std::string& from) {
    fs::copy_file(fixture(from), folder / "fresh.so");
    fs::rename(folder / "fresh.so", folder / "good.so");
    child.send(from);
    return child.read_to("done");
  };
  // Refused by its note, by the dynamic linker, and after its code ran.
  for (const auto& [from, error] :
       {std::pair("no-note", "has no plugin note"),
        std::pair("good-undefined", "undefined symbol: function_of_nobody"),
        std::pair("good-small", "its table has 24 bytes")})
    for (int i = 0; i < 2; ++i) {
      const std::string said = attempt(from);
      CAPTURE(said);
      CHECK(contains(said, "error: "));
      CHECK(contains(said, error));
    }
  const std::string said = attempt("good");
  CAPTURE(said);
  CHECK(contains(said, "loaded good 1.0.0"));
  CHECK(contains(said, "test.square(3) = 9"));
  CHECK(child.finish().status == 0);
}

TEST_CASE("loader: a file that replaced an open one is the one that is loaded") {
  const TempFolder folder;
  const fs::path manifest = install(folder.path(), named("bad-counts"));
  Child child({environment("TRELLIS_LOAD_DRIVER"), "--wait", "--plugin", manifest},
              {{"TRELLIS_PLUGIN_PATH", ""}});
  const auto attempt = [&] {
    child.send("go");
    return child.read_to("done");
  };
  CHECK(contains(attempt(), "code of bad-counts runs"));
  CHECK_FALSE(contains(attempt(), "code of bad-counts runs"));
  fs::copy_file(folder / "bad-counts.so", folder / "fresh.so");
  fs::rename(folder / "fresh.so", folder / "bad-counts.so");
  CHECK(contains(attempt(), "code of bad-counts runs"));
  // Writing into an open file is told, not tried.
  const std::string bytes = read_file(folder / "bad-counts.so");
  write_file(folder / "bad-counts.so", bytes + " ");
  CHECK(contains(attempt(), "written over while this process has it open"));
  child.finish();
}

TEST_CASE("loader: destructors of static and thread-local objects run without harm") {
  const TempFolder folder;
  const Outcome o = drive({"--plugin", install(folder.path(), named("destructors")), "--apply",
                           "test.square", "--thread", "--again"});
  CAPTURE(o.out);
  CHECK(o.status == 0);
  CHECK(o.count("destroyed a thread-local object of the library") == 2);
  CHECK(o.count("destroyed a static object of the library") == 1);
  CHECK(o.out.find("end\n") < o.out.find("destroyed a static object"));
}

TEST_CASE("loader: a plugin that leaves a thread running does not harm the end of the process") {
  const TempFolder folder;
  const Outcome o = drive({"--plugin", install(folder.path(), named("detached-thread"))});
  CHECK(o.status == 0);
  CHECK(o.says("end\n"));
}

TEST_CASE("loader: two plugins with one visible symbol see each their own") {
  const TempFolder folder;
  const fs::path one = install(folder.path(), named("helper-one")),
                 two = install(folder.path(), named("helper-two"));
  for (const auto& [first, second] : {std::pair(one, two), std::pair(two, one)}) {
    const Outcome o = drive(
        {"--plugin", first, "--plugin", second, "--apply", "test.one", "--apply", "test.two"});
    CAPTURE(o.out);
    CHECK(o.status == 0);
    CHECK(o.says("test.one(3) = 1\n"));
    CHECK(o.says("test.two(3) = 2\n"));
  }
}

TEST_CASE("loader: each runtime has its own self and ends it, newest plugin first") {
  const TempFolder folder;
  const fs::path selves = install(folder.path(), named("counts-selves"));
  const Outcome o = drive({"--plugin", selves, "--apply", "test.self", "--again"});
  CAPTURE(o.out);
  CHECK(o.status == 0);
  CHECK(o.count("code of counts-selves runs") == 1);
  CHECK(o.says("test.self(3) = 1\n"));
  CHECK(o.says("test.self(3) = 2\n"));
  CHECK(o.count("fini 1\n") == 1);
  CHECK(o.count("fini 2\n") == 1);
}

TEST_CASE("loader: a plugin whose init fails takes back what was initialised before it") {
  const TempFolder folder;
  const fs::path first = install(folder.path(), named("counts-selves")),
                 last = install(folder.path(), named("init-fails"));
  const Outcome o = drive({"--plugin", first, "--plugin", last});
  CAPTURE(o.out);
  CHECK(o.status == 1);
  CHECK(o.count("init 1\n") == 1);
  CHECK(o.count("fini 1\n") == 1);
}

TEST_CASE("loader: operators of a plugin that sorts later are there for one that sorts first") {
  const TempFolder folder;
  ManifestText uses = named("a-uses");
  uses.more = "[requires]\nplugins = [{ id = \"zz-last\", version = \"^1.0\" }]\n";
  install(folder.path(), uses);
  install(folder.path(), named("zz-last"));
  const Outcome o = drive({"--search", folder.path(), "--plugin", "a-uses", "--apply",
                           "test.fourth", "--apply", "test.squares"});
  CAPTURE(o.out);
  CHECK(o.status == 0);
  CHECK(o.out.find("loaded zz-last") < o.out.find("loaded a-uses"));
  CHECK(o.says("test.fourth(3) = 81\n"));
  CHECK(o.says("test.squares(3) = 9\n"));
  CHECK(o.says("d test.squares(3) = 6\n"));

  // Without the declaration it is initialised first and resolves all the same.
  install(folder.path(), named("a-uses"));
  const Outcome undeclared = drive({"--search", folder.path(), "--plugin", "a-uses", "--plugin",
                                    "zz-last", "--apply", "test.fourth"});
  CHECK(undeclared.status == 0);
  CHECK(undeclared.out.find("loaded a-uses") < undeclared.out.find("loaded zz-last"));
  CHECK(undeclared.says("test.fourth(3) = 81\n"));

  // Alone it says what it misses.
  const Outcome alone = drive({"--search", folder.path(), "--plugin", "a-uses"});
  CHECK(alone.status == 1);
  CHECK(alone.says("its init fails: "));
  CHECK(alone.says("'test.square'"));
}

TEST_CASE("loader: a plugin offers an interface to those that require it") {
  const TempFolder folder;
  ManifestText uses = named("a-uses");
  uses.more = "[requires]\nplugins = [{ id = \"offers\" }, { id = \"zz-last\" }]\n";
  install(folder.path(), uses);
  install(folder.path(), named("offers"));
  install(folder.path(), named("zz-last"));
  const fs::path file = folder / "trellis.toml";
  const std::string rest = "zz-last = \"*\"\na-uses = { options = { misuse = \"number\" } }\n";
  write_file(file, "[plugins]\noffers = \"*\"\n" + rest);
  const Outcome o = drive({"--search", folder.path(), "--file", file});
  CAPTURE(o.out);
  CHECK(o.status == 0);
  CHECK(o.count("loaded ") == 3);

  install(folder.path(), named("a-uses"));
  write_file(file, "[plugins]\n" + rest);
  const Outcome alone = drive({"--search", folder.path(), "--file", file});
  CHECK(alone.status == 1);
  CHECK(alone.says("its init fails: [a-uses] nobody offers test.number/1"));
}

TEST_CASE("loader: options reach the plugin, and one that nobody asked for is told") {
  const TempFolder folder;
  install(folder.path(), named("a-uses"));
  install(folder.path(), named("zz-last"));
  const auto with_option = [&](const std::string& option) {
    const fs::path file = folder / "trellis.toml";
    write_file(file,
               "[plugins]\nzz-last = { path = \"zz-last.trellis.toml\" }\n[plugins.a-uses]\npath = "
               "\"a-uses.trellis.toml\"\noptions = { " +
                   option + " }\n");
    return drive({"--file", file});
  };
  CHECK(with_option("misuse = \"no\"").status == 0);
  const Outcome typo = with_option("misues = true");
  CHECK(typo.status == 0);
  CHECK(typo.says(
      "log 3: [plugin] a-uses: option 'misues' was not asked for (the plugin may not know it)"));
  // Host functions that init may not call say so.
  const Outcome scratch = with_option("misuse = \"scratch\"");
  CHECK(scratch.status == 1);
  CHECK(scratch.says("its init fails: [host] scratch is not allowed in init"));
  const Outcome apply = with_option("misuse = \"apply\"");
  CHECK(apply.status == 1);
  CHECK(apply.says("its init fails: [host] apply is not allowed in init"));
  CHECK(with_option("misuse = \"nothing\"").status == 0);
}

TEST_CASE(
    "loader: without names every shipped plugin that can be loaded is, and the others are told") {
  const TempFolder folder;
  install(folder.path(), named("good"));
  install(folder.path(), named("init-fails"));
  install(folder.path(), named("no-note"));
  ManifestText uses = named("a-uses");
  uses.more = "[requires]\nplugins = [{ id = \"init-fails\" }]\n";
  install(folder.path(), uses);
  ManifestText lonely = named("long-table");
  lonely.more = "[requires]\nplugins = [{ id = \"nowhere\", version = \"^2\" }]\n";
  install(folder.path(), lonely);
  ManifestText off = named("counts-selves");
  off.more = "[env]\ndisable = \"TRELLIS_TEST_OFF\"\n";
  install(folder.path(), off);
  install(folder.path(), named("destructors"));
  const Outcome o =
      drive({"--all", "--apply", "test.square"}, {{"TRELLIS_PLUGIN_PATH", folder.path()},
                                                  {"TRELLIS_TEST_OFF", "1"},
                                                  {"TRELLIS_PLUGINS_DISABLE", "destr*"}});
  CAPTURE(o.out);
  CHECK(o.status == 0);
  CHECK(o.count("loaded ") == 1);
  CHECK(o.says("loaded good"));
  CHECK_FALSE(o.says("counts-selves"));
  CHECK_FALSE(o.says("destructors"));
  CHECK(o.says("test.square(3) = 9"));
  CHECK(o.says("log 4: [plugin] cannot load '" + (folder / "no-note.so").native() +
               "': has no plugin note"));
  CHECK(o.says("log 4: [plugin] cannot load '" + (folder / "init-fails.so").native() +
               "': its init fails: "));
  CHECK(o.says("log 4: [plugin] cannot load '" + (folder / "a-uses.so").native() +
               "': requires a plugin that could not be loaded"));
  CHECK(o.says("log 4: [plugin] cannot load '" + (folder / "long-table.trellis.toml").native() +
               "': requires 'nowhere ^2', which cannot be loaded: [plugin] cannot load 'nowhere "
               "^2': not found in "));
}

TEST_CASE("loader: a plugin that resolved operators of one that failed goes with it") {
  const TempFolder folder;
  // a-uses resolves test.square of zz-last, whose kernel needs nothing; init-fails only takes the
  // set apart.
  install(folder.path(), named("a-uses"));
  install(folder.path(), named("init-fails"));
  install(folder.path(), named("zz-last"));
  const Outcome o =
      drive({"--all", "--apply", "test.fourth"}, {{"TRELLIS_PLUGIN_PATH", folder.path()}});
  CAPTURE(o.out);
  CHECK(o.status == 0);
  CHECK(o.count("loaded ") == 2);
  CHECK(o.says("test.fourth(3) = 81\n"));
}

TEST_CASE("loader: TRELLIS_PLUGIN_DEBUG tells why") {
  const TempFolder folder;
  install(folder / "a", named("good"));
  install(folder / "b", named("good"));
  const Outcome o =
      drive({"--search", folder / "a", "--search", folder / "b", "--plugin", "good@^1"},
            {{"TRELLIS_PLUGIN_DEBUG", "search,resolve,verify,load"}});
  CAPTURE(o.out);
  CHECK(o.status == 0);
  CHECK(o.says("[plugin:search] search option '" + (folder / "a").native() + "': 1 manifests"));
  CHECK(o.says("[plugin:resolve] good 1.0.0: '" + (folder / "a/good.trellis.toml").native() +
               "', asked for by 'good@^1'; found in search option"));
  CHECK(o.says("[plugin:resolve] good: '" + (folder / "b/good.trellis.toml").native() +
               "' shadowed by '" + (folder / "a/good.trellis.toml").native() + "'"));
  CHECK(o.says("[plugin:verify] good: file, note and versions agree with the manifest"));
  CHECK(o.says("[plugin:load] good: '" + (folder / "a/good.so").native() + "' opened in "));
  CHECK_FALSE(drive({"--search", folder / "a", "--plugin", "good"}).says("[plugin:"));
}
