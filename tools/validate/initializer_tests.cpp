// SPDX-License-Identifier: Apache-2.0
//
// Initializers, called directly on guarded memory.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "validate/bench_host.hpp"
#include "validate/descriptors.hpp"
#include "validate/distribution.hpp"
#include "validate/numbers.hpp"
#include "validate/settings.hpp"
#include "validate/tests.hpp"

namespace trellis::validate {
namespace {

// A parameter to be filled; of a table the last dimension counts rows.
struct Target {
  Dim dim;
  bool lookup = false;

  uint32_t rank() const { return lookup ? dim.rank - 1 : dim.rank; }
  // As the host computes them: trl_fill_args.
  std::pair<uint64_t, uint64_t> fans() const {
    if (rank() == 0) return {1, 1};
    if (rank() == 1) return {dim.d[0], dim.d[0]};
    uint64_t elements = 1;
    for (uint32_t i = 0; i < rank(); ++i) elements *= dim.d[i];
    if (rank() >= 4) return {elements / dim.d[rank() - 1], elements / dim.d[rank() - 2]};
    return {elements / dim.d[0], dim.d[0]};
  }
  std::string text() const { return dim.to_string() + (lookup ? " as a table" : ""); }
};

std::vector<Target> targets() {
  return {{Dim{}},           {Dim{1}},           {Dim{2}},
          {Dim{3}},          {Dim{17}},          {Dim{257}},
          {Dim{1, 1}},       {Dim{1, 7}},        {Dim{4, 4}},
          {Dim{3, 5}},       {Dim{5, 3}},        {Dim{31, 31}},
          {Dim{2, 3, 4}},    {Dim{3, 2, 4, 5}},  {Dim{2, 1, 2, 1, 2}},
          {Dim{3, 1}, true}, {Dim{5, 13}, true}, {Dim{2, 3, 4}, true}};
}

constexpr trl_stream kStream{{11, 12}, {13, 14}}, kOther{{21, 22}, {23, 24}};

class Filler {
 public:
  Filler(Context& c, const trl_initializer_desc& desc)
      : context_(c), desc_(desc), call_(c.bench()) {
    call_.self = c.bench().self();
  }

  // Nothing where the shape is refused, which is in order when it is said why.
  std::optional<Numbers> fill(const Settings& s, const Target& t, DType dtype, trl_stream stream,
                              uint8_t poison) {
    const std::string text = what(s, t, dtype);
    context_.at(text);
    Guarded memory(t.dim.total() * dtype_size(dtype), "the parameter " + t.text());
    memory.fill(poison);
    const trl_tensor whole{
        memory.data(), t.dim.total(), t.dim, static_cast<uint16_t>(dtype), TRL_CPU, 6, 0};
    trl_tensor value = whole;
    trl_fill_args args{};
    args.struct_size = sizeof args;
    args.call = &call_;
    args.attrs = s.all().data();
    args.n_attrs = static_cast<uint32_t>(s.all().size());
    args.value = &value;
    args.stream = stream;
    args.lookup = t.lookup;
    std::tie(args.fan_in, args.fan_out) = t.fans();
    const std::vector<trl_attr> before(s.all().begin(), s.all().end());
    const trl_status status = call_.run("fill", [&] { return desc_.fill(&args); });
    if (const std::string damage = memory.damage(); !damage.empty())
      context_.fail(text + ": " + damage);
    if (std::memcmp(&value, &whole, sizeof value) != 0 ||
        (!before.empty() &&
         std::memcmp(before.data(), s.all().data(), before.size() * sizeof(trl_attr)) != 0))
      context_.fail(text + ": changed the arguments it was given");
    if (status != TRL_OK) {
      refusal_ = call_.text;
      if (refusal_.empty())
        context_.fail(fmt::format("{}: refused with status {} and no text", text, status));
      return std::nullopt;
    }
    call_.succeed(text, status);
    return TensorView(memory.data(), t.dim, dtype).as_doubles();
  }
  std::string what(const Settings& s, const Target& t, DType dtype) const {
    return fmt::format("{}({}) of {} {}", view_of(desc_.id), s.text(), t.text(), dtype_name(dtype));
  }
  const std::string& refusal() const { return refusal_; }

 private:
  Context& context_;
  const trl_initializer_desc& desc_;
  BenchCall call_;
  std::string refusal_;
};

std::vector<Settings> settings_of(const trl_initializer_desc& d) {
  return variants({d.attrs, d.n_attrs}, true);
}

// One bit pattern for "not written": an element that is still poison in two fills with different
// poison was not written.
void check_fill(Context& c, const Subject& subject) {
  const trl_initializer_desc& d = initializer_desc(c.bench().tables(), subject.id);
  Filler filler(c, d);
  size_t filled = 0;
  bool depends = false, varied = false;
  for (const Settings& s : settings_of(d))
    for (const Target& t : targets())
      for (const DType dtype : {DType::f32, DType::f64}) {
        const std::string text = filler.what(s, t, dtype);
        const auto a = filler.fill(s, t, dtype, kStream, 0xA5);
        const auto b = filler.fill(s, t, dtype, kStream, 0x5A);
        if (a.has_value() != b.has_value())
          c.fail(text + ": filled once and refused once: " + filler.refusal());
        if (!a) continue;
        ++filled;
        for (size_t i = 0; i < a->size(); ++i)
          if (!std::isfinite((*a)[i]) && !std::isfinite((*b)[i]))
            c.fail(fmt::format("{}: element {} is {}", text, i, (*a)[i]));
        // An unwritten element differs by the poison; a generator that goes on differs, too.
        const auto again = filler.fill(s, t, dtype, kStream, 0xA5);
        if (const std::string text2 =
                again ? difference("the parameter", *b, *a, 0, 0) : filler.refusal();
            !text2.empty()) {
          const bool unwritten = again && difference("", *again, *a, 0, 0).empty();
          c.fail(fmt::format("{}: {}: {}", text,
                             unwritten ? "depends on what the memory held (is every element "
                                         "written?)"
                                       : "is another one every time",
                             text2));
        }
        const auto other = filler.fill(s, t, dtype, kOther, 0xA5);
        if (!other) c.fail(text + ": refused with another stream: " + filler.refusal());
        depends |= !difference("", *other, *a, 0, 0).empty();
        varied |= std::set<double>(a->begin(), a->end()).size() > 2;
      }
  if (filled == 0)
    c.fail(fmt::format("{}: refuses every shape that was tried, the last: {}", subject.id,
                       filler.refusal()));
  c.note(fmt::format("{} shapes filled", filled));
  if (depends) return;
  // A formula "w ~ ..." says that the numbers are drawn.
  if (varied && view_of(d.formula).find('~') != std::string_view::npos)
    c.fail(
        fmt::format("{}: the same numbers from every stream, so that all parameters of one shape "
                    "begin alike (formula: {})",
                    subject.id, view_of(d.formula)));
  c.note("draws no random numbers");
}

struct Moments {
  double mean = 0, variance = 0;
};
Moments moments_of(const Numbers& v) {
  Moments m;
  for (const double x : v) m.mean += x;
  m.mean /= static_cast<double>(v.size());
  for (const double x : v) m.variance += (x - m.mean) * (x - m.mean);
  m.variance /= static_cast<double>(v.size());
  return m;
}

void check_moments(Context& c, const Subject& subject) {
  const trl_initializer_desc& d = initializer_desc(c.bench().tables(), subject.id);
  Filler filler(c, d);
  const std::optional<Distribution> declared = Distribution::parse(std::string(view_of(d.formula)));
  size_t checked = 0, measured = 0;
  for (const Settings& s : settings_of(d))
    for (const Target& t : {Target{Dim{60000}}, Target{Dim{300, 200}}, Target{Dim{240, 240}},
                            Target{Dim{3, 5, 40, 100}}, Target{Dim{25, 2000}, true}}) {
      const auto f64 = filler.fill(s, t, DType::f64, kStream, 0xA5);
      const auto f32 = filler.fill(s, t, DType::f32, kStream, 0xA5);
      if (f64.has_value() != f32.has_value())
        c.fail(filler.what(s, t, DType::f32) +
               ": one float type is filled, the other refused: " + filler.refusal());
      if (!f64) continue;
      const std::string text = filler.what(s, t, DType::f64);
      for (size_t i = 0; i < f64->size(); ++i)
        if (!std::isfinite((*f64)[i]) || !std::isfinite((*f32)[i]))
          c.fail(fmt::format("{}: element {} is {}", text, i, (*f64)[i]));
      const Moments m = moments_of(*f64), single = moments_of(*f32);
      const double n = static_cast<double>(f64->size()), deviation = std::sqrt(m.variance);
      // Both types draw from one distribution; six deviations of a mean of n.
      if (std::fabs(m.mean - single.mean) > 6 * std::sqrt(2.0) * deviation / std::sqrt(n) + 1e-6)
        c.fail(fmt::format("{}: the mean is {}, in f32 {}", text, m.mean, single.mean));
      if (std::fabs(std::sqrt(single.variance) - deviation) > 0.05 * deviation + 1e-6)
        c.fail(fmt::format("{}: the deviation is {}, in f32 {}", text, deviation,
                           std::sqrt(single.variance)));
      std::map<std::string, double, std::less<>> names{
          {"fan_in", static_cast<double>(t.fans().first)},
          {"fan_out", static_cast<double>(t.fans().second)}};
      for (size_t i = 0; i < s.all().size(); ++i) {
        const trl_attr& a = s.all()[i];
        if (a.type == TRL_ATTR_F64) names[std::string(view_of(d.attrs[i]->key))] = a.v.f;
        if (a.type == TRL_ATTR_I64)
          names[std::string(view_of(d.attrs[i]->key))] = static_cast<double>(a.v.i);
      }
      const auto needed = declared ? declared->at(names) : std::nullopt;
      if (!needed) {
        if (measured++ == 0)
          c.note(fmt::format("{}: mean {:.4g}, deviation {:.4g}", text, m.mean, deviation));
        continue;
      }
      ++checked;
      const double sigma = needed->deviation();
      if (std::fabs(m.mean - needed->mean()) > 6 * sigma / std::sqrt(n) + 1e-12)
        c.fail(fmt::format("{}: the mean is {} (declared: {}, needed {})", text, m.mean,
                           declared->text(), needed->mean()));
      if (std::fabs(deviation - sigma) > 0.03 * sigma + 1e-12)
        c.fail(fmt::format("{}: the deviation is {} (declared: {}, needed {})", text, deviation,
                           declared->text(), sigma));
      if (needed->uniform)
        for (size_t i = 0; i < f64->size(); ++i)
          if ((*f64)[i] < needed->a || (*f64)[i] > needed->b)
            c.fail(fmt::format("{}: element {} is {} (declared: {}, needed {} to {})", text, i,
                               (*f64)[i], declared->text(), needed->a, needed->b));
    }
  if (checked + measured == 0) c.skip("no large shape is accepted: " + filler.refusal());
  c.note(checked > 0 ? fmt::format("{} fills as declared: {}", checked, declared->text())
                     : "the formula names no mean and variance that can be computed");
}

constexpr Test kTests[] = {
    {"initializer.fill", 4, Kind::initializer,
     "every element is written, nothing beside it, and the stream alone decides", check_fill},
    {"initializer.moments", 4, Kind::initializer,
     "mean and variance are those of the formula, in both float types", check_moments},
};

}  // namespace

std::span<const Test> initializer_tests() { return kTests; }

}  // namespace trellis::validate
