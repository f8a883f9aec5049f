// SPDX-License-Identifier: Apache-2.0
#include "plugin/manifest.hpp"

#include <algorithm>

#include "plugin/toml_reader.hpp"

namespace trellis::detail {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxIdBytes = 63;

bool is_lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool is_namespace(std::string_view s) {
  return !s.empty() && s.size() <= kMaxIdBytes && s.front() != '.' && s.back() != '.' &&
         std::all_of(s.begin(), s.end(),
                     [](char c) { return is_lower_or_digit(c) || c == '_' || c == '.'; });
}

void read_plugin(TomlTable t, Manifest& m) {
  m.id = t.text("id");
  if (!is_plugin_id(m.id))
    t.reject("id", "is '" + m.id + "'", "lower case letters, digits, dashes");
  const std::string stem = manifest_id(m.file);
  if (m.id != stem) t.reject("id", "is '" + m.id + "'", "'" + stem + "', as the file is named");
  const std::string version = t.text("version");
  const auto parsed = Version::parse(version);
  if (!parsed) t.reject("version", "is '" + version + "'", "a version such as 1.4.0");
  m.version = *parsed;
  m.license = t.text("license", "");
  m.summary = t.text("summary", "");
  m.authors = t.texts("authors");
  m.namespaces = t.texts("namespaces");
  for (const std::string& name : m.namespaces)
    if (!is_namespace(name)) t.reject("namespaces", "holds '" + name + "'", "[a-z0-9_.]");
  m.replaces = t.texts("replaces");
  t.warn_unknown(m.warnings);
}

void read_abi(TomlTable t, Manifest& m) {
  m.abi_major = t.number("major");
  m.min_host_minor = t.number("min_host_minor");
  m.built_with_minor = t.number("built_with_minor", m.min_host_minor);
  m.abi_extra = t.text("extra", "");
  t.warn_unknown(m.warnings);
}

void read_requires(TomlTable t, Manifest& m) {
  for (TomlTable& entry : t.tables("plugins")) {
    Requirement r;
    r.id = entry.text("id");
    if (!is_plugin_id(r.id)) entry.reject("id", "is '" + r.id + "'", "the id of a plugin");
    if (r.id == m.id) entry.reject("id", "is '" + r.id + "'", "another plugin");
    const std::string text = entry.text("version", "*");
    const auto range = VersionRange::parse(text);
    if (!range)
      entry.reject("version", "is '" + text + "'", "a range such as ^1.2, ~1.2, >=1.2, =1.2.0");
    r.range = *range;
    entry.warn_unknown(m.warnings);
    m.required.push_back(std::move(r));
  }
  m.glibc = t.text("glibc", "");
  t.warn_unknown(m.warnings);
}

// Whether a relative path stays inside the folder it starts from.
bool stays_inside(const fs::path& path) {
  return !path.empty() && path.is_relative() && path.has_filename() &&
         std::none_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
}

void read_library(TomlTable t, Manifest& m) {
  ManifestLibrary library;
  library.target = t.text("target");
  library.device = t.text("device", "cpu");
  library.cpu = t.text("cpu", "");
  library.path = t.text("path");
  if (!stays_inside(library.path))
    t.reject("path", "is '" + library.path + "'", "a file inside the manifest's folder");
  t.warn_unknown(m.warnings);
  m.libraries.push_back(std::move(library));
}

void read_provides(TomlTable t, Manifest& m) {
  m.provides.given = true;
  m.provides.ops = t.texts("ops");
  m.provides.builders = t.texts("builders");
  m.provides.softmaxes = t.texts("softmaxes");
  m.provides.initializers = t.texts("initializers");
  m.provides.trainers = t.texts("trainers");
  m.provides.linalg = t.texts("linalg");
  t.warn_unknown(m.warnings);
}

}  // namespace

bool is_plugin_id(std::string_view id) {
  if (id.empty() || id.size() > kMaxIdBytes || id.front() == '-' || id.back() == '-') return false;
  return id.find("--") == std::string_view::npos &&
         std::all_of(id.begin(), id.end(), [](char c) { return is_lower_or_digit(c) || c == '-'; });
}

std::string manifest_id(const fs::path& file) {
  const std::string name = file.filename().native();
  if (name.size() <= kManifestSuffix.size() || !name.ends_with(kManifestSuffix)) return {};
  return name.substr(0, name.size() - kManifestSuffix.size());
}

fs::path manifest_beside(const fs::path& library) {
  const std::string name = library.filename().native();
  return library.parent_path() / (name.substr(0, name.find('.')) + std::string(kManifestSuffix));
}

Manifest read_manifest(const fs::path& file) {
  Manifest m;
  m.file = fs::absolute(file);
  const toml::table parsed = parse_toml(m.file);
  TomlTable root(m.file, parsed);
  if (const uint32_t format = root.number("manifest"); format != 1)
    root.reject("manifest", "is " + std::to_string(format), "1, the format this version reads");
  const auto section = [&](std::string_view key) {
    auto t = root.table(key);
    if (!t) root.reject(key, "is missing", "a table");
    return *t;
  };
  read_plugin(section("plugin"), m);
  read_abi(section("abi"), m);
  if (auto t = root.table("requires")) read_requires(*t, m);
  for (TomlTable& t : root.tables("library")) read_library(t, m);
  if (m.libraries.empty()) root.reject("library", "is missing", "at least one [[library]]");
  if (auto t = root.table("provides")) read_provides(*t, m);
  root.table("validate");  // hints for the validator alone
  if (auto t = root.table("env")) {
    m.disable_variable = t->text("disable", "");
    t->warn_unknown(m.warnings);
  }
  root.warn_unknown(m.warnings);
  return m;
}

}  // namespace trellis::detail
