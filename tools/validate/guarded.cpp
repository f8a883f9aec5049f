// SPDX-License-Identifier: Apache-2.0
#include "validate/guarded.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace trellis::validate {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kFront = 256;  // checked bytes before the data
constexpr uint8_t kAround = 0xC5;
constexpr size_t kMaxKept = 64 * kPage;  // larger regions are given back at once

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

// Regions in use, readable by a signal handler: slots are only overwritten.
struct Entry {
  const unsigned char *pages = nullptr, *data = nullptr;
  size_t n_pages = 0, bytes = 0;
  char name[80] = {};
};
constexpr size_t kMaxEntries = 4096;
Entry entries[kMaxEntries];
size_t n_entries = 0;

struct Pool {
  std::mutex mutex;
  std::multimap<size_t, unsigned char*> free;  // by number of pages
  std::vector<size_t> free_entries;
};
Pool& pool() {
  static auto* const p = new Pool;
  return *p;
}

}  // namespace

Guarded::Guarded(size_t bytes, std::string name, size_t shift)
    : bytes_(bytes), name_(std::move(name)) {
  const size_t tail = round_up(bytes_ + shift, 64);
  n_pages_ = round_up(tail + kFront, kPage) / kPage;
  Pool& p = pool();
  const std::lock_guard lock(p.mutex);
  if (const auto found = p.free.find(n_pages_); found != p.free.end()) {
    pages_ = found->second;
    p.free.erase(found);
  } else {
    void* all =
        ::mmap(nullptr, (n_pages_ + 2) * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) throw std::bad_alloc();
    pages_ = static_cast<unsigned char*>(all) + kPage;
    if (::mprotect(pages_, n_pages_ * kPage, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  }
  data_ = pages_ + n_pages_ * kPage - tail + shift;
  if (!p.free_entries.empty()) {
    entry_ = p.free_entries.back();
    p.free_entries.pop_back();
  } else {
    entry_ = std::min(n_entries, kMaxEntries - 1);
    if (n_entries < kMaxEntries) ++n_entries;
  }
  Entry& e = entries[entry_];
  e.data = data_;
  e.n_pages = n_pages_;
  e.bytes = bytes_;
  std::strncpy(e.name, name_.c_str(), sizeof e.name - 1);
  e.pages = pages_;
  surround(kAround);
}

Guarded::~Guarded() { release(); }

Guarded::Guarded(Guarded&& other) noexcept { *this = std::move(other); }

Guarded& Guarded::operator=(Guarded&& other) noexcept {
  if (this == &other) return *this;
  release();
  data_ = std::exchange(other.data_, nullptr);
  pages_ = std::exchange(other.pages_, nullptr);
  n_pages_ = other.n_pages_;
  bytes_ = std::exchange(other.bytes_, 0);
  entry_ = other.entry_;
  around_ = other.around_;
  revoked_ = other.revoked_;
  name_ = std::move(other.name_);
  return *this;
}

void Guarded::release() noexcept {
  if (!pages_) return;
  Pool& p = pool();
  const std::lock_guard lock(p.mutex);
  entries[entry_].pages = nullptr;
  p.free_entries.push_back(entry_);
  if (revoked_ || n_pages_ * kPage > kMaxKept)
    ::munmap(pages_ - kPage, (n_pages_ + 2) * kPage);
  else
    p.free.emplace(n_pages_, pages_);
  pages_ = nullptr;
}

void Guarded::fill(uint8_t byte) { std::memset(data_, byte, bytes_); }

void Guarded::surround(uint8_t byte) {
  around_ = byte;
  const unsigned char* end = pages_ + n_pages_ * kPage;
  std::memset(std::max(pages_, data_ - kFront), byte,
              std::min<size_t>(kFront, static_cast<size_t>(data_ - pages_)));
  std::memset(data_ + bytes_, byte, static_cast<size_t>(end - (data_ + bytes_)));
}

std::string Guarded::damage() const {
  const unsigned char* end = pages_ + n_pages_ * kPage;
  const unsigned char* from = std::max(pages_, data_ - kFront);
  const auto is_hit = [this](unsigned char c) { return c != around_; };
  const unsigned char* tail = data_ + bytes_;
  if (const auto* hit = std::find_if(tail, end, is_hit); hit != end)
    return fmt::format("{}: written {} bytes behind its end", name_, hit - tail + 1);
  if (const auto* hit = std::find_if(from, static_cast<const unsigned char*>(data_), is_hit);
      hit != data_)
    return fmt::format("{}: written {} bytes before its start", name_, data_ - hit);
  return {};
}

void Guarded::revoke() {
  ::mprotect(pages_, n_pages_ * kPage, PROT_NONE);
  revoked_ = true;
}

bool Guarded::explain(const void* address, char* to, size_t room) noexcept {
  const auto* at = static_cast<const unsigned char*>(address);
  for (size_t i = 0; i < n_entries; ++i) {
    const Entry& e = entries[i];
    if (!e.pages || at < e.pages - kPage || at >= e.pages + (e.n_pages + 1) * kPage) continue;
    const char* how = at < e.data              ? "before the start of "
                      : at >= e.data + e.bytes ? "behind the end of "
                                               : "after the call that it was given for: ";
    std::strncpy(to, how, room - 1);
    to[room - 1] = '\0';
    std::strncat(to, e.name, room - std::strlen(to) - 1);
    return true;
  }
  return false;
}

}  // namespace trellis::validate
