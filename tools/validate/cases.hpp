// SPDX-License-Identifier: Apache-2.0
//
// What an operator is run on: the examples of its schema and variants of them (other batch sizes,
// sizes of 1, primes and large ones, other ranks), smallest first, as far as its shape inference
// accepts them.
#pragma once

#include <trellis/abi/abi.h>

#include <cstdint>
#include <optional>
#include <string>
#include <trellis/random.hpp>
#include <trellis/tensor.hpp>
#include <vector>

#include "validate/bench_host.hpp"
#include "validate/examples.hpp"

namespace trellis::validate {

// An operator of the plugin, as its tables tell.
class Op {
 public:
  // Throws Failure when the plugin has none of this id.
  Op(BenchHost& bench, const std::string& id);

  const trl_op_desc& desc() const { return *desc_; }
  const std::string& id() const { return id_; }
  // The best kernel of this plugin for the CPU; null: it has none.
  const trl_kernel_desc* kernel(DType dtype) const;
  const trl_in_spec& in(size_t i) const;  // a variadic last one repeats
  const trl_out_spec& out(size_t i) const { return *desc_->out[i]; }
  const trl_attr_spec& attr(size_t i) const { return *desc_->attrs[i]; }
  uint32_t n_visible() const { return n_visible_; }
  bool has(uint32_t flag) const { return (desc_->flags & flag) != 0; }
  bool changes_batch() const;  // some input is TRL_IN_NEVER
  // Why a check cannot apply, as the schema says; empty: it can. "gradient: ..." stands for
  // gradient.difference, "f32: ..." for forward.f32.
  std::string unchecked(std::string_view test) const;

 private:
  const trl_plugin& tables_;
  const trl_op_desc* desc_ = nullptr;
  std::string id_;
  uint32_t n_visible_ = 0;
};

inline bool is_per_batch(const trl_attr_spec& s) {
  return (s.flags & (TRL_ATTR_PER_BATCH | TRL_ATTR_VALUE)) != 0;
}

// The value of one attribute, with its memory.
struct CaseAttr {
  uint32_t type = 0;
  int64_t i = 0;
  double f = 0;
  std::string s;
  std::vector<int64_t> is;
  std::vector<double> fs;
  std::vector<uint32_t> offsets;  // of per-batch ones

  trl_attr c() const;         // points into this
  trl_attr interned() const;  // the same as shape inference sees it: per-batch ones with count 0
  std::string text(const trl_attr_spec& spec) const;
};

struct Case {
  const Op* op = nullptr;
  std::vector<std::optional<Dim>> inputs;
  std::vector<CaseAttr> attrs;  // by spec
  uint32_t batch = 1;           // of the node

  std::string text() const;  // "core.concat({2,3}x4, {2,1}, axis=1)"
  uint64_t numbers() const;  // of all inputs
  // Puts the batch in order after inputs were changed; false: the sizes do not fit.
  bool settle();
};

// What shape inference says of a case.
struct Inferred {
  trl_status status = TRL_OK;
  std::string text;  // of a refusal
  std::vector<trl_dim> out;
  std::vector<uint16_t> dtypes;
  int32_t view_of = -1;
  uint64_t view_offset = 0;
  uint32_t stops_gradient = 0;
};
Inferred infer(BenchCall& call, const Case& c, DType dtype, uint32_t flags);

// An example of the schema. Throws Failure when it does not fit the operator.
Case make_case(const Op& op, const Example& example, uint64_t seed);
// Smallest first; all are accepted by shape inference. Throws Failure when the schema has no
// example, or one that is refused.
std::vector<Case> make_cases(BenchHost& bench, const Op& op, uint64_t seed);

// Numbers for the inputs of a case, from their declared domains.
using Numbers = std::vector<double>;
using Values = std::vector<Numbers>;  // by input; empty where it is absent
Values draw_values(const Case& c, uint64_t seed);
// A new value for a per-batch attribute: ids within their bound.
void draw_attr(Case& c, size_t attr, RandomEngine& random);
// The bound of a per-batch attribute of ids in this case (ids lie below it, or at it where it is
// closed); 0: it has none.
uint64_t bound_of(const Case& c, size_t attr);

}  // namespace trellis::validate
