// SPDX-License-Identifier: Apache-2.0
#include "io/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <trellis/error.hpp>
#include <utility>

namespace trellis::detail {
namespace {

// One write() moves at most 2 GiB on Linux.
constexpr size_t kBlock = size_t{1} << 30;

std::atomic<uint64_t> counter{0};

}  // namespace

AtomicFile::AtomicFile(const std::filesystem::path& path, std::string_view who)
    : who_(who), path_(path.string()) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(path, error);
  if (!error) path_ = real.string();
  struct stat info {};
  const bool exists = ::stat(path_.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode)) refuse("it is no regular file");

  temporary_ = fmt::format("{}.{}-{}.tmp", path_, ::getpid(), counter.fetch_add(1));
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd_ < 0) {
    const std::string reason = std::strerror(errno);
    temporary_.clear();
    refuse(reason);
  }
  // Replacing a file keeps who may read it.
  if (exists && ::fchmod(fd_, info.st_mode & 07777) != 0) {
    const std::string reason = std::strerror(errno);
    ::close(fd_);
    ::unlink(temporary_.c_str());
    refuse(reason);
  }
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::refuse(const std::string& reason) const {
  fail(ErrorKind::io, fmt::format("[{}] cannot write '{}': {}", who_, path_, reason));
}

void AtomicFile::write(const void* data, size_t bytes) {
  const char* p = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::write(fd_, p, std::min(bytes, kBlock));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse(std::strerror(errno));
    p += n;
    bytes -= static_cast<size_t>(n);
  }
}

void AtomicFile::commit() {
  if (::fsync(fd_) != 0) refuse(std::strerror(errno));
  const int closed = ::close(std::exchange(fd_, -1));
  if (closed != 0) refuse(std::strerror(errno));
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) refuse(std::strerror(errno));
  temporary_.clear();
  // The new name reaches the disk with its folder. The file itself is whole already, so a folder
  // that cannot be synced (some network file systems) is no error.
  const std::string folder = std::filesystem::path(path_).parent_path().string();
  const int dir = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir >= 0) {
    ::fsync(dir);
    ::close(dir);
  }
}

}  // namespace trellis::detail
