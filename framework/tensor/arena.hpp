// SPDX-License-Identifier: Apache-2.0
//
// Bump allocation over mapped chunks. Memory goes back to the system only by shrink(), and when
// several chunks become one: on virtual machines the first touch of a page costs more than most
// operators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trellis::detail {

class Arena {
 public:
  struct Mark {
    uint32_t chunk = 0;
    size_t offset = 0;
  };

  // shared: with processes made by fork() after the memory was allocated. Each has its own mark, so
  // only one of them may allocate.
  explicit Arena(bool shared = false) : shared_(shared) {}
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Uninitialised, never null; alignment a power of two up to 64. Throws Error(memory) with the
  // request and what is reserved.
  void* allocate(size_t bytes, size_t alignment = 64) {
    const size_t at = (offset_ + alignment - 1) & ~(alignment - 1);
    if (bytes < size_ - at) [[likely]] {  // chunks are whole pages: at <= size_
      offset_ = at + bytes;
      return base_ + at;
    }
    return allocate_slow(bytes, alignment);
  }
  template <class T>
  T* array(size_t n) {
    size_t bytes;
    if (__builtin_mul_overflow(n, sizeof(T), &bytes)) bytes = SIZE_MAX;
    return static_cast<T*>(allocate(bytes, alignof(T) < 16 ? 16 : alignof(T)));
  }

  Mark mark() const { return {chunk_, offset_}; }
  void rewind(Mark m);  // frees what was allocated since; all of it: the chunks become one
  void rewind() { rewind(Mark{}); }
  size_t used() const;      // bytes handed out since the last full rewind, alignment included
  size_t reserved() const;  // bytes mapped
  void shrink();            // unmaps the chunks that hold nothing; their marks become invalid

 private:
  struct Chunk {
    char* base;
    size_t size;
    size_t used;  // when it was left for a later one
  };
  void* allocate_slow(size_t bytes, size_t alignment);
  void enter(uint32_t chunk);
  void select(uint32_t chunk);
  void unmap();

  char* base_ = nullptr;
  size_t size_ = 0, offset_ = 0;
  size_t next_size_ = 0;  // of the first chunk to map, at least
  uint32_t chunk_ = 0;
  bool shared_ = false;
  std::vector<Chunk> chunks_;
  std::vector<Chunk> retired_;  // hold no pages; mapped, so that a stale view finds zeros
};

}  // namespace trellis::detail
