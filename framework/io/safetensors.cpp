// SPDX-License-Identifier: Apache-2.0
#include "io/safetensors.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "io/utf8.hpp"

namespace trellis::detail {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxHeader = 100'000'000;  // as in the reference implementation
constexpr std::string_view kMetadataKey = "__metadata__";

struct TypeSize {
  std::string_view name;
  uint64_t bytes;
};
constexpr std::array<TypeSize, 12> kTypes{{{"F64", 8},
                                           {"F32", 4},
                                           {"F16", 2},
                                           {"BF16", 2},
                                           {"I64", 8},
                                           {"I32", 4},
                                           {"I16", 2},
                                           {"I8", 1},
                                           {"U64", 8},
                                           {"U32", 4},
                                           {"U8", 1},
                                           {"BOOL", 1}}};

std::optional<uint64_t> type_bytes(std::string_view dtype) {
  for (const TypeSize& t : kTypes) {
    if (t.name == dtype) return t.bytes;
  }
  return std::nullopt;
}

// A JSON document in which a key stands twice, or that nests deeper than a header does, is refused
// while it is read.
class HeaderCallback {
 public:
  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > 3) throw std::runtime_error("nested too deeply");
    const auto level = static_cast<size_t>(depth);
    if (event == Json::parse_event_t::object_start) {
      if (keys_.size() <= level + 1) keys_.resize(level + 2);
      keys_[level + 1].clear();
    } else if (event == Json::parse_event_t::key) {
      const std::string& key = parsed.get_ref<const std::string&>();
      if (!keys_[level].insert(key).second) {
        throw std::runtime_error(fmt::format("the name '{}' is there twice", printable(key)));
      }
    }
    return true;
  }

 private:
  std::vector<std::set<std::string>> keys_;  // of the objects that are open, by depth
};

std::optional<uint64_t> unsigned_number(const Json& j) {
  if (!j.is_number_unsigned()) return std::nullopt;
  return j.get<uint64_t>();
}

SafetensorsEntry parse_entry(const Json& j) {
  if (!j.is_object() || !j.contains("dtype") || !j.contains("shape") ||
      !j.contains("data_offsets")) {
    throw std::runtime_error("needs dtype, shape and data_offsets");
  }
  const Json &dtype = j["dtype"], &shape = j["shape"], &offsets = j["data_offsets"];
  SafetensorsEntry e;
  const auto element =
      dtype.is_string() ? type_bytes(dtype.get_ref<const std::string&>()) : std::nullopt;
  if (!element) throw std::runtime_error(fmt::format("unknown dtype {}", printable(dtype.dump())));
  e.dtype = dtype.get<std::string>();
  uint64_t bytes = *element;
  bool empty = false, overflow = false;
  if (!shape.is_array()) throw std::runtime_error("shape is no list");
  for (const Json& size : shape) {
    const auto n = unsigned_number(size);
    if (!n)
      throw std::runtime_error(fmt::format("a size in its shape is {}", printable(size.dump())));
    empty |= *n == 0;
    overflow |= __builtin_mul_overflow(bytes, std::max<uint64_t>(*n, 1), &bytes);
    e.shape.push_back(*n);
  }
  if (overflow) throw std::runtime_error("the sizes of its shape overflow");
  if (empty) bytes = 0;
  const auto begin =
      offsets.is_array() && offsets.size() == 2 ? unsigned_number(offsets[0]) : std::nullopt;
  const auto end = begin ? unsigned_number(offsets[1]) : std::nullopt;
  if (!begin || !end || *begin > *end)
    throw std::runtime_error("data_offsets are no pair of rising numbers");
  if (*end - *begin != bytes) {
    throw std::runtime_error(
        fmt::format("data_offsets span {} bytes (needed {})", *end - *begin, bytes));
  }
  e.begin = *begin;
  e.end = *end;
  return e;
}

// Tensors cover the data exactly: no byte twice, none left over.
std::optional<std::string> layout_fault(const SafetensorsHeader& header) {
  std::vector<std::pair<const SafetensorsEntry*, const std::string*>> order;
  for (const auto& [name, e] : header.tensors) order.emplace_back(&e, &name);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first->begin, a.first->end) < std::pair(b.first->begin, b.first->end);
  });
  uint64_t at = 0;
  for (const auto& [e, name] : order) {
    if (e->begin != at) {
      return fmt::format(
          "tensor '{}' starts at byte {} of the data (needed {}: no gap, no overlap)",
          printable(*name), e->begin, at);
    }
    at = e->end;
  }
  if (at != header.data_size) {
    return fmt::format("the file holds {} bytes of data (needed {})", header.data_size, at);
  }
  return std::nullopt;
}

uint64_t load_u64(const unsigned char* p) {
  uint64_t v = 0;
  for (int i = 7; i >= 0; --i) v = v << 8 | p[i];
  return v;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path, std::string who)
    : path_(path.string()), who_(std::move(who)) {
  try {
    open();
    read_header();
  } catch (...) {
    if (fd_ >= 0) ::close(fd_);
    throw;
  }
}

SafetensorsFile::~SafetensorsFile() { ::close(fd_); }

void SafetensorsFile::fail(const std::string& fact) const {
  trellis::fail(ErrorKind::io, fmt::format("[{}] '{}': {}", who_, path_, fact));
}

void SafetensorsFile::open() {
  // Not to wait for the other end of a pipe.
  fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat info {};
  if (fd_ < 0 || ::fstat(fd_, &info) != 0)
    fail(fmt::format("cannot read: {}", std::strerror(errno)));
  if (!S_ISREG(info.st_mode)) fail("cannot read: it is no regular file");
  header_.data_size = static_cast<uint64_t>(info.st_size);
}

void SafetensorsFile::read_header() {
  const uint64_t file_size = header_.data_size;
  if (file_size < 8)
    fail(fmt::format("{} bytes are no safetensors file (needed 8 or more)", file_size));
  unsigned char length[8];
  read_data(0, 8, length);
  const uint64_t n = load_u64(length);
  if (n > file_size - 8 || n > kMaxHeader) {
    fail(fmt::format("the header claims {} bytes (the file has {} after its length)", n,
                     file_size - 8));
  }
  std::string text(n, '\0');
  read_data(8, n, text.data());
  header_.data_start = 8 + n;
  header_.data_size = file_size - header_.data_start;

  Json json;
  std::string name;
  try {
    json = Json::parse(text, HeaderCallback());
    if (!json.is_object()) throw std::runtime_error("it is no object");
    for (const auto& [key, value] : json.items()) {
      if (key == kMetadataKey) {
        if (!value.is_object()) throw std::runtime_error("__metadata__ is no object");
        for (const auto& [k, v] : value.items()) {
          if (!v.is_string())
            throw std::runtime_error(fmt::format("metadata '{}' is no text", printable(k)));
          header_.metadata.emplace(k, v.get<std::string>());
        }
      } else {
        name = fmt::format("tensor '{}': ", printable(key));
        header_.tensors.emplace(key, parse_entry(value));
        name.clear();
      }
    }
  } catch (const Json::exception& e) {
    fail("the header is no valid JSON: " + printable(e.what(), 200));
  } catch (const std::runtime_error& e) {
    fail(name.empty() ? fmt::format("the header is wrong: {}", e.what()) : name + e.what());
  }
  if (const auto fault = layout_fault(header_)) fail(*fault);
}

void SafetensorsFile::read_data(uint64_t begin, uint64_t bytes, void* to) const {
  char* p = static_cast<char*>(to);
  uint64_t at = header_.data_start + begin;
  while (bytes > 0) {
    const ssize_t n =
        ::pread(fd_, p, std::min<uint64_t>(bytes, uint64_t{1} << 30), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(fmt::format("cannot read: {}", std::strerror(errno)));
    if (n == 0) fail("the file became shorter while it was read");
    p += n;
    at += static_cast<uint64_t>(n);
    bytes -= static_cast<uint64_t>(n);
  }
}

std::string safetensors_header(const std::map<std::string, SafetensorsEntry>& tensors,
                               const Metadata& metadata, const std::string& who) {
  Json json = Json::object();
  if (!metadata.empty()) json[std::string(kMetadataKey)] = metadata;
  for (const auto& [name, e] : tensors) {
    json[name] = {{"dtype", e.dtype}, {"shape", e.shape}, {"data_offsets", {e.begin, e.end}}};
  }
  std::string text;
  try {
    text = json.dump();
  } catch (const Json::exception&) {
    trellis::fail(ErrorKind::argument,
                  fmt::format("[{}] a name or a text of the metadata is not UTF-8", who));
  }
  while ((text.size() + 8) % 64 != 0) text += ' ';
  std::string out(8, '\0');
  for (size_t i = 0; i < 8; ++i) out[i] = static_cast<char>(text.size() >> (8 * i));
  return out + text;
}

}  // namespace trellis::detail
