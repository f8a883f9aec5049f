// SPDX-License-Identifier: Apache-2.0
//
// Operands that end, or begin, at a page that cannot be touched: a product that reads or writes one
// number too many ends the program.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "../linalg_plugin.hpp"

using namespace trellis::test;

namespace {

// Room for `bytes` between two pages that cannot be touched, at its end or at its beginning.
class Fenced {
 public:
  Fenced(size_t bytes, bool at_end) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t room = (bytes + page - 1) / page * page;
    size_ = room + 2 * page;
    base_ = static_cast<char*>(mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(base_ != MAP_FAILED);
    REQUIRE(mprotect(base_ + page, room, PROT_READ | PROT_WRITE) == 0);
    data_ = base_ + page + (at_end ? room - bytes : 0);
  }
  ~Fenced() { munmap(base_, size_); }
  Fenced(const Fenced&) = delete;
  void* data() const { return data_; }

 private:
  char *base_ = nullptr, *data_ = nullptr;
  size_t size_ = 0;
};

uint64_t extent(uint64_t rows, uint64_t cols, uint64_t ld) { return (cols - 1) * ld + rows; }

template <class T>
bool same_as_free(const trl_linalg_desc& p, const Shape& shape, bool at_end) {
  StubCall call;
  Operands<T> x(shape, &call);
  const trl_mm_args& free = x.args();
  const uint64_t a = extent(shape.trans_a ? shape.k : shape.m, shape.trans_a ? shape.m : shape.k,
                            free.lda),
                 b = extent(shape.trans_b ? shape.n : shape.k, shape.trans_b ? shape.k : shape.n,
                            free.ldb),
                 c = extent(shape.m, shape.n, free.ldc);
  const Fenced fenced_a(a * sizeof(T), at_end), fenced_b(b * sizeof(T), at_end),
      fenced_c(c * sizeof(T), at_end);
  std::memcpy(fenced_a.data(), free.a, a * sizeof(T));
  std::memcpy(fenced_b.data(), free.b, b * sizeof(T));
  std::memcpy(fenced_c.data(), free.c, c * sizeof(T));
  trl_mm_args args = free;
  args.a = fenced_a.data();
  args.b = fenced_b.data();
  args.c = fenced_c.data();
  const bool vector = shape.n == 1 && !shape.trans_b;
  const auto run = vector ? p.gemv : p.gemm;
  return run(&args) == TRL_OK && run(&free) == TRL_OK && x.difference().empty() &&
         std::memcmp(args.c, free.c, c * sizeof(T)) == 0;
}

}  // namespace

TEST_CASE("linalg-native: nothing outside the operands is touched") {
  const uint64_t sizes[] = {1, 2, 3, 5, 7, 8, 9, 15, 17, 31, 50, 67};
  std::mt19937_64 random(3);
  const auto pick = [&] { return sizes[random() % std::size(sizes)]; };
  for (const char* level : {"linalg-native", "linalg-native.v3", "linalg-native.v4"}) {
    CAPTURE(level);
    const auto providers = open_linalg(level);
    for (int i = 0; i < 600; ++i) {
      Shape s{pick(), pick(), pick()};
      if (i % 20 == 0) s.m = 301, s.n = 70 + i % 7, s.k = 66;  // B copied
      s.trans_a = random() % 2;
      s.trans_b = random() % 2;
      if (random() % 2) s.pad_a = random() % 4, s.pad_b = random() % 4, s.pad_c = random() % 4;
      s.beta = random() % 2 ? 0 : 0.5;
      const std::string text = s.text();
      CAPTURE(text);
      for (const trl_linalg_desc* p : providers)
        for (const bool at_end : {false, true})
          CHECK((p->dtype == TRL_F32 ? same_as_free<float>(*p, s, at_end)
                                     : same_as_free<double>(*p, s, at_end)));
    }
  }
}
