// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <trellis/io.hpp>

#include "io/atomic_file.hpp"
#include "io/safetensors.hpp"
#include "io/utf8.hpp"

namespace trellis {
namespace {

std::string_view type_name(DType t) { return t == DType::f64 ? "F64" : "F32"; }

struct NamedValue {
  std::string name;  // below the model
  TensorView value;
};

std::vector<NamedValue> values_of(const Model& model) {
  std::vector<NamedValue> out;
  const auto add = [&](const Parameter& p) {
    out.push_back({p.name().substr(model.name().size()), p.value()});
  };
  for (const Parameter& p : model.parameters()) add(p);
  for (const LookupParameter& p : model.lookups()) add(p);
  return out;
}

uint64_t bytes_of(const TensorView& v) { return v.dim().elements() * dtype_size(v.dtype()); }

std::vector<uint64_t> reversed_shape(const Dim& dim) {
  std::vector<uint64_t> shape(dim.rank);
  for (uint32_t i = 0; i < dim.rank; ++i) shape[dim.rank - 1 - i] = dim.d[i];
  return shape;
}

// The file's shape in our order, for people.
std::string our_shape(std::vector<uint64_t> shape) {
  std::reverse(shape.begin(), shape.end());
  return fmt::format("{{{}}}", fmt::join(shape, ","));
}

// "missing 'a', 'b' and 3 more".
std::string name_some(const char* word, const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  std::string text = word;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    text += fmt::format("{}'{}'", i == 0 ? " " : ", ", detail::printable(names[i]));
  }
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

// What keeps the file from fitting the model; empty when it fits.
std::string misfit(const std::vector<NamedValue>& values, const detail::SafetensorsHeader& header) {
  std::vector<std::string> missing, surplus, wrong;
  std::set<std::string_view> known;
  for (const auto& [name, value] : values) {
    known.insert(name);
    const auto at = header.tensors.find(name);
    if (at == header.tensors.end()) {
      missing.push_back(name);
    } else if (at->second.shape != reversed_shape(value.dim()) ||
               at->second.dtype != type_name(value.dtype())) {
      wrong.push_back(fmt::format("'{}' is {} {} (needed {} {})", name, at->second.dtype,
                                  our_shape(at->second.shape), type_name(value.dtype()),
                                  value.dim().to_string()));
    }
  }
  for (const auto& [name, entry] : header.tensors) {
    if (!known.contains(name)) surplus.push_back(name);
  }
  std::vector<std::string> facts;
  if (!missing.empty()) facts.push_back(name_some("missing", missing));
  if (!surplus.empty()) facts.push_back(name_some("surplus", surplus));
  if (!wrong.empty()) {
    facts.push_back(wrong.front() + (wrong.size() > 1
                                         ? fmt::format(" and {} more misfits", wrong.size() - 1)
                                         : ""));
  }
  return fmt::format("{}", fmt::join(facts, "; "));
}

}  // namespace

void save_weights(const Model& model, const std::filesystem::path& path, const Metadata& metadata) {
  const std::vector<NamedValue> values = values_of(model);
  std::map<std::string, detail::SafetensorsEntry> entries;
  uint64_t at = 0;
  for (const auto& [name, value] : values) {
    const uint64_t end = at + bytes_of(value);
    entries[name] = {std::string(type_name(value.dtype())), reversed_shape(value.dim()), at, end};
    at = end;
  }
  const std::string header = detail::safetensors_header(entries, metadata, "save_weights");
  detail::AtomicFile file(path, "save_weights");
  file.write(header.data(), header.size());
  for (const auto& [name, value] : values) file.write(value.data(), bytes_of(value));
  file.commit();
}

void load_weights(const Model& model, const std::filesystem::path& path) {
  const detail::SafetensorsFile file(path, "load_weights");
  const std::vector<NamedValue> values = values_of(model);
  const std::string fault = misfit(values, file.header());
  if (!fault.empty()) file.fail("does not fit the model: " + fault);
  // Read whole before the first number changes: a disk may fail in the middle. The size is that of
  // the file on disk.
  const uint64_t size = file.header().data_size;
  const std::unique_ptr<char[]> data(new char[size]);
  file.read_data(0, size, data.get());
  for (const auto& [name, value] : values) {
    std::memcpy(value.data(), data.get() + file.header().tensors.at(name).begin, bytes_of(value));
  }
}

Metadata read_metadata(const std::filesystem::path& path) {
  return detail::SafetensorsFile(path, "read_metadata").header().metadata;
}

}  // namespace trellis
