// SPDX-License-Identifier: Apache-2.0
//
// A host for one plugin, made for watching it: own trl.exec/1 (scratch that is guarded, poisoned,
// counted and can fail; a parallel_for that splits as told; invoke), trl.linalg/1 (plain loops; can
// fail), trl.registry/1, trl.devices/1, trl.options/1, and trl.graph/1 on top of a real graph.
#pragma once

#include <trellis/abi/abi.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <trellis/expr.hpp>
#include <trellis/graph.hpp>
#include <trellis/plugin.hpp>
#include <trellis/runtime.hpp>
#include <vector>

#include "validate/guarded.hpp"

namespace trellis::validate {

inline std::string_view view_of(const trl_str& s) {
  return s.p ? std::string_view(s.p, s.n) : std::string_view();
}

// Which of a call's requests fails: the n-th of its kind, counted from 0; -1: none.
struct Faults {
  int64_t scratch = -1, parallel = -1, linalg = -1, invoke = -1, graph = -1;
};

// How parallel_for cuts its range.
enum class Split { whole, grains, backwards, threads };

class BenchHost;

// One call into the plugin and what happened in it. Every thread has its own.
class BenchCall : public trl_call {
 public:
  explicit BenchCall(BenchHost& host);

  // Set before a call.
  Faults faults;
  Split split = Split::whole;
  uint8_t poison = 0xA5;
  bool revokes_scratch = false;  // scratch of one call is inaccessible in the next
  Graph* graph = nullptr;        // where trl.graph/1 adds nodes
  uint32_t attr_batch = 1;       // batch elements of the lists that the callback is given
  std::vector<Expr> exprs;       // by trl_expr::node; [0] is absent

  // Of the last run().
  trl_status status = TRL_OK;  // of the first fail()
  std::string text;
  struct Counts {
    int64_t scratch = 0, scratch_bytes = 0, parallel = 0, linalg = 0, invoke = 0, graph = 0;
    uint64_t allocations = 0;  // on the heap, by this thread, those of the host's side left out
  } counts;

  // Calls into the plugin: counts from zero, scratch gone afterwards. Throws Failure when an
  // exception leaves the callback, or when scratch was written beside. `what` names the callback.
  template <class F>
  trl_status run(std::string_view what, F&& callback) {
    begin();
    const trl_status returned = contain(what, std::function<trl_status()>(callback));
    end(what);
    return returned;
  }
  // The same for a callback that must succeed: throws Failure with its text.
  template <class F>
  void must(std::string_view what, F&& callback) {
    succeed(what, run(what, std::forward<F>(callback)));
  }
  void succeed(std::string_view what, trl_status returned) const;

  trl_expr to_c(const Expr& e);
  const Expr& from_c(trl_expr e) const;

  BenchHost& bench;

 private:
  friend struct BenchApi;
  void begin();
  trl_status contain(std::string_view what, const std::function<trl_status()>& callback);
  void end(std::string_view what);

  std::vector<Guarded> scratch_, revoked_;
};

class BenchHost {
 public:
  // Opens the library and calls its entry; init by itself. Throws Failure.
  BenchHost(const PluginInfo& plugin, std::function<const Runtime&()> runtime);
  ~BenchHost();
  BenchHost(const BenchHost&) = delete;
  BenchHost& operator=(const BenchHost&) = delete;

  const trl_plugin& tables() const { return tables_; }
  trl_entry_fn entry() const { return entry_; }
  // What init returned; called on first use. Throws Failure when it fails.
  void* self();

  // Another host table: with another minor, or one that offers no interface.
  static const trl_host* host_table(uint32_t minor = TRL_ABI_MINOR, bool offers = true);
  const Runtime& runtime() const { return runtime_(); }

  // What the plugin resolved.
  struct Handle {
    std::string op;
    std::vector<std::string> keys;
  };
  std::vector<Handle> handles;  // by trl_op_handle - 1

 private:
  std::function<const Runtime&()> runtime_;
  trl_entry_fn entry_ = nullptr;
  trl_plugin tables_{};
  void* self_ = nullptr;
  bool initialised_ = false;
};

}  // namespace trellis::validate
