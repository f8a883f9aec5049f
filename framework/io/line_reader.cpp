// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <trellis/io.hpp>

#include "io/utf8.hpp"

namespace trellis {

struct LineReader::Impl {
  std::string path, who;
  TextLimits limits;
  gzFile file = nullptr;  // reads plain files as they are
  std::string buffer;
  size_t position = 0;
  uint64_t total = 0, line = 0;
  bool at_end = false;

  ~Impl() {
    if (file != nullptr) gzclose_r(file);
  }
  [[noreturn]] void fail_at(uint64_t where, std::string_view fact) const {
    trellis::fail(ErrorKind::io, fmt::format("[{}] {}:{}: {}", who, path, where, fact));
  }
  void open();
  bool fill();
  bool append_line(std::string& line);
};

void LineReader::Impl::open() {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info {};
  if (fd < 0 || ::fstat(fd, &info) != 0) {
    const std::string reason = std::strerror(errno);
    if (fd >= 0) ::close(fd);
    trellis::fail(ErrorKind::io, fmt::format("[{}] cannot read '{}': {}", who, path, reason));
  }
  if (S_ISDIR(info.st_mode)) {
    ::close(fd);
    trellis::fail(
        ErrorKind::io,
        fmt::format("[{}] cannot read '{}': it is a folder (needed a text file)", who, path));
  }
  file = gzdopen(fd, "rb");
  if (file == nullptr) {
    ::close(fd);
    trellis::fail(ErrorKind::memory, fmt::format("[{}] out of memory: opening '{}'", who, path));
  }
  gzbuffer(file, 1u << 16);
}

// Reads the next block into the buffer; false at the end of the file.
bool LineReader::Impl::fill() {
  buffer.resize(size_t{1} << 16);
  position = 0;
  const int n = gzread(file, buffer.data(), static_cast<unsigned>(buffer.size()));
  int error = Z_OK;
  std::string_view text = gzerror(file, &error);
  // A cut-off gzip file is not an error to gzread: it hands out what there is and leaves
  // Z_BUF_ERROR behind.
  if (error == Z_BUF_ERROR && n <= 0) fail_at(line + 1, "the gzip data ends too early");
  if (n < 0) {
    if (error == Z_ERRNO) fail_at(line + 1, std::strerror(errno));
    const size_t colon = text.rfind(": ");  // after a name that zlib made up
    if (colon != text.npos) text.remove_prefix(colon + 2);
    fail_at(line + 1, fmt::format("broken gzip data: {}", text));
  }
  buffer.resize(static_cast<size_t>(n));
  total += static_cast<uint64_t>(n);
  if (total > limits.total)
    fail_at(line + 1, fmt::format("the text is longer than {} bytes", limits.total));
  return n > 0;
}

// Appends the rest of the current line; false when the file ended before a line began.
bool LineReader::Impl::append_line(std::string& out) {
  bool any = false;
  for (;;) {
    if (position == buffer.size()) {
      if (at_end || !fill()) {
        at_end = true;
        return any;
      }
    }
    any = true;
    const char* begin = buffer.data() + position;
    const auto* newline =
        static_cast<const char*>(std::memchr(begin, '\n', buffer.size() - position));
    const size_t n =
        newline != nullptr ? static_cast<size_t>(newline - begin) : buffer.size() - position;
    if (out.size() + n > limits.line) {
      fail_at(line + 1,
              fmt::format("the line is longer than {} bytes (is this a text file?)", limits.line));
    }
    out.append(begin, n);
    position += n;
    if (newline != nullptr) {
      ++position;
      return true;
    }
  }
}

LineReader::LineReader(const std::filesystem::path& path, std::string_view who,
                       const TextLimits& limits)
    : impl_(std::make_unique<Impl>()) {
  impl_->path = path.string();
  impl_->who = who;
  impl_->limits = limits;
  impl_->open();
}
LineReader::~LineReader() = default;
LineReader::LineReader(LineReader&&) noexcept = default;
LineReader& LineReader::operator=(LineReader&&) noexcept = default;

bool LineReader::next(std::string& line) {
  line.clear();
  if (!impl_->append_line(line)) return false;
  ++impl_->line;
  if (!line.empty() && line.back() == '\r') line.pop_back();
  if (impl_->line == 1 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
  const size_t bad = detail::find_invalid_utf8(line);
  if (bad != std::string::npos) {
    fail(fmt::format("byte {} is not UTF-8: 0x{:02x}", bad + 1,
                     static_cast<unsigned char>(line[bad])));
  }
  return true;
}

uint64_t LineReader::line_number() const { return impl_->line; }

void LineReader::fail(std::string_view fact) const { impl_->fail_at(impl_->line, fact); }

}  // namespace trellis
