// SPDX-License-Identifier: Apache-2.0
//
// Providers of matrix products, called directly: every shape of the classes they declare.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <trellis/tensor.hpp>
#include <vector>

#include "validate/bench_host.hpp"
#include "validate/products.hpp"
#include "validate/tests.hpp"

namespace trellis::validate {
namespace {

// The descriptors of one id (a float type each), those whose self check passes.
std::vector<const trl_linalg_desc*> providers(Context& c, const Subject& subject) {
  const trl_plugin& tables = c.bench().tables();
  std::vector<const trl_linalg_desc*> out;
  for (uint32_t i = 0; i < tables.n_linalgs; ++i) {
    const trl_linalg_desc& d = *tables.linalgs[i];
    if (view_of(d.id) != subject.id || (d.device.n != 0 && view_of(d.device) != "cpu")) continue;
    if (d.dtype != TRL_F32 && d.dtype != TRL_F64)
      c.fail(
          fmt::format("{}: element type {} on the CPU (needed f32 or f64)", subject.id, d.dtype));
    if (d.check != nullptr) {
      BenchCall call(c.bench());
      call.self = c.bench().self();
      const trl_status status = call.run("check", [&] { return d.check(&call); });
      if (status == TRL_E_UNSUPPORTED) c.skip(fmt::format("its self check says: {}", call.text));
      call.succeed("check", status);
    }
    out.push_back(&d);
  }
  if (out.empty()) c.skip("nothing for the CPU");
  return out;
}

bool is_vector(const trl_linalg_desc& d, const Shape& s) {
  return s.n == 1 && !s.trans_b && d.gemv != nullptr;
}

std::string head_of(const trl_linalg_desc& d, const Shape& s) {
  return fmt::format("{} {} {} ", view_of(d.id), dtype_name(static_cast<DType>(d.dtype)),
                     is_vector(d, s) ? "gemv" : "gemm");
}
std::string text_of(const trl_linalg_desc& d, const Shape& s) { return head_of(d, s) + s.text(); }

// What a provider may not take (TRL_E_UNSUPPORTED) goes to the next one.
struct Tally {
  size_t done = 0, left_to_others = 0;
};

template <class T>
void product(Context& c, const trl_linalg_desc& d, const Shape& s, Tally& tally) {
  const std::string text = text_of(d, s);
  c.at(text);
  BenchCall call(c.bench());
  call.self = c.bench().self();
  Operands<T> x(s, &call, c.seed());
  const trl_status status =
      call.run(text, [&] { return is_vector(d, s) ? d.gemv(&x.args()) : d.gemm(&x.args()); });
  if (status == TRL_E_UNSUPPORTED) {
    ++tally.left_to_others;
    return;
  }
  call.succeed(text, status);
  ++tally.done;
  if (const std::string wrong = x.difference(); !wrong.empty()) c.fail(head_of(d, s) + wrong);
}

uint64_t extent(uint64_t rows, uint64_t cols, uint64_t ld) { return (cols - 1) * ld + rows; }

// Operands in memory of their own that ends where they end.
template <class T>
class Fenced {
 public:
  Fenced(const char* name, const void* from, uint64_t extent, uint64_t stride, uint64_t batch)
      : memory_((extent + stride * (batch - 1)) * sizeof(T), name), from_(from) {
    std::memcpy(memory_.data(), from, memory_.size());
    memory_.surround(0xFF);  // NaN in both types
  }
  void* data() const { return memory_.data(); }
  size_t size() const { return memory_.size(); }
  bool intact() const { return std::memcmp(memory_.data(), from_, memory_.size()) == 0; }
  std::string damage() const { return memory_.damage(); }

 private:
  Guarded memory_;
  const void* from_;
};

template <class T>
void fenced_product(Context& c, const trl_linalg_desc& d, const Shape& s, Tally& tally) {
  const std::string text = text_of(d, s);
  c.at(text);
  BenchCall call(c.bench());
  call.self = c.bench().self();
  Operands<T> x(s, &call, c.seed());
  trl_mm_args args = x.args();
  const auto rows = [](bool turned, uint64_t r, uint64_t k) { return turned ? k : r; };
  const Fenced<T> a("A", args.a,
                    extent(rows(s.trans_a, s.m, s.k), rows(s.trans_a, s.k, s.m), args.lda),
                    args.stride_a, s.batch),
      b("B", args.b, extent(rows(s.trans_b, s.k, s.n), rows(s.trans_b, s.n, s.k), args.ldb),
        args.stride_b, s.batch),
      out("C", args.c, extent(s.m, s.n, args.ldc), args.stride_c, s.batch);
  args.a = a.data();
  args.b = b.data();
  args.c = out.data();
  const trl_mm_args given = args;
  const trl_status status =
      call.run(text, [&] { return is_vector(d, s) ? d.gemv(&args) : d.gemm(&args); });
  if (status == TRL_E_UNSUPPORTED) {
    ++tally.left_to_others;
    return;
  }
  call.succeed(text, status);
  ++tally.done;
  if (std::memcmp(&given, &args, sizeof args) != 0)
    c.fail(text + ": changed the arguments it was given");
  for (const Fenced<T>* operand : {&a, &b})
    if (!operand->intact())
      c.fail(fmt::format("{}: {} was written", text, operand == &a ? "A" : "B"));
  for (const Fenced<T>* operand : {&a, &b, &out})
    if (const std::string damage = operand->damage(); !damage.empty()) c.fail(text + ": " + damage);
  std::memcpy(x.args().c, out.data(), out.size());
  if (const std::string wrong = x.difference(); !wrong.empty()) c.fail(head_of(d, s) + wrong);
}

// Every number of rows, columns and depth around tiles and vectors, then larger than a block of
// each kind.
std::vector<Shape> shapes() {
  std::vector<Shape> out;
  for (const uint64_t m : {1, 2, 3, 5, 8})
    for (const uint64_t n : {1, 2, 3, 5, 8})
      for (const uint64_t k : {1, 2, 3, 5, 8})
        for (int turned = 0; turned < 4; ++turned)
          out.push_back({m, n, k, (turned & 1) != 0, (turned & 2) != 0});
  for (uint64_t size = 1; size <= 70; ++size)
    for (int turned = 0; turned < 4; ++turned) {
      const bool a = turned & 1, b = turned & 2;
      Shape s{size, 13, 9, a, b};
      s.pad_a = size % 3;
      s.beta = size % 2 ? 0 : 1;
      out.push_back(s);
      s = {37, size, 11, a, b};
      s.pad_b = s.pad_c = size % 2;
      s.beta = 0.5;
      out.push_back(s);
      s = {29, 7, size, a, b};
      s.alpha = -1.5;
      out.push_back(s);
      out.push_back({size, 1, 71 - size, a, b});
      out.push_back({1, size, 71 - size, a, b});
      out.push_back({size, 71 - size, 1, a, b});
    }
  for (const Shape& s : awkward_shapes()) out.push_back(s);
  for (int turned = 0; turned < 4; ++turned) {
    const bool a = turned & 1, b = turned & 2;
    Shape s{70, 65, 601, a, b};
    s.beta = 0.5;
    out.push_back(s);
    out.push_back({263, 401, 67, a, b});
    out.push_back({19, 1301, 33, a, b});
    s = {2051, 34, 131, a, b};
    s.pad_a = 1;
    out.push_back(s);
    out.push_back({17003, 1, 19, a, b});
  }
  // A batch that is summed, or shares an operand.
  for (const uint64_t n : {1, 2, 13}) {
    Shape s{21, n, 17};
    s.batch = 5;
    s.beta = 1;
    s.sum = true;
    out.push_back(s);
    s.sum = false;
    s.share_a = true;
    out.push_back(s);
    s.share_a = false;
    s.share_b = s.trans_a = true;
    out.push_back(s);
  }
  return out;
}

template <class F>
void each(Context& c, const Subject& subject, const std::vector<Shape>& of, F&& run) {
  Tally tally;
  for (const trl_linalg_desc* d : providers(c, subject))
    for (const Shape& s : of)
      if (class_of(s) & d->classes) run(*d, s, tally);
  if (tally.done == 0)
    c.fail(subject.id + ": leaves every product of its classes to other providers");
  c.note(fmt::format("{} products", tally.done));
  if (tally.left_to_others > 0)
    c.note(fmt::format("{} left to other providers", tally.left_to_others));
}

void check_products(Context& c, const Subject& subject) {
  each(c, subject, shapes(), [&](const trl_linalg_desc& d, const Shape& s, Tally& tally) {
    d.dtype == TRL_F32 ? product<float>(c, d, s, tally) : product<double>(c, d, s, tally);
  });
}

void check_writes(Context& c, const Subject& subject) {
  const uint64_t sizes[] = {1, 2, 3, 5, 7, 8, 9, 15, 17, 31, 50, 67};
  std::mt19937_64 random(c.seed());
  const auto pick = [&] { return sizes[random() % std::size(sizes)]; };
  std::vector<Shape> of;
  for (int i = 0; i < 600; ++i) {
    Shape s{pick(), pick(), pick()};
    if (i % 3 == 0) s.n = 1;
    if (i % 11 == 0) s.k = 1;
    if (i % 20 == 0) s.m = 301, s.n = 70 + static_cast<uint64_t>(i) % 7, s.k = 66;
    if (i % 50 == 0) s.m = 331, s.n = 150, s.k = 66;
    s.trans_a = random() % 2;
    s.trans_b = random() % 2;
    if (random() % 2) s.pad_a = random() % 4, s.pad_b = random() % 4, s.pad_c = random() % 4;
    s.beta = random() % 2 ? 0 : 0.5;
    if (s.m * s.n * s.k < 20000 && random() % 2) s.batch = 3;
    of.push_back(s);
  }
  std::stable_sort(of.begin(), of.end(), [](const Shape& a, const Shape& b) {
    return a.m * a.n * a.k * a.batch < b.m * b.n * b.k * b.batch;
  });
  each(c, subject, of, [&](const trl_linalg_desc& d, const Shape& s, Tally& tally) {
    d.dtype == TRL_F32 ? fenced_product<float>(c, d, s, tally)
                       : fenced_product<double>(c, d, s, tally);
  });
}

constexpr Test kTests[] = {
    {"linalg.products", 4, Kind::linalg,
     "products of every declared class agree with plain loops in f64", check_products},
    {"linalg.writes", 4, Kind::linalg,
     "C alone is written, between its columns nothing, and nothing outside the operands counts",
     check_writes},
};

}  // namespace

std::span<const Test> linalg_tests() { return kTests; }

}  // namespace trellis::validate
