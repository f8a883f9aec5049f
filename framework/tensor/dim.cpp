// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <trellis/tensor.hpp>

namespace trellis {
namespace {

std::string shape_text(std::span<const uint32_t> sizes, uint32_t batch) {
  std::string text = fmt::format("{{{}}}", fmt::join(sizes, ","));
  if (batch != 1) text += fmt::format("x{}", batch);
  return text;
}

// What every way to make a shape goes through.
void check(std::span<const uint32_t> sizes, uint32_t batch) {
  if (sizes.size() > Dim::kMaxRank)
    fail(ErrorKind::shape,
         fmt::format("[dim] too many sizes: {} (at most {})", sizes.size(), Dim::kMaxRank));
  uint64_t total = batch;
  bool fits = true;
  for (const uint32_t size : sizes) {
    if (size == 0)
      fail(ErrorKind::shape,
           fmt::format("[dim] a size is 0: {} (at least 1)", shape_text(sizes, batch)));
    fits = fits && !__builtin_mul_overflow(total, uint64_t{size}, &total);
  }
  if (batch == 0)
    fail(ErrorKind::shape,
         fmt::format("[dim] the batch is 0: {} (at least 1)", shape_text(sizes, batch)));
  if (!fits || total > static_cast<uint64_t>(INT64_MAX))
    fail(ErrorKind::shape,
         fmt::format("[dim] too many elements: {} (fewer than 2^63)", shape_text(sizes, batch)));
}

[[noreturn]] void fail_axis(std::string_view function, const Dim& dim, uint64_t axis) {
  fail(ErrorKind::shape, fmt::format("[{}] no axis {}: {} has {} dimension{}", function, axis,
                                     dim.to_string(), dim.rank, dim.rank == 1 ? "" : "s"));
}

// Reads a shape from text. Blanks are allowed between tokens.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Dim read() {
    uint32_t sizes[Dim::kMaxRank];
    uint32_t rank = 0, batch = 1;
    bool has_batch = false;
    if (!take('{')) wrong("'{'");
    if (!at('}') && !at('x') && !at('X')) {
      do {
        if (rank == Dim::kMaxRank) wrong("'}', at most 8 sizes");
        sizes[rank++] = number("a size");
      } while (take(','));
    }
    if (take('x') || take('X')) {
      batch = number("a batch size");
      has_batch = true;
    }
    if (!take('}')) wrong(has_batch ? "'}'" : "',' or '}'");
    if (!has_batch && (take('x') || take('X'))) batch = number("a batch size");
    skip_blanks();
    if (at_ != text_.size()) wrong("the end");
    return Dim(std::span<const uint32_t>(sizes, rank), batch);
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool at(char c) {
    skip_blanks();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool take(char c) {
    if (!at(c)) return false;
    ++at_;
    return true;
  }
  uint32_t number(const char* what) {
    skip_blanks();
    const size_t start = at_;
    uint64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      value = value * 10 + static_cast<uint64_t>(text_[at_] - '0');
      if (value > UINT32_MAX) wrong_at(start, fmt::format("{} below 2^32", what));
    }
    if (at_ == start) wrong(what);
    if (value == 0) wrong_at(start, fmt::format("{} of at least 1", what));
    return static_cast<uint32_t>(value);
  }
  [[noreturn]] void wrong(std::string_view needed) {
    skip_blanks();
    wrong_at(at_, needed);
  }
  [[noreturn]] void wrong_at(size_t position, std::string_view needed) const {
    constexpr size_t kShown = 60;  // the text may be a whole hostile file
    std::string shown(text_.substr(0, kShown));
    for (char& c : shown)
      if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
    if (text_.size() > kShown) shown += "...";
    fail(ErrorKind::argument,
         fmt::format("[dim] cannot read '{}': position {} (needed {})", shown, position, needed));
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Dim::Dim(std::initializer_list<uint32_t> sizes, uint32_t batch_size)
    : Dim(std::span<const uint32_t>(sizes.begin(), sizes.size()), batch_size) {}

Dim::Dim(std::span<const uint32_t> sizes, uint32_t batch_size) : Dim() {
  check(sizes, batch_size);
  rank = static_cast<uint32_t>(sizes.size());
  batch = batch_size;
  std::copy(sizes.begin(), sizes.end(), d);
}

Dim::Dim(const trl_dim& raw) : Dim() {
  if (raw.rank > kMaxRank)
    fail(ErrorKind::shape,
         fmt::format("[dim] too many sizes: {} (at most {})", raw.rank, kMaxRank));
  *this = Dim(std::span<const uint32_t>(raw.d, raw.rank), raw.batch);
}

std::string Dim::to_string() const { return shape_text({d, rank}, batch); }

Dim Dim::parse(std::string_view text) { return Reader(text).read(); }

uint64_t Dim::elements() const {
  uint64_t n = 1;
  for (uint32_t i = 0; i < rank; ++i) n *= d[i];
  return n;
}

uint64_t Dim::sum_dims() const {
  uint64_t n = 0;
  for (uint32_t i = 0; i < rank; ++i) n += d[i];
  return n;
}

uint32_t Dim::non_one_dims() const {
  return static_cast<uint32_t>(std::count_if(d, d + rank, [](uint32_t size) { return size != 1; }));
}

Dim Dim::with_batch(uint32_t b) const { return Dim(std::span<const uint32_t>(d, rank), b); }

Dim Dim::truncated() const {
  Dim r = *this;
  while (r.rank > 1 && r.d[r.rank - 1] == 1) --r.rank;
  return r;
}

Dim Dim::resized(uint32_t new_rank) const {
  if (new_rank > kMaxRank)
    fail(ErrorKind::shape,
         fmt::format("[resized] too many dimensions: {} (at most {})", new_rank, kMaxRank));
  for (uint32_t i = new_rank; i < rank; ++i)
    if (d[i] != 1)
      fail(
          ErrorKind::shape,
          fmt::format("[resized] cannot drop axis {} of {} (only axes of size 1)", i, to_string()));
  Dim r = *this;
  r.rank = new_rank;
  return r;
}

void Dim::set(uint32_t axis, uint32_t size) {
  if (axis >= rank) {
    if (size == 1) return;
    fail_axis("set", *this, axis);
  }
  Dim r = *this;
  r.d[axis] = size;
  check({r.d, r.rank}, r.batch);
  *this = r;
}

Dim Dim::deleted(uint32_t axis) const { return deleted(std::span<const uint32_t>(&axis, 1)); }

Dim Dim::deleted(std::span<const uint32_t> axes, bool reduce_batch) const {
  bool drop[kMaxRank] = {};
  for (const uint32_t axis : axes) {
    if (axis >= rank) fail_axis("deleted", *this, axis);
    drop[axis] = true;
  }
  Dim r;
  r.batch = reduce_batch ? 1 : batch;
  for (uint32_t i = 0; i < rank; ++i)
    if (!drop[i]) r.d[r.rank++] = d[i];
  return r;
}

Dim Dim::appended(uint32_t size) const { return inserted(rank, size); }

Dim Dim::inserted(uint32_t axis, uint32_t size) const {
  if (axis > rank) fail_axis("inserted", *this, axis);
  uint32_t sizes[kMaxRank + 1];
  std::copy(d, d + axis, sizes);
  sizes[axis] = size;
  std::copy(d + axis, d + rank, sizes + axis + 1);
  return Dim(std::span<const uint32_t>(sizes, rank + 1), batch);
}

Dim Dim::transposed() const {
  if (rank == 1) return Dim({1, d[0]}, batch);
  if (rank == 2) return Dim({d[1], d[0]}, batch);
  fail(ErrorKind::shape,
       fmt::format("[transposed] {} has {} dimensions (needed 1 or 2)", to_string(), rank));
}

std::ostream& operator<<(std::ostream& out, const Dim& dim) { return out << dim.to_string(); }

std::string to_string(std::span<const Dim> dims) {
  std::string text = "[";
  for (const Dim& dim : dims) {
    if (text.size() > 1) text += ' ';
    text += dim.to_string();
  }
  return text + "]";
}

}  // namespace trellis
