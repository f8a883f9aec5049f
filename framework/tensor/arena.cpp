// SPDX-License-Identifier: Apache-2.0
#include "tensor/arena.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <trellis/error.hpp>

namespace trellis::detail {
namespace {

constexpr size_t kFirstChunk = size_t{1} << 20;
constexpr size_t kHugePage = size_t{2} << 20;

// Pages are mapped without reserving them, so the system would grant any size and kill the process
// when it is used.
size_t machine_memory() {
  struct sysinfo info {};
  if (sysinfo(&info) != 0) return SIZE_MAX;
  return (size_t{info.totalram} + info.totalswap) * info.mem_unit;
}

char* map(size_t size, bool shared) {
  // Aligned to huge pages, so that the kernel can use them; the surplus is unmapped again.
  const size_t surplus = size >= kHugePage ? kHugePage : 0;
  void* mapped = mmap(nullptr, size + surplus, PROT_READ | PROT_WRITE,
                      (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* base = static_cast<char*>(mapped);
  if (surplus != 0) {
    const size_t head = (kHugePage - reinterpret_cast<uintptr_t>(base) % kHugePage) % kHugePage;
    if (head != 0) munmap(base, head);
    if (head != surplus) munmap(base + head + size, surplus - head);
    base += head;
    madvise(base, size, MADV_HUGEPAGE);  // a wish; refused where huge pages are off
  }
  return base;
}

size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

Arena::~Arena() { unmap(); }

void Arena::unmap() {
  for (const Chunk& chunk : chunks_) munmap(chunk.base, chunk.size);
  for (const Chunk& chunk : retired_) munmap(chunk.base, chunk.size);
  chunks_.clear();
  retired_.clear();
  base_ = nullptr;
  size_ = offset_ = chunk_ = 0;
}

void Arena::select(uint32_t chunk) {
  chunk_ = chunk;
  base_ = chunks_[chunk].base;
  size_ = chunks_[chunk].size;
}

void* Arena::allocate_slow(size_t bytes, size_t alignment) {
  if (!chunks_.empty()) {
    // Chunks kept by a rewind are used again in order; one that is too small is passed over.
    size_t at = (offset_ + alignment - 1) & ~(alignment - 1);
    uint32_t chunk = chunk_;
    while (bytes > chunks_[chunk].size - at && chunk + 1 < chunks_.size()) {
      ++chunk;
      at = 0;
    }
    if (bytes <= chunks_[chunk].size - at) {
      enter(chunk);
      offset_ = at + bytes;
      return base_ + at;
    }
  }
  const size_t held = reserved();
  const size_t limit = machine_memory();
  char* base = nullptr;
  size_t size = 0;
  errno = ENOMEM;
  if (bytes <= limit && held <= limit - bytes) {
    const size_t least =
        round_up(std::max(bytes, kFirstChunk), bytes < kHugePage ? 4096 : kHugePage);
    // As large as all before: few chunks.
    size = std::max({least, round_up(held, kHugePage), next_size_});
    base = size <= limit - held ? map(size, shared_) : nullptr;
    if (base == nullptr && size != least) base = map(size = least, shared_);
  }
  if (base == nullptr)
    fail(ErrorKind::memory,
         fmt::format(
             "[memory] cannot reserve {} bytes: {} bytes are reserved here already, the machine "
             "has {} ({})",
             bytes, held, limit, std::strerror(errno)));
  try {
    chunks_.push_back({base, size, 0});
  } catch (...) {
    munmap(base, size);
    throw;
  }
  enter(static_cast<uint32_t>(chunks_.size() - 1));
  offset_ = bytes;
  return base_;
}

// Leaves the current chunk for a later one and notes what was used.
void Arena::enter(uint32_t chunk) {
  if (chunk != chunk_) {
    chunks_[chunk_].used = offset_;
    for (uint32_t i = chunk_ + 1; i < chunk; ++i) chunks_[i].used = 0;
  }
  select(chunk);
}

void Arena::rewind(Mark m) {
  if (m.chunk == 0 && m.offset == 0 && chunks_.size() > 1) {
    // What does not fit into one chunk leaves gaps in all of them: one takes their place.
    next_size_ = reserved();
    for (const Chunk& chunk : chunks_) madvise(chunk.base, chunk.size, MADV_DONTNEED);
    retired_.insert(retired_.end(), chunks_.begin(), chunks_.end());
    chunks_.clear();
    base_ = nullptr;
    size_ = offset_ = chunk_ = 0;
    return;
  }
  offset_ = m.offset;
  if (m.chunk != chunk_) select(m.chunk);
}

size_t Arena::used() const {
  size_t sum = offset_;
  for (uint32_t i = 0; i < chunk_; ++i) sum += chunks_[i].used;
  return sum;
}

size_t Arena::reserved() const {
  size_t sum = 0;
  for (const Chunk& chunk : chunks_) sum += chunk.size;
  return sum;
}

void Arena::shrink() {
  next_size_ = 0;
  const size_t kept = used() == 0 ? 0 : chunk_ + size_t{1};
  while (chunks_.size() > kept) {
    munmap(chunks_.back().base, chunks_.back().size);
    chunks_.pop_back();
  }
  if (chunks_.empty()) return unmap();  // the retired ones
  // The unused rest of the last chunk stays mapped, its pages go.
  const size_t page = round_up(offset_, 4096);
  if (page < size_) madvise(base_ + page, size_ - page, MADV_DONTNEED);
}

}  // namespace trellis::detail
