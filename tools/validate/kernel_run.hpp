// SPDX-License-Identifier: Apache-2.0
//
// One application of an operator to numbers, called directly: create, forward, backward, destroy,
// in guarded memory. Every call checks what every call must keep: inputs, gradients of outputs and
// attributes as they were, nothing written beside a buffer, and an error with a text or none.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "validate/cases.hpp"

namespace trellis::validate {

struct RunOptions {
  DType dtype = DType::f64;
  uint32_t flags = TRL_CALL_TRAIN;  // TRL_CALL_*
  uint8_t poison = 0xA5;            // of outputs, scratch and gradients to store
  uint8_t around = 0xC5;            // of the readable bytes behind a buffer
  size_t shift = 0;                 // bytes by which all buffers miss an alignment of 64
  bool pointers = false;            // inputs as one pointer per batch element
  Split split = Split::whole;
  uint64_t stream = 1;                // of the first batch element; the others count on
  std::vector<trl_stream> streams{};  // instead
};

enum class Wanted { no, add, store };

struct Gradients {
  std::vector<Wanted> wanted;  // by input; what cannot have a gradient is never wanted
  std::vector<bool> given;     // by visible output; empty: all
  std::vector<Numbers> start;  // by input: what is there before (add); empty: zeros
};

class KernelRun {
 public:
  // Throws Failure when the operator has no kernel of this type, or refuses the case.
  KernelRun(BenchHost& bench, const Case& c, const Values& values, const RunOptions& options = {});
  ~KernelRun();
  KernelRun(const KernelRun&) = delete;
  KernelRun& operator=(const KernelRun&) = delete;

  // Fill outputs with poison and call. Throw Failure when the kernel fails or breaks something.
  void forward();
  void backward(const std::vector<Numbers>& d_out, const Gradients& wanted);
  // The same without the demand that it succeeds: its status; the text is in call().text.
  trl_status try_forward();
  trl_status try_backward(const std::vector<Numbers>& d_out, const Gradients& wanted);
  // create, when it was not called yet; every forward does.
  void create();
  // destroy, when create was called. Throws Failure when an exception leaves it.
  void destroy();

  uint32_t n_out() const { return static_cast<uint32_t>(out_.size()); }
  uint32_t n_visible() const { return case_.op->n_visible(); }
  Dim out_dim(uint32_t o) const { return Dim(inferred_.out[o]); }
  DType out_dtype(uint32_t o) const { return static_cast<DType>(inferred_.dtypes[o]); }
  DType in_dtype(size_t i) const { return static_cast<DType>(in_tensors_[i].dtype); }
  bool is_view() const { return inferred_.view_of >= 0; }
  Numbers output(uint32_t o) const;
  std::vector<Numbers> outputs() const;  // the visible ones
  const Guarded& out_bytes(uint32_t o) const { return out_[o]; }
  const Guarded& gradient_bytes(size_t i) const { return d_in_[i]; }
  Numbers gradient(size_t i) const;  // of input i; empty: not wanted
  std::vector<Numbers> gradients() const;
  std::vector<std::string> unwritten() const;  // "output 0 element 3" for elements that hold poison
  BenchCall& call() { return call_; }
  const Case& get_case() const { return case_; }
  // "core.tanh({5}) f64".
  std::string text() const;
  // Whether input i can receive a gradient.
  bool takes_gradient(size_t i) const;
  // All memory that the plugin was given moves elsewhere, with what is in it; where it was, every access is fatal.
  void move_memory();
  // create, forward, backward (unless it is not given) and destroy on the memory of the last calls,
  // with no look at the results. Throws Failure when one fails.
  void cycle(bool with_backward);
  // One bare call, for its cost: its status.
  trl_status bare_forward();
  trl_status bare_backward();

 private:
  void set_input(size_t i);
  void set_attrs();
  void set_output(uint32_t o);
  trl_fwd_args forward_args();
  trl_bwd_args backward_args();
  [[noreturn]] void broken(std::string_view what, const std::string& fact) const;
  void check_all(std::string_view what, bool is_backward);

  const Case case_;
  const Values values_;
  const RunOptions options_;
  const trl_kernel_desc* kernel_ = nullptr;
  BenchCall call_;
  Inferred inferred_;
  void* state_ = nullptr;
  bool created_ = false;
  std::vector<trl_attr> attrs_, interned_;
  std::vector<trl_stream> streams_;
  std::vector<Guarded> lists_;  // values and offsets of attributes
  std::vector<Guarded> in_, out_, d_out_, d_in_, revoked_;
  std::vector<std::vector<Guarded>> parts_;  // of inputs given by pointers
  std::vector<std::vector<void*>> pointers_;
  std::vector<trl_tensor> in_tensors_, out_tensors_, d_out_tensors_, d_in_tensors_;
  // What the last backward got: NULL where it is not kept.
  std::vector<trl_tensor> kept_in_, kept_out_;
};

// Numbers in the element type of a buffer and back.
void put_numbers(void* to, DType dtype, const Numbers& numbers);
Numbers get_numbers(const void* from, DType dtype, uint64_t n);

// Random numbers in [-1, 1) for the gradients of the visible float outputs; empty lists for others.
std::vector<Numbers> draw_gradients(const KernelRun& run, uint64_t seed);
// All inputs that can have a gradient, in this way.
Gradients all_wanted(const KernelRun& run, Wanted how);
// Whether backward can be asked for anything: a kernel with backward, a float output, an input.
bool is_differentiable(const Op& op, const KernelRun& run);

// "" when the visible outputs (and the hidden ones where both runs have them) have the same bits,
// else the first element that differs: "output 0 element 3 is 0.1 and then 0.2".
std::string different_bits(const KernelRun& a, const KernelRun& b);
// The same of the gradients of the last backward calls.
std::string different_gradient_bits(const KernelRun& a, const KernelRun& b);

// "" when the lists agree, else the first element that does not: "output 0 element 3 is 0.1
// (needed 0.2)". The tolerance is relative to the larger of 1 and the two numbers; 0: same bits
// (but any NaN is equal to any other).
std::string difference(std::string_view what, const std::vector<Numbers>& got,
                       const std::vector<Numbers>& needed, double tolerance);

}  // namespace trellis::validate
