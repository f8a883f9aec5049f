// SPDX-License-Identifier: Apache-2.0
#include "plugin/file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <trellis/error.hpp>
#include <utility>

namespace trellis::detail {
namespace {

std::string reason(int error) {
  std::string text = std::generic_category().message(error);
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z') text[0] += 'a' - 'A';
  return text;
}

}  // namespace

OpenFile& OpenFile::operator=(OpenFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

OpenFile::~OpenFile() {
  if (fd_ >= 0) ::close(fd_);
}

std::string quoted(const std::filesystem::path& path) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text = "'";
  for (const unsigned char c : path.native()) {
    if (c < 0x20 || c == 0x7f)
      text += {'\\', 'x', kHex[c >> 4], kHex[c & 15]};
    else
      text += static_cast<char>(c);
  }
  return text + "'";
}

OpenFile open_file(const std::filesystem::path& path, struct stat& status,
                   const std::string& prefix) {
  // Non-blocking: a FIFO in a plugin folder must not hang the program.
  OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd() < 0 || ::fstat(file.fd(), &status) != 0)
    fail(ErrorKind::plugin, prefix + ": " + reason(errno));
  return file;
}

std::string read_small_file(const std::filesystem::path& path, size_t limit) {
  const std::string prefix = "[plugin] cannot read " + quoted(path);
  struct stat status;
  const OpenFile file = open_file(path, status, prefix);
  if (!S_ISREG(status.st_mode)) fail(ErrorKind::plugin, prefix + ": not a regular file");
  std::string text(limit + 1, '\0');
  size_t size = 0;
  while (size <= limit) {
    const ssize_t n = ::read(file.fd(), text.data() + size, text.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(ErrorKind::plugin, prefix + ": " + reason(errno));
    if (n == 0) break;
    size += static_cast<size_t>(n);
  }
  if (size > limit)
    fail(ErrorKind::plugin, prefix + ": longer than " + std::to_string(limit / 1024) + " KiB");
  text.resize(size);
  return text;
}

}  // namespace trellis::detail
