// SPDX-License-Identifier: Apache-2.0
#include "validate/cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <variant>

#include "validate/test.hpp"

namespace trellis::validate {

Op::Op(BenchHost& bench, const std::string& id) : tables_(bench.tables()), id_(id) {
  for (uint32_t i = 0; i < tables_.n_ops; ++i)
    if (view_of(tables_.ops[i]->id) == id) desc_ = tables_.ops[i];
  if (!desc_) throw Failure{"the library has no operator " + id};
  for (uint16_t o = 0; o < desc_->n_out; ++o)
    if (!(out(o).flags & TRL_OUT_HIDDEN)) ++n_visible_;
}

const trl_kernel_desc* Op::kernel(DType dtype) const {
  const trl_kernel_desc* best = nullptr;
  for (uint32_t i = 0; i < tables_.n_kernels; ++i) {
    const trl_kernel_desc* k = tables_.kernels[i];
    if (view_of(k->op_id) != id_ || view_of(k->device) != "cpu" ||
        k->dtype != static_cast<uint16_t>(dtype))
      continue;
    if (!best || k->rank > best->rank) best = k;
  }
  return best;
}

const trl_in_spec& Op::in(size_t i) const {
  return *desc_->in[std::min<size_t>(i, desc_->n_in - 1u)];
}

bool Op::changes_batch() const {
  for (uint16_t i = 0; i < desc_->n_in; ++i)
    if (desc_->in[i]->merge == TRL_IN_NEVER) return true;
  return false;
}

std::string Op::unchecked(std::string_view test) const {
  const std::string_view text = view_of(desc_->unchecked);
  const size_t colon = text.find(':');
  if (colon == text.npos) return {};
  const std::string_view name = text.substr(0, colon);
  const bool is_it = name == test || (name == "gradient" && test == "gradient.difference") ||
                     (name == "f32" && test == "forward.f32");
  if (!is_it) return {};
  const size_t reason = text.find_first_not_of(' ', colon + 1);
  return reason == text.npos ? "the schema gives no reason" : std::string(text.substr(reason));
}

trl_attr CaseAttr::c() const {
  trl_attr a{};
  a.type = type;
  a.count = 1;
  switch (type) {
    case TRL_ATTR_F64:
      a.v.f = f;
      break;
    case TRL_ATTR_STR:
      a.v.s = {s.data(), s.size()};
      break;
    case TRL_ATTR_I64S:
      a.count = static_cast<uint32_t>(is.size());
      a.v.is = is.data();
      break;
    case TRL_ATTR_F64S:
      a.count = static_cast<uint32_t>(fs.size());
      a.v.fs = fs.data();
      break;
    default:
      a.v.i = i;
  }
  a.offsets = offsets.empty() ? nullptr : offsets.data();
  return a;
}

trl_attr CaseAttr::interned() const {
  return offsets.empty() ? c() : trl_attr{type, 0, {}, nullptr};
}

std::string CaseAttr::text(const trl_attr_spec& spec) const {
  switch (type) {
    case TRL_ATTR_F64:
      return fmt::format("{}", f);
    case TRL_ATTR_BOOL:
      return i ? "true" : "false";
    case TRL_ATTR_CHOICE:
      return i >= 0 && static_cast<uint32_t>(i) < spec.n_choices
                 ? std::string(view_of(spec.choices[i]))
                 : fmt::format("{}", i);
    case TRL_ATTR_STR:
      return s;
    case TRL_ATTR_I64S:
      return fmt::format("[{}]", fmt::join(is, ","));
    case TRL_ATTR_F64S:
      return fmt::format("[{}]", fmt::join(fs, ","));
    default:
      return fmt::format("{}", i);
  }
}

std::string Case::text() const {
  std::string t = op->id() + "(";
  const char* comma = "";
  for (const auto& d : inputs) {
    t += comma + (d ? d->to_string() : "-");
    comma = ", ";
  }
  for (size_t i = 0; i < attrs.size(); ++i) {
    t += fmt::format("{}{}={}", comma, view_of(op->attr(i).key), attrs[i].text(op->attr(i)));
    comma = ", ";
  }
  return t + ")";
}

uint64_t Case::numbers() const {
  uint64_t n = 0;
  for (const auto& d : inputs)
    if (d) n += d->total();
  return n;
}

bool Case::settle() {
  batch = 1;
  for (const auto& d : inputs)
    if (d) batch = std::max(batch, d->batch);
  for (const CaseAttr& a : attrs)
    if (!a.offsets.empty()) batch = std::max(batch, static_cast<uint32_t>(a.offsets.size() - 1));
  if (op->changes_batch()) return true;
  for (const auto& d : inputs)
    if (d && d->batch != 1 && d->batch != batch) return false;
  return true;
}

Inferred infer(BenchCall& call, const Case& c, DType dtype, uint32_t flags) {
  const Op& op = *c.op;
  const uint16_t n_out = op.desc().n_out;
  Inferred r;
  if (!op.desc().infer) {
    r.status = TRL_E_UNSUPPORTED;
    r.text = "no shape inference: it stands for a graph";
    return r;
  }
  std::vector<trl_dim> in;
  std::vector<uint16_t> in_dtypes;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    in.push_back(c.inputs[i] ? trl_dim(*c.inputs[i]) : trl_dim(Dim()));
    const uint16_t fixed = op.in(i).dtype;
    in_dtypes.push_back(!c.inputs[i] ? 0 : fixed ? fixed : static_cast<uint16_t>(dtype));
  }
  // One entry more than there are outputs, which nobody may touch.
  constexpr uint32_t kGuard = 0xC5C5C5C5;
  r.out.assign(n_out + 1u, Dim().with_batch(c.batch));
  r.out[n_out] = trl_dim{kGuard, kGuard, {}};
  for (uint16_t o = 0; o < n_out; ++o)
    r.dtypes.push_back(op.out(o).dtype ? op.out(o).dtype : static_cast<uint16_t>(dtype));
  r.dtypes.push_back(static_cast<uint16_t>(kGuard));
  std::vector<trl_attr> attrs;
  for (const CaseAttr& a : c.attrs) attrs.push_back(a.interned());
  const std::vector<trl_dim> in_before = in;
  const std::vector<uint16_t> dtypes_before = in_dtypes;
  trl_infer_args a{};
  a.struct_size = sizeof a;
  a.flags = flags & TRL_CALL_TRAIN;
  a.call = &call;
  a.attrs = attrs.data();
  a.in = in.data();
  a.in_dtype = in_dtypes.data();
  a.n_attrs = static_cast<uint32_t>(attrs.size());
  a.n_in = static_cast<uint32_t>(in.size());
  a.n_out = n_out;
  a.batch = c.batch;
  a.out = r.out.data();
  a.out_dtype = r.dtypes.data();
  a.view_of = -1;
  call.self = call.bench.self();
  try {
    r.status = call.run("infer", [&] { return op.desc().infer(&a); });
  } catch (const Failure& f) {
    throw Failure{fmt::format("{}: {}", c.text(), f.text)};
  }
  const auto same = [](const auto& x, const auto& y) {
    return x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof x[0]) == 0;
  };
  if (!same(in, in_before) || !same(in_dtypes, dtypes_before))
    throw Failure{fmt::format("{}: infer writes into the shapes of its inputs", c.text())};
  if (r.out[n_out].rank != kGuard || r.out[n_out].batch != kGuard ||
      r.dtypes[n_out] != static_cast<uint16_t>(kGuard))
    throw Failure{
        fmt::format("{}: infer writes behind the shapes of its {} outputs", c.text(), n_out)};
  r.out.pop_back();
  r.dtypes.pop_back();
  if (r.status != TRL_OK && call.text.empty())
    throw Failure{
        fmt::format("{}: infer refuses it with status {} and no text", c.text(), r.status)};
  r.text = call.text;
  r.view_of = a.view_of;
  r.view_offset = a.view_offset;
  r.stops_gradient = a.view_stops_gradient;
  return r;
}

namespace {

// An attribute as its default says, or the smallest value that its range allows.
CaseAttr default_attr(const trl_attr_spec& s) {
  CaseAttr a;
  a.type = s.type;
  const bool given = !(s.flags & TRL_ATTR_REQUIRED);
  switch (s.type) {
    case TRL_ATTR_F64:
      a.f = given ? s.dflt.v.f : s.lo <= s.hi ? s.lo : 0;
      break;
    case TRL_ATTR_STR:
      if (given) a.s = view_of(s.dflt.v.s);
      break;
    case TRL_ATTR_I64S:
      if (given && s.dflt.count) a.is.assign(s.dflt.v.is, s.dflt.v.is + s.dflt.count);
      break;
    case TRL_ATTR_F64S:
      if (given && s.dflt.count) a.fs.assign(s.dflt.v.fs, s.dflt.v.fs + s.dflt.count);
      break;
    default:
      a.i = given ? s.dflt.v.i : s.lo <= s.hi ? static_cast<int64_t>(s.lo) : 0;
  }
  return a;
}

[[noreturn]] void bad_example(const Op& op, const Example& e, const std::string& fact) {
  throw Failure{fmt::format("{}: its example '{}' {}", op.id(), e.text, fact)};
}

std::vector<double> numbers_of(const AttrValue& value) {
  if (const auto* i = std::get_if<int64_t>(&value.get())) return {double(*i)};
  if (const auto* f = std::get_if<double>(&value.get())) return {*f};
  if (const auto* b = std::get_if<bool>(&value.get())) return {*b ? 1.0 : 0.0};
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value.get()))
    return {list->begin(), list->end()};
  if (const auto* list = std::get_if<std::vector<double>>(&value.get())) return *list;
  return {};
}

CaseAttr given_attr(const Op& op, const Example& e, const trl_attr_spec& s,
                    const AttrValue& value) {
  CaseAttr a;
  a.type = s.type;
  const std::string key(view_of(s.key));
  if (s.type == TRL_ATTR_CHOICE || s.type == TRL_ATTR_STR) {
    const auto* text = std::get_if<std::string>(&value.get());
    if (!text) bad_example(op, e, fmt::format("gives '{}' no text", key));
    a.s = *text;
    if (s.type == TRL_ATTR_STR) return a;
    for (a.i = 0; a.i < s.n_choices; ++a.i)
      if (view_of(s.choices[a.i]) == *text) return a;
    bad_example(op, e, fmt::format("gives '{}' an unknown choice '{}'", key, *text));
  }
  const std::vector<double> v = numbers_of(value);
  if (s.type == TRL_ATTR_I64S) {
    for (const double x : v) a.is.push_back(static_cast<int64_t>(x));
    return a;
  }
  if (s.type == TRL_ATTR_F64S) {
    a.fs = v;
    return a;
  }
  if (v.size() != 1) bad_example(op, e, fmt::format("gives '{}' no single number", key));
  a.f = v[0];
  a.i = static_cast<int64_t>(v[0]);
  return a;
}

// Lists of a per-batch attribute for `batch` elements from what an example gives: one value for
// each, or one list for all.
void spread(CaseAttr& a, const trl_attr_spec& s, uint32_t batch) {
  const size_t n = a.type == TRL_ATTR_I64S ? a.is.size() : a.fs.size();
  const bool one_each = s.max_each == 1 || (s.flags & TRL_ATTR_VALUE);
  a.offsets = {0};
  if (one_each && n == batch) {
    for (uint32_t b = 1; b <= batch; ++b) a.offsets.push_back(b);
    return;
  }
  const auto ids = a.is;
  const auto numbers = a.fs;
  a.is.clear();
  a.fs.clear();
  for (uint32_t b = 0; b < batch; ++b) {
    if (one_each && n > 0) {
      if (!ids.empty()) a.is.push_back(ids[b % ids.size()]);
      if (!numbers.empty()) a.fs.push_back(numbers[b % numbers.size()]);
    } else {
      a.is.insert(a.is.end(), ids.begin(), ids.end());
      a.fs.insert(a.fs.end(), numbers.begin(), numbers.end());
    }
    a.offsets.push_back(static_cast<uint32_t>(std::max(a.is.size(), a.fs.size())));
  }
}

double draw(RandomEngine& r, uint8_t domain) {
  const double u = r.uniform();
  switch (domain) {
    case TRL_DOMAIN_POSITIVE:
      return 0.3 + 1.7 * u;
    case TRL_DOMAIN_UNIT:
      return -0.9 + 1.8 * u;
    case TRL_DOMAIN_PROBABILITY:
      return 0.1 + 0.8 * u;
    case TRL_DOMAIN_ABOVE_ONE:
      return 1.1 + 2 * u;
    case TRL_DOMAIN_NONZERO:
      return (r.next_u32() & 1 ? 1 : -1) * (0.3 + 1.7 * u);
    default:
      return -2 + 4 * u;
  }
}

// Every size of a case by another one, equal ones by equal ones.
Case resized(const Case& c, const std::map<uint32_t, uint32_t>& sizes) {
  Case to = c;
  for (auto& d : to.inputs)
    if (d)
      for (uint32_t i = 0; i < d->rank; ++i)
        if (const auto s = sizes.find(d->d[i]); s != sizes.end()) d->d[i] = s->second;
  return to;
}

std::set<uint32_t> sizes_of(const Case& c) {
  std::set<uint32_t> sizes;
  for (const auto& d : c.inputs)
    if (d)
      for (uint32_t i = 0; i < d->rank; ++i)
        if (d->d[i] != 1) sizes.insert(d->d[i]);
  return sizes;
}

Case with_batch(const Case& c, uint32_t batch) {
  Case to = c;
  for (auto& d : to.inputs)
    if (d) d->batch = batch;
  return to;
}

}  // namespace

Case make_case(const Op& op, const Example& e, uint64_t seed) {
  Case c;
  c.op = &op;
  c.inputs = e.inputs;
  const trl_op_desc& d = op.desc();
  const bool variadic = d.n_in > 0 && (op.in(d.n_in - 1u).flags & TRL_IN_VARIADIC);
  if (!variadic && c.inputs.size() > d.n_in)
    bad_example(op, e, fmt::format("has {} inputs (needed {})", c.inputs.size(), d.n_in));
  for (const Attr& given : e.attrs) {
    bool known = false;
    for (uint16_t i = 0; i < d.n_attrs; ++i) known |= view_of(op.attr(i).key) == given.key;
    if (!known) bad_example(op, e, fmt::format("names '{}', which it does not have", given.key));
  }
  uint32_t batch = 1;
  for (const auto& dim : c.inputs)
    if (dim) batch = std::max(batch, dim->batch);
  RandomEngine random(seed, 7);
  for (uint16_t i = 0; i < d.n_attrs; ++i) {
    const trl_attr_spec& s = op.attr(i);
    const Attr* given = nullptr;
    for (const Attr& a : e.attrs)
      if (a.key == view_of(s.key)) given = &a;
    c.attrs.push_back(given ? given_attr(op, e, s, given->value) : default_attr(s));
    if (!is_per_batch(s)) continue;
    CaseAttr& a = c.attrs.back();
    const auto n = static_cast<uint32_t>(std::max(a.is.size(), a.fs.size()));
    if (given && s.max_each == 1 && n > batch) batch = n;  // ids alone may make a batch
    if (const auto* ragged =
            given ? std::get_if<AttrValue::Ragged>(&given->value.get()) : nullptr) {
      batch = std::max<uint32_t>(batch, static_cast<uint32_t>(ragged->size()));
      a.offsets = {0};
      for (const auto& list : *ragged) {
        a.is.insert(a.is.end(), list.begin(), list.end());
        a.offsets.push_back(static_cast<uint32_t>(a.is.size()));
      }
    }
  }
  for (uint16_t i = 0; i < d.n_attrs; ++i)
    if (is_per_batch(op.attr(i)) && c.attrs[i].offsets.empty()) {
      spread(c.attrs[i], op.attr(i), batch);
      // What is required and not given is drawn.
      if (c.attrs[i].offsets.back() < batch * op.attr(i).min_each) {
        c.batch = batch;
        draw_attr(c, i, random);
      }
    }
  if (!c.settle()) bad_example(op, e, "mixes batch sizes");
  return c;
}

uint64_t bound_of(const Case& c, size_t attr) {
  const trl_attr_spec& s = c.op->attr(attr);
  if (!(s.flags & TRL_ATTR_PER_BATCH) || s.bound_input < 0) return 0;
  if (static_cast<size_t>(s.bound_input) >= c.inputs.size() || !c.inputs[s.bound_input]) return 0;
  const Dim& d = *c.inputs[s.bound_input];
  int64_t axis =
      s.bound_axis < 0 && s.bound_axis_attr >= 0 ? c.attrs[s.bound_axis_attr].i : s.bound_axis;
  if (axis < 0) axis += d.rank;
  return axis >= 0 && axis < static_cast<int64_t>(d.rank) ? d.d[axis] : 1;
}

void draw_attr(Case& c, size_t attr, RandomEngine& random) {
  const trl_attr_spec& s = c.op->attr(attr);
  CaseAttr& a = c.attrs[attr];
  if (s.flags & TRL_ATTR_VALUE) {
    const bool ranged = s.lo <= s.hi;
    const double lo = ranged ? std::max(s.lo, -2.0) : -2, hi = ranged ? std::min(s.hi, 2.0) : 2;
    a.fs.clear();
    a.offsets = {0};
    for (uint32_t b = 0; b < c.batch; ++b) {
      a.fs.push_back(lo <= hi ? lo + (hi - lo) * random.uniform() : s.lo);
      a.offsets.push_back(b + 1);
    }
    return;
  }
  int64_t lo = 0, hi = 3;
  if (s.lo <= s.hi) {
    lo = static_cast<int64_t>(std::max(s.lo, -1e6));
    hi = static_cast<int64_t>(std::min(s.hi, double(lo) + 8));
  }
  if (const uint64_t bound = bound_of(c, attr)) {
    hi = static_cast<int64_t>(bound) - (s.flags & TRL_ATTR_BOUND_CLOSED ? 0 : 1);
    if (s.lo <= s.hi) hi = std::min(hi, static_cast<int64_t>(std::min(s.hi, 1e15)));
  }
  hi = std::max(hi, lo);
  // Where neither bound nor range says what is allowed, what the example has is.
  const std::vector<int64_t> known =
      bound_of(c, attr) == 0 && !(s.lo <= s.hi) ? a.is : std::vector<int64_t>();
  a.is.clear();
  a.offsets = {0};
  for (uint32_t b = 0; b < c.batch; ++b) {
    const uint32_t least = s.min_each, most = std::min(s.max_each, least + 3);
    const uint64_t n = least + random.below(most - least + 1);
    for (uint64_t k = 0; k < n; ++k)
      a.is.push_back(known.empty() ? lo + static_cast<int64_t>(
                                              random.below(static_cast<uint64_t>(hi - lo) + 1))
                                   : known[random.below(known.size())]);
    a.offsets.push_back(static_cast<uint32_t>(a.is.size()));
  }
}

std::vector<Case> make_cases(BenchHost& bench, const Op& op, uint64_t seed) {
  std::vector<Example> examples;
  try {
    examples = parse_examples(view_of(op.desc().example));
  } catch (const Error& e) {
    throw Failure{fmt::format("{}: its example cannot be read: {}", op.id(), e.what())};
  }
  if (examples.empty())
    throw Failure{op.id() + ": its schema has no example, so that nothing can be run"};
  BenchCall call(bench);
  RandomEngine random(seed, 3);
  std::vector<Case> cases;
  std::set<std::string> known;
  const auto accepts = [&](const Case& c) {
    const Inferred i = infer(call, c, DType::f64, TRL_CALL_TRAIN);
    if (i.status != TRL_OK) return false;
    uint64_t room = 0;
    for (const trl_dim& d : i.out) {
      uint64_t n = d.batch;
      for (uint32_t k = 0; k < d.rank && k < TRL_MAX_RANK; ++k) n *= d.d[k];
      room += n;
    }
    return room < 200000;
  };
  const auto offer = [&](Case c) {
    if (!c.settle()) return;
    for (size_t i = 0; i < c.attrs.size(); ++i)
      if (is_per_batch(op.attr(i))) draw_attr(c, i, random);
    if (c.numbers() < 40000 && known.insert(c.text()).second && accepts(c))
      cases.push_back(std::move(c));
  };
  for (const Example& e : examples) {
    Case c = make_case(op, e, seed);
    const Inferred i = infer(call, c, DType::f64, TRL_CALL_TRAIN);
    if (op.desc().infer && i.status != TRL_OK)
      bad_example(op, e, fmt::format("is refused: {}", i.text));
    known.insert(c.text());
    cases.push_back(c);
    if (!op.desc().infer) continue;

    const std::set<uint32_t> sizes = sizes_of(c);
    std::map<uint32_t, uint32_t> ones, primes, odd, large;
    uint32_t n = 0;
    constexpr uint32_t kPrimes[] = {7, 11, 5, 13, 3, 17};
    for (const uint32_t s : sizes) {
      ones[s] = 1;
      primes[s] = kPrimes[n % std::size(kPrimes)];
      odd[s] = 2 * s + 13 + n;
      large[s] = 64 + 3 * n++;
    }
    for (const uint32_t batch : {1u, 3u}) {
      offer(with_batch(c, batch));
      offer(with_batch(resized(c, primes), batch));
      offer(with_batch(resized(c, odd), batch));
    }
    offer(resized(c, ones));
    offer(with_batch(resized(c, large), 2));
    offer(with_batch(c, 17));
    // One input in a batch, the others shared by it.
    for (size_t k = 0; k < c.inputs.size() && c.inputs.size() > 1 && k < 4; ++k) {
      Case some = with_batch(c, 1);
      if (some.inputs[k]) some.inputs[k]->batch = 3;
      offer(std::move(some));
    }
    // Other ranks, the same for all inputs.
    const std::vector<std::vector<uint32_t>> shapes = {
        {}, {1}, {5}, {2, 3}, {1, 4}, {4, 1}, {2, 3, 2}, {2, 1, 3, 2}, {2, 1, 2, 1, 2, 1, 2, 1}};
    for (const auto& shape : shapes) {
      Case other = c;
      for (auto& d : other.inputs)
        if (d) d = Dim(std::span<const uint32_t>(shape), d->batch);
      offer(std::move(other));
    }
  }
  std::stable_sort(cases.begin(), cases.end(),
                   [](const Case& a, const Case& b) { return a.numbers() < b.numbers(); });
  return cases;
}

Values draw_values(const Case& c, uint64_t seed) {
  RandomEngine r(seed, 1);
  Values values;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    Numbers v(c.inputs[i] ? c.inputs[i]->total() : 0);
    const trl_in_spec& spec = c.op->in(i);
    const bool whole = spec.dtype != 0 && spec.dtype != TRL_F32 && spec.dtype != TRL_F64;
    for (double& x : v) x = whole ? double(r.below(2)) : draw(r, spec.domain);
    values.push_back(std::move(v));
  }
  return values;
}

}  // namespace trellis::validate
