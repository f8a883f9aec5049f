// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <trellis/tensor.hpp>
#include <vector>

using namespace trellis;

TEST_CASE("dim: the default is a scalar") {
  const Dim d;
  CHECK(d.rank == 0);
  CHECK(d.batch == 1);
  CHECK(d.elements() == 1);
  CHECK(d.total() == 1);
  CHECK(d.sum_dims() == 0);
  CHECK(d.rows() == 1);
  CHECK(d[0] == 1);
}

TEST_CASE("dim: sizes, batch and implicit trailing ones") {
  const Dim d({3, 4, 5}, 8);
  CHECK(d.rank == 3);
  CHECK(d.elements() == 60);
  CHECK(d.total() == 480);
  CHECK(d.sum_dims() == 12);
  CHECK(d.rows() == 3);
  CHECK(d.cols() == 4);
  CHECK(d[2] == 5);
  CHECK(d[3] == 1);
  CHECK(d[100] == 1);
  CHECK(Dim({7}).cols() == 1);
  CHECK(Dim({1, 2, 1, 3}).non_one_dims() == 2);
  const std::vector<uint32_t> sizes{2, 3};
  CHECK(Dim(std::span<const uint32_t>(sizes), 4) == Dim({2, 3}, 4));
  CHECK(Dim({1, 2, 3, 4, 5, 6, 7, 8}).elements() == 40320);
}

TEST_CASE("dim: what cannot be is refused") {
  CHECK_THROWS_WITH_AS(Dim({1, 2, 3, 4, 5, 6, 7, 8, 9}), "[dim] too many sizes: 9 (at most 8)",
                       Error);
  CHECK_THROWS_WITH_AS(Dim({3, 0}), "[dim] a size is 0: {3,0} (at least 1)", Error);
  CHECK_THROWS_WITH_AS(Dim({3}, 0), "[dim] the batch is 0: {3}x0 (at least 1)", Error);
}

TEST_CASE("dim: sizes whose product overflows are refused") {
  CHECK(Dim({65536, 65536}).elements() == uint64_t{1} << 32);
  CHECK(Dim({65536, 65536, 65536}, 2).total() == uint64_t{1} << 49);
  CHECK_THROWS_WITH_AS(Dim({65536, 65536, 65536, 65536}),
                       "[dim] too many elements: {65536,65536,65536,65536} (fewer than 2^63)",
                       Error);
  CHECK_THROWS_WITH_AS(Dim({65536, 65536, 65536, 32768}),
                       "[dim] too many elements: {65536,65536,65536,32768} (fewer than 2^63)",
                       Error);
  CHECK_THROWS_AS(Dim({65536, 65536, 65536}, 65536), Error);
  CHECK_THROWS_AS(Dim({4294967295u, 4294967295u, 4294967295u}), Error);
  const Dim large({65536, 65536, 65536});
  CHECK_THROWS_AS(large.with_batch(65536), Error);
  CHECK_THROWS_AS(large.appended(65536), Error);
  Dim changed = large;
  CHECK_THROWS_AS(changed.set(0, 4294967295u), Error);
  CHECK(changed == large);
}

TEST_CASE("dim: a raw shape is checked and cleaned") {
  trl_dim raw{2, 3, {4, 5, 99, 99, 99, 99, 99, 99}};
  const Dim d(raw);
  CHECK(d == Dim({4, 5}, 3));
  CHECK(d[2] == 1);
  raw.rank = 4294967295u;
  CHECK_THROWS_WITH_AS(Dim{raw}, "[dim] too many sizes: 4294967295 (at most 8)", Error);
  raw.rank = 2;
  raw.batch = 0;
  CHECK_THROWS_AS(Dim{raw}, Error);
}

TEST_CASE("dim: rank, sizes and batch decide equality") {
  CHECK(Dim({3}) == Dim({3}));
  CHECK(Dim({3}) != Dim({3, 1}));
  CHECK(Dim({3}) != Dim({3}, 2));
  CHECK(Dim({3, 1, 1}).truncated() == Dim({3}));
}

TEST_CASE("dim: text form") {
  CHECK(Dim().to_string() == "{}");
  CHECK(Dim({3, 4}).to_string() == "{3,4}");
  CHECK(Dim({3, 4}, 8).to_string() == "{3,4}x8");
  std::ostringstream out;
  out << Dim({2}, 3);
  CHECK(out.str() == "{2}x3");
  const std::vector<Dim> dims{Dim({3}), Dim({4}, 2)};
  CHECK(to_string(dims) == "[{3} {4}x2]");
  CHECK(to_string(std::span<const Dim>()) == "[]");
}

TEST_CASE("dim: both text forms are read") {
  CHECK(Dim::parse("{}") == Dim());
  CHECK(Dim::parse("{3,4}x8") == Dim({3, 4}, 8));
  CHECK(Dim::parse("{3,4X8}") == Dim({3, 4}, 8));
  CHECK(Dim::parse("{X8}") == Dim({}, 8));
  CHECK(Dim::parse("{}x2") == Dim({}, 2));
  CHECK(Dim::parse(" { 3 , 4 } x 8 ") == Dim({3, 4}, 8));
  CHECK(Dim::parse("{4294967295}") == Dim({4294967295u}));
  for (const Dim& d : {Dim(), Dim({1}), Dim({5, 6, 7}, 9), Dim({1, 2, 3, 4, 5, 6, 7, 8}, 2)})
    CHECK(Dim::parse(d.to_string()) == d);
}

TEST_CASE("dim: hostile text is refused with its position") {
  const std::pair<std::string, std::string> cases[] = {
      {"", "[dim] cannot read '': position 0 (needed '{')"},
      {"3,4", "[dim] cannot read '3,4': position 0 (needed '{')"},
      {"{", "[dim] cannot read '{': position 1 (needed a size)"},
      {"{3,,4}", "[dim] cannot read '{3,,4}': position 3 (needed a size)"},
      {"{3,}", "[dim] cannot read '{3,}': position 3 (needed a size)"},
      {"{3", "[dim] cannot read '{3': position 2 (needed ',' or '}')"},
      {"{-3}", "[dim] cannot read '{-3}': position 1 (needed a size)"},
      {"{3.5}", "[dim] cannot read '{3.5}': position 2 (needed ',' or '}')"},
      {"{0}", "[dim] cannot read '{0}': position 1 (needed a size of at least 1)"},
      {"{3}x0", "[dim] cannot read '{3}x0': position 4 (needed a batch size of at least 1)"},
      {"{3}x", "[dim] cannot read '{3}x': position 4 (needed a batch size)"},
      {"{3X2}x2", "[dim] cannot read '{3X2}x2': position 5 (needed the end)"},
      {"{3X2,4}", "[dim] cannot read '{3X2,4}': position 4 (needed '}')"},
      {"{3}5", "[dim] cannot read '{3}5': position 3 (needed the end)"},
      {"{4294967296}", "[dim] cannot read '{4294967296}': position 1 (needed a size below 2^32)"},
      {"{99999999999999999999999999}",
       "[dim] cannot read '{99999999999999999999999999}': position 1 (needed a size below 2^32)"},
      {"{1,2,3,4,5,6,7,8,9}",
       "[dim] cannot read '{1,2,3,4,5,6,7,8,9}': position 17 (needed '}', at most 8 sizes)"},
      {std::string("{3\0}", 4), "[dim] cannot read '{3?}': position 2 (needed ',' or '}')"},
      {std::string(100000, '{'),
       "[dim] cannot read '" + std::string(60, '{') + "...': position 1 (needed a size)"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.second);
    CHECK_THROWS_WITH_AS(Dim::parse(c.first), c.second.c_str(), Error);
  }
  CHECK_THROWS_WITH_AS(Dim::parse("{65536,65536,65536,65536}"),
                       "[dim] too many elements: {65536,65536,65536,65536} (fewer than 2^63)",
                       Error);
}

TEST_CASE("dim: truncated drops trailing ones and keeps one size") {
  CHECK(Dim({3, 1, 4, 1, 1}, 2).truncated() == Dim({3, 1, 4}, 2));
  CHECK(Dim({1, 1}).truncated() == Dim({1}));
  CHECK(Dim().truncated() == Dim());
}

TEST_CASE("dim: resized") {
  CHECK(Dim({3}, 2).resized(3) == Dim({3, 1, 1}, 2));
  CHECK(Dim({3, 1}).resized(1) == Dim({3}));
  CHECK(Dim({1}).resized(0) == Dim());
  CHECK_THROWS_WITH_AS(Dim({3, 4}).resized(1),
                       "[resized] cannot drop axis 1 of {3,4} (only axes of size 1)", Error);
  CHECK_THROWS_WITH_AS(Dim({3}).resized(9), "[resized] too many dimensions: 9 (at most 8)", Error);
}

TEST_CASE("dim: set") {
  Dim d({3, 4});
  d.set(1, 7);
  CHECK(d == Dim({3, 7}));
  d.set(5, 1);
  CHECK(d == Dim({3, 7}));
  CHECK_THROWS_WITH_AS(d.set(0, 0), "[dim] a size is 0: {0,7} (at least 1)", Error);
  CHECK_THROWS_WITH_AS(d.set(2, 5), "[set] no axis 2: {3,7} has 2 dimensions", Error);
  CHECK(d == Dim({3, 7}));
}

TEST_CASE("dim: deleted") {
  CHECK(Dim({3, 4, 5}, 2).deleted(1) == Dim({3, 5}, 2));
  CHECK(Dim({3}).deleted(0) == Dim());
  CHECK_THROWS_WITH_AS(Dim({3}).deleted(1), "[deleted] no axis 1: {3} has 1 dimension", Error);
  const std::vector<uint32_t> axes{0, 2};
  CHECK(Dim({3, 4, 5}, 2).deleted(axes) == Dim({4}, 2));
  CHECK(Dim({3, 4, 5}, 2).deleted(axes, true) == Dim({4}));
  const std::vector<uint32_t> twice{0, 0};
  CHECK(Dim({3, 4}).deleted(twice) == Dim({4}));
  const std::vector<uint32_t> wrong{0, 2};
  CHECK_THROWS_AS(Dim({3, 4}).deleted(wrong), Error);
  // The sizes above the rank are 1 again.
  CHECK(Dim({3, 4}).deleted(0)[1] == 1);
}

TEST_CASE("dim: appended and inserted") {
  CHECK(Dim({3}, 2).appended(4) == Dim({3, 4}, 2));
  CHECK(Dim({3, 4}).inserted(0, 5) == Dim({5, 3, 4}));
  CHECK(Dim({3, 4}).inserted(2, 5) == Dim({3, 4, 5}));
  CHECK_THROWS_WITH_AS(Dim({3}).inserted(2, 5), "[inserted] no axis 2: {3} has 1 dimension", Error);
  CHECK_THROWS_WITH_AS(Dim({1, 1, 1, 1, 1, 1, 1, 1}).appended(1),
                       "[dim] too many sizes: 9 (at most 8)", Error);
}

TEST_CASE("dim: transposed") {
  CHECK(Dim({3}, 2).transposed() == Dim({1, 3}, 2));
  CHECK(Dim({3, 4}).transposed() == Dim({4, 3}));
  CHECK_THROWS_WITH_AS(Dim({2, 3, 4}).transposed(),
                       "[transposed] {2,3,4} has 3 dimensions (needed 1 or 2)", Error);
  CHECK_THROWS_WITH_AS(Dim().transposed(), "[transposed] {} has 0 dimensions (needed 1 or 2)",
                       Error);
}

TEST_CASE("dim: with_batch and single_batch") {
  CHECK(Dim({3}).with_batch(4) == Dim({3}, 4));
  CHECK(Dim({3}, 4).single_batch() == Dim({3}));
  CHECK_THROWS_WITH_AS(Dim({3}).with_batch(0), "[dim] the batch is 0: {3}x0 (at least 1)", Error);
}
